//! The document of the interface: what is served is what is committed, and names every endpoint.

use std::collections::BTreeSet;
use std::path::Path;

use postroom::server::{ServerConfig, openapi_document};
use serde_json::Value;

use crate::support::TestServer;

/// The committed document. `POSTROOM_WRITE_OPENAPI=1 cargo test --test http openapi` writes it anew.
#[test]
fn the_committed_document_is_the_one_that_is_served() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/openapi.json");
    let document = openapi_document(&ServerConfig::default());
    if std::env::var_os("POSTROOM_WRITE_OPENAPI").is_some() {
        std::fs::write(&path, &document).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    let difference = committed.lines().zip(document.lines()).find(|(old, new)| old != new);
    assert!(committed == document, "docs/openapi.json is not what the types say; first difference: {difference:?}");
}

/// The endpoints that the service itself lists, against the document.
#[tokio::test]
async fn every_endpoint_stands_in_the_document() {
    let server = TestServer::start().await;
    let problem = server.get("/nowhere").await.problem(404, "not_found");
    let listed: BTreeSet<String> =
        problem["valid"].as_array().unwrap().iter().map(|endpoint| endpoint.as_str().unwrap().to_owned()).collect();
    let document: Value = server.get("/openapi.json").await.json();
    let mut described = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for method in operations.as_object().unwrap().keys() {
            described.insert(format!("{} {path}", method.to_uppercase()));
        }
    }
    // The parts of the page are no endpoints that somebody would look for.
    let parts = ["GET /docs/viewer.css", "GET /docs/viewer.js"].map(str::to_owned);
    assert_eq!(described, listed.into_iter().chain(parts).collect());
    for endpoint in &described {
        let (method, path) = endpoint.split_once(' ').unwrap();
        let other = if method == "GET" { "POST" } else { "GET" };
        if described.contains(&format!("{other} {path}")) || path.contains('{') {
            continue;
        }
        let reply = if method == "GET" { server.get(path).await } else { server.post_json(path, Value::Null).await };
        assert_ne!(reply.status, 404, "{endpoint}");
    }
}

/// Codes as they stand in the source, against the document.
#[test]
fn every_code_of_a_problem_is_described() {
    // With keys the document holds everything.
    let document = openapi_document(&ServerConfig { keys_file: Some("keys.toml".into()), ..ServerConfig::default() });
    let mut missing = BTreeSet::new();
    let mut found = 0;
    for file in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/server")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let text = text.split("#[cfg(test)]").next().unwrap().replace([' ', '\n'], "");
        for maker in [
            "bad_request(",
            "unprocessable(",
            "too_large(",
            "unsupported_media_type(",
            "unavailable(",
            "internal(",
            "conflict(",
            "too_many_requests(",
        ] {
            for rest in text.split(maker).skip(1) {
                let Some(code) = rest.strip_prefix('"').and_then(|rest| rest.split('"').next()) else { continue };
                found += 1;
                if !document.contains(&format!("`{code}`")) {
                    missing.insert(code.to_owned());
                }
            }
        }
    }
    assert!(found > 20 && missing.is_empty(), "{found} found, not described: {missing:?}");
}

fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

#[tokio::test]
async fn the_viewer_runs_under_a_policy_that_lets_nothing_in_from_elsewhere() {
    let server = TestServer::start().await;
    for (path, kind) in
        [("/docs", "text/html"), ("/docs/viewer.css", "text/css"), ("/docs/viewer.js", "text/javascript")]
    {
        let reply = server.get(path).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.header("content-type").starts_with(kind), "{reply:?}");
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let text = String::from_utf8(reply.body.to_vec()).unwrap();
        assert!(!text.contains("//cdn") && !text.contains("https://") && !text.contains("http://"), "{path}");
        assert!(!text.contains("innerHTML") && !text.contains("<script>") && !text.contains("style="), "{path}");
    }
}
