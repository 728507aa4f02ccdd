//! The table of endpoints.

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use super::problem::{Problem, excerpt};
use super::state::Handle;
use super::{attention, batch, health, models, observe, route};

const ENDPOINTS: [&str; 7] = [
    "POST /v1/route",
    "POST /v1/route/batch",
    "POST /v1/attention",
    "GET /v1/model",
    "GET /v1/queues",
    "GET /livez",
    "GET /readyz",
];

pub(super) fn app(server: Handle) -> Router {
    Router::new()
        .route("/v1/route", post(route::route))
        .route("/v1/route/batch", post(batch::route_batch))
        .route("/v1/attention", post(attention::attention))
        .route("/v1/model", get(models::model))
        .route("/v1/queues", get(models::queues))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(CatchPanicLayer::custom(observe::panicked))
        .layer(from_fn_with_state(server.clone(), observe::observe))
        .with_state(server)
}

async fn not_found(request: Request) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is no such endpoint")
        .given(excerpt(request.uri().path()))
        .valid(ENDPOINTS)
}

async fn method_not_allowed(request: Request) -> Problem {
    let path = request.uri().path();
    let valid = ENDPOINTS.into_iter().filter(|endpoint| endpoint.split_once(' ').is_some_and(|(_, at)| at == path));
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this endpoint does not answer that method")
        .given(excerpt(request.method().as_str()))
        .valid(valid)
}
