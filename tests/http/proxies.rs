//! Whose request it is, behind a proxy and without one: told by whether an `Idempotency-Key` is known.

use hyper::Request;
use hyper::body::Bytes;
use postroom::server::ServerConfig;

use crate::support::{TestServer, shared_service};

async fn behind(trusted: &[&str]) -> TestServer {
    let trusted_proxies = trusted.iter().map(|network| network.parse().unwrap()).collect();
    TestServer::with(ServerConfig { trusted_proxies, ..ServerConfig::default() }, Some(shared_service())).await
}

/// Whether the client of these headers has sent this key before.
async fn known(server: &TestServer, headers: &[(&str, &str)]) -> bool {
    let mut request = Request::post("/v1/route").header("content-type", "text/plain").header("idempotency-key", "one");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let reply = server.send(request.body(Bytes::from_static(b"Where is my order?")).unwrap()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.header("idempotency-replayed") == "true"
}

#[tokio::test]
async fn behind_a_trusted_proxy_clients_are_told_apart() {
    let server = behind(&["127.0.0.0/8", "10.0.0.0/8"]).await;
    let x = "x-forwarded-for";
    assert!(!known(&server, &[(x, "203.0.113.5")]).await);
    assert!(!known(&server, &[(x, "203.0.113.6")]).await);
    assert!(known(&server, &[(x, "203.0.113.5")]).await);
    // What the client wrote itself does not make it another, and neither does a further proxy of ours.
    assert!(known(&server, &[(x, "198.51.100.1, 203.0.113.5, 10.1.1.1")]).await);
    assert!(known(&server, &[("forwarded", "for=\"203.0.113.5:4711\";proto=https")]).await);
    // The proxy itself.
    assert!(!known(&server, &[]).await);
    assert!(known(&server, &[(x, "203.0.113.5, nonsense")]).await);
    // Addresses of one host's network are one client.
    assert!(!known(&server, &[(x, "2001:db8::1")]).await);
    assert!(known(&server, &[(x, "[2001:db8::2]:4711")]).await);
}

#[tokio::test]
async fn a_peer_that_is_no_trusted_proxy_cannot_choose_who_it_is() {
    // Kept to the end: a server that is dropped while the runtime goes on stops, and the shared service with it.
    let servers = [behind(&[]).await, behind(&["10.0.0.0/8", "127.0.0.2"]).await];
    for server in &servers {
        assert!(!known(server, &[]).await);
        assert!(known(server, &[("x-forwarded-for", "203.0.113.5")]).await);
        assert!(known(server, &[("forwarded", "for=203.0.113.5")]).await);
    }
}
