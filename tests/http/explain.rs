//! `POST /v1/explain`: what it says would happen does happen, its places are right, its bounds hold.

use std::sync::{Arc, OnceLock};

use candle_core::{DType, Device};
use postroom::artifact::load_router;
use postroom::inference::Caller;
use postroom::routing::{
    ExplainConfig, ExplainRequest, Mail, MailContent, MailFields, RoutingConfig, RoutingError, RoutingService,
};
use postroom::server::ServerConfig;
use postroom::tokenizer::WindowConfig;
use serde_json::{Value, json};

use crate::support::{TestServer, crumb, router};

const PATH: &str = "/v1/explain";

/// The shipped router: two legs, attention pooling.
fn crumb_service() -> Arc<RoutingService> {
    static SERVICE: OnceLock<Arc<RoutingService>> = OnceLock::new();
    let start = || {
        let router = load_router(&crumb(), DType::F32, &Device::Cpu).unwrap();
        RoutingService::start(router, RoutingConfig::default()).unwrap()
    };
    SERVICE.get_or_init(start).clone()
}

/// With time enough on the slowest machine: what short time does to an explanation has tests of its own.
fn patient() -> ServerConfig {
    ServerConfig { request_timeout_ms: 600_000, max_request_timeout_ms: 600_000, ..ServerConfig::default() }
}

pub(crate) async fn crumb_server() -> TestServer {
    TestServer::with(patient(), Some(crumb_service())).await
}

/// A router whose windows are short, so that a mail of a few lines has several.
fn short_windows(explain: ExplainConfig) -> Arc<RoutingService> {
    let windows = WindowConfig { max_length: 24, stride: 16, ..WindowConfig::default() };
    RoutingService::start(router(windows), RoutingConfig { explain, ..RoutingConfig::default() }).unwrap()
}

