//! What is loaded: the routers, one of them with its limits, its queues.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde_json::{Value, json};

use super::extract::{Asked, ROUTER, query};
use super::problem::Problem;
use super::state::Handle;
use crate::inference::device_name;
use crate::routing::{MAX_JSON_CELLS, Method};

/// Every router that requests can name, the default first.
pub(super) async fn routers(State(server): State<Handle>, uri: Uri) -> Result<Json<Value>, Problem> {
    query::refuse_all(&uri)?;
    let routers: Vec<Value> = server
        .routers()?
        .all()
        .iter()
        .enumerate()
        .map(|(place, slot)| {
            let live = slot.live();
            let router = live.as_ref().map(|service| service.router());
            json!({
                "name": slot.name(), "default": place == 0, "router": router.map(|router| &router.name),
                "version": router.map(|router| &router.version), "queues": router.map(|router| router.queues.len()),
            })
        })
        .collect();
    Ok(Json(json!({"routers": routers})))
}

pub(super) async fn model(State(server): State<Handle>, asked: Asked, uri: Uri) -> Result<Json<Value>, Problem> {
    query::refuse_all_but(&uri, &[ROUTER])?;
    let service = asked.service();
    let (router, config) = (service.router(), service.config());
    let (encoder, limits) = (&router.encoder_config, server.config());
    Ok(Json(json!({
        "router": router.name,
        "version": router.version,
        "encoder": {
            "name": router.encoder, "layers": encoder.n_layers, "heads": encoder.n_heads,
            "d_model": encoder.d_model, "max_positions": encoder.max_positions, "vocab_size": encoder.vocab_size,
        },
        "windows": router.windows,
        "pooling": router.pooling_name(),
        "queues": router.queues.len(),
        "languages": router.languages,
        "temperature": router.calibration.temperature,
        "threshold": config.policy.threshold.unwrap_or(router.calibration.threshold),
        "device": device_name(service.device()),
        "methods": Method::ALL.map(|(name, _)| name),
        "limits": {
            "max_body_bytes": limits.max_body_bytes,
            "max_batch_emails": limits.max_batch_emails,
            "max_tokens": router.windows.max_tokens,
            "max_json_cells": MAX_JSON_CELLS,
            "max_waiting_mails": config.inference.max_waiting_mails,
            "max_waiting_maps": config.inference.max_waiting_maps,
            "explain": config.explain,
            "request_timeout_ms": limits.request_timeout_ms,
            "max_request_timeout_ms": limits.max_request_timeout_ms,
        },
    })))
}

pub(super) async fn queues(asked: Asked, uri: Uri) -> Result<Json<Value>, Problem> {
    query::refuse_all_but(&uri, &[ROUTER])?;
    let queues: Vec<Value> = asked
        .service()
        .router()
        .queues
        .iter()
        .map(|queue| {
            json!({
                "id": queue.id, "name": queue.name, "description": queue.description, "enabled": queue.enabled,
                "suggest_only": queue.suggest_only,
            })
        })
        .collect();
    Ok(Json(json!({"queues": queues})))
}
