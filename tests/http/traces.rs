//! Traces as a collector gets them, and a service whose collector is not there.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use hyper::Request;
use hyper::body::Bytes;
use opentelemetry_proto::tonic::trace::v1::Span;
use postroom::otlp::{Headers, OtlpConfig};
use postroom::server::ServerConfig;
use serde_json::json;

use crate::collector::{Collector, attribute};
use crate::security::{certificate, over_tls};
use crate::support::TestServer;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

async fn exporting(config: OtlpConfig) -> TestServer {
    let server = TestServer::start().await;
    server.handle.export_traces(&config).unwrap();
    server
}

fn to(collector: &Collector) -> OtlpConfig {
    OtlpConfig { endpoint: collector.url(), ..OtlpConfig::default() }
}

fn mail(flags: &str) -> Request<Bytes> {
    Request::post("/v1/route")
        .header("content-type", "text/plain")
        .header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-{flags}"))
        .header("tracestate", "vendor=opaque")
        .body("Where is my order? It should have come on Friday.".into())
        .unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn named<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name} in {spans:?}"))
}

#[tokio::test]
async fn a_mail_is_a_request_below_its_caller_a_decision_and_its_stages() {
    let collector = Collector::start();
    let headers = Headers::new("authorization=Bearer%20token");
    let resource_attributes = "deployment.environment.name=test".to_owned();
    let server = exporting(OtlpConfig { headers, resource_attributes, ..to(&collector) }).await;
    let reply = server.send(mail("01")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let decision = reply.json();
    let export = collector.export();
    assert!(export.head.starts_with("post /v1/traces http/1.1\r\n"), "{}", export.head);
    for line in ["authorization: bearer token", "content-type: application/x-protobuf"] {
        assert!(export.head.lines().any(|other| other == line), "{}", export.head);
    }
    let resource = export.resource();
    assert_eq!(attribute(&resource, "service.name"), "postroom");
    assert_eq!(attribute(&resource, "service.version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(attribute(&resource, "deployment.environment.name"), "test");
    assert_eq!(attribute(&resource, "telemetry.sdk.language"), "rust");

    // An export may fall between the end of the decision and that of the request.
    let mut spans = export.spans();
    if spans.len() < 6 {
        spans.extend(collector.spans(6 - spans.len()));
    }
    assert_eq!(spans.len(), 6, "{spans:?}");
    assert!(spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:?}");
    let request = named(&spans, "POST /v1/route");
    assert_eq!((hex(&request.parent_span_id).as_str(), request.kind), ("00f067aa0ba902b7", 2));
    assert_eq!(request.trace_state, "vendor=opaque");
    let port = server.address.port().to_string();
    for (key, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/route"),
        ("http.response.status_code", "200"),
        ("url.scheme", "http"),
        ("server.address", "127.0.0.1"),
        ("server.port", port.as_str()),
        ("error.type", ""),
    ] {
        assert_eq!(attribute(&request.attributes, key), value, "{key}: {request:?}");
    }
    let decide = named(&spans, "decide");
    assert_eq!(decide.parent_span_id, request.span_id);
    let version = decision["model"]["version"].as_str().unwrap();
    let tokens = decision["input"]["tokens_used"].to_string();
    for (key, value) in [
        ("postroom.decision", decision["decision"].as_str().unwrap()),
        ("postroom.queue", decision["queue"]["id"].as_str().unwrap()),
        ("postroom.reasons", ""),
        ("postroom.router", "arbitrary"),
        ("postroom.router.version", version),
        ("postroom.tokens", tokens.as_str()),
    ] {
        assert_eq!(attribute(&decide.attributes, key), value, "{key}: {decide:?}");
    }
    assert!(decide.start_time_unix_nano >= request.start_time_unix_nano);
    assert!(decide.end_time_unix_nano <= request.end_time_unix_nano);
    let mut from = decide.start_time_unix_nano;
    for name in ["parse", "tokenize", "queue", "model"] {
        let stage = named(&spans, name);
        assert_eq!(stage.parent_span_id, decide.span_id);
        assert_eq!(stage.start_time_unix_nano, from);
        let micros = decision["timing_us"][name].as_u64().unwrap();
        from = stage.end_time_unix_nano;
        assert_eq!(from - stage.start_time_unix_nano, micros * 1000, "{name}");
    }
    assert!(from <= decide.end_time_unix_nano);
}

#[tokio::test]
async fn no_word_of_a_caller_is_in_a_span() {
    let (collector, canary) = (Collector::start(), "Quetzalcoatlus");
    let server = exporting(to(&collector)).await;
    let mime = format!(
        "From: Ann {canary} <{canary}@mail.example>\r\nSubject: {canary} order\r\nMessage-ID: <{canary}@mail.example>\r\n\r\n\
         Where is my {canary}? It should have come on Friday.\r\n"
    );
    server.post("/v1/route", "message/rfc822", mime).await;
    let email = json!({"id": canary, "subject": canary, "text": canary, "from": format!("{canary}@mail.example")});
    server.post_json("/v1/route/batch", json!({"emails": [email, {"text": 5, "subject": canary}]})).await;
    server.post_json("/v1/route", json!({"text": 5, "subject": canary})).await;
    server.get(&format!("/{canary}?{canary}={canary}")).await;
    let mut request = mail("01");
    let address = format!("{canary}@mail.example");
    for (name, value) in [("x-request-id", canary), ("user-agent", canary), ("referer", address.as_str())] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request.headers_mut().insert("tracestate", format!("vendor={address}").parse().unwrap());
    server.send(request).await;
    let (mut spans, mut decided) = (0, 0);
    // Five requests; three mails decided, each with its four stages.
    while spans < 5 + 3 * 5 {
        let export = collector.export();
        assert!(!String::from_utf8_lossy(&export.body).contains(canary), "{:?}", export.spans());
        spans += export.spans().len();
        decided += export.spans().iter().filter(|span| span.name == "decide").count();
    }
    assert_eq!(decided, 3);
}

#[tokio::test]
async fn a_batch_has_a_decision_for_each_mail_and_an_error_its_code() {
    let collector = Collector::start();
    let server = exporting(to(&collector)).await;
    let emails = vec![json!({"text": "Where is my order? It is late."}), json!({"subject": "", "text": ""})];
    server.post_json("/v1/route/batch", json!({"emails": emails})).await;
    // Mail that the network is not asked about has no stages there.
    let spans = collector.spans(1 + 5 + 3);
    let request = named(&spans, "POST /v1/route/batch");
    assert!(request.parent_span_id.is_empty());
    let decided: Vec<&Span> = spans.iter().filter(|span| span.name == "decide").collect();
    assert_eq!(decided.len(), 2);
    assert!(decided.iter().all(|span| span.parent_span_id == request.span_id), "{spans:?}");
    assert!(decided.iter().any(|span| attribute(&span.attributes, "postroom.reasons").contains("empty_body")));

    server.post("/v1/route", "text/html", "a").await;
    server.get("/nowhere").await;
    let spans = collector.spans(2);
    let refused = named(&spans, "POST /v1/route");
    assert_eq!(attribute(&refused.attributes, "postroom.problem"), "unsupported_media_type");
    assert_eq!(
        (refused.status.as_ref().unwrap().code, attribute(&refused.attributes, "error.type")),
        (0, String::new())
    );
    assert_eq!(attribute(&named(&spans, "GET").attributes, "http.response.status_code"), "404");

    let server = TestServer::with(ServerConfig::default(), None).await;
    server.handle.export_traces(&to(&collector)).unwrap();
    for probe in ["/livez", "/readyz", "/v2/health/live", "/v2/health/ready", "/metrics"] {
        server.get(probe).await;
    }
    server.post("/v1/route", "text/plain", "Where is my order?").await;
    let spans = collector.spans(1);
    assert_eq!(attribute(&spans[0].attributes, "error.type"), "not_ready");
    assert_eq!((spans.len(), spans[0].status.as_ref().unwrap().code), (1, 2));
}

#[tokio::test]
async fn the_caller_decides_what_is_sampled_and_else_the_ratio() {
    let collector = Collector::start();
    let server = exporting(to(&collector)).await;
    server.send(mail("00")).await;
    server.send(mail("01")).await;
    assert_eq!(collector.spans(6).len(), 6);
    let none = exporting(OtlpConfig { sampling_ratio: 0.0, ..to(&collector) }).await;
    none.answers_good_mail().await;
    none.send(mail("01")).await;
    let spans = collector.spans(6);
    assert!(spans.len() == 6 && spans.iter().all(|span| hex(&span.trace_id) == TRACE), "{spans:?}");
}

#[tokio::test]
async fn what_a_collector_refuses_for_a_moment_is_sent_again_and_what_it_refuses_is_counted() {
    let collector = Collector::answering(&["503 Service Unavailable\r\nretry-after: 0", "200 OK", "401 Unauthorized"]);
    let server = exporting(to(&collector)).await;
    server.send(mail("01")).await;
    let (refused, taken) = (collector.export(), collector.export());
    assert_eq!(refused.body, taken.body);
    wait_for(&server, "outcome=\"exported\"} 6").await;
    server.send(mail("01")).await;
    wait_for(&server, "outcome=\"failed\"} 6").await;
    assert_eq!(collector.rest().len(), 1);
}

async fn wait_for(server: &TestServer, count: &str) {
    let start = Instant::now();
    loop {
        let told = String::from_utf8(server.get("/metrics").await.body.to_vec()).unwrap();
        if told.contains(&format!("postroom_trace_spans_total{{{count}")) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{count} is not in\n{told}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_https_collector_must_show_a_certificate_that_the_settings_trust() {
    let folder = tempfile::tempdir().unwrap();
    let trusted = certificate(folder.path());
    let (cert, key) = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    // Another postroom stands in for the collector: it has no such endpoint, but it speaks TLS.
    let config = ServerConfig { tls_cert: Some(cert.clone()), tls_key: Some(key), ..ServerConfig::default() };
    let peer = TestServer::with(config, None).await;
    let endpoint = format!("https://localhost:{}", peer.address.port());
    for trusted_file in [None, Some(cert)] {
        let trusts = trusted_file.is_some();
        let server = TestServer::with(ServerConfig::default(), None).await;
        let export = OtlpConfig {
            endpoint: endpoint.clone(),
            certificate: trusted_file,
            timeout_ms: 2000,
            ..OtlpConfig::default()
        };
        server.handle.export_traces(&export).unwrap();
        server.get("/v1/model").await;
        wait_for(&server, "outcome=\"failed\"} 1").await;
        let told =
            over_tls(peer.address, &trusted, Request::get("/metrics").body(Bytes::new()).unwrap()).await.unwrap();
        let told = String::from_utf8(told.body.to_vec()).unwrap();
        let asked = told.contains("postroom_http_requests_total{endpoint=\"none\",method=\"POST\",status=\"404\"} 1");
        assert_eq!(asked, trusts, "{told}");
        assert!(!told.contains("postroom_tls_handshake_failures_total 0"), "{told}");
    }
}

/// Requests of a server without a router, which answers at once, and its stop; says how long the two took.
async fn answers_and_stops(endpoint: String) -> (Duration, Duration) {
    let config = ServerConfig { drain_timeout_ms: 1000, ..ServerConfig::default() };
    let mut server = TestServer::with(config, None).await;
    let export = OtlpConfig { endpoint, timeout_ms: 60_000, ..OtlpConfig::default() };
    server.handle.export_traces(&export).unwrap();
    let start = Instant::now();
    // More than fit into the queue.
    for _ in 0..3000 {
        server.get("/v1/model").await.problem(503, "not_ready");
    }
    let answered = start.elapsed();
    let told = String::from_utf8(server.get("/metrics").await.body.to_vec()).unwrap();
    let dropped = told.lines().find_map(|line| line.strip_prefix("postroom_trace_spans_total{outcome=\"dropped\"} "));
    assert!(dropped.unwrap().parse::<u64>().unwrap() > 0, "{told}");
    let start = Instant::now();
    server.tell_to_stop();
    server.stopped().await;
    (answered, start.elapsed())
}

#[tokio::test]
async fn a_collector_that_is_not_there_or_never_answers_holds_up_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    let gone_url = {
        let gone = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", gone.local_addr().unwrap())
    };
    for url in [silent_url, gone_url] {
        let (answered, stopped) = answers_and_stops(url).await;
        assert!(answered < Duration::from_secs(30), "3000 requests took {answered:?}");
        assert!(stopped < Duration::from_secs(3), "the stop took {stopped:?}");
    }
}
