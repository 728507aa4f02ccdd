//! A page that shows the document: three small files of our own, nothing from elsewhere.

use axum::http::{HeaderName, header};
use axum::response::IntoResponse;

/// Only what this service itself serves, and no inline script or style.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SNIFFING: HeaderName = HeaderName::from_static("x-content-type-options");

pub(super) async fn page() -> impl IntoResponse {
    file("text/html; charset=utf-8", include_str!("viewer/index.html"))
}

pub(super) async fn style() -> impl IntoResponse {
    file("text/css; charset=utf-8", include_str!("viewer/viewer.css"))
}

pub(super) async fn script() -> impl IntoResponse {
    file("text/javascript; charset=utf-8", include_str!("viewer/viewer.js"))
}

fn file(content_type: &'static str, text: &'static str) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, content_type),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (SNIFFING, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, text)
}
