//! `POST /v1/route`: the three forms of a mail, and the decision.

use postroom::routing::{RoutingConfig, RoutingService};
use postroom::server::ServerConfig;
use postroom::tokenizer::WindowConfig;
use serde_json::{Value, json};

use crate::support::{TestServer, crumb, router};

const MIME: &str = "From: Ann <ann@mail.example>\r\nSubject: Order 12\r\n\r\nWhere is my order? It is late.\r\n";

#[tokio::test]
async fn each_content_type_is_routed() {
    let server = TestServer::start().await;
    let text = "Where is my order? It is late.";
    for (content_type, body) in [
        ("application/json", json!({"subject": "Order 12", "text": text}).to_string()),
        (
            "application/json; charset=utf-8",
            json!({"html": format!("<p>{text}</p>"), "from": "ann@mail.example"}).to_string(),
        ),
        ("text/plain", text.to_owned()),
        ("Text/Plain;charset=UTF-8", text.to_owned()),
        ("message/rfc822", MIME.to_owned()),
    ] {
        let reply = server.post("/v1/route", content_type, body).await;
        assert_eq!(reply.status, 200, "{content_type}: {reply:?}");
        assert_eq!(reply.header("content-type"), "application/json");
        assert_eq!(reply.json()["decision"], "route", "{reply:?}");
    }
}

#[tokio::test]
async fn the_same_words_get_the_same_answer_in_every_form() {
    let server = TestServer::start().await;
    let confidence = |reply: crate::support::Reply| reply.json()["confidence"].as_f64().unwrap();
    let json = json!({"subject": "Order 12", "text": "Where is my order? It is late.\n"});
    let by_json = confidence(server.post_json("/v1/route", json).await);
    let by_mime = confidence(server.post("/v1/route", "message/rfc822", MIME).await);
    assert!((by_json - by_mime).abs() < 1e-6, "{by_json} {by_mime}");
}

#[tokio::test]
async fn the_decision_has_its_whole_shape() {
    let server = TestServer::start().await;
    let mail = json!({
        "id": "ticket-7", "subject": "Cold cake", "text": "My eggless cake arrived cold. Can I get a refund for it?",
        "from": "ann@mail.example", "headers": {"X-Shop": "Crumb", "Received": ["a", "b"]},
    });
    let reply = server.post_json("/v1/route", mail).await;
    let decision = reply.json();
    assert_eq!(decision["id"], "ticket-7");
    let keys: Vec<&str> = decision.as_object().unwrap().keys().map(String::as_str).collect();
    let expected =
        ["id", "decision", "queue", "confidence", "reasons", "candidates", "mail", "input", "model", "timing_us"];
    assert_eq!(keys, expected);
    assert!(decision["queue"]["id"].is_string() && decision["queue"]["name"].is_string(), "{decision}");
    assert_eq!(decision["candidates"].as_array().unwrap().len(), 3);
    let version = server.get("/v1/model").await.json()["version"].clone();
    assert_eq!(decision["model"], json!({"router": "arbitrary", "version": version, "encoder": "minilm-l6-v2"}));
    assert_eq!(decision["input"]["truncated"], false);
    assert_eq!(decision["input"]["tokens_total"], decision["input"]["tokens_used"]);
    for stage in ["parse", "tokenize", "queue", "model", "total"] {
        assert!(decision["timing_us"][stage].is_u64(), "{decision}");
        assert!(reply.header("server-timing").contains(&format!("{stage};dur=")), "{reply:?}");
    }
}

#[tokio::test]
async fn a_charset_is_honoured() {
    let server = TestServer::start().await;
    let answer = |reply: crate::support::Reply| {
        let answer = reply.json();
        (answer["confidence"].clone(), answer["input"].clone())
    };
    let text = "Die Verk\u{e4}uferin vergass meine Bestellung f\u{fc}r M\u{fc}nchen";
    let latin1: Vec<u8> = text.chars().map(|character| character as u8).collect();
    let by_utf8 = answer(server.post("/v1/route", "text/plain", text).await);
    let by_latin1 = answer(server.post("/v1/route", "text/plain; charset=\"iso-8859-1\"", latin1).await);
    assert_eq!(by_utf8, by_latin1);
}

#[tokio::test]
async fn an_id_is_made_where_none_is_given() {
    let server = TestServer::start().await;
    let first = server.post("/v1/route", "text/plain", "Where is my order?").await.json();
    let second = server.post("/v1/route", "text/plain", "Where is my order?").await.json();
    assert!(first["id"].as_str().unwrap().len() > 8);
    assert_ne!(first["id"], second["id"]);
}

#[tokio::test]
async fn a_mail_over_the_token_ceiling_is_routed_on_what_was_read() {
    let windows = WindowConfig { max_length: 32, stride: 24, max_tokens: 100 };
    let service = RoutingService::start(router(windows), RoutingConfig::default()).unwrap();
    let server = TestServer::with(ServerConfig::default(), Some(service)).await;
    let reply = server.post("/v1/route", "text/plain", "Where is my order? ".repeat(50)).await.json();
    assert_eq!(reply["input"]["truncated"], true, "{reply}");
    assert_eq!(reply["input"]["tokens_used"], 100);
    assert_eq!(reply["input"]["tokens_total"], 250);
    assert!(reply["reasons"].as_array().unwrap().contains(&Value::from("truncated")), "{reply}");
}

#[tokio::test]
async fn a_cold_eggless_cake_goes_to_refunds() {
    use candle_core::{DType, Device};
    let router = postroom::artifact::load_router(&crumb(), DType::F32, &Device::Cpu).unwrap();
    let service = RoutingService::start(router, RoutingConfig::default()).unwrap();
    let server = TestServer::with(ServerConfig::default(), Some(service)).await;
    let mail = json!({"text": "My eggless cake arrived cold. Can I get a refund for it?"});
    let decision = server.post_json("/v1/route", mail).await.json();
    assert_eq!((&decision["decision"], &decision["queue"]["id"]), (&json!("route"), &json!("refunds")), "{decision}");
    assert_eq!(server.get("/v1/model").await.json()["router"], "crumb");
}
