//! Which other sites may ask from a browser: none, unless the settings name them.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, Method, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::ServerConfig;

/// How long a browser may remember the answer to its question, which does not change while the service runs.
const REMEMBERED: Duration = Duration::from_secs(600);

/// `None` where no site may. Keys are sent in a header and never by the browser itself, so credentials stay off.
pub(super) fn layer(config: &ServerConfig) -> Option<CorsLayer> {
    let origins: Vec<HeaderValue> =
        config.cors_origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()).collect();
    if origins.is_empty() {
        return None;
    }
    let any = origins.iter().any(|origin| origin == "*");
    let origins = if any { AllowOrigin::any() } else { AllowOrigin::list(origins) };
    let named = HeaderName::from_static;
    Some(
        CorsLayer::new()
            .allow_origin(origins)
            .allow_methods([Method::GET, Method::POST])
            .allow_headers([
                header::CONTENT_TYPE,
                header::AUTHORIZATION,
                named("x-api-key"),
                named("x-request-id"),
                named("x-request-timeout-ms"),
                named("idempotency-key"),
                named("traceparent"),
                named("tracestate"),
            ])
            .expose_headers([header::RETRY_AFTER, named("server-timing"), named("x-request-id")])
            .max_age(REMEMBERED),
    )
}
