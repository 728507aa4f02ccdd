//! `POST /v1/read`: the text that offsets point into.
//!
//! For a mail in JSON these are the very fields that were sent. A raw message has to be decoded first, and only the
//! service knows how it decoded it. The answer, `{"subject", "text"}`, is a mail in JSON again.

use axum::Json;
use axum::extract::{Request, State};
use serde_json::{Value, json};

use super::super::asker::Asker;
use super::super::extract::{MediaType, query, read_body, read_mail};
use super::super::problem::Problem;
use super::super::state::Handle;

pub(super) async fn read(State(server): State<Handle>, asker: Asker, request: Request) -> Result<Json<Value>, Problem> {
    let service = server.service()?;
    query::refuse_all(request.uri())?;
    let (parts, body) = request.into_parts();
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let mail = read_mail(&MediaType::of(&parts.headers), bytes, &[])?.mail;
    // In turn with the mail that is routed: a flood of large ones leaves time to the network, whoever sends it.
    let email = service.read(mail, asker.client()).await?;
    Ok(Json(json!({"subject": email.subject.posted(), "text": email.body.posted()})))
}
