//! `POST /v1/attention`: maps that add up, offsets that point at the mail as posted, refusals that say what would do.

use postroom::server::ServerConfig;
use postroom::tokenizer::WindowConfig;
use serde_json::{Value, json};

use crate::support::{TestServer, router, service_of};

const PATH: &str = "/v1/attention";

#[tokio::test]
async fn the_default_is_the_cls_row_of_the_last_layer() {
    let server = TestServer::start().await;
    let reply = server.post("/v1/attention", "text/plain", "My eggless cake arrived cold.").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = reply.json();
    assert_eq!(answer["schema"], "attention/1");
    let attention = &answer["attention"];
    assert_eq!(attention["layers"], json!(["5"]));
    assert_eq!(attention["heads"], json!(["mean"]));
    assert_eq!(attention["queries"], json!([0]));
    assert_eq!(attention["dims"], json!(["layer", "head", "query", "key"]));
    let units = answer["units"].as_array().unwrap().len();
    assert_eq!(attention["shape"], json!([1, 1, 1, units]));
    assert!(answer["notes"].as_array().unwrap().contains(&json!("attention_is_a_clue")));
    assert!(answer["prediction"]["queue"].is_string());
}

#[tokio::test]
async fn every_row_of_every_head_sums_to_one() {
    let server = TestServer::start().await;
    let mail = json!({"subject": "Cold cake", "text": "My eggless cake arrived cold. Can I get a refund?"});
    for words in ["true", "false"] {
        let path = format!("{PATH}?layers=all&heads=all&reduce=none&rows=all&precision=9&words={words}");
        let answer = server.post_json(&path, mail.clone()).await.json();
        let data = answer["attention"]["data"].as_array().unwrap();
        assert_eq!((data.len(), data[0].as_array().unwrap().len()), (6, 12));
        for row in data.iter().flat_map(elements).flat_map(elements) {
            let sum: f64 = elements(row).map(|weight| weight.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-4, "{sum}");
        }
    }
}

fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

/// The part of a text between two offsets, counted as a client would.
fn slice(text: &str, start: usize, end: usize, unit: &str) -> String {
    match unit {
        "byte" => text[start..end].to_owned(),
        "char" => text.chars().skip(start).take(end - start).collect(),
        _ => String::from_utf16(&text.encode_utf16().collect::<Vec<_>>()[start..end]).unwrap(),
    }
}

#[tokio::test]
async fn offsets_find_each_word_in_the_mail_as_posted() {
    let server = TestServer::start().await;
    let subject = "\u{1f382} Caf\u{e9} order";
    let text = "The cafe\u{301} \u{1f468}\u{200d}\u{1f373} sent \u{1f382}\u{1f382} na\u{ef}ve cakes.\r\n\u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{4f60}\u{597d} co\u{f6}perate?";
    let html = "<p>My <b>caf\u{e9}</b> order &amp; \u{1f382} is <i>la\u{301}te</i></p>";
    for unit in ["byte", "char", "utf16"] {
        for (field, body) in [("text", text), ("html", html)] {
            let path = format!("{PATH}?offsets={unit}");
            let answer = server.post_json(&path, json!({"subject": subject, field: body})).await.json();
            assert_eq!(answer["text"]["offset_unit"], unit);
            let words: Vec<&Value> = elements(&answer["units"]).filter(|word| word["special"] == false).collect();
            assert!(words.len() > 6, "{answer}");
            for word in words {
                let posted = if word["field"] == "subject" { subject } else { body };
                let place = |key: &str| usize::try_from(word[key].as_u64().unwrap()).unwrap();
                assert_eq!(slice(posted, place("start"), place("end"), unit), word["text"].as_str().unwrap(), "{unit}");
            }
            let whole = slice(body, 0, usize::try_from(answer["text"]["length"].as_u64().unwrap()).unwrap(), unit);
            assert_eq!(whole, body);
        }
    }
}