fn items(evidence: &Value) -> &Vec<Value> {
    evidence["items"].as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn place(item: &Value, key: &str) -> usize {
    usize::try_from(item[key].as_u64().unwrap()).unwrap()
}

/// The score of a queue as an answer tells it.
fn score(answer: &Value, queue: &str, what: &str) -> f64 {
    let scores = answer["prediction"]["scores"].as_array().unwrap();
    number(&scores.iter().find(|score| score["queue"] == queue).unwrap()[what])
}

const MAIL: &str = "Hello,\n\nthe \u{1f382} cake that I ordered for Friday never came. Where is it now?\n\nThanks\nAnn";

/// A queue's logit above the mean of all queues.
fn above_the_mean(answer: &Value, queue: &str) -> f64 {
    let scores = answer["prediction"]["scores"].as_array().unwrap();
    let sum: f64 = scores.iter().map(|score| number(&score["logit"])).sum();
    score(answer, queue, "logit") - sum / scores.len() as f64
}

#[tokio::test]
async fn what_is_said_to_happen_without_a_sentence_happens() {
    let server = crumb_server().await;
    let path = format!("{PATH}?unit=sentence&check=false&offsets=byte");
    let ask = |text: String| {
        let (server, path) = (&server, &path);
        async move { server.post_json(path, json!({"subject": "Order", "text": text})).await.json() }
    };
    let answer = ask(MAIL.to_owned()).await;
    let evidence = &answer["evidence"][0];
    let queue = evidence["class"].as_str().unwrap();
    assert_eq!(answer["prediction"]["queue"], queue);
    assert!((number(&evidence["score_full"]) - score(&answer, queue, "logit")).abs() < 1e-5);
    let body: Vec<&Value> = items(evidence).iter().filter(|item| item["field"] == "body").collect();
    assert_eq!(body.len(), 5, "{answer}");
    for item in body {
        let (start, end) = (place(item, "start"), place(item, "end"));
        let shorter = ask(format!("{}{}", &MAIL[..start], &MAIL[end..])).await;
        let lost = above_the_mean(&answer, queue) - above_the_mean(&shorter, queue);
        assert!((number(&item["logit"]) - lost).abs() < 1e-4, "{item}: {lost}");
        assert!((number(&item["p_after"]) - score(&shorter, queue, "p")).abs() < 1e-4, "{item}");
        assert!((number(&item["p_before"]) - score(&answer, queue, "p")).abs() < 1e-5, "{item}");
    }
}

#[tokio::test]
async fn evidence_of_all_queues_adds_up_and_words_are_those_of_the_strongest_sentences() {
    let server = crumb_server().await;
    let answer = server.post(&format!("{PATH}?classes=all"), "text/plain", MAIL).await.json();
    let evidence = answer["evidence"].as_array().unwrap();
    let queues = answer["prediction"]["scores"].as_array().unwrap().len();
    assert_eq!(evidence.len(), 2 * queues);
    assert_eq!(evidence[0]["class"], answer["prediction"]["queue"]);
    for unit in ["sentence", "word"] {
        let of_unit: Vec<&Value> = evidence.iter().filter(|found| found["unit"] == unit).collect();
        for index in 0..items(of_unit[0]).len() {
            let change: f64 = of_unit
                .iter()
                .map(|found| number(&items(found)[index]["p_after"]) - number(&items(found)[index]["p_before"]))
                .sum();
            assert!(change.abs() < 1e-4, "{unit} {index}: {change}");
        }
    }
    let sentences = items(&evidence[0]);
    for word in items(&evidence[1]) {
        let inside = |sentence: &&Value| {
            place(sentence, "start") <= place(word, "start") && place(word, "end") <= place(sentence, "end")
        };
        assert!(sentences.iter().any(|sentence| inside(&sentence)), "{word}");
    }
    // One forward each for the mail, the empty mail, sentences, words, ten random choices and what is highlighted.
    let forwards = 2 + sentences.len() + items(&evidence[1]).len() + 11;
    assert_eq!(answer["cost"]["forwards"], forwards);
}

#[tokio::test]
async fn a_mail_of_one_sentence_loses_all_but_the_empty_mails_score() {
    let server = crumb_server().await;
    let text = "Where is the cake that I ordered for Friday?";
    let ask = |perturb: &'static str| {
        let server = &server;
        async move {
            let path = format!("{PATH}?unit=sentence&against=runner_up&perturb={perturb}");
            let answer = server.post(&path, "text/plain", text).await.json();
            let evidence = answer["evidence"][0].clone();
            assert!(evidence["against"].is_string() && evidence["perturb"] == perturb, "{evidence}");
            (evidence, answer["check"]["p_empty"].clone())
        }
    };
    let (deleted, p_empty) = ask("delete").await;
    let lost = number(&deleted["score_full"]) - number(&deleted["score_baseline"]);
    assert!((number(&items(&deleted)[0]["logit"]) - lost).abs() < 1e-5, "{deleted}");
    // A mail of hidden words is not the mail without any text, which is what both are counted from.
    let (hidden, p_empty_of_hidden) = ask("mask").await;
    assert_eq!((&hidden["score_baseline"], &p_empty_of_hidden), (&deleted["score_baseline"], &p_empty));
    let lost = number(&hidden["score_full"]) - number(&hidden["score_baseline"]);
    assert!((number(&items(&hidden)[0]["logit"]) - lost).abs() > 1e-3, "{hidden}");
}

#[tokio::test]
async fn places_hold_in_every_unit_and_skipped_parts_are_named() {
    let server = crumb_server().await;
    let html = "<p>My <b>caf\u{e9}</b> order &amp; \u{1f382} is late. Where is it?</p><p>Ann</p>";
    let path = format!("{PATH}?unit=word&check=false&offsets=utf16");
    let answer = server.post_json(&path, json!({"html": html})).await.json();
    let units: Vec<u16> = html.encode_utf16().collect();
    for item in items(&answer["evidence"][0]) {
        let text = String::from_utf16(&units[place(item, "start")..place(item, "end")]).unwrap();
        assert_eq!(text, item["text"].as_str().unwrap());
    }
    let reply = "It never came.\n\nOn Mon, 5 Jan 2026 at 10:12, Desk <desk@example.org> wrote:\n> It left today.\n";
    let answer = server.post(&format!("{PATH}?check=false&offsets=byte"), "text/plain", reply).await.json();
    let skipped = &answer["text"]["skipped"][0];
    assert_eq!(skipped["why"], "quote", "{answer}");
    assert!(reply[place(skipped, "start")..place(skipped, "end")].contains("> It left today."));
}

