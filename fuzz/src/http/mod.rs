//! The service itself, two tiny routers in it, asked without a socket.
//!
//! An input is no request but a script: which operation of the interface's own document, and what to change in its example. So
//! nearly every input gets past the parser, and an endpoint that is added is fuzzed without a word here.

mod answer;
mod document;
mod edits;
mod requests;
#[allow(dead_code, reason = "the tests of the interface use more of it")]
#[path = "../../../tests/http/tiny.rs"]
mod tiny;

use std::sync::LazyLock;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use postroom::routing::{NamedRouter, Routers, RoutersConfig};
use postroom::server::keys::NewKey;
use postroom::server::{Handle, ServerConfig, app, openapi_document};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tower::ServiceExt;

pub use answer::Answer;
pub use document::{Document, Operation};
pub use requests::{body, query};

/// The routers by name, the default first.
const ROUTERS: [&str; 2] = ["shop", "office"];

/// A running service.
pub struct Service {
    app: Router,
    runtime: Runtime,
    /// A key with all scopes.
    key: String,
    /// The version of each router.
    versions: Vec<String>,
    /// What the service says of itself.
    pub document: Document,
    /// A router's files are read again when somebody asks for it.
    _folder: TempDir,
}

/// The service that every input asks.
pub static SERVICE: LazyLock<Service> = LazyLock::new(Service::start);

impl Service {
    fn start() -> Self {
        let folder = tiny::folder();
        let place = |name: &str| folder.path().join(name);
        let versions = ROUTERS.iter().zip(0..).map(|(name, queue)| tiny::write(folder.path(), name, queue)).collect();
        let list =
            ROUTERS[1..].iter().map(|name| NamedRouter { name: (*name).to_owned(), path: place(name) }).collect();
        let routers = RoutersConfig { list, shadow: Some(ROUTERS[1].to_owned()), ..RoutersConfig::default() };
        let key = NewKey::make("fuzz", "route,explain,admin".parse().expect("three scopes")).expect("random numbers");
        std::fs::write(place("keys"), &key.line).expect("a file of keys");
        // Bounds that an input can reach.
        let config = ServerConfig {
            keys_file: Some(place("keys")),
            max_body_bytes: 64 * 1024,
            max_batch_emails: 8,
            idempotency_max_answers: 64,
            ..ServerConfig::default()
        };
        let document = Document::of(&openapi_document(&config));
        let server = Handle::new(config).expect("a server");
        server.set_ready(Routers::open(&routers, &place(ROUTERS[0]), tiny::loader()).expect("two routers"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        Self { app: app(server), runtime, key: key.key.to_string(), versions, document, _folder: folder }
    }

    /// The answer to a request. A panic anywhere ends the process: the fuzzer's hook comes before the service's net.
    pub fn ask(&self, request: Request<Body>) -> Answer {
        let asked = format!("{} {}", request.method(), request.uri());
        let app = self.app.clone();
        self.runtime.block_on(async move {
            let response = app.oneshot(request).await.expect("the service never fails");
            let (parts, body) = response.into_parts();
            let body = body.collect().await.expect("a whole body").to_bytes();
            Answer { asked, status: parts.status, headers: parts.headers, body }
        })
    }
}