#[tokio::test]
async fn parameters_may_stand_in_the_body() {
    let server = TestServer::start().await;
    let shown = |body: Value| {
        let server = &server;
        async move { server.post_json(PATH, body).await.json()["attention"].clone() }
    };
    let mail = "My cake arrived cold.";
    let attention =
        shown(json!({"text": mail, "layers": [0, "2-3"], "heads": 7, "reduce": "none", "words": false})).await;
    assert_eq!((&attention["layers"], &attention["heads"]), (&json!(["0", "2", "3"]), &json!(["7"])));
    let attention = shown(json!({"text": mail, "layers": "all", "rows": [1, 2], "special": "drop"})).await;
    assert_eq!(attention["queries"], json!([1, 2]));
    assert_eq!(attention["keys"].as_array().unwrap()[0], 1);
    let reply = server.post_json("/v1/attention?layers=0", json!({"text": mail, "layers": 1})).await;
    assert_eq!(reply.problem(422, "repeated_parameter")["field"], "layers");
}

#[tokio::test]
async fn unknown_values_are_refused_with_the_valid_ones() {
    let server = TestServer::start().await;
    for (query, code, field, valid) in [
        ("layers=6", "out_of_range", "layers", json!(["0-5"])),
        ("heads=0,12", "out_of_range", "heads", json!(["0-11"])),
        ("layers=first", "invalid_parameter", "layers", json!(["all", "last", "0,2-4"])),
        ("layers=", "invalid_parameter", "layers", json!(["all", "last", "0,2-4"])),
        ("rows=9999", "out_of_range", "rows", json!(["0-6"])),
        ("reduce=sum", "invalid_parameter", "reduce", json!(["none", "mean", "max", "rollout", "relevance"])),
        ("weight=beta", "invalid_parameter", "weight", json!(["alpha", "norm"])),
        ("format=bmp", "invalid_parameter", "format", json!(["json", "npy", "safetensors", "png", "svg", "html"])),
        ("dtype=f8", "invalid_parameter", "dtype", json!(["f32", "f16", "u8"])),
        ("window=1", "out_of_range", "window", json!(["0-0"])),
        ("words=yes", "invalid_parameter", "words", json!(["true", "false"])),
        ("special=hide", "invalid_parameter", "special", json!(["keep", "drop"])),
        ("offsets=utf8", "invalid_parameter", "offsets", json!(["char", "byte", "utf16"])),
        ("precision=0", "invalid_parameter", "precision", json!(["1-9"])),
    ] {
        let reply = server.post(&format!("{PATH}?{query}"), "text/plain", "My cake arrived cold.").await;
        let problem = reply.problem(422, code);
        assert_eq!((&problem["field"], &problem["valid"]), (&json!(field), &valid), "{query}: {problem}");
    }
    let problem = server.post("/v1/attention?layer=5", "text/plain", "My cake").await.problem(422, "unknown_parameter");
    assert_eq!(problem["field"], "layer");
    assert!(problem["valid"].as_array().unwrap().contains(&json!("layers")));
    let reply = server.post("/v1/attention?layers=0&layers=1", "text/plain", "My cake").await;
    reply.problem(422, "repeated_parameter");
    let reply = server.post_json(PATH, json!({"text": "a", "layers": {"first": 1}})).await;
    assert_eq!(reply.problem(422, "invalid_parameter")["field"], "layers");
    server.answers_good_mail().await;
}

#[tokio::test]
async fn a_mail_without_words_has_no_map() {
    let server = TestServer::start().await;
    server.post(PATH, "text/plain", "  \n").await.problem(422, "nothing_to_read");
}

