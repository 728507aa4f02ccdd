//! `POST /v1/heads`, `POST /v1/compare`, and the maps of `POST /v1/attention` that need the readable network, in every form.

use postroom::random::SplitMix64;
use safetensors::SafeTensors;
use serde_json::{Value, json};

use crate::explain::crumb_server;
use crate::support::TestServer;

const MAIL: &str = "My eggless cake arrived cold. Can I get a refund?";

fn rows(table: &Value) -> Vec<Vec<f64>> {
    serde_json::from_value(table.clone()).unwrap_or_else(|error| panic!("{error}: {table}"))
}

#[tokio::test]
async fn every_head_has_its_figures_and_silencing_it_an_effect() {
    let server = crumb_server().await;
    let answer = server.post("/v1/heads?ablate=true", "text/plain", MAIL).await.json();
    assert_eq!(answer["schema"], "heads/1", "{answer}");
    for key in ["entropy", "cls_entropy", "sink", "cls", "sep", "self", "previous", "next", "punctuation", "importance"]
    {
        let table = rows(&answer[key]);
        assert!(table.len() == 6 && table.iter().all(|layer| layer.len() == 12), "{key}");
        assert!(table.iter().flatten().all(|value| *value >= 0.0), "{key}");
    }
    let uniform = answer["entropy_uniform"].as_f64().unwrap();
    assert!(rows(&answer["entropy"]).iter().flatten().all(|entropy| *entropy <= uniform + 1e-4));
    let (cls, sep, sink) = (rows(&answer["cls"]), rows(&answer["sep"]), rows(&answer["sink"]));
    assert!((cls[2][3] + sep[2][3] - sink[2][3]).abs() < 1e-4 && sink[2][3] <= 1.0);
    let (ablation, importance) = (rows(&answer["ablation"]), rows(&answer["importance"]));
    let largest = |table: &[Vec<f64>]| table.iter().flatten().fold(0f64, |most, value| most.max(value.abs()));
    assert!(largest(&ablation) > 1e-3 && largest(&importance) > 1e-3);
    let plain = server.post("/v1/heads?class=refunds&against=runner_up", "text/plain", MAIL).await.json();
    assert!(plain["ablation"].is_null() && plain["class"] == "refunds" && plain["against"].is_string());
    server.post("/v1/heads?class=nobody", "text/plain", MAIL).await.problem(422, "unknown_queue");
    server.post("/v1/heads?heads=1", "text/plain", MAIL).await.problem(422, "unknown_parameter");
}

#[tokio::test]
async fn two_mails_are_aligned_and_their_differences_told() {
    let server = crumb_server().await;
    let (a, b) = (json!({"text": "Where is my cake?"}), json!({"text": "Where is my refund, please?"}));
    let answer = server.post_json("/v1/compare", json!({"a": a, "b": b, "seed": 3})).await.json();
    assert_eq!(answer["schema"], "compare/1", "{answer}");
    let text = |side: &str, unit: &Value| {
        let units = answer[side]["units"].as_array().unwrap();
        units[usize::try_from(unit.as_u64().unwrap()).unwrap()]["text"].as_str().unwrap().to_lowercase()
    };
    let pairs = answer["pairs"].as_array().unwrap();
    assert!(pairs.iter().all(|pair| text("a", &pair[0]) == text("b", &pair[1])) && pairs.len() == 4, "{answer}");
    let only = |side: &str, key: &str| -> Vec<String> {
        answer[key].as_array().unwrap().iter().map(|unit| text(side, unit)).collect()
    };
    assert_eq!(only("a", "only_a"), ["cake"]);
    assert_eq!(only("b", "only_b"), ["refund", ",", "please"]);
    for score in answer["differences"]["scores"].as_array().unwrap() {
        let number = |key: &str| score[key].as_f64().unwrap();
        assert!((number("p_b") - number("p_a") - number("p_change")).abs() < 1e-5, "{score}");
    }
    for side in ["a", "b"] {
        let order = &answer[side]["order"];
        assert!(order["p_shuffled"].as_array().unwrap().len() == 10 && order["matters"].is_boolean(), "{order}");
    }
    let same = server.post_json("/v1/compare?shuffle=false", json!({"a": a, "b": a})).await.json();
    assert!(same["a"]["order"].is_null() && same["differences"]["total_variation"] == 0.0, "{same}");
    assert_eq!((&same["only_a"], &same["differences"]["queue_changed"]), (&json!([]), &json!(false)));
    server.post_json("/v1/compare", json!({"a": a})).await.problem(422, "missing_field");
    server.post_json("/v1/compare", json!({"a": a, "b": {"body": "x"}})).await.problem(422, "unknown_field");
    server.post("/v1/compare", "text/plain", "a").await.problem(415, "unsupported_media_type");
}

#[tokio::test]
async fn a_shuffled_mail_is_decided_as_if_it_had_been_posted_so() {
    let server = crumb_server().await;
    // Which words the negation waves off depends on their order.
    let (a, b) = (json!({"text": "Please cancel the order, not the refund."}), json!({"text": "Where is my order?"}));
    let answer = server.post_json("/v1/compare", json!({"a": a, "b": b, "seed": 0})).await.json();
    let (order, units) = (&answer["a"]["order"], answer["a"]["units"].as_array().unwrap());
    for (run, told) in order["p_shuffled"].as_array().unwrap().iter().enumerate() {
        let mut words: Vec<&str> = units.iter().map(|unit| unit["text"].as_str().unwrap()).collect();
        SplitMix64::stream(0, run as u64).shuffle(&mut words);
        let posted = words.join(" ");
        let map = server.post("/v1/attention", "text/plain", posted.clone()).await.json();
        let scores = map["prediction"]["scores"].as_array().unwrap();
        let p = scores.iter().find(|score| score["queue"] == order["class"]).unwrap()["p"].as_f64().unwrap();
        assert!((told.as_f64().unwrap() - p).abs() < 1e-4, "{posted}: {told}, but posted {p}");
    }
}

