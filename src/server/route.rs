//! `POST /v1/route`: one mail in, one decision out.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::HeaderName;
use axum::response::{AppendHeaders, IntoResponse};

use super::extract::{MediaType, query, read_body, read_mail};
use super::problem::Problem;
use super::state::Handle;
use crate::routing::Timing;

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

pub(super) async fn route(State(server): State<Handle>, request: Request) -> Result<impl IntoResponse, Problem> {
    let service = server.service()?;
    query::refuse_all(request.uri())?;
    let (parts, body) = request.into_parts();
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let request = read_mail(&MediaType::of(&parts.headers), bytes, &[])?;
    let decision = service.route(request.mail).await?;
    Ok((AppendHeaders([(SERVER_TIMING, server_timing(&decision.timing_us))]), Json(decision)))
}

/// Milliseconds, as browsers' tools show them.
fn server_timing(timing: &Timing) -> String {
    let Timing { parse, tokenize, queue, model, total } = *timing;
    [("parse", parse), ("tokenize", tokenize), ("queue", queue), ("model", model), ("total", total)]
        .map(|(name, micros)| format!("{name};dur={}.{:03}", micros / 1000, micros % 1000))
        .join(", ")
}
