//! Who is let in and for how long: deadlines, fairness between clients, callers that leave, probes under load.

use std::sync::Arc;

use hyper::Request;
use hyper::body::Bytes;
use postroom::inference::InferenceConfig;
use postroom::routing::RoutingConfig;
use postroom::server::ServerConfig;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::{Reply, TestServer, fresh_service, send, send_from};

fn mail(text: &str) -> Request<Bytes> {
    let body = Bytes::copy_from_slice(text.as_bytes());
    Request::post("/v1/route").header("content-type", "text/plain").body(body).unwrap()
}

/// As a proxy passes it on.
fn mail_of(client: &str, text: &str) -> Request<Bytes> {
    let mut request = mail(text);
    request.headers_mut().insert("x-forwarded-for", client.parse().unwrap());
    request
}

fn long_text() -> String {
    "Where is my order? ".repeat(150)
}

/// A server whose queue is short and whose batches are of one mail.
async fn slow_server(max_waiting_mails: usize) -> (TestServer, Arc<postroom::routing::RoutingService>) {
    slow_server_with(ServerConfig::default(), max_waiting_mails).await
}

async fn slow_server_with(
    config: ServerConfig,
    max_waiting_mails: usize,
) -> (TestServer, Arc<postroom::routing::RoutingService>) {
    let inference = InferenceConfig { max_waiting_mails, max_batch_tokens: 1, ..InferenceConfig::default() };
    let service = fresh_service(RoutingConfig { inference, ..RoutingConfig::default() });
    (TestServer::with(config, Some(Arc::clone(&service))).await, service)
}

/// Sends many mails at once and waits until some of them wait for the model.
async fn flood(server: &TestServer, service: &postroom::routing::RoutingService, mails: usize) -> JoinSet<Reply> {
    flood_with(server, service, mails, mail(&long_text())).await
}

async fn flood_with(
    server: &TestServer,
    service: &postroom::routing::RoutingService,
    mails: usize,
    request: Request<Bytes>,
) -> JoinSet<Reply> {
    let mut clients = JoinSet::new();
    for _ in 0..mails {
        clients.spawn(send(server.address, request.clone()));
    }
    while service.waiting() < 3 {
        tokio::task::yield_now().await;
    }
    clients
}

#[tokio::test]
async fn a_request_may_say_how_long_it_waits() {
    let server = TestServer::start().await;
    let text = "Where is my order? ".repeat(400);
    let with_header = Request::post("/v1/route")
        .header("content-type", "text/plain")
        .header("x-request-timeout-ms", "1")
        .body(Bytes::from(text.clone()))
        .unwrap();
    for reply in [
        server.send(with_header).await,
        server.post("/v1/route?timeout_ms=1", "text/plain", text.clone()).await,
        server.post_json("/v1/route", json!({"text": text, "timeout_ms": 1})).await,
        server.post("/v1/attention?timeout_ms=1", "text/plain", text.clone()).await,
    ] {
        // Refused where the model's speed is known already, given up otherwise.
        assert_eq!(reply.status, 503, "{reply:?}");
        let code = reply.json()["code"].as_str().unwrap().to_owned();
        assert!(["timed_out", "deadline_too_short"].contains(&code.as_str()), "{reply:?}");
        assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    }
    let reply = server.post("/v1/route?timeout_ms=60000", "text/plain", "Where is my order?").await;
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[tokio::test]
async fn a_time_that_is_none_is_refused_with_the_bounds() {
    let server = TestServer::start().await;
    for time in ["0", "-1", "soon", "120001", "1.5", ""] {
        let reply = server.post(&format!("/v1/route?timeout_ms={time}"), "text/plain", "Where is my order?").await;
        let problem = reply.problem(422, "invalid_parameter");
        assert_eq!(
            (&problem["field"], &problem["limit"]),
            (&json!("timeout_ms"), &json!(120_000)),
            "{time}: {problem}"
        );
    }
    let problem = server.post_json("/v1/route", json!({"text": "a", "timeout_ms": "1s"})).await;
    problem.problem(422, "invalid_parameter");
    let twice = server.post_json("/v1/route?timeout_ms=1000", json!({"text": "a", "timeout_ms": 1000})).await;
    twice.problem(422, "repeated_parameter");
}

#[tokio::test]
async fn a_batch_tells_what_was_done_by_its_deadline_mail_by_mail() {
    let server = TestServer::start().await;
    let emails = vec![json!({"text": long_text()}); 3];
    let reply = server.post_json("/v1/route/batch", json!({"emails": emails, "timeout_ms": 2})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let answer = reply.json();
    assert_eq!(answer["failed"], 3, "{answer}");
    for result in answer["results"].as_array().unwrap() {
        assert_eq!(result["status"], 503, "{answer}");
        assert!(result["problem"]["retry_after_s"].as_u64().unwrap() >= 1, "{answer}");
    }
}

#[tokio::test]
async fn a_client_that_floods_the_service_does_not_shut_others_out() {
    let (server, service) = slow_server(8).await;
    let flood = flood(&server, &service, 32).await;
    let reply = send_from("127.0.0.2", server.address, mail("Where is my order?")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(service.waiting() > 0, "the flood was over before the other client was served");
    let replies = flood.join_all().await;
    let refused: Vec<&Reply> = replies.iter().filter(|reply| reply.status != 200).collect();
    assert!(!refused.is_empty() && refused.len() < 32, "{}", refused.len());
    for reply in refused {
        assert!([503, 429].contains(&reply.status.as_u16()), "{reply:?}");
        assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    }
}

#[tokio::test]
async fn behind_a_proxy_too_a_client_that_floods_the_service_does_not_shut_others_out() {
    let config = ServerConfig { trusted_proxies: vec!["127.0.0.1".parse().unwrap()], ..ServerConfig::default() };
    let (server, service) = slow_server_with(config, 8).await;
    let flood = flood_with(&server, &service, 32, mail_of("203.0.113.5", &long_text())).await;
    let reply = server.send(mail_of("203.0.113.6", "Where is my order?")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(service.waiting() > 0, "the flood was over before the other client was served");
    flood.join_all().await;
}

#[tokio::test]
async fn a_mail_whose_client_hangs_up_is_never_run() {
    let (server, service) = slow_server(64).await;
    let text = long_text();
    let mut connections = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST /v1/route HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        connections.push(stream);
    }
    while service.waiting() < 6 {
        tokio::task::yield_now().await;
    }
    drop(connections);
    server.answers_good_mail().await;
    assert_eq!(service.waiting(), 0);
    let told = String::from_utf8(server.get("/metrics").await.body.to_vec()).unwrap();
    let line = told
        .lines()
        .find(|line| line.starts_with("postroom_mails_dropped_total{lane=\"route\",reason=\"cancelled\"}"))
        .unwrap();
    assert!(line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() >= 5.0, "{line}");
    assert!(told.contains("status=\"499\""), "{told}");
}

#[tokio::test]
async fn probes_answer_while_the_queue_is_full() {
    let (server, service) = slow_server(8).await;
    let flood = flood(&server, &service, 32).await;
    assert_eq!(server.get("/livez").await.status, 200);
    assert_eq!(server.get("/readyz").await.status, 200);
    assert!(service.waiting() > 0, "the queue was empty before the probes were answered");
    flood.join_all().await;
}
