//! Many clients at once: none lost, none failed; a full queue says so; a stop answers what is in flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::Request;
use hyper::body::Bytes;
use postroom::inference::InferenceConfig;
use postroom::routing::RoutingConfig;
use postroom::server::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::{Reply, TestServer, fresh_service, send};

const MAILS: usize = 200;
const CLIENTS: usize = 16;

fn mail(text: &str) -> Request<Bytes> {
    let body = Bytes::copy_from_slice(text.as_bytes());
    Request::post("/v1/route").header("content-type", "text/plain").body(body).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_mails_from_sixteen_clients_are_all_answered() {
    let server = TestServer::start().await;
    let next = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (next, address) = (Arc::clone(&next), server.address);
        clients.spawn(async move {
            let mut answered = 0;
            while next.fetch_add(1, Ordering::Relaxed) < MAILS {
                let reply = send(address, mail("Where is my order? It is late.")).await;
                assert_eq!(reply.status, 200, "{reply:?}");
                answered += 1;
            }
            answered
        });
    }
    let answered: usize = clients.join_all().await.into_iter().sum();
    assert_eq!(answered, MAILS);
}

#[tokio::test]
async fn a_full_queue_refuses_with_a_time_to_come_back() {
    let inference = InferenceConfig { max_waiting_mails: 1, max_batch_tokens: 1, ..InferenceConfig::default() };
    let service = fresh_service(RoutingConfig { inference, ..RoutingConfig::default() });
    let server = TestServer::with(ServerConfig::default(), Some(service)).await;
    let text = "Where is my order? ".repeat(100);
    let mut clients = JoinSet::new();
    for _ in 0..24 {
        clients.spawn(send(server.address, mail(&text)));
    }
    let (answered, refused): (Vec<Reply>, Vec<Reply>) =
        clients.join_all().await.into_iter().partition(|reply| reply.status == 200);
    assert!(!answered.is_empty() && !refused.is_empty(), "{} answered", answered.len());
    for reply in refused {
        let problem = reply.problem(503, "queue_full");
        assert_eq!(problem["limit"], 1);
        assert!(reply.header("retry-after").parse::<u64>().unwrap() >= 1);
    }
    server.answers_good_mail().await;
}

/// Requests that are surely in flight: each has been asked to go on with its body.
async fn started(server: &TestServer, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let length = body.len();
    let head = format!(
        "POST /v1/route HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream
}

#[tokio::test]
async fn a_stop_answers_everything_in_flight_and_takes_nothing_new() {
    let service = fresh_service(RoutingConfig::default());
    let mut server = TestServer::with(ServerConfig::default(), Some(service)).await;
    let body = "Where is my order? It is late.";
    let mut in_flight = Vec::new();
    for _ in 0..CLIENTS {
        in_flight.push(started(&server, body).await);
    }
    // A connection that is open but idle does not hold up the stop.
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    idle.read_exact(&mut [0; 12]).await.unwrap();

    server.tell_to_stop();
    while server.handle.ready() {
        tokio::task::yield_now().await;
    }
    let address = server.address;
    for mut stream in in_flight {
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    }
    server.stopped().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn during_the_drain_delay_readiness_is_false_and_mail_is_still_taken() {
    let service = fresh_service(RoutingConfig::default());
    let config = ServerConfig { drain_delay_ms: 2000, ..ServerConfig::default() };
    let mut server = TestServer::with(config, Some(service)).await;
    server.tell_to_stop();
    while server.handle.ready() {
        tokio::task::yield_now().await;
    }
    server.get("/readyz").await.problem(503, "shutting_down");
    server.answers_good_mail().await;
    server.stopped().await;
}

#[tokio::test]
async fn what_outlasts_the_drain_timeout_is_cut() {
    let service = fresh_service(RoutingConfig::default());
    let config = ServerConfig { drain_timeout_ms: 50, ..ServerConfig::default() };
    let mut server = TestServer::with(config, Some(service)).await;
    let mut never_ends = started(&server, "Where is my order?").await;
    server.tell_to_stop();
    server.stopped().await;
    let mut answer = Vec::new();
    let _ = never_ends.read_to_end(&mut answer).await;
    assert!(answer.is_empty());
}
