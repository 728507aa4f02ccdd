//! Queues: their stable ids, their names, their order.
//!
//! A queue's id never changes and is what callers store; its name is for people and may change at any time. The order
//! of a [`QueueSet`] is the order of the logits.
//!
//! ```
//! use postroom::queues::{Queue, QueueSet};
//!
//! let queues = QueueSet::new(vec![Queue::new("refunds", "Refunds"), Queue::new("late-deliveries", "Late deliveries")])?;
//! assert_eq!(queues.index_of("late-deliveries"), Some(1));
//! # Ok::<(), postroom::queues::QueueError>(())
//! ```

use serde::{Deserialize, Serialize};

/// One queue that mail can go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    /// Stable id, a slug such as `late-deliveries`.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// What the queue is for, in a sentence or two.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// A disabled queue is never an answer.
    #[serde(default = "enabled")]
    pub enabled: bool,
    /// Such a queue stands among the candidates and is never answered without a person: nobody has shown it a mail yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suggest_only: bool,
}

fn enabled() -> bool {
    true
}

impl Queue {
    /// An enabled queue without a description.
    #[must_use]
    pub fn new(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            description: String::new(),
            enabled: true,
            suggest_only: false,
        }
    }
}

/// Why a list of queues is refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum QueueError {
    /// Fewer than two queues leave nothing to decide.
    #[error("a router needs at least 2 queues, not {0}")]
    TooFew(usize),
    /// Two queues share an id, or ids that differ only in case.
    #[error("queue id `{0}` stands twice (ids that differ only in case count as one)")]
    Twice(String),
    /// An id that would not survive a URL, a file name or a metric label.
    #[error("queue id `{0}` is not 1 to 64 characters of a-z, 0-9, `-`, `_` and `.`")]
    BadId(String),
}

/// The queues of a router, in the order of its logits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct QueueSet {
    queues: Vec<Queue>,
}

impl QueueSet {
    /// Checks and keeps the queues in the given order.
    ///
    /// # Errors
    /// [`QueueError`] for fewer than two queues, a repeated id or one that is no slug.
    pub fn new(queues: Vec<Queue>) -> Result<Self, QueueError> {
        if queues.len() < 2 {
            return Err(QueueError::TooFew(queues.len()));
        }
        for (index, queue) in queues.iter().enumerate() {
            if !is_slug(&queue.id) {
                return Err(QueueError::BadId(queue.id.clone()));
            }
            if queues[..index].iter().any(|other| other.id.eq_ignore_ascii_case(&queue.id)) {
                return Err(QueueError::Twice(queue.id.clone()));
            }
        }
        Ok(Self { queues })
    }

    /// How many.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a set of queues is never empty")]
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// In the order of the logits.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Queue> {
        self.queues.iter()
    }

    /// The queue of a logit.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&Queue> {
        self.queues.get(index)
    }

    /// The logit of a queue.
    #[must_use]
    pub fn index_of(&self, id: &str) -> Option<usize> {
        self.queues.iter().position(|queue| queue.id == id)
    }
}

fn is_slug(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte))
}

/// Makes an id out of a name: lower case, every run of other characters one `-`.
///
/// ```
/// assert_eq!(postroom::queues::slug("Late deliveries!"), "late-deliveries");
/// ```
#[must_use]
pub fn slug(name: &str) -> String {
    let mut id = String::new();
    for character in name.to_lowercase().chars() {
        if character.is_ascii_alphanumeric() || character == '_' || character == '.' {
            id.push(character);
        } else if !id.ends_with('-') && !id.is_empty() {
            id.push('-');
        }
    }
    id.trim_end_matches('-').chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_differ_only_in_case_are_one() {
        let queues = vec![Queue::new("refunds", "A"), Queue::new("refunds", "B")];
        assert_eq!(QueueSet::new(queues), Err(QueueError::Twice("refunds".into())));
    }

    #[test]
    fn an_id_must_be_a_slug() {
        for id in ["", "Refunds", "late deliveries", "r\u{e9}fund"] {
            let queues = vec![Queue::new("refunds", "A"), Queue::new(id, "B")];
            assert_eq!(QueueSet::new(queues), Err(QueueError::BadId(id.into())));
        }
    }

    #[test]
    fn one_queue_leaves_nothing_to_decide() {
        assert_eq!(QueueSet::new(vec![Queue::new("a", "A")]), Err(QueueError::TooFew(1)));
    }
}
