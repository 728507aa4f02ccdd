//! Whether the server lives, takes mail, and has the model. None of them touches the model.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::{ModelPath, ProtocolError};
use crate::server::state::Handle;

/// The process runs.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Live {
    live: bool,
}

/// Mail is answered.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Ready {
    ready: bool,
}

/// A model answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct ModelReady {
    name: String,
    ready: bool,
}

pub(in crate::server) async fn live() -> Json<Live> {
    Json(Live { live: true })
}

/// 503 while the router is loaded and while the service stops.
pub(in crate::server) async fn ready(State(server): State<Handle>) -> (StatusCode, Json<Ready>) {
    let ready = server.ready();
    (status(ready), Json(Ready { ready }))
}

pub(in crate::server) async fn model_ready(
    State(server): State<Handle>,
    path: ModelPath,
) -> Result<(StatusCode, Json<ModelReady>), ProtocolError> {
    path.service(&server)?;
    let ready = server.ready();
    Ok((status(ready), Json(ModelReady { name: path.name, ready })))
}

fn status(ready: bool) -> StatusCode {
    if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
