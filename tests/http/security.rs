//! Keys, TLS, other sites, and what every answer says to browsers.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Bytes;
use postroom::server::keys::NewKey;
use postroom::server::{Handle, ServerConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::support::{Reply, TestServer, exchange, send, shared_service};

fn new_key(name: &str, scopes: &str) -> NewKey {
    NewKey::make(name, scopes.parse().unwrap()).unwrap()
}

async fn with_keys(file: &Path) -> TestServer {
    let config = ServerConfig { keys_file: Some(file.to_owned()), ..ServerConfig::default() };
    TestServer::with(config, Some(shared_service())).await
}

fn ask(method: &str, path: &str, key: Option<&str>) -> Request<Bytes> {
    let mut request = Request::builder().method(method).uri(path).header("content-type", "text/plain");
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    request.body(Bytes::from_static(b"Where is my order? It is late.")).unwrap()
}

#[tokio::test]
async fn without_a_key_nothing_but_probes_answers() {
    let intake = new_key("intake", "route");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &intake.line).unwrap();
    let server = with_keys(file.path()).await;
    for path in ["/livez", "/readyz"] {
        assert_eq!(server.send(ask("GET", path, None)).await.status, 200, "{path}");
    }
    for (method, path) in [
        ("POST", "/v1/route"),
        ("POST", "/v1/route/batch"),
        ("POST", "/v1/attention"),
        ("GET", "/v1/model"),
        ("GET", "/metrics"),
    ] {
        let reply = server.send(ask(method, path, None)).await;
        reply.problem(401, "key_missing");
        assert_eq!(reply.header("www-authenticate"), "Bearer", "{path}");
        server.send(ask(method, path, Some("postroom_0000"))).await.problem(401, "key_unknown");
        // The hash opens nothing.
        server.send(ask(method, path, intake.line.split("sha256:").last())).await.problem(401, "key_unknown");
    }
    server.send(ask("GET", "/nowhere", None)).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_key_opens_what_its_scopes_say() {
    let (intake, desk, metrics) = (new_key("intake", "route"), new_key("desk", "route,explain"), new_key("m", "admin"));
    let explainer = new_key("explainer", "explain");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), [&*intake.line, &desk.line, &metrics.line, &explainer.line].join("\n")).unwrap();
    let server = with_keys(file.path()).await;
    for (method, path, key, status) in [
        ("POST", "/v1/route", &intake, 200),
        ("GET", "/v1/queues", &intake, 200),
        ("POST", "/v1/attention", &intake, 403),
        ("POST", "/v1/attention", &desk, 200),
        ("GET", "/metrics", &desk, 403),
        ("POST", "/admin/reload", &desk, 403),
        ("GET", "/metrics", &metrics, 200),
        ("POST", "/admin/reload", &metrics, 200),
        ("POST", "/v1/route", &metrics, 403),
        ("POST", "/v1/route?explain=none", &intake, 200),
        ("POST", "/v1/route?explain=brief", &intake, 403),
        ("POST", "/v1/route?timeout_ms=9000&explain=%62rief", &intake, 403),
        ("POST", "/v1/routers/arbitrary/route?explain=brief", &intake, 403),
        ("POST", "/v1/route?explain=brief", &explainer, 403),
        ("POST", "/v1/route?explain=brief", &desk, 200),
        // What cannot be read is told as it is without keys.
        ("POST", "/v1/route?explain=long", &intake, 422),
    ] {
        let reply = server.send(ask(method, path, Some(key.key.as_str()))).await;
        assert_eq!(reply.status, status, "{path}: {reply:?}");
        if status == 403 {
            assert!(reply.problem(403, "key_scope")["valid"].is_array());
        }
    }
    let in_other_header = Request::post("/v1/route")
        .header("content-type", "text/plain")
        .header("x-api-key", intake.key.as_str())
        .body(Bytes::from_static(b"Where is my order?"))
        .unwrap();
    assert_eq!(server.send(in_other_header).await.status, 200);
}

