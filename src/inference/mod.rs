//! The model's thread: mails wait in a bounded room, one thread owns the network and runs them in batches.
//!
//! What waits when the thread is free is the next batch; there is no timer. Who may wait and who runs next is decided by
//! plain functions (`room`, `batch_former`): clients share the model evenly, a caller that stops waiting (drops the future)
//! takes its mail out, a mail whose deadline has passed is never run, and one that cannot be done in time is refused at
//! once. Maps and parts of explanations have short lanes of their own.

mod batch_former;
mod caller;
mod device;
mod engine;
mod event;
mod job;
mod lane;
mod line;
mod rate;
mod room;
mod shares;
mod worker;

pub use caller::{Caller, Client};
pub use device::{DeviceChoice, DeviceError, device_name};
pub use engine::{Depth, Engine, Inference};
pub use event::{Dropped, Event, Observer, Refused};
pub use lane::Lane;
pub use worker::Network;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::ModelError;

/// Bounds of the queue and the batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InferenceConfig {
    /// Mails that may wait; one more is refused.
    pub max_waiting_mails: usize,
    /// Tokens that may wait over all mails; a mail that would exceed this is refused, unless nothing else waits.
    pub max_waiting_tokens: usize,
    /// Tokens of one batch, overlaps and special tokens included.
    pub max_batch_tokens: usize,
    /// Requests for attention maps that may wait; one more is refused.
    pub max_waiting_maps: usize,
}

impl Default for InferenceConfig {
    fn default() -> Self {
        Self { max_waiting_mails: 1024, max_waiting_tokens: 262_144, max_batch_tokens: 4096, max_waiting_maps: 4 }
    }
}

/// Parts of explanations that may wait: whoever explains waits for one before it asks for the next, and bounds how many do.
const MAX_WAITING_PARTS: usize = 64;

impl InferenceConfig {
    fn max_waiting(&self, lane: Lane) -> usize {
        match lane {
            Lane::Route => self.max_waiting_mails,
            Lane::Maps => self.max_waiting_maps,
            Lane::Explain => MAX_WAITING_PARTS,
        }
    }
}

/// Why a mail got no logits.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InferenceError {
    /// Too much waits already.
    #[error("{waiting} mails wait already, the limit is {limit}")]
    Full {
        /// How many wait in this lane.
        waiting: usize,
        /// How many may.
        limit: usize,
        /// When there should be room again.
        retry_after: Duration,
    },
    /// Too much waits already, and most of it is this client's.
    #[error("{waiting} mails wait already, the limit is {limit}, and this client holds more of them than others")]
    OverShare {
        /// How many wait in this lane.
        waiting: usize,
        /// How many may.
        limit: usize,
        /// When there should be room again.
        retry_after: Duration,
    },
    /// The mail could not be done before its deadline.
    #[error("an answer would take about {needed:?}, the caller waits for {left:?}")]
    TooLate {
        /// An estimate of the time to the answer.
        needed: Duration,
        /// The time left.
        left: Duration,
        /// When it should be faster.
        retry_after: Duration,
    },
    /// The deadline passed before the answer.
    #[error("the deadline passed before the answer")]
    Expired,
    /// The service is shutting down.
    #[error("the model's thread has stopped taking mail")]
    Closed,
    /// The network failed on this mail.
    #[error("the network failed on this mail")]
    Model(#[source] Arc<ModelError>),
    /// The thread panicked on this mail and went on.
    #[error("the model's thread panicked on this mail")]
    Panicked,
}

impl InferenceError {
    /// Why the mail was refused before it waited, where it was.
    fn refused(&self) -> Option<Refused> {
        match self {
            Self::Full { .. } => Some(Refused::QueueFull),
            Self::OverShare { .. } => Some(Refused::OverShare),
            Self::TooLate { .. } | Self::Expired => Some(Refused::TooLate),
            Self::Closed => Some(Refused::Closed),
            Self::Model(_) | Self::Panicked => None,
        }
    }
}
