//! `GET /metrics`.

use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::IntoResponse;

use crate::server::extract::query;
use crate::server::problem::Problem;
use crate::server::state::Handle;

/// The format that Prometheus asks for first.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(in crate::server) async fn metrics(State(server): State<Handle>, uri: Uri) -> Result<impl IntoResponse, Problem> {
    query::refuse_all(&uri)?;
    let text = server.metrics().text(&server).map_err(|_| Problem::internal("internal_error"))?;
    Ok(([(header::CONTENT_TYPE, OPENMETRICS)], text))
}