#[tokio::test]
async fn the_check_is_seeded_and_says_what_it_measured() {
    let server = crumb_server().await;
    let ask = |seed: u64| {
        let server = &server;
        async move { server.post(&format!("{PATH}?seed={seed}"), "text/plain", MAIL).await.json() }
    };
    let (first, again, other) = (ask(1).await, ask(1).await, ask(2).await);
    assert_eq!(first["check"], again["check"]);
    assert_ne!(first["check"]["p_without_random_mean"], other["check"]["p_without_random_mean"]);
    let check = &first["check"];
    assert_eq!(
        (&check["random_runs"], &check["unit"], &check["method"]),
        (&json!(10), &json!("word"), &json!("occlusion"))
    );
    assert!(number(&check["p_without_top"]) < number(&check["p_full"]), "{check}");
    assert!(["supported", "weak", "not_supported", "undecidable"].contains(&check["verdict"].as_str().unwrap()));
    let short = server.post(PATH, "text/plain", "Where is my cake?").await.json();
    assert_eq!((&short["check"]["verdict"], &short["check"]["why"]), (&json!("undecidable"), &json!("too_short")));
}

#[tokio::test]
async fn a_long_mail_is_explained_within_its_budget_and_says_what_was_grouped() {
    let explain = ExplainConfig { max_tokens: 4000, max_sentences: 8, ..ExplainConfig::default() };
    let server = TestServer::with(patient(), Some(short_windows(explain))).await;
    let text = "The cake was cold today. Where is my money? I want to know soon.\n".repeat(5);
    let answer = server.post(PATH, "text/plain", text.clone()).await.json();
    let sentences = &answer["evidence"][0];
    assert_eq!(sentences["units_found"], 15);
    // The groups tile the mail, and the strongest was divided down to a sentence.
    let members = |item: &Value| item["members"].as_u64().unwrap_or(1);
    assert_eq!(items(sentences).iter().map(members).sum::<u64>(), 15, "{sentences}");
    let strength = |item: &&Value| number(&item["logit"]).abs();
    let strongest = items(sentences).iter().max_by(|a, b| strength(a).total_cmp(&strength(b))).unwrap();
    assert_eq!(members(strongest), 1, "{sentences}");
    let notes = answer["notes"].as_array().unwrap();
    for note in ["sentences_grouped", "windows_keep_their_places"] {
        assert!(notes.contains(&json!(note)), "{notes:?}");
    }
    assert_eq!(answer["check"]["unit"], "sentence");
    assert!(answer["cost"]["tokens"].as_u64().unwrap() <= 4000, "{}", answer["cost"]);
    // The whole mail is decided as it is routed.
    let maps = server.post("/v1/attention", "text/plain", text.clone()).await.json();
    for score in maps["prediction"]["scores"].as_array().unwrap() {
        let queue = score["queue"].as_str().unwrap();
        assert!((number(&score["logit"]) - self::score(&answer, queue, "logit")).abs() < 1e-4, "{queue}");
    }
    let problem = server.post(PATH, "text/plain", text.repeat(20)).await.problem(413, "explanation_too_large");
    assert_eq!(problem["limit"], 4000);
}

#[tokio::test]
async fn what_does_not_exist_is_refused_with_what_does() {
    let server = crumb_server().await;
    for (query, code, valid) in [
        ("classes=nobody", "unknown_queue", "late-deliveries"),
        ("against=nobody", "unknown_queue", "late-deliveries"),
        ("method=guess", "invalid_parameter", "occlusion"),
        ("unit=page", "invalid_parameter", "sentence"),
        ("perturb=burn", "invalid_parameter", "mask"),
        ("seed=-1", "invalid_parameter", "a whole number from 0 to 999999999999999"),
        ("seed=1000000000000000", "invalid_parameter", "a whole number from 0 to 999999999999999"),
        ("seed=%2B1", "invalid_parameter", "a whole number from 0 to 999999999999999"),
        ("class=a", "unknown_parameter", "classes"),
    ] {
        let problem = server.post(&format!("{PATH}?{query}"), "text/plain", MAIL).await.problem(422, code);
        assert!(problem["valid"].as_array().unwrap().contains(&json!(valid)), "{query}: {problem}");
    }
    server.post(PATH, "text/plain", " \n").await.problem(422, "nothing_to_read");
    server.post("/v1/route?explain=long", "text/plain", MAIL).await.problem(422, "invalid_parameter");
}