#[tokio::test]
async fn keys_change_without_a_restart_and_a_broken_file_locks_nobody_out() {
    let (old, new, admin) = (new_key("old", "route"), new_key("new", "route"), new_key("admin", "admin"));
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |lines: &[&str]| std::fs::write(file.path(), lines.join("\n")).unwrap();
    write(&[&old.line, &admin.line]);
    let server = with_keys(file.path()).await;
    let status = |key: &NewKey| {
        let (server, request) = (&server, ask("POST", "/v1/route", Some(key.key.as_str())));
        async move { server.send(request).await.status.as_u16() }
    };
    let reload = || server.send(ask("POST", "/admin/reload", Some(admin.key.as_str())));
    assert_eq!((status(&old).await, status(&new).await), (200, 401));
    write(&[&new.line, &admin.line]);
    assert_eq!(reload().await.json()["status"], "reloaded");
    assert_eq!((status(&old).await, status(&new).await), (401, 200));
    write(&["new route sha256:broken"]);
    assert_eq!(reload().await.json()["status"], "old_version_in_force");
    assert_eq!(status(&new).await, 200);
    let told = server.send(ask("GET", "/metrics", Some(admin.key.as_str()))).await;
    let told = String::from_utf8(told.body.to_vec()).unwrap();
    assert!(told.contains("postroom_reloads_total{what=\"keys\",outcome=\"failed\"} 1"), "{told}");
    for key in [&old, &new, &admin] {
        let hash = key.line.split("sha256:").last().unwrap();
        assert!(!told.contains(key.key.as_str()) && !told.contains(hash));
    }
}

#[tokio::test]
async fn a_key_file_that_cannot_be_read_keeps_the_service_from_starting_open() {
    let config = ServerConfig { keys_file: Some("/nowhere/keys".into()), ..ServerConfig::default() };
    let error = Handle::new(config).err().unwrap();
    assert!(error.to_string().contains("keys"), "{error}");
    let config = ServerConfig { tls_cert: Some("/nowhere/tls.crt".into()), ..ServerConfig::default() };
    assert!(Handle::new(config).is_err());
}

#[tokio::test]
async fn monitoring_has_a_port_of_its_own_where_it_is_asked_for() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let config = ServerConfig { admin_port: Some(free.port()), ..ServerConfig::default() };
    let server = TestServer::with(config, Some(shared_service())).await;
    server.answers_good_mail().await;
    server.get("/metrics").await.problem(404, "not_found");
    server.send(ask("POST", "/admin/reload", None)).await.problem(404, "not_found");
    let get = |path: &str| send(free, ask("GET", path, None));
    let told = get("/metrics").await;
    assert_eq!(told.status, 200);
    assert!(told.header("content-type").starts_with("application/openmetrics-text"));
    assert_eq!(get("/readyz").await.status, 200);
    assert_eq!(send(free, ask("POST", "/admin/reload", None)).await.status, 200);
    send(free, ask("POST", "/v1/route", None)).await.problem(404, "not_found");
}

#[tokio::test]
async fn pages_in_a_browser_are_refused_on_the_port_without_keys() {
    let desk = "https://desk.example";
    for cors_origins in [vec![], vec![desk.to_owned()], vec!["*".to_owned()]] {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let config = ServerConfig { admin_port: Some(free.port()), cors_origins, ..ServerConfig::default() };
        let server = TestServer::with(config, Some(shared_service())).await;
        server.answers_good_mail().await;
        for (method, path) in
            [("POST", "/admin/reload"), ("GET", "/metrics"), ("GET", "/admin/routers"), ("OPTIONS", "/admin/reload")]
        {
            for origin in [desk, "null"] {
                let page = Request::builder().method(method).uri(path).header("origin", origin);
                let reply = send(free, page.body(Bytes::new()).unwrap()).await;
                assert_eq!(reply.problem(403, "origin_refused")["given"], origin);
                assert_eq!(reply.header("access-control-allow-origin"), "", "{reply:?}");
                assert_eq!(reply.header("cache-control"), "no-store", "{reply:?}");
            }
        }
        assert_eq!(send(free, ask("POST", "/admin/reload", None)).await.status, 200);
    }
}

#[tokio::test]
async fn without_keys_nobody_changes_the_service_over_the_first_port() {
    let server = TestServer::start().await;
    server.send(ask("POST", "/admin/reload", None)).await.problem(404, "not_found");
    assert_eq!(server.get("/metrics").await.status, 200);
}

