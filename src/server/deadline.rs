//! How long a caller waits: `timeout_ms` in the query or the body, the header `x-request-timeout-ms`, or the setting.
//!
//! The time counts from the request's head. What is not answered by then is given up wherever it is, so that the model
//! never works for somebody who has stopped waiting.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::HeaderName;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::ServerConfig;
use super::extract::query;
use super::problem::{Problem, excerpt};
use super::state::Handle;

/// The parameter of a query and the field of a body.
pub(super) const TIMEOUT: &str = "timeout_ms";

const HEADER: HeaderName = HeaderName::from_static("x-request-timeout-ms");

/// Time for a handler to say what it did not finish before the request is cut.
const GRACE: Duration = Duration::from_millis(200);

/// When a request is given up. Clones are the same deadline.
#[derive(Debug, Clone)]
pub(super) struct Deadline {
    started: Instant,
    longest: Duration,
    given: bool,
    at: watch::Sender<Instant>,
}

impl Deadline {
    /// The deadline of a request that has just come.
    ///
    /// # Errors
    /// A problem for a time that is no number, out of bounds, or given twice.
    fn of(request: &Request, config: &ServerConfig) -> Result<Self, Problem> {
        let started = Instant::now();
        let (usual, longest) = (config.request_timeout(), config.max_request_timeout());
        let header = request.headers().get(&HEADER).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let parameter = query::timeout(request.uri())?;
        if header.is_some() && parameter.is_some() {
            return Err(repeated());
        }
        let given = match (&header, &parameter) {
            (Some(text), _) => Some(read(HEADER.as_str(), text, longest)?),
            (_, Some(text)) => Some(read(TIMEOUT, text, longest)?),
            _ => None,
        };
        let at = watch::Sender::new(started + given.unwrap_or(usual));
        Ok(Self { started, longest, given: given.is_some(), at })
    }

    /// When it is.
    pub(super) fn at(&self) -> Instant {
        *self.at.borrow()
    }

    /// Takes the field `timeout_ms` of a body.
    ///
    /// # Errors
    /// As for the other places.
    pub(super) fn of_body(&self, value: Option<Value>) -> Result<(), Problem> {
        let Some(value) = value else { return Ok(()) };
        if self.given {
            return Err(repeated());
        }
        let Some(time) = value.as_u64() else { return Err(not_a_time(TIMEOUT, &value.to_string(), self.longest)) };
        let time = within(TIMEOUT, time, self.longest)?;
        self.at.send_replace(self.started + time);
        Ok(())
    }

    /// The answer, or the problem that it took too long.
    pub(super) async fn within<T>(&self, answer: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
        timeout_at(self.at(), answer).await.unwrap_or_else(|_| Err(self.timed_out()))
    }

    /// The problem that it took too long.
    pub(super) fn timed_out(&self) -> Problem {
        Problem::timed_out().limit(format!("{} ms", self.at().saturating_duration_since(self.started).as_millis()))
    }

    /// Resolves when the deadline has passed, wherever it has been moved.
    async fn passed(&self) {
        let mut moved = self.at.subscribe();
        loop {
            let at = *moved.borrow_and_update() + GRACE;
            tokio::select! {
                () = sleep_until(at) => return,
                // The sender lives in `self`.
                _ = moved.changed() => {}
            }
        }
    }
}

/// For requests that went past the middleware, as in tests of a handler alone: no deadline to speak of.
impl Default for Deadline {
    fn default() -> Self {
        let (started, longest) = (Instant::now(), Duration::from_secs(3600));
        Self { started, longest, given: false, at: watch::Sender::new(started + longest) }
    }
}

/// Gives up requests at their deadline. Handlers that stop by themselves have a moment to say what they did.
pub(super) async fn keep(State(server): State<Handle>, mut request: Request, next: Next) -> Response {
    let deadline = match Deadline::of(&request, server.config()) {
        Ok(deadline) => deadline,
        Err(problem) => return problem.into_response(),
    };
    request.extensions_mut().insert(deadline.clone());
    tokio::select! {
        // A handler that stops by itself at the same moment knows more.
        biased;
        response = next.run(request) => response,
        () = deadline.passed() => deadline.timed_out().into_response(),
    }
}

fn read(place: &str, text: &str, longest: Duration) -> Result<Duration, Problem> {
    match text.trim().parse() {
        Ok(ms) => within(place, ms, longest),
        Err(_) => Err(not_a_time(place, text, longest)),
    }
}

fn within(place: &str, ms: u64, longest: Duration) -> Result<Duration, Problem> {
    let time = Duration::from_millis(ms);
    if ms == 0 || time > longest { Err(not_a_time(place, &ms.to_string(), longest)) } else { Ok(time) }
}

fn not_a_time(place: &str, given: &str, longest: Duration) -> Problem {
    let longest = longest.as_millis() as u64;
    Problem::unprocessable("invalid_parameter", format!("`{place}` takes whole milliseconds from 1 to {longest}"))
        .field(place)
        .limit(longest)
        .given(excerpt(given))
        .remedy("Send a time within these bounds, or raise server.max_request_timeout_ms.")
}

fn repeated() -> Problem {
    Problem::unprocessable("repeated_parameter", "the time that the request may take was given twice")
        .field(TIMEOUT)
        .remedy("Give it once: in the query, in the body or as x-request-timeout-ms.")
}
