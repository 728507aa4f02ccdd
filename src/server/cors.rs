//! Which other sites may ask from a browser: none, unless the settings name them, and none at all on `admin_port`.

use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::ServerConfig;
use super::problem::{Problem, excerpt};

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

/// Refuses whatever a page sends, for a port without keys. Browsers put `Origin` beside a POST to another site, and
/// beside whatever a script asks there; a POST without a body comes without a preflight, so leaving CORS off would not
/// keep it out.
pub(super) async fn refuse_pages(request: Request, next: Next) -> Response {
    if let Some(origin) = request.headers().get(header::ORIGIN) {
        return Problem::new(StatusCode::FORBIDDEN, "origin_refused", "this port answers no page in a browser")
            .field("origin")
            .given(excerpt(&String::from_utf8_lossy(origin.as_bytes())))
            .remedy("Ask from monitoring or a command line, without the header Origin.")
            .into_response();
    }
    next.run(request).await
}
