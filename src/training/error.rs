//! Why a training is refused.

use super::{CheckpointError, KnowingError};
use crate::artifact::Calibration;
use crate::evaluation::JudgedMail;
use crate::model::ModelError;
use crate::queues::{Queue, QueueError};

/// Why a training is refused.
#[derive(Debug, thiserror::Error)]
pub enum TrainingError {
    /// The labels make no set of queues.
    #[error(transparent)]
    Queues(#[from] QueueError),
    /// Too few mails of a queue to judge by.
    #[error(
        "queue `{queue}` has {mails} mails, at least {least} are needed: add some, or merge the queue into another"
    )]
    TooFew {
        /// Its id.
        queue: String,
        /// Its mails.
        mails: usize,
        /// The least number.
        least: usize,
    },
    /// A description of a queue that has no mail.
    #[error("queue `{0}` is described, but no mail is labelled so: correct its id or leave it out")]
    NoMail(String),
    /// Fewer than two folds leave nothing to judge by.
    #[error("folds must be at least 2, not {0}")]
    Folds(usize),
    /// No strength of the penalty to try, or one that is no strength.
    #[error("c must list at least one number above 0, not {0:?}")]
    Strength(Vec<f64>),
    /// A setting of fine-tuning that makes no sense.
    #[error("fine_tuning: {0}")]
    FineTuning(String),
    /// The loss went to infinity.
    #[error("the training diverged at step {step}: lower learning_rate and head_learning_rate")]
    Diverged {
        /// Counted from 1.
        step: usize,
    },
    /// Another of the networks that are trained side by side has failed: its error is the one that is shown.
    #[error("the training was stopped")]
    Stopped,
    /// The system gives no threads.
    #[error("cannot start the threads of a training: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// A checkpoint cannot be kept or used.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Word counts alone do better.
    #[error(
        "on held-out mail the router is right for {:.1}%, word counts alone for {:.1}%: it is not written. Give it more mail, or \
         look for wrong labels with --report", 100.0 * ours, 100.0 * baseline
    )]
    BelowBaseline {
        /// Share of right answers with the encoder.
        ours: f64,
        /// Share of right answers by word counts.
        baseline: f64,
        /// What a report needs.
        held_out: Box<Refused>,
    },
    /// Budgets or floors that cannot be.
    #[error(transparent)]
    Knowing(#[from] KnowingError),
    /// The network failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// What held-out mail says of a router that is refused, so that a report can still name the labels worth a look.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The queues, sorted by id.
    pub queues: Vec<Queue>,
    /// How logits would have become a decision.
    pub calibration: Calibration,
    /// What both legs said of each mail, trained on the other folds.
    pub mails: Vec<JudgedMail>,
}
