//! The interface as a document: OpenAPI 3.1 at `/openapi.json`, and a page at `/docs` that shows it without the network.
//!
//! Answers and bodies are described by their types. Bodies that are read field by field (a mail in JSON) are described in
//! `bodies`, answers that are put together by hand (attention maps) in `shapes`; a test compares the names of the fields, and
//! `scripts/schemathesis` what the running service answers. `docs/openapi.json` is the document of
//! the default settings; a test fails where it is not the one that is served.

mod bodies;
mod document;
mod operation;
mod operations;
mod shapes;
mod viewer;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

pub use document::openapi_document;

use super::state::Handle;

/// The endpoints of this folder.
pub(super) fn routes() -> Router<Handle> {
    Router::new()
        .route("/openapi.json", get(openapi))
        .route("/docs", get(viewer::page))
        .route("/docs/viewer.css", get(viewer::style))
        .route("/docs/viewer.js", get(viewer::script))
}

async fn openapi(State(server): State<Handle>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], openapi_document(server.config()))
}
