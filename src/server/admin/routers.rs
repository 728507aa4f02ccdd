//! What became of the routers, and taking in a new one at once.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::routing::ReloadError;
use crate::server::extract::query;
use crate::server::problem::{Problem, excerpt};
use crate::server::state::Handle;
use crate::server::watch::on_a_thread;

pub(super) fn admin_routes() -> Router<Handle> {
    Router::new()
        .route("/admin/routers", get(routers))
        .route("/admin/routers/{router}/reload", post(reload))
        .route("/admin/shadow", get(shadow))
}

async fn routers(State(server): State<Handle>, uri: Uri) -> Result<Json<Value>, Problem> {
    query::refuse_all(&uri)?;
    let routers = server.routers()?;
    let states: Vec<_> = routers.all().iter().map(|slot| slot.state()).collect();
    Ok(Json(json!({
        "default": routers.default_slot().name(),
        "routers": states,
        "canary": routers.beside().and_then(|beside| beside.canary()),
        "shadow": routers.beside().and_then(|beside| beside.shadow()).map(|shadow| shadow.name),
    })))
}

async fn reload(State(server): State<Handle>, Path(name): Path<String>, uri: Uri) -> Result<Json<Value>, Problem> {
    query::refuse_all(&uri)?;
    let routers = Arc::clone(server.routers()?);
    let names = routers.names();
    let asked = name.clone();
    let reloaded =
        on_a_thread(move || routers.reload(&asked)).await.ok_or_else(|| Problem::internal("reload_failed"))?;
    match reloaded {
        Ok(reloaded) => {
            let mut answer = json!({"router": name});
            if let (Some(answer), Ok(Value::Object(outcome))) =
                (answer.as_object_mut(), serde_json::to_value(&reloaded))
            {
                answer.extend(outcome);
            }
            Ok(Json(answer))
        }
        Err(ReloadError::Unknown { name }) => {
            Err(Problem::new(StatusCode::NOT_FOUND, "unknown_router", "there is no router of this name")
                .given(excerpt(&name))
                .valid(names))
        }
        Err(error @ ReloadError::Fixed { .. }) => Err(Problem::unprocessable("router_fixed", error.to_string())),
        Err(ReloadError::Refused { reason, in_force, .. }) => {
            let goes_on = in_force.map_or_else(
                || "No router answers to this name yet.".to_owned(),
                |version| format!("Version {version} goes on answering."),
            );
            Err(Problem::unprocessable("router_refused", reason).remedy(format!(
                "Put the files right; they are tried again when they change, or when asked. {goes_on}"
            )))
        }
    }
}

async fn shadow(State(server): State<Handle>, uri: Uri) -> Result<Json<Value>, Problem> {
    query::refuse_all(&uri)?;
    let report = server.routers()?.beside().and_then(|beside| beside.shadow()).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "no_shadow", "no router is scored beside the default one")
            .remedy("Name one in routers.shadow.")
    })?;
    Ok(Json(json!(report)))
}