#[tokio::test]
async fn maps_that_are_too_large_come_with_queries_that_fit() {
    let server = TestServer::start().await;
    let mail = "Where is my order and why is it so late again today ? ".repeat(24);
    let path = format!("{PATH}?layers=all&heads=all&reduce=none&rows=all");
    let problem = server.post(&path, "text/plain", mail.clone()).await.problem(413, "map_too_large");
    assert_eq!(problem["limit"], 262_144);
    assert!(problem["given"].as_u64().unwrap() > 262_144);
    let queries = problem["valid"].as_array().unwrap();
    assert_eq!(queries.len(), 3, "{problem}");
    for query in queries {
        let reply = server.post(&format!("{PATH}?{}", query.as_str().unwrap()), "text/plain", mail.clone()).await;
        assert_eq!(reply.status, 200, "{query}: {reply:?}");
    }
}

#[tokio::test]
async fn a_long_mail_has_a_map_for_each_window() {
    let server = TestServer::start().await;
    let answer = server.post(PATH, "text/plain", "Where is my order ? ".repeat(80)).await.json();
    let windows = answer["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 2, "{answer}");
    assert_eq!((&answer["units"], &answer["window"]), (&windows[0]["units"], &json!(0)));
    assert!(answer["notes"].as_array().unwrap().contains(&json!("each_window_has_its_own_map")));
}

#[tokio::test]
async fn rows_are_those_of_the_windows_that_are_shown() {
    let server = TestServer::start().await;
    let mail = "Where is my order ? ".repeat(80);
    // The first window has this row, the last, which is shorter, has not.
    let all = server.post(&format!("{PATH}?rows=200"), "text/plain", mail.clone()).await.json();
    let queries = |window: usize| all["windows"][window]["attention"]["queries"].clone();
    assert_eq!((queries(0), queries(1)), (json!([200]), json!([])));
    let last = all["windows"][1]["units"].as_array().unwrap().len() - 1;
    let problem = server
        .post(&format!("{PATH}?window=1&rows=200"), "text/plain", mail.clone())
        .await
        .problem(422, "out_of_range");
    assert_eq!((&problem["field"], &problem["valid"]), (&json!("rows"), &json!([format!("0-{last}")])), "{problem}");
    let one = server.post(&format!("{PATH}?window=1&rows={last}"), "text/plain", mail).await.json();
    assert_eq!((&one["window"], &one["attention"]["queries"]), (&json!(1), &json!([last])));
    assert_eq!(one["units"], all["windows"][1]["units"]);
}

#[tokio::test]
async fn what_the_network_would_keep_is_bounded_however_little_is_shown() {
    let server = TestServer::start().await;
    // Fourteen windows: six layers of twelve heads are more than may be kept, though a row of their mean fits an answer.
    let mail = "Where is my order ? ".repeat(600);
    let problem = server.post(&format!("{PATH}?layers=all"), "text/plain", mail).await.problem(413, "map_too_large");
    assert_eq!(problem["limit"], 50_000_000);
    assert!(problem["given"].as_u64().unwrap() > 50_000_000, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("would keep"), "{problem}");
    let queries = problem["valid"].as_array().unwrap();
    assert!(!queries.is_empty() && queries.iter().all(|query| !query.as_str().unwrap().contains("layers=all")));
}

#[tokio::test]
async fn where_the_ceiling_falls_in_the_subject_the_body_is_unread_too() {
    let mail = json!({"subject": "Where is the cake I ordered?", "text": "It never came."});
    let body = json!({"field": "body", "start": 0, "end": 14});
    for (max_tokens, unread) in [
        (3, json!([{"field": "subject", "start": 12, "end": 28}, body])),
        (7, json!([body])),
        (9, json!([{"field": "body", "start": 8, "end": 14}])),
    ] {
        let windows = WindowConfig { max_tokens, ..WindowConfig::default() };
        let server = TestServer::with(ServerConfig::default(), Some(service_of(router(windows)))).await;
        let answer = server.post_json(PATH, mail.clone()).await.json();
        assert_eq!(answer["text"]["unread"], unread, "{max_tokens}");
    }
}
