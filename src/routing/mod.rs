//! From a mail to a decision: the policy, and the service that every front end calls.

mod attention;
mod decision;
mod policy;
mod service;

pub use attention::{AttentionReply, AttentionRequest, MAX_JSON_CELLS};
pub use decision::{Candidate, Decision, InputFacts, MailFacts, ModelRef, Outcome, QueueRef, Reason, Timing};
pub use policy::{AutomaticMail, PolicyConfig};
pub use service::{Mail, MailContent, MailFields, RoutingConfig, RoutingService};

use crate::explain::{MapError, SelectError};
use crate::inference::InferenceError;

/// Why a mail got no answer.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    /// The network could not be asked, or failed.
    #[error(transparent)]
    Inference(#[from] InferenceError),
    /// Layers, heads or rows that do not exist.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The maps asked for are larger than an answer may be.
    #[error("the maps asked for have {cells} weights, the limit is {limit}")]
    MapTooLarge {
        /// Weights asked for.
        cells: usize,
        /// The limit.
        limit: usize,
        /// Up to three queries that fit, as a caller would write them.
        fitting: Vec<String>,
    },
    /// The mail has no token to look at.
    #[error("the mail has no text that could be looked at")]
    NothingToRead,
    /// The maps could not be read.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A thread panicked on this mail and was replaced.
    #[error("reading this mail failed unexpectedly")]
    Panicked,
}
