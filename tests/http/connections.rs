//! Clients that misbehave on the level of connections: nobody shuts others out.

use std::time::Duration;

use postroom::server::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{TestServer, shared_service};

#[tokio::test]
async fn idle_connections_make_room_for_one_that_asks() {
    let config = ServerConfig { max_connections: 8, ..ServerConfig::default() };
    let server = TestServer::with(config, Some(shared_service())).await;
    let mut idle = Vec::new();
    for index in 0..24 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // Some have asked once, some have begun a head and stopped, some say nothing.
        let words = ["GET /livez HTTP/1.1\r\nhost: a\r\n\r\n", "POST /v1/route HT", ""][index % 3];
        stream.write_all(words.as_bytes()).await.unwrap();
        idle.push(stream);
    }
    server.answers_good_mail().await;
    assert_eq!(server.get("/livez").await.status, 200);
    let told = String::from_utf8(server.get("/metrics").await.body.to_vec()).unwrap();
    assert!(!told.contains("postroom_http_connections_closed_idle_total 0\n"), "{told}");
}

#[tokio::test]
async fn a_new_connection_has_a_time_to_ask() {
    let config = ServerConfig { head_timeout_ms: 300, ..ServerConfig::default() };
    let server = TestServer::with(config, Some(shared_service())).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut kept = TcpStream::connect(server.address).await.unwrap();
    let probe = b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";
    kept.write_all(probe).await.unwrap();
    kept.read_exact(&mut [0; 12]).await.unwrap();
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0);
    // One that has asked stays open.
    tokio::time::sleep(Duration::from_millis(320)).await;
    kept.write_all(probe).await.unwrap();
    let mut rest = [0; 64];
    assert!(kept.read(&mut rest).await.unwrap() > 0);
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let server = TestServer::start().await;
    for head in [
        format!("GET /livez HTTP/1.1\r\nhost: a\r\nx-long: {}\r\n\r\n", "a".repeat(300_000)),
        format!("GET /livez HTTP/1.1\r\nhost: a\r\n{}\r\n", "x-many: 1\r\n".repeat(200)),
        format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(300_000)),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // The other end may close before everything is sent.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let refused = ["HTTP/1.1 431", "HTTP/1.1 414"].iter().any(|status| answer.starts_with(status));
        assert!(refused || answer.is_empty(), "{answer}");
    }
    server.answers_good_mail().await;
}

#[tokio::test]
async fn clients_that_hang_up_half_way_leave_nothing_behind() {
    let server = TestServer::start().await;
    let whole = "POST /v1/route HTTP/1.1\r\nhost: a\r\ncontent-type: text/plain\r\ncontent-length: 30\r\n\r\nWhere is my order? It is late.";
    for end in [0, 1, 10, 60, 80, 100, whole.len() - 1, whole.len()] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&whole.as_bytes()[..end]).await.unwrap();
        drop(stream);
    }
    server.answers_good_mail().await;
    // The one that asks now is the only one left.
    for _ in 0..1000 {
        let told = String::from_utf8(server.get("/metrics").await.body.to_vec()).unwrap();
        let count = |name: &str| {
            let line = told.lines().find(|line| line.starts_with(name)).unwrap();
            line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
        };
        if count("postroom_http_requests_in_flight ") == 1.0 && count("postroom_http_connections ") == 1.0 {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("requests or connections are still open");
}
