//! The table of endpoints.

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use super::problem::{Problem, excerpt};
use super::state::Handle;
use super::{
    admin, attention, batch, compare, cors, deadline, explain, headers, heads, health, idempotency, keys, metrics,
    models, observe, openapi, page, peers, route,
};

const ENDPOINTS: &[&str] = &[
    "POST /v1/route",
    "POST /v1/route/batch",
    "POST /v1/attention",
    "POST /v1/explain",
    "POST /v1/heads",
    "POST /v1/compare",
    "GET /v1/model",
    "GET /v1/queues",
    "GET /v1/routers",
    "POST /v1/routers/{router}/route",
    "POST /v1/routers/{router}/route/batch",
    "POST /v1/routers/{router}/attention",
    "POST /v1/routers/{router}/explain",
    "POST /v1/routers/{router}/heads",
    "POST /v1/routers/{router}/compare",
    "GET /v1/routers/{router}/model",
    "GET /v1/routers/{router}/queues",
    "GET /livez",
    "GET /readyz",
    "GET /metrics",
    "GET /openapi.json",
    "GET /docs",
    "POST /",
    "POST /predict",
    "GET /info",
    "POST /classify",
    "POST /v1/classify",
    "GET /v2",
    "GET /v2/health/live",
    "GET /v2/health/ready",
    "GET /v2/models/{name}",
    "GET /v2/models/{name}/ready",
    "POST /v2/models/{name}/infer",
    "GET /v2/models/{name}/versions/{version}",
    "GET /v2/models/{name}/versions/{version}/ready",
    "POST /v2/models/{name}/versions/{version}/infer",
];

fn endpoints() -> impl Iterator<Item = &'static str> {
    ENDPOINTS.iter().copied().chain(page::ENDPOINTS)
}

/// What the first port answers, as a service of requests: for a server of another kind, and for tests that need no socket.
/// Requests that come without a peer's address are all one client's.
pub fn app(server: Handle) -> Router {
    let mut routes = probes()
        .merge(once(&server))
        .merge(peers::routes())
        .merge(openapi::routes())
        .route("/v1/attention", post(attention::attention))
        .route("/v1/explain", post(explain::explain))
        .route("/v1/heads", post(heads::heads))
        .route("/v1/compare", post(compare::compare))
        .route("/v1/model", get(models::model))
        .route("/v1/queues", get(models::queues))
        .route("/v1/routers", get(models::routers))
        .route("/v1/routers/{router}/attention", post(attention::attention))
        .route("/v1/routers/{router}/explain", post(explain::explain))
        .route("/v1/routers/{router}/heads", post(heads::heads))
        .route("/v1/routers/{router}/compare", post(compare::compare))
        .route("/v1/routers/{router}/model", get(models::model))
        .route("/v1/routers/{router}/queues", get(models::queues))
        .merge(page::routes());
    if server.config().admin_port.is_none() {
        routes = routes.route("/metrics", get(metrics::metrics));
        // Without keys anybody who reaches the port could change the service.
        if server.keys().is_some() {
            routes = routes.merge(admin::routes());
        }
    }
    let guard = from_fn_with_state(server.clone(), keys::guard);
    let routes =
        inner(routes.fallback(not_found).method_not_allowed_fallback(method_not_allowed).layer(guard), &server);
    let routes = match cors::layer(server.config()) {
        Some(cors) => routes.layer(cors),
        None => routes,
    };
    outer(routes, server)
}

/// What `admin_port` answers. Whoever reaches it is trusted, but not the pages that their browsers show.
pub(super) fn admin_app(server: Handle) -> Router {
    let routes = probes().route("/metrics", get(metrics::metrics)).merge(admin::routes());
    let routes = inner(routes.fallback(not_found).method_not_allowed_fallback(method_not_allowed), &server);
    outer(routes.layer(from_fn(cors::refuse_pages)), server)
}

fn probes() -> Router<Handle> {
    Router::new().route("/livez", get(health::live)).route("/readyz", get(health::ready))
}

/// What surrounds every endpoint, from the inside out; which pages may ask is decided around it.
fn inner(routes: Router<Handle>, server: &Handle) -> Router<Handle> {
    routes.layer(CatchPanicLayer::custom(observe::panicked)).layer(from_fn_with_state(server.clone(), deadline::keep))
}

/// What surrounds that, from the inside out.
fn outer(routes: Router<Handle>, server: Handle) -> Router {
    routes
        .layer(from_fn_with_state(server.clone(), headers::secure))
        .layer(from_fn_with_state(server.clone(), observe::observe))
        .with_state(server)
}

/// Endpoints where a request that is sent again is done once.
fn once(server: &Handle) -> Router<Handle> {
    Router::new()
        .route("/v1/route", post(route::route))
        .route("/v1/route/batch", post(batch::route_batch))
        .route("/v1/routers/{router}/route", post(route::route))
        .route("/v1/routers/{router}/route/batch", post(batch::route_batch))
        .route_layer(from_fn_with_state(server.clone(), idempotency::honour))
}

async fn not_found(request: Request) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not_found", "there is no such endpoint")
        .given(excerpt(request.uri().path()))
        .valid(endpoints())
}

async fn method_not_allowed(request: Request) -> Problem {
    // As declared: `/v2/models/{name}`.
    let matched = request.extensions().get::<MatchedPath>();
    let path = matched.map_or_else(|| request.uri().path(), MatchedPath::as_str);
    let valid = endpoints().filter(|endpoint| endpoint.split_once(' ').is_some_and(|(_, at)| at == path));
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this endpoint does not answer that method")
        .given(excerpt(request.method().as_str()))
        .valid(valid)
}
