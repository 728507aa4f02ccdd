//! Errors of the routing floor, as clients see them. The one place that knows both.

use std::time::Duration;

use super::problem::{Problem, excerpt};
use crate::explain::{ExportError, MAX_SIDE, SelectError};
use crate::inference::InferenceError;
use crate::routing::RoutingError;

impl From<RoutingError> for Problem {
    fn from(error: RoutingError) -> Self {
        match error {
            RoutingError::Inference(error) => of_inference(&error),
            RoutingError::Select(error) => of_selection(error),
            RoutingError::MapTooLarge { cells, limit, kept, fitting } => {
                let (detail, remedy) = if kept {
                    (
                        format!(
                            "the network would keep {cells} weights for these maps (all heads and rows of every \
                             window), more than the {limit} that it may"
                        ),
                        "Ask for fewer layers or send a shorter mail; each query listed under `valid` fits this mail.",
                    )
                } else {
                    (
                        format!("the maps asked for have {cells} weights, more than the {limit} that an answer may hold"),
                        "Ask for fewer layers, heads or rows; each query listed under `valid` fits this mail.",
                    )
                };
                Self::too_large("map_too_large", detail).limit(limit).given(cells).valid(fitting).remedy(remedy)
            }
            RoutingError::Contradiction { field, reason } => {
                Self::unprocessable("contradiction", "these parameters mean nothing together").field(field).remedy(reason)
            }
            RoutingError::SeveralWindows { windows } => Self::unprocessable(
                "several_windows",
                format!("the mail has {windows} windows, each with its own map, and this format holds one"),
            )
            .field("window")
            .valid((0..windows).map(|window| format!("window={window}")))
            .remedy("Choose a window, or a format that holds all: json, safetensors, html."),
            RoutingError::Export(error @ ExportError::TooLarge { .. }) => {
                Self::too_large("picture_too_large", error.to_string())
                    .limit(MAX_SIDE)
                    .remedy("Ask for fewer layers, heads or rows, for words instead of pieces, or for format=safetensors.")
            }
            RoutingError::UnknownQueue { given, valid } => {
                Self::unprocessable("unknown_queue", "the router has no such queue").given(excerpt(&given)).valid(valid)
            }
            RoutingError::TooManyExplanations { limit, retry_after } => {
                Self::unavailable("explanations_full", "as many explanations as may are being worked on", retry_after)
                    .limit(limit)
                    .remedy("Send it again after the time in Retry-After; mail is routed meanwhile.")
            }
            RoutingError::ExplanationTooLarge { tokens, limit } => Self::too_large(
                "explanation_too_large",
                format!("this explanation takes at least {tokens} tokens of the network's time, more than the {limit} allowed"),
            )
            .limit(limit)
            .given(tokens)
            .remedy("Send a shorter mail, ask for a cheaper method or for fewer queues, or raise routing.explain.max_tokens."),
            RoutingError::NoMask => {
                Self::unprocessable("not_available", "the router's vocabulary has no token to hide words with")
                    .field("perturb")
                    .valid(["delete"])
            }
            RoutingError::NothingToRead => {
                Self::unprocessable("nothing_to_read", "the mail has no text that attention could be shown on")
                    .remedy("Send a mail with a subject or a body; POST /v1/route answers mail without text.")
            }
            error @ RoutingError::Readable(_) => {
                log(&error);
                Self::unavailable(
                    "gradients_unavailable",
                    "the network that has gradients cannot be read",
                    Duration::from_secs(60),
                )
                .remedy("Ask for method=occlusion, which needs none; the service's log says what is wrong.")
            }
            error @ (RoutingError::Map(_)
            | RoutingError::Export(_)
            | RoutingError::Network(_)
            | RoutingError::Panicked) => {
                log(&error);
                Self::internal("internal_error")
            }
        }
    }
}

fn of_inference(error: &InferenceError) -> Problem {
    match error {
        InferenceError::Full { waiting, limit, retry_after } => {
            Problem::unavailable("queue_full", "too much mail waits for the model already", *retry_after)
                .limit(*limit)
                .given(*waiting)
                .remedy("Send it again after the time in Retry-After, or send fewer requests at a time.")
        }
        InferenceError::OverShare { waiting, limit, retry_after } => Problem::too_many_requests(
            "over_share",
            "too much mail waits for the model already, and most of it is yours",
            *retry_after,
        )
        .limit(*limit)
        .given(*waiting)
        .remedy("Send fewer requests at a time, or again after the time in Retry-After; other clients are served meanwhile."),
        InferenceError::TooLate { needed, left, retry_after } => Problem::unavailable(
            "deadline_too_short",
            "the mail could not be answered before its deadline and was not begun",
            *retry_after,
        )
        .limit(format!("{} ms left", left.as_millis()))
        .given(format!("about {} ms needed", needed.as_millis()))
        .remedy("Send it again after the time in Retry-After, or allow it more time."),
        InferenceError::Expired => Problem::timed_out(),
        InferenceError::Closed => Problem::stopping(),
        InferenceError::Model(_) | InferenceError::Panicked => {
            log(error);
            Problem::internal("model_failed")
        }
    }
}

fn of_selection(error: SelectError) -> Problem {
    let detail = error.to_string();
    match error {
        SelectError::Unknown { what, index, last } => {
            Problem::unprocessable("out_of_range", detail).field(what).given(index).valid([format!("0-{last}")])
        }
        SelectError::Syntax { what, text, keywords } => Problem::unprocessable("invalid_parameter", detail)
            .field(what)
            .given(text)
            .valid(keywords.split(", ").chain(["0,2-4"])),
    }
}

/// The whole chain of causes, once.
fn log(error: &dyn std::error::Error) {
    tracing::error!(error = chain(error), "a request failed");
}

/// An error and its causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut chain = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        chain.push_str(": ");
        chain.push_str(&error.to_string());
        cause = error.source();
    }
    chain
}