#[tokio::test]
async fn every_answer_tells_browsers_to_keep_still() {
    let server = TestServer::start().await;
    for reply in
        [server.get("/livez").await, server.get("/nowhere").await, server.post("/v1/route", "text/html", "a").await]
    {
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{reply:?}");
        assert_eq!(reply.header("cache-control"), "no-store", "{reply:?}");
        assert!(reply.header("content-security-policy").contains("frame-ancestors 'none'"), "{reply:?}");
        assert_eq!(reply.header("strict-transport-security"), "", "{reply:?}");
    }
}

#[tokio::test]
async fn other_sites_may_ask_only_where_they_are_named() {
    let from = |method: &str, origin: &str| {
        Request::builder()
            .method(method)
            .uri("/v1/route")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "authorization,content-type")
            .header("content-type", "text/plain")
            .body(Bytes::from_static(b"Where is my order?"))
            .unwrap()
    };
    let desk = "https://desk.example";
    let server = TestServer::start().await;
    let allowed = |reply: &Reply| reply.header("access-control-allow-origin").to_owned();
    assert_eq!(allowed(&server.send(from("POST", desk)).await), "");

    let key = new_key("desk", "route");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &key.line).unwrap();
    let config = ServerConfig {
        cors_origins: vec![desk.to_owned()],
        keys_file: Some(file.path().to_owned()),
        ..ServerConfig::default()
    };
    let server = TestServer::with(config, Some(shared_service())).await;
    // A browser asks first, without the key.
    let preflight = server.send(from("OPTIONS", desk)).await;
    assert_eq!((preflight.status.as_u16(), allowed(&preflight).as_str()), (200, desk), "{preflight:?}");
    assert!(preflight.header("access-control-allow-headers").contains("authorization"));
    assert_eq!(allowed(&server.send(from("OPTIONS", "https://other.example")).await), "");
    // A page can read why it was refused.
    let refused = server.send(from("POST", desk)).await;
    refused.problem(401, "key_missing");
    assert_eq!(allowed(&refused), desk);
}

/// A certificate for `localhost`, written to two files.
pub(crate) fn certificate(folder: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

pub(crate) async fn over_tls(
    address: SocketAddr,
    trusted: &CertificateDer<'static>,
    request: Request<Bytes>,
) -> std::io::Result<Reply> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, TcpStream::connect(address).await?).await?;
    Ok(exchange(stream, request).await)
}

#[tokio::test]
async fn tls_is_spoken_and_a_renewed_certificate_is_taken_up() {
    let folder = tempfile::tempdir().unwrap();
    let first = certificate(folder.path());
    let admin = new_key("admin", "admin,route");
    std::fs::write(folder.path().join("keys"), &admin.line).unwrap();
    let config = ServerConfig {
        tls_cert: Some(folder.path().join("tls.crt")),
        tls_key: Some(folder.path().join("tls.key")),
        keys_file: Some(folder.path().join("keys")),
        ..ServerConfig::default()
    };
    let server = TestServer::with(config, Some(shared_service())).await;
    let ask = |method: &str, path: &str| ask(method, path, Some(admin.key.as_str()));
    let reply = over_tls(server.address, &first, ask("POST", "/v1/route")).await.unwrap();
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.header("strict-transport-security").starts_with("max-age="));

    // Whoever speaks plain HTTP hears nothing, and others are served on.
    let mut plain = TcpStream::connect(server.address).await.unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");

    let second = certificate(folder.path());
    over_tls(server.address, &first, ask("POST", "/admin/reload")).await.unwrap();
    assert!(over_tls(server.address, &first, ask("GET", "/livez")).await.is_err());
    assert_eq!(
        over_tls(server.address, &second, ask("GET", "/livez")).await.unwrap().json(),
        json!({"status": "alive"})
    );

    // A key that does not fit leaves the old pair in force.
    std::fs::write(folder.path().join("tls.key"), rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
    over_tls(server.address, &second, ask("POST", "/admin/reload")).await.unwrap();
    let told = over_tls(server.address, &second, ask("GET", "/metrics")).await.unwrap();
    let told = String::from_utf8(told.body.to_vec()).unwrap();
    assert!(told.contains("postroom_reloads_total{what=\"tls\",outcome=\"failed\"} 1"), "{told}");
    assert!(told.contains("postroom_tls_handshake_failures_total 2"), "{told}");
}
