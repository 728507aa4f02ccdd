//! What operators and clients rely on beside mail: probes, what is loaded, ids, refusals of the floor itself, time limits.

use std::sync::{Arc, Mutex};

use hyper::Request;
use hyper::body::Bytes;
use postroom::routing::RoutingService;
use postroom::server::{self, Handle, ServerConfig, ServerError};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{TestServer, fresh_service, send, shared_service};

#[tokio::test]
async fn the_port_is_open_before_the_router_is_loaded() {
    let server = TestServer::with(ServerConfig::default(), None).await;
    assert_eq!(server.get("/livez").await.json(), json!({"status": "alive"}));
    server.get("/readyz").await.problem(503, "not_ready");
    for path in ["/v1/route", "/v1/route/batch", "/v1/attention"] {
        server.post_json(path, json!({"text": "Where is my order?"})).await.problem(503, "not_ready");
    }
    server.get("/v1/model").await.problem(503, "not_ready");
    server.handle.set_ready(shared_service());
    assert_eq!(server.get("/readyz").await.json()["status"], "ready");
    server.answers_good_mail().await;
}

#[tokio::test]
async fn a_router_that_cannot_be_loaded_ends_the_service_with_its_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let load = || Err::<Arc<RoutingService>, _>("no such router");
    let error = server::run(listener, Handle::new(ServerConfig::default()).unwrap(), load, std::future::pending())
        .await
        .unwrap_err();
    assert!(matches!(&error, ServerError::Load(cause) if cause.to_string() == "no such router"), "{error:?}");
}

#[tokio::test]
async fn a_service_is_ready_after_its_first_forward_and_stops_when_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let load = || Ok::<_, std::io::Error>(fresh_service(postroom::routing::RoutingConfig::default()));
    let running = tokio::spawn(server::run(listener, Handle::new(ServerConfig::default()).unwrap(), load, async {
        let _ = stopped.await;
    }));
    let ready = || send(address, Request::get("/readyz").body(Bytes::new()).unwrap());
    while ready().await.status != 200 {
        tokio::task::yield_now().await;
    }
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn the_model_and_its_queues_are_told() {
    let server = TestServer::start().await;
    let model = server.get("/v1/model").await.json();
    let encoder = json!({
        "name": "minilm-l6-v2", "layers": 6, "heads": 12, "d_model": 384, "max_positions": 512, "vocab_size": 30522,
    });
    assert_eq!(model["encoder"], encoder);
    assert_eq!(model["windows"], json!({"max_length": 256, "stride": 228, "max_tokens": 8192}));
    assert_eq!((&model["queues"], &model["device"], &model["pooling"]), (&json!(3), &json!("cpu"), &json!("mean")));
    assert_eq!(model["limits"]["max_batch_emails"], 64);
    let queues = server.get("/v1/queues").await.json();
    let first = json!({"id": "refunds", "name": "refunds", "description": "", "enabled": true, "suggest_only": false});
    assert_eq!(queues["queues"][0], first);
}

#[tokio::test]
async fn wrong_paths_and_methods_are_problems_too() {
    let server = TestServer::start().await;
    let problem = server.get("/v2/route").await.problem(404, "not_found");
    assert!(problem["valid"].as_array().unwrap().contains(&json!("POST /v1/route")));
    let reply = server.get("/v1/route").await;
    assert_eq!(reply.problem(405, "method_not_allowed")["valid"], json!(["POST /v1/route"]));
    assert_eq!(reply.header("allow"), "POST");
    let reply = server.send(Request::head("/livez").body(Bytes::new()).unwrap()).await;
    assert_eq!((reply.status.as_u16(), reply.body.len()), (200, 0));
}

#[tokio::test]
async fn a_request_has_an_id_and_an_address_is_none() {
    let server = TestServer::start().await;
    let with_id = |id: &str| Request::get("/livez").header("x-request-id", id).body(Bytes::new()).unwrap();
    assert_eq!(server.send(with_id("trace-1:2")).await.header("x-request-id"), "trace-1:2");
    for id in ["ann@mail.example", "a b", &"x".repeat(200)] {
        let reply = server.send(with_id(id)).await;
        let made = reply.header("x-request-id");
        assert!(!made.is_empty() && made != id, "{made}");
    }
    let first = server.get("/nowhere").await.header("x-request-id").to_owned();
    assert_ne!(first, server.get("/nowhere").await.header("x-request-id"));
}

#[tokio::test]
async fn no_word_of_a_mail_is_logged() {
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_max_level(tracing::Level::INFO)
        .with_writer(move || writer.clone());
    // For the whole program: a subscriber of one thread loses lines while other tests log beside it. The words are
    // this test's own, so what others log does not matter.
    tracing::subscriber::set_global_default(lines.finish()).unwrap();
    let server = TestServer::start().await;
    let mail =
        json!({"subject": "Zanzibar", "text": "Quetzal quetzal quetzal", "from": "ann@mail.example", "id": "Wombat"});
    server.post_json("/v1/route", mail.clone()).await;
    server.post_json("/v1/attention?quetzal=1", mail.clone()).await;
    server.post_json("/v1/route/ann@mail.example", mail.clone()).await;
    server.post("/v1/route", "application/json", "{\"quetzal\": ").await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("/v1/route") && text.contains("status=200") && text.contains("status=404"), "{text}");
    for word in ["zanzibar", "quetzal", "ann@", "wombat"] {
        assert!(!text.to_lowercase().contains(word), "{word} in {text}");
    }
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let config = ServerConfig { body_timeout_ms: 30, ..ServerConfig::default() };
    let server = TestServer::with(config, Some(shared_service())).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /v1/route HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nWhere is";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body_timeout"), "{answer}");
    server.answers_good_mail().await;
}

#[tokio::test]
async fn a_connection_that_sends_no_request_is_closed() {
    let config = ServerConfig { idle_timeout_ms: 30, ..ServerConfig::default() };
    let server = TestServer::with(config, Some(shared_service())).await;
    for head in ["", "POST /v1/route HTTP/1.1\r\nhos"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{answer:?}");
    }
    server.answers_good_mail().await;
}

#[tokio::test]
async fn an_oversized_body_is_refused_before_it_is_sent_where_the_client_asks() {
    let server = TestServer::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /v1/route HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ncontent-length: 9000000\r\nexpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}
