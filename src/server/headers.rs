//! Headers that every answer has: browsers must not guess, frame, cache or pass on what a mail became.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use super::state::Handle;

/// Each is set unless the handler has set its own, as the page does.
const ALWAYS: [(HeaderName, HeaderValue); 5] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
];

/// A year; only said over TLS, where it means something.
const HSTS: HeaderValue = HeaderValue::from_static("max-age=31536000");

pub(super) async fn secure(State(server): State<Handle>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    ALWAYS.into_iter().for_each(|(name, value)| set(headers, name, value));
    if server.config().tls_cert.is_some() {
        set(headers, header::STRICT_TRANSPORT_SECURITY, HSTS);
    }
    response
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: HeaderValue) {
    headers.entry(name).or_insert(value);
}
