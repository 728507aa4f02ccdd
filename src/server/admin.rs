//! What changes the running service: on `admin_port`, or behind the scope `admin`.

mod routers;

use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::routing::post;
use serde_json::{Value, json};

use super::state::Handle;

pub(super) fn routes() -> Router<Handle> {
    routers::admin_routes().route("/admin/reload", post(reload))
}

/// Reads keys and certificate again, as SIGHUP does. What could not be read is in the log and in `postroom_reloads_total`.
async fn reload(State(server): State<Handle>) -> Json<Value> {
    let all_read = server.front().look(true, server.metrics());
    Json(json!({"status": if all_read { "reloaded" } else { "old_version_in_force" }}))
}
