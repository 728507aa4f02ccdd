//! Which router a program means that was written for another server: what it calls a model is a router here.

use std::sync::Arc;

use super::refusal::Refusal;
use crate::routing::RoutingService;
use crate::server::extract::{Asked, live};
use crate::server::problem::excerpt;
use crate::server::state::Handle;

/// The router of a model's name: the one that requests call so, or else the default one by the name that it was made under.
pub(super) fn of_model(server: &Handle, model: &str) -> Result<Arc<RoutingService>, Refusal> {
    if let Some(slot) = server.routers()?.get(model) {
        return Ok(live(&slot)?);
    }
    let default = server.service()?;
    if default.router().name == model { Ok(default) } else { Err(Refusal::UnknownModel(excerpt(model))) }
}

/// The router of a request that may name one by `router=` and, since many clients must, by the model in its body. Where both
/// do, they have to mean the same.
pub(super) fn of_request(server: &Handle, asked: Asked, model: Option<&str>) -> Result<Arc<RoutingService>, Refusal> {
    match (asked.name(), model) {
        (None, Some(model)) => of_model(server, model),
        (Some(name), Some(model)) if model != name && model != asked.router_name() => {
            Err(Refusal::UnknownModel(excerpt(model)))
        }
        _ => Ok(asked.service()),
    }
}
