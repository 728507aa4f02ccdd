//! Requests from public bug reports of other software, and what must become of them.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

async fn post(server: &TestServer, path: &str, name: &str) -> Reply {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/http").join(name);
    server.post(path, "application/json", std::fs::read(file).unwrap()).await
}

/// <https://github.com/lijunzh/koda/pull/917>: a cut at a byte inside a character.
#[tokio::test]
async fn two_byte_characters_at_every_limit_are_read() {
    let server = TestServer::start().await;
    assert_eq!(post(&server, "/v1/route", "api-multibyte-cut.json").await.status, 200);
    let reply = post(&server, "/v1/attention", "api-multibyte-cut.json").await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// <https://github.com/huggingface/text-embeddings-inference/issues/394>: megabytes of text.
#[tokio::test]
async fn megabytes_of_text_are_refused_at_the_documented_limit() {
    let server = TestServer::start().await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/http/api-huge-text.json");
    let recipe: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let part = |key: &str| recipe["x_generate"][key].as_str().unwrap();
    let times = usize::try_from(recipe["x_generate"]["times"].as_u64().unwrap()).unwrap();
    let text = part("prefix").to_owned() + &part("repeat").repeat(times);
    let mail = json!({"subject": recipe["subject"], "text": text});
    server.post_json("/v1/route", mail).await.problem(413, "body_too_large");
    server.answers_good_mail().await;
}

/// <https://github.com/huggingface/text-embeddings-inference/issues/356>: longer than the model's positions.
#[tokio::test]
async fn text_over_the_models_length_is_read_to_its_end() {
    let server = TestServer::start().await;
    let reply = post(&server, "/v1/route", "api-over-token-limit.json").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let input = reply.json()["input"].clone();
    assert!(input["tokens_total"].as_u64().unwrap() > 512, "{input}");
    assert_eq!((&input["tokens_used"], &input["truncated"]), (&input["tokens_total"], &json!(false)));
}

/// <https://github.com/serde-rs/json/issues/495>: half of an emoji.
#[tokio::test]
async fn half_an_emoji_does_not_cost_the_mail() {
    let server = TestServer::start().await;
    let reply = post(&server, "/v1/route", "api-lone-surrogate.json").await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

/// <https://github.com/dotnet/machinelearning/issues/7725>: nothing but emoji.
#[tokio::test]
async fn emoji_alone_are_kept_and_go_to_a_person() {
    let server = TestServer::start().await;
    let decision = post(&server, "/v1/route", "api-symbols-emoji.json").await.json();
    assert_eq!(decision["decision"], "needs_human", "{decision}");
    let answer = post(&server, "/v1/attention", "api-symbols-emoji.json").await.json();
    let shown = answer["units"].to_string();
    assert!(shown.contains('\u{1f44d}'), "{shown}");
}
