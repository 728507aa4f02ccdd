//! What monitoring is told.

use postroom::routing::RoutingConfig;
use postroom::server::ServerConfig;
use serde_json::json;

use crate::support::{TestServer, bad_router, fresh_service, service_of};

async fn told(server: &TestServer) -> String {
    String::from_utf8(server.get("/metrics").await.body.to_vec()).unwrap()
}

#[tokio::test]
async fn requests_decisions_and_batches_are_counted() {
    let server = TestServer::with(ServerConfig::default(), Some(fresh_service(RoutingConfig::default()))).await;
    server.answers_good_mail().await;
    server.post_json("/v1/route", json!({"subject": "", "text": ""})).await;
    let emails = vec![json!({"text": "Where is my order? It is late."}); 3];
    server.post_json("/v1/route/batch", json!({"emails": emails})).await;
    server.post("/v1/attention", "text/plain", "Where is my order?").await;
    server.post("/v1/route", "text/html", "a").await;
    server.get("/nowhere/canary").await;
    let told = told(&server).await;
    for line in [
        "postroom_ready 1",
        "postroom_http_requests_total{endpoint=\"/v1/route\",method=\"POST\",status=\"200\"} 2",
        "postroom_http_requests_total{endpoint=\"/v1/route\",method=\"POST\",status=\"415\"} 1",
        "postroom_http_requests_total{endpoint=\"/v1/route/batch\",method=\"POST\",status=\"200\"} 1",
        "postroom_http_requests_total{endpoint=\"none\",method=\"GET\",status=\"404\"} 1",
        "postroom_http_request_duration_seconds_count{endpoint=\"/v1/attention\"} 1",
        "postroom_http_requests_in_flight 1",
        "postroom_decisions_total{decision=\"needs_human\",queue=\"none\"} 1",
        "postroom_decision_reasons_total{reason=\"empty_body\"} 1",
        "postroom_stage_duration_seconds_count{stage=\"model\"} 5",
        "postroom_mail_tokens_count 5",
        "postroom_batch_tokens_count{lane=\"maps\"} 1",
        "postroom_waiting_mails{lane=\"route\"} 0",
        "postroom_waiting_tokens_limit 262144",
        "postroom_model_errors_total 0",
        "postroom_model_panics_total 0",
        "postroom_drift_window_decisions 5",
        "postroom_drift_needs_human_share 0.2",
        "# EOF",
    ] {
        let found = told.lines().any(|other| other == line || other == format!("{line}.0"));
        assert!(found, "{line} is not in\n{told}");
    }
    assert!(told.contains("postroom_decisions_total{decision=\"route\",queue=\""), "{told}");
    assert!(told.contains("postroom_model_busy_seconds_total{router=\"arbitrary\"} "), "{told}");
    let version = server.get("/v1/model").await.json()["version"].as_str().unwrap().to_owned();
    let router = format!("router=\"arbitrary\",version=\"{version}\",encoder=\"minilm-l6-v2\",device=\"cpu\"");
    assert!(told.contains(&format!("postroom_model_info{{{router}}} 1")), "{told}");
    assert!(!told.contains("canary"));
    let documented = include_str!("../../docs/metrics.md");
    for name in told.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
        assert!(documented.contains(&format!("`{name}")), "docs/metrics.md does not tell of {name}");
    }
    for line in told.lines().filter(|line| !line.starts_with('#')) {
        let known = ["postroom_", "process_"].iter().any(|prefix| line.starts_with(prefix));
        assert!(known && line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn mail_that_clients_of_other_servers_ask_about_counts_as_decided() {
    let server = TestServer::with(ServerConfig::default(), Some(fresh_service(RoutingConfig::default()))).await;
    let text = "Where is my order? It is late.";
    let tensor = json!({"name": "text", "shape": [2], "datatype": "BYTES", "data": [text, text]});
    for (path, body) in [
        ("/predict", json!({"inputs": text})),
        ("/", json!({"inputs": text})),
        ("/classify", json!({"input": text})),
        ("/v2/models/arbitrary/infer", json!({"inputs": [tensor]})),
    ] {
        let reply = server.post_json(path, body).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
    }
    let told = told(&server).await;
    let decisions = told.lines().filter(|line| line.starts_with("postroom_decisions_total{decision=\"route\""));
    let decisions: u64 = decisions.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(decisions, 5, "{told}");
    for name in ["postroom_drift_window_decisions ", "postroom_mail_tokens_count "] {
        let count = told.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        assert!((count.parse::<f64>().unwrap() - 5.0).abs() < 1e-9, "{name}: {told}");
    }
}

#[tokio::test]
async fn a_model_that_gives_no_numbers_fails_its_request_and_nothing_else() {
    let server = TestServer::with(ServerConfig::default(), Some(service_of(bad_router()))).await;
    for _ in 0..2 {
        let reply = server.post("/v1/route", "text/plain", "Where is my order?").await;
        assert!(!reply.problem(500, "model_failed")["detail"].as_str().unwrap().contains("order"));
    }
    let emails = vec![json!({"text": "Where is my order?"}), json!({"text": ""})];
    let batch = server.post_json("/v1/route/batch", json!({"emails": emails})).await.json();
    assert_eq!((&batch["results"][0]["status"], &batch["results"][1]["status"]), (&json!(500), &json!(200)));
    assert!(told(&server).await.contains("postroom_model_errors_total 3"));
    // Wherever numbers are asked for.
    let mail = json!({"text": "Where is my order?"});
    for path in ["/v1/attention", "/v1/explain", "/v1/heads"] {
        server.post_json(path, mail.clone()).await.problem(500, "model_failed");
    }
    server.post_json("/v1/compare", json!({"a": mail, "b": mail})).await.problem(500, "model_failed");
    let tensor = json!({"name": "text", "shape": [1], "datatype": "BYTES", "data": ["Where is my order?"]});
    for (path, body) in [
        ("/predict", json!({"inputs": "Where is my order?"})),
        ("/classify", json!({"input": "Where is my order?"})),
        ("/v2/models/arbitrary/infer", json!({"inputs": [tensor]})),
    ] {
        let reply = server.post_json(path, body).await;
        assert!(reply.status == 500 || reply.status == 424, "{path}: {reply:?}");
    }
    assert_eq!(server.get("/readyz").await.status, 200);
    assert_eq!(server.get("/livez").await.status, 200);
    let (failed, panicked) = ("postroom_model_errors_total ", "postroom_model_panics_total 0");
    let told = told(&server).await;
    let count = told.lines().find_map(|line| line.strip_prefix(failed)).unwrap();
    assert!(count.parse::<u64>().unwrap() >= 10 && told.contains(panicked), "{told}");
}
