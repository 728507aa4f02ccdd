//! `Idempotency-Key`: sent again, answered again, done once.

use hyper::Request;
use hyper::body::Bytes;
use postroom::routing::{ExplainConfig, RoutingConfig};
use postroom::server::ServerConfig;
use serde_json::json;
use tokio::task::JoinSet;

use crate::support::{Reply, TestServer, fresh_service, send, shared_service};

fn request(path: &str, key: &str, body: &str) -> Request<Bytes> {
    Request::post(path)
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(Bytes::copy_from_slice(body.as_bytes()))
        .unwrap()
}

fn mail(text: &str) -> String {
    json!({"text": text}).to_string()
}

#[tokio::test]
async fn a_request_that_is_sent_again_gets_the_same_answer() {
    let server = TestServer::start().await;
    let body = mail("Where is my order?");
    let first = server.send(request("/v1/route", "8e03978e", &body)).await;
    assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (200, ""));
    // In quotes, as the draft writes it.
    let again = server.send(request("/v1/route", "\"8e03978e\"", &body)).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (200, "true"));
    // The id was made here: a mail that was routed again would have another.
    assert_eq!(again.body, first.body);
    assert_eq!(again.header("content-type"), "application/json");
    assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    let other_key = server.send(request("/v1/route", "another", &body)).await;
    assert_ne!(other_key.body, first.body);
}

#[tokio::test]
async fn a_batch_is_kept_like_a_mail_and_a_key_counts_for_its_endpoint() {
    let server = TestServer::start().await;
    let batch = json!({"emails": [{"text": "Where is my order?"}, {"text": "It came cold."}]}).to_string();
    let first = server.send(request("/v1/route/batch", "key", &batch)).await;
    let again = server.send(request("/v1/route/batch", "key", &batch)).await;
    assert_eq!(again.body, first.body);
    let reply = server.send(request("/v1/route", "key", &mail("Where is my order?"))).await;
    assert_eq!((reply.status.as_u16(), reply.header("idempotency-replayed")), (200, ""));
}

#[tokio::test]
async fn a_key_with_another_request_is_refused() {
    let server = TestServer::start().await;
    server.send(request("/v1/route", "key", &mail("Where is my order?"))).await;
    let reply = server.send(request("/v1/route", "key", &mail("It came cold."))).await;
    assert_eq!(reply.problem(422, "idempotency_key_reused")["field"], "idempotency-key");
    let reply = server.send(request("/v1/route", &"x".repeat(256), &mail("It came cold."))).await;
    assert_eq!(reply.problem(400, "invalid_idempotency_key")["limit"], 255);
}

#[tokio::test]
async fn an_error_is_not_kept() {
    let server = TestServer::with(ServerConfig::default(), None).await;
    let body = mail("Where is my order?");
    server.send(request("/v1/route", "key", &body)).await.problem(503, "not_ready");
    server.handle.set_ready(shared_service());
    server.send(request("/v1/route", "broken", "{")).await.problem(400, "incomplete_json");
    let reply = server.send(request("/v1/route", "key", &body)).await;
    assert_eq!((reply.status.as_u16(), reply.header("idempotency-replayed")), (200, ""));
    let reply = server.send(request("/v1/route", "broken", &body)).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn a_batch_in_which_a_mail_was_refused_for_the_moment_is_not_kept() {
    let server = TestServer::start().await;
    let long = "Where is my order? ".repeat(100);
    let batch = json!({"emails": vec![json!({"text": long}); 4]}).to_string();
    let mut hasty = request("/v1/route/batch", "key", &batch);
    hasty.headers_mut().insert("x-request-timeout-ms", "1".parse().unwrap());
    let first = server.send(hasty).await;
    let refused = first.json()["results"].as_array().unwrap().iter().filter(|one| one["status"] == 503).count();
    assert!(first.status == 200 && refused > 0, "{first:?}");
    let again = server.send(request("/v1/route/batch", "key", &batch)).await;
    assert_eq!((again.header("idempotency-replayed"), &again.json()["failed"]), ("", &json!(0)), "{again:?}");
    // What is wrong with a mail is wrong with it for ever.
    let batch = json!({"emails": [{"text": "Where is my order?"}, {"body": "?"}]}).to_string();
    for replayed in ["", "true"] {
        let reply = server.send(request("/v1/route/batch", "wrong", &batch)).await;
        assert_eq!((reply.header("idempotency-replayed"), &reply.json()["failed"]), (replayed, &json!(1)), "{reply:?}");
    }
}

#[tokio::test]
async fn a_decision_that_could_not_be_explained_for_the_moment_is_not_kept() {
    let explain = ExplainConfig { max_running: 0, ..ExplainConfig::default() };
    let busy = fresh_service(RoutingConfig { explain, ..RoutingConfig::default() });
    let server = TestServer::with(ServerConfig::default(), Some(busy)).await;
    for _ in 0..2 {
        let reply = server.send(request("/v1/route?explain=brief", "key", &mail("Where is my order?"))).await;
        assert_eq!(reply.json()["explanation"]["reason"], "busy", "{reply:?}");
        assert_eq!(reply.header("idempotency-replayed"), "", "{reply:?}");
    }
    let idle = fresh_service(RoutingConfig::default());
    let server = TestServer::with(ServerConfig::default(), Some(idle)).await;
    for replayed in ["", "true"] {
        let reply = server.send(request("/v1/route?explain=brief", "key", &mail(""))).await;
        assert_eq!(reply.json()["explanation"]["reason"], "nothing_to_read", "{reply:?}");
        assert_eq!(reply.header("idempotency-replayed"), replayed, "{reply:?}");
    }
}

#[tokio::test]
async fn of_many_at_once_one_is_done_and_the_others_get_its_answer_or_come_back() {
    let server = TestServer::with(ServerConfig::default(), Some(fresh_service(RoutingConfig::default()))).await;
    let body = mail(&"Where is my order? ".repeat(200));
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        clients.spawn(send(server.address, request("/v1/route", "key", &body)));
    }
    let (answered, refused): (Vec<Reply>, Vec<Reply>) =
        clients.join_all().await.into_iter().partition(|reply| reply.status == 200);
    let done = answered.iter().filter(|reply| reply.header("idempotency-replayed").is_empty()).count();
    assert_eq!(done, 1, "{answered:?}");
    assert!(answered.iter().all(|reply| reply.body == answered[0].body));
    for reply in &refused {
        assert_eq!(reply.problem(409, "idempotency_in_flight")["retry_after_s"], 1);
    }
    assert_eq!(answered.len() + refused.len(), 8);
}

#[tokio::test]
async fn nothing_is_kept_where_the_settings_say_so() {
    let config = ServerConfig { idempotency_max_answers: 0, ..ServerConfig::default() };
    let server = TestServer::with(config, Some(shared_service())).await;
    for _ in 0..2 {
        let reply = server.send(request("/v1/route", "key", &mail("Where is my order?"))).await;
        assert_eq!((reply.status.as_u16(), reply.header("idempotency-replayed")), (200, ""));
    }
}
