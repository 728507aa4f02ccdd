//! From a mail to a decision: the policy, and the service that every front end calls.

mod attention;
mod beside;
mod decision;
mod explain;
mod places;
mod policy;
mod routers;
mod scores;
mod service;
mod view;

pub use attention::{AttentionReply, AttentionRequest, MAX_JSON_CELLS, MapFormat, Weight};
pub use beside::{Beside, CanaryFigures, ShadowReport};
pub use decision::{Candidate, Decision, InputFacts, MailFacts, ModelRef, Outcome, QueueRef, Reason, Timing};
pub use explain::{
    Against, Classes, CompareRequest, EvidenceUnit, ExplainConfig, ExplainRequest, Explanation, Faithfulness,
    HeadsRequest, MailFaithfulness, Method, Perturb, SHARES,
};
pub use policy::{AutomaticMail, PolicyConfig};
pub use routers::{
    LoadError, Loader, NamedRouter, Refusal, ReloadError, Reloaded, Routers, RoutersConfig, RoutersError, Slot,
    SlotState, Watcher, rfc3339,
};
pub use scores::{QueueScore, Scores};
pub use service::{DecisionObserver, Mail, MailContent, MailFields, RoutingConfig, RoutingService};

use crate::artifact::ArtifactError;
use crate::explain::{ExportError, MapError, SelectError};
use crate::inference::InferenceError;
use crate::model::ModelError;

/// Why a mail got no answer.
#[derive(Debug, thiserror::Error)]
pub enum RoutingError {
    /// The network could not be asked, or failed.
    #[error(transparent)]
    Inference(#[from] InferenceError),
    /// Layers, heads or rows that do not exist.
    #[error(transparent)]
    Select(#[from] SelectError),
    /// The maps asked for are larger than an answer may be, or than the network may keep for one.
    #[error("the maps asked for take {cells} weights, the limit is {limit}")]
    MapTooLarge {
        /// Weights of the answer, or those that the network would keep.
        cells: usize,
        /// The limit.
        limit: usize,
        /// Whether it is what the network keeps while it computes that is too much, whatever the size of the answer.
        kept: bool,
        /// Up to three queries that fit, as a caller would write them.
        fitting: Vec<String>,
    },
    /// Parameters that mean nothing together.
    #[error("{reason}")]
    Contradiction {
        /// The parameter at fault.
        field: &'static str,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// A file of one map was asked for, of a mail with several windows.
    #[error("the mail has {windows} windows, each with its own map")]
    SeveralWindows {
        /// How many.
        windows: usize,
    },
    /// The map cannot be written in this form.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// A queue that the router does not have.
    #[error("`{given}` is none of the router's queues: {}", valid.join(", "))]
    UnknownQueue {
        /// What was asked for.
        given: String,
        /// The ids of the queues.
        valid: Vec<String>,
    },
    /// As many explanations as may are being worked on.
    #[error("{limit} explanations are being worked on already")]
    TooManyExplanations {
        /// How many may.
        limit: usize,
        /// When one should be done.
        retry_after: std::time::Duration,
    },
    /// Explaining this mail would take more of the network's time than one explanation may.
    #[error("explaining this mail takes at least {tokens} tokens, the limit is {limit}")]
    ExplanationTooLarge {
        /// Tokens to run, at the least.
        tokens: usize,
        /// The limit.
        limit: usize,
    },
    /// The readable network, which has gradients, cannot be read.
    #[error("the network cannot be read once more for explanations")]
    Readable(#[from] ArtifactError),
    /// The readable network failed on this mail.
    #[error("the readable network failed on this mail")]
    Network(#[source] ModelError),
    /// The vocabulary has no token to hide words with.
    #[error("the tokenizer has no mask token")]
    NoMask,
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
