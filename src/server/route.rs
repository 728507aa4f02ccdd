//! `POST /v1/route`: one mail in, one decision out; with `?explain=brief` a few words of why.

use axum::extract::{Request, State};
use axum::http::{HeaderName, Uri};
use axum::response::{AppendHeaders, IntoResponse};
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Value, json};

use super::asker::Asker;
use super::deadline::TIMEOUT;
use super::extract::parameters::{of_query, one_of};
use super::extract::{Asked, MediaType, ROUTER, read_body, read_mail};
use super::idempotency::Passing;
use super::problem::Problem;
use super::state::Handle;
use crate::inference::InferenceError;
use crate::routing::{Decision, ExplainRequest, Explanation, Mail, RoutingError, Timing};

const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

const PARAMETERS: [&str; 1] = ["explain"];

/// Reasons that lie in the mail: it is not explained when it is sent again either.
const LASTING: [&str; 2] = ["nothing_to_read", "too_long"];

/// A decision, and why where that was asked for.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    decision: Decision,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Value>,
}

pub(super) async fn route(
    State(server): State<Handle>,
    asker: Asker,
    router: Asked,
    request: Request,
) -> Result<impl IntoResponse, Problem> {
    let explain = wants_brief(request.uri())?;
    let (parts, body) = request.into_parts();
    let bytes = read_body(&parts.headers, body, server.config()).await?;
    let mut request = read_mail(&MediaType::of(&parts.headers), bytes, &[TIMEOUT, ROUTER])?;
    asker.deadline.of_body(request.rest.take(TIMEOUT))?;
    let service = router.or_of_body(&server, &mut request.rest)?;
    let to_explain: Option<Mail> = explain.then(|| request.mail.clone());
    let decided = async { Ok(service.route_for(request.mail, asker.caller()).await?) };
    let decision = asker.deadline.within(decided).await?;
    // Why the router that decided did so: the canary, where the mail was among its share.
    let explained = match (to_explain, service.decided_by(&decision)) {
        (Some(mail), Some(decider)) => {
            let wanted = ExplainRequest::default();
            let explained = async { Ok(brief(decider.explain(mail, &wanted, asker.caller()).await)) };
            Some(asker.deadline.within(explained).await.unwrap_or(Err("no_time")))
        }
        (Some(_), None) => Some(Err("router_exchanged")),
        (None, _) => None,
    };
    let passing = matches!(explained, Some(Err(reason)) if !LASTING.contains(&reason)).then_some(Extension(Passing));
    let explanation = explained.map(|explained| explained.unwrap_or_else(unavailable));
    let timing = [(SERVER_TIMING, server_timing(&decision.timing_us))];
    Ok((passing, AppendHeaders(timing), Json(Answer { decision, explanation })))
}

/// Whether the query asks for a few words of why.
pub(super) fn wants_brief(uri: &Uri) -> Result<bool, Problem> {
    match of_query(uri, &PARAMETERS)?.first() {
        Some((name, value)) => one_of(name, value, &[("brief", true), ("none", false)]),
        None => Ok(false),
    }
}

/// The explanation in short, or why there is none: no decision is withheld because it could not be explained.
fn brief(explained: Result<Explanation, RoutingError>) -> Result<Value, &'static str> {
    Err(match explained {
        Ok(explanation) => return Ok(explanation.brief()),
        Err(RoutingError::NothingToRead) => "nothing_to_read",
        Err(RoutingError::ExplanationTooLarge { .. }) => "too_long",
        Err(RoutingError::Inference(InferenceError::TooLate { .. } | InferenceError::Expired)) => "no_time",
        // What went wrong is in the log.
        Err(other) => {
            let busy = matches!(other, RoutingError::TooManyExplanations { .. } | RoutingError::Inference(_));
            let _ = Problem::from(other);
            if busy { "busy" } else { "failed" }
        }
    })
}

fn unavailable(reason: &str) -> Value {
    json!({"available": false, "reason": reason})
}

/// Milliseconds, as browsers' tools show them.
fn server_timing(timing: &Timing) -> String {
    let Timing { parse, tokenize, queue, model, total } = *timing;
    [("parse", parse), ("tokenize", tokenize), ("queue", queue), ("model", model), ("total", total)]
        .map(|(name, micros)| format!("{name};dur={}.{:03}", micros / 1000, micros % 1000))
        .join(", ")
}
