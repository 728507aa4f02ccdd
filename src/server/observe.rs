//! Around every request: an id, a log line without a word of the mail, and a net for panics.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use super::spans::{Local, ProblemCode, RequestSpan};
use super::state::Handle;
use super::trace;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id that is taken over from a caller.
const MAX_ID: usize = 128;

pub(super) async fn observe(State(server): State<Handle>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = request.headers().get(&REQUEST_ID).filter(|id| acceptable(id)).cloned().unwrap_or_else(new_id);
    let method = request.method().clone();
    // The route as declared: a path as sent could hold anything.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let matched = route.as_ref().map(MatchedPath::as_str);
    let route = matched.unwrap_or("none");
    // What probes and monitoring ask every few seconds.
    let quiet = matches!(route, "/livez" | "/readyz" | "/v2/health/live" | "/v2/health/ready" | "/metrics");

    let span = server.traces().filter(|_| !quiet).map(|traces| {
        let mut span = RequestSpan::begin(traces, &method, matched, request.headers());
        span.came_in_at(request.extensions().get::<Local>());
        span
    });
    let exported = span.as_ref().and_then(RequestSpan::trace_id).map(|id| id.to_string());
    let trace = exported.or_else(|| trace::parent(request.headers()).map(|parent| parent.trace_id.to_owned()));

    let mut underway = Underway::begin(&server, route, &method, started);
    underway.span = span;
    let answer = next.run(request);
    let mut response = match &underway.span {
        Some(span) => span.around(answer).await,
        None => answer.await,
    };
    underway.status = Some(response.status());
    underway.problem = response.extensions().get().copied();
    drop(underway);
    response.headers_mut().insert(REQUEST_ID, id.clone());

    let (id, status) = (id.to_str().unwrap_or_default(), response.status().as_u16());
    let duration_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
    if quiet {
        tracing::debug!(%method, route, status, duration_us, request_id = id, trace_id = trace, "request");
    } else {
        tracing::info!(%method, route, status, duration_us, request_id = id, trace_id = trace, "request");
    }
    response
}

/// A request that is being answered; counted when dropped, by the client's leaving as well.
struct Underway<'a> {
    server: &'a Handle,
    route: &'a str,
    method: &'a Method,
    started: Instant,
    status: Option<StatusCode>,
    problem: Option<ProblemCode>,
    span: Option<RequestSpan>,
}

impl<'a> Underway<'a> {
    fn begin(server: &'a Handle, route: &'a str, method: &'a Method, started: Instant) -> Self {
        server.metrics().http.in_flight.inc();
        Self { server, route, method, started, status: None, problem: None, span: None }
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let http = &self.server.metrics().http;
        http.in_flight.dec();
        if let Some(span) = &mut self.span {
            span.end(self.status, self.problem);
        }
        http.answered(self.route, self.method, self.status, self.started.elapsed());
        if self.status.is_none() {
            tracing::info!(method = %self.method, route = self.route, "the client left before its answer");
        }
    }
}

/// The answer after a handler panicked; where it panicked is in the log.
pub(super) fn panicked(_panic: Box<dyn Any + Send + 'static>) -> Response {
    Problem::internal("internal_error").into_response()
}

/// An id that is safe in a log: no `@`, so that it is no address.
fn acceptable(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=MAX_ID).contains(&id.len()) && id.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:/+=".contains(byte))
}

/// The start of the process in nanoseconds and a count.
fn new_id() -> HeaderValue {
    static START: std::sync::LazyLock<u128> =
        std::sync::LazyLock::new(|| SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos()));
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let id = format!("{:016x}-{:x}", *START, COUNT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("none"))
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt;
    use tower_http::catch_panic::CatchPanicLayer;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_a_problem_of_that_request_only() {
        let app = Router::new()
            .route("/bad", get(|| async { std::hint::black_box(None::<&str>).expect("a word of the mail") }))
            .route("/good", get(|| async { "good" }))
            .layer(CatchPanicLayer::custom(panicked));
        let get = |path| app.clone().oneshot(Request::get(path).body(Body::empty()).unwrap());
        let answer = get("/bad").await.unwrap();
        assert_eq!(answer.status(), 500);
        let body = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
        let body = String::from_utf8(body.into()).unwrap();
        assert!(body.contains("internal_error") && !body.contains("a word"), "{body}");
        assert_eq!(get("/good").await.unwrap().status(), 200);
    }
}
