//! Queues of a finished router: renamed, switched off, merged, removed, added, without training the others again.
//!
//! Everything here changes a [`StoredRouter`] in memory; the caller writes it. Renaming and switching touch no number, merging
//! keeps every other probability, removing takes logits out of the softmax, adding fits the row of the new queue alone.

mod add;
mod card;
mod edit;
mod examples;
mod row;
mod seen;

pub use add::{AddConfig, Added, NewQueue, add};
pub use edit::{merge, remove, rename, set_enabled};
pub use examples::{Conflict, LeftOut};
pub use seen::remember;

use crate::artifact::StoredRouter;
use crate::model::ModelError;
use crate::queues::{Queue, QueueError, QueueSet};

/// Why a change is refused.
#[derive(Debug, thiserror::Error)]
pub enum QueueChangeError {
    /// An id that is none of the router's.
    #[error("`{id}` is none of the router's queues: {}", queues.join(", "))]
    Unknown {
        /// The id.
        id: String,
        /// The router's queues.
        queues: Vec<String>,
    },
    /// An id that is taken.
    #[error("there is a queue `{0}` already: choose another id, or remove that queue first")]
    Exists(String),
    /// An id that labels may still use for a merged queue.
    #[error("`{old}` is an old id of `{queue}`, which mail labelled so still counts as: choose another id")]
    Retired {
        /// The id.
        old: String,
        /// The queue it became a part of.
        queue: String,
    },
    /// A queue merged into itself.
    #[error("`{0}` cannot be merged into itself: name the other queues before --into")]
    IntoItself(String),
    /// A name of blanks.
    #[error("the name of a queue cannot be blank")]
    BlankName,
    /// Neither mail nor words to know the new queue by.
    #[error("without --examples a queue needs a --description")]
    NothingToKnowItBy,
    /// Examples and nothing to hold against them.
    #[error(
        "the router keeps no memory of its mail (trained with --no-memory or by an earlier version): give labelled mail of its queues with --mail"
    )]
    NoMemory,
    /// A label of the mail that is none of the router's.
    #[error("mail {mail} is labelled `{label}`, which is none of the router's queues: {}", queues.join(", "))]
    UnknownLabel {
        /// Id of the mail.
        mail: String,
        /// Its label.
        label: String,
        /// The router's queues.
        queues: Vec<String>,
    },
    /// The queues that would be left or made are no set of queues.
    #[error(transparent)]
    Queues(#[from] QueueError),
    /// The network failed.
    #[error(transparent)]
    Model(#[from] ModelError),
}

fn ids(router: &StoredRouter) -> Vec<String> {
    router.manifest.queues.iter().map(|queue| queue.id.clone()).collect()
}

fn known(router: &StoredRouter, id: &str) -> Result<usize, QueueChangeError> {
    router.index_of(id).ok_or_else(|| QueueChangeError::Unknown { id: id.to_owned(), queues: ids(router) })
}

/// Refuses queues that no router could have.
fn check(queues: Vec<Queue>) -> Result<(), QueueChangeError> {
    if queues.iter().any(|queue| queue.name.trim().is_empty()) {
        return Err(QueueChangeError::BlankName);
    }
    Ok(QueueSet::new(queues).map(drop)?)
}

#[cfg(test)]
mod tests;
