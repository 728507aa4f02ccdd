//! Errors of the routing floor, as clients see them. The one place that knows both.

use super::problem::Problem;
use crate::explain::SelectError;
use crate::inference::InferenceError;
use crate::routing::RoutingError;

impl From<RoutingError> for Problem {
    fn from(error: RoutingError) -> Self {
        match error {
            RoutingError::Inference(error) => of_inference(&error),
            RoutingError::Select(error) => of_selection(error),
            RoutingError::MapTooLarge { cells, limit, fitting } => Self::too_large(
                "map_too_large",
                format!("the maps asked for have {cells} weights, more than the {limit} that an answer may hold"),
            )
            .limit(limit)
            .given(cells)
            .valid(fitting)
            .remedy("Ask for fewer layers, heads or rows; each query listed under `valid` fits this mail."),
            RoutingError::NothingToRead => {
                Self::unprocessable("nothing_to_read", "the mail has no text that attention could be shown on")
                    .remedy("Send a mail with a subject or a body; POST /v1/route answers mail without text.")
            }
            error @ (RoutingError::Map(_) | RoutingError::Panicked) => {
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
    let mut chain = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        chain.push_str(": ");
        chain.push_str(&error.to_string());
        cause = error.source();
    }
    tracing::error!(error = %chain, "a request failed");
}
