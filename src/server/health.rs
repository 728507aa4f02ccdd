//! Probes. They never touch the model, so they answer while it is busy.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::problem::Problem;
use super::state::Handle;

/// The process runs.
pub(super) async fn live() -> Json<Value> {
    Json(json!({"status": "alive"}))
}

/// Mail is answered.
pub(super) async fn ready(State(server): State<Handle>) -> Result<Json<Value>, Problem> {
    if server.stopping() {
        return Err(Problem::stopping());
    }
    let service = server.service()?;
    Ok(Json(json!({"status": "ready", "waiting": service.waiting()})))
}