#[tokio::test]
async fn a_decision_comes_with_a_short_explanation_on_request() {
    let server = crumb_server().await;
    let plain = server.post("/v1/route", "text/plain", MAIL).await.json();
    assert!(plain.get("explanation").is_none());
    let answer = server.post("/v1/route?explain=brief", "text/plain", MAIL).await.json();
    assert_eq!(answer["candidates"], plain["candidates"]);
    let explanation = &answer["explanation"];
    let spans = explanation["spans"].as_array().unwrap();
    assert!((1..=5).contains(&spans.len()), "{explanation}");
    assert!(spans.is_sorted_by(|a, b| number(&a["logit"]) >= number(&b["logit"])));
    assert!(explanation["check"]["verdict"].is_string());
    let empty = server.post_json("/v1/route?explain=brief", json!({"text": ""})).await.json();
    assert_eq!(empty["explanation"], json!({"available": false, "reason": "nothing_to_read"}));
}

#[tokio::test]
async fn too_many_explanations_are_refused_and_mail_is_routed_all_the_same() {
    let service = short_windows(ExplainConfig { max_running: 0, ..ExplainConfig::default() });
    let server = TestServer::with(ServerConfig::default(), Some(service)).await;
    let reply = server.post(PATH, "text/plain", MAIL).await;
    reply.problem(503, "explanations_full");
    assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    let answer = server.post("/v1/route?explain=brief", "text/plain", MAIL).await.json();
    assert_eq!(answer["explanation"], json!({"available": false, "reason": "busy"}));
    server.answers_good_mail().await;
}

#[tokio::test]
async fn a_caller_who_leaves_takes_the_explanation_along() {
    let service = short_windows(ExplainConfig { max_running: 1, ..ExplainConfig::default() });
    let fields = MailFields { text: Some(MAIL.to_owned()), ..MailFields::default() };
    let mail = Mail { id: None, content: MailContent::Fields(fields) };
    let explain = |mail: Mail| {
        let service = Arc::clone(&service);
        async move { service.explain(mail, &ExplainRequest::default(), Caller::default()).await }
    };
    let left = tokio::spawn(explain(mail.clone()));
    tokio::task::yield_now().await;
    let refused = explain(mail.clone()).await;
    assert!(matches!(refused, Err(RoutingError::TooManyExplanations { limit: 1, .. })), "{refused:?}");
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    explain(mail).await.unwrap();
}