#[tokio::test]
async fn rollout_keeps_rows_and_relevance_is_about_a_queue() {
    let server = crumb_server().await;
    let ask = |query: &'static str| {
        let server = &server;
        async move { server.post(&format!("/v1/attention?{query}"), "text/plain", MAIL).await.json() }
    };
    let answer = ask("reduce=rollout&rows=all&precision=9").await;
    let attention = &answer["attention"];
    assert_eq!(
        (&attention["layers"], &attention["heads"], &attention["kind"]),
        (&json!(["all"]), &json!(["rollout"]), &json!("rollout"))
    );
    for sum in attention["row_sum"][0][0].as_array().unwrap() {
        assert!((sum.as_f64().unwrap() - 1.0).abs() < 1e-4, "{sum}");
    }
    let own = ask("reduce=relevance&precision=9").await;
    assert_eq!(own["attention"]["class"], own["prediction"]["queue"]);
    let other = ask("reduce=relevance&precision=9&class=allergy-questions").await;
    assert_eq!(other["attention"]["class"], "allergy-questions");
    assert_ne!(own["attention"]["data"], other["attention"]["data"]);
    let norm = ask("weight=norm&layers=all&reduce=none&precision=9").await;
    assert_eq!(norm["attention"]["shape"].as_array().unwrap()[..2], [json!(6), json!(12)]);
    // How much each unit counts in the pooling: the whole mail in all.
    for answer in [&answer, &own, &norm, &ask("layers=last").await] {
        let pooling = &answer["pooling"];
        let sum: f64 = pooling["weights"].as_array().unwrap().iter().map(|weight| weight.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-3 && pooling["class"].is_string(), "{pooling}");
    }
}

#[tokio::test]
async fn what_means_nothing_together_is_refused() {
    let server = crumb_server().await;
    for (query, field) in [
        ("reduce=rollout&heads=3", "heads"),
        ("reduce=relevance&layers=0,1", "layers"),
        ("reduce=rollout&class=refunds", "class"),
        ("against=runner_up", "class"),
        ("reduce=rollout&weight=norm", "weight"),
        ("dtype=f32", "dtype"),
        ("format=npy&dtype=u8", "dtype"),
    ] {
        let problem =
            server.post(&format!("/v1/attention?{query}"), "text/plain", MAIL).await.problem(422, "contradiction");
        assert_eq!(problem["field"], field, "{query}");
    }
    let reply = server.post("/v1/attention?reduce=relevance&class=nobody", "text/plain", MAIL).await;
    reply.problem(422, "unknown_queue");
}

#[tokio::test]
async fn a_map_comes_in_every_form_as_a_file_to_be_saved() {
    let server = crumb_server().await;
    let query = "/v1/attention?layers=0,5&heads=0,1,2&reduce=none&rows=all";
    let shape = server.post(query, "text/plain", MAIL).await.json()["attention"]["shape"].clone();
    let cells: u64 = shape.as_array().unwrap().iter().map(|size| size.as_u64().unwrap()).product();
    for (form, media_type, start) in [
        ("npy&dtype=f32", "application/octet-stream", &b"\x93NUMPY"[..]),
        ("safetensors&dtype=u8", "application/octet-stream", &b""[..]),
        ("png", "image/png", &b"\x89PNG"[..]),
        ("svg", "image/svg+xml", &b"<svg "[..]),
        ("html", "text/html; charset=utf-8", &b"<!doctype html>"[..]),
    ] {
        let reply = server.post(&format!("{query}&format={form}"), "text/plain", MAIL).await;
        assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, media_type), "{reply:?}");
        assert!(reply.header("content-disposition").starts_with("attachment"), "{form}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff");
        assert!(reply.body.starts_with(start), "{form}");
        if form.starts_with("npy") {
            assert_eq!((reply.body.len() as u64 - 4 * cells) % 64, 0);
        }
        if form.starts_with("safetensors") {
            let (_, metadata) = SafeTensors::read_metadata(&reply.body).unwrap();
            let meta: Value = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["meta"]).unwrap();
            assert!(meta["units"].is_array() && meta["attention"].get("data").is_none());
            let read = SafeTensors::deserialize(&reply.body).unwrap();
            assert_eq!(json!(read.tensor("attention").unwrap().shape()), shape);
        }
    }
}

#[tokio::test]
async fn a_long_mail_says_which_window_and_gets_a_file_of_each() {
    let server = TestServer::start().await;
    let mail = "Where is my order ? ".repeat(80);
    let problem =
        server.post("/v1/attention?format=png", "text/plain", mail.clone()).await.problem(422, "several_windows");
    assert_eq!(problem["valid"], json!(["window=0", "window=1"]));
    let reply = server.post("/v1/attention?format=png&window=1", "text/plain", mail.clone()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let one = server.post("/v1/attention?window=1", "text/plain", mail).await.json();
    assert!(one.get("windows").is_none() && one["pooling"]["sum"].as_f64().unwrap() < 1.0, "{one}");
}