#[tokio::test]
async fn every_method_answers_and_its_evidence_is_of_the_router_that_routes() {
    let server = crumb_server().await;
    let path = format!("{PATH}?method=occlusion,relevance,gradxinput,attention,rollout&unit=word");
    let answer = server.post(&path, "text/plain", MAIL).await.json();
    let evidence = answer["evidence"].as_array().unwrap();
    let methods: Vec<&str> = evidence.iter().map(|found| found["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["occlusion", "relevance", "gradxinput", "attention", "rollout"], "{answer}");
    let words = items(&evidence[0]).len();
    for found in evidence {
        assert_eq!(items(found).len(), words);
        // The readable network with its own copy of the weights says what the fast one says.
        assert!((number(&found["score_full"]) - number(&evidence[0]["score_full"])).abs() < 1e-3, "{found}");
        let key = if found["signed"] == true { "logit" } else { "weight" };
        assert!(items(found).iter().any(|item| number(&item[key]) != 0.0), "{found}");
        if found["signed"] == false {
            assert!(items(found).iter().all(|item| number(&item[key]) >= 0.0), "{found}");
        }
    }
    // What attention spreads over the words and the special tokens is 1 in all.
    for clue in &evidence[3..] {
        let sum: f64 = items(clue).iter().map(|item| number(&item["weight"])).sum();
        assert!(sum > 0.1 && sum < 1.0 + 1e-4, "{sum}");
    }
    let checks = answer["checks"].as_array().unwrap();
    assert_eq!((checks.len(), &checks[0]), (5, &answer["check"]));
    assert!(checks[0]["agreement_with_occlusion"].is_null());
    assert!(checks[1]["agreement_with_occlusion"]["kendall_tau_b"].is_number());
    let agreement = answer["agreement"].as_array().unwrap();
    assert_eq!(agreement.len(), 10);
    assert!(agreement.iter().all(|pair| pair["class"] == answer["prediction"]["queue"]), "{agreement:?}");
    let notes = answer["notes"].as_array().unwrap();
    for note in ["attention_is_a_clue", "gradients_see_the_encoder_only", "word_counts_decide_too"] {
        assert!(notes.contains(&json!(note)), "{notes:?}");
    }
}

#[tokio::test]
async fn methods_agree_on_the_queue_that_was_asked_about() {
    let server = crumb_server().await;
    let path = format!("{PATH}?method=attention,relevance&classes=refunds&against=late-deliveries");
    let answer = server.post(&path, "text/plain", MAIL).await.json();
    let queue = answer["prediction"]["queue"].as_str().unwrap();
    assert_ne!(queue, "refunds");
    let pair = &answer["agreement"].as_array().unwrap()[0];
    assert_eq!((&pair["class"], &pair["against"]), (&json!("refunds"), &json!("late-deliveries")), "{pair}");
    // The check is about the decision whatever was asked about, and says so.
    assert!(answer["checks"].as_array().unwrap().iter().all(|check| check["class"] == queue), "{answer}");
    let unchecked = server.post(&format!("{path}&check=false"), "text/plain", MAIL).await.json();
    assert_eq!(unchecked["agreement"][0]["class"], "refunds", "{unchecked}");
}

#[tokio::test]
async fn all_queues_have_their_share_of_the_budget_or_are_refused_at_once() {
    let text = "Where is the cake I ordered?";
    // Seven tokens and two special ones, 34 passes for sixteen steps: enough for three queues, too little for all six.
    // What the first could spend on more steps is what the others need.
    let explain = ExplainConfig { max_tokens: 1000, ..ExplainConfig::default() };
    let router = load_router(&crumb(), DType::F32, &Device::Cpu).unwrap();
    let service = RoutingService::start(router, RoutingConfig { explain, ..RoutingConfig::default() }).unwrap();
    let server = TestServer::with(patient(), Some(service)).await;
    let path = format!("{PATH}?method=ig&unit=word&check=false");
    let answer = server.post(&format!("{path}&classes=top3"), "text/plain", text).await.json();
    let evidence = answer["evidence"].as_array().unwrap();
    assert!(evidence.len() == 3 && evidence.iter().all(|found| found["method"] == "ig"), "{answer}");
    let queues = answer["prediction"]["scores"].as_array().unwrap().len();
    let reply = server.post(&format!("{path}&classes=all"), "text/plain", text).await;
    let problem = reply.problem(413, "explanation_too_large");
    assert_eq!((&problem["given"], &problem["limit"]), (&json!(queues * 34 * 9), &json!(1000)), "{problem}");
    // Asking about three queues other than the likeliest makes four with the check's.
    let others: Vec<&str> = answer["prediction"]["scores"].as_array().unwrap()[1..4]
        .iter()
        .map(|score| score["queue"].as_str().unwrap())
        .collect();
    let path = format!("{PATH}?method=ig&unit=word&classes={}", others.join(","));
    let problem = server.post(&path, "text/plain", text).await.problem(413, "explanation_too_large");
    assert_eq!(problem["given"], 4 * 34 * 9, "{problem}");
}

#[tokio::test]
async fn integrated_gradients_add_up_to_the_score() {
    let fields = MailFields { text: Some("Where is the cake I ordered?".to_owned()), ..MailFields::default() };
    let mail = Mail { id: None, content: MailContent::Fields(fields) };
    let request = ExplainRequest {
        methods: vec![postroom::routing::Method::Ig],
        unit: postroom::routing::EvidenceUnit::Word,
        check: false,
        ig_steps: Some(64),
        ..ExplainRequest::default()
    };
    let explanation = crumb_service().explain(mail, &request, Caller::default()).await.unwrap();
    let found = &explanation.json()["evidence"][0];
    let sum: f64 = items(found).iter().map(|item| number(&item["logit"])).sum();
    let wanted = number(&found["score_full"]) - number(&found["score_baseline"]);
    assert!((sum - wanted).abs() <= 0.01 * wanted.abs(), "{sum} {wanted}: {found}");
    assert!(found["steps"] == 64 && number(&found["approximation_error"]) <= 0.01, "{found}");
}
