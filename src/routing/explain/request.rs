//! What a caller wants explained.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::super::RoutingError;
use super::super::view::ranked;
use crate::artifact::RouterInfo;
use crate::tokenizer::OffsetUnit;

/// How evidence is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// A part is taken out and the mail decided again: signed, and true of the whole router.
    Occlusion,
    /// Integrated gradients: signed, of the encoder, with an error that is told.
    Ig,
    /// Gradients along the attention of all layers: what speaks for a queue, without a sign.
    Relevance,
    /// The slope of the score by each word: signed, quick and rough.
    Gradxinput,
    /// The attention of the last layer and of the pooling: a clue without a sign.
    Attention,
    /// The attention of all layers: a clue without a sign.
    Rollout,
}

impl Method {
    /// Every method, as it is spelled.
    pub const ALL: [(&'static str, Self); 6] = [
        ("occlusion", Self::Occlusion),
        ("ig", Self::Ig),
        ("relevance", Self::Relevance),
        ("gradxinput", Self::Gradxinput),
        ("attention", Self::Attention),
        ("rollout", Self::Rollout),
    ];

    /// Whether its numbers are parts of the score, for and against.
    #[must_use]
    pub fn signed(self) -> bool {
        matches!(self, Self::Occlusion | Self::Ig | Self::Gradxinput)
    }
}

/// What is taken out at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceUnit {
    /// Sentences, then the words of the strongest three.
    #[default]
    Auto,
    /// Sentences only.
    Sentence,
    /// Every word.
    Word,
}

/// Which queues are explained.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Classes {
    /// The likeliest.
    #[default]
    Predicted,
    /// The likeliest three.
    Top3,
    /// Every queue, likeliest first.
    All,
    /// These, by id.
    List(Vec<String>),
}

/// What a queue's score is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Against {
    /// Nothing.
    #[default]
    None,
    /// The likeliest other queue.
    RunnerUp,
    /// This one.
    Queue(String),
}

impl Classes {
    /// Reads `predicted`, `top3`, `all`, or ids with commas between.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "predicted" => Self::Predicted,
            "top3" => Self::Top3,
            "all" => Self::All,
            list => Self::List(list.split(',').map(|label| label.trim().to_owned()).collect()),
        }
    }
}

impl Against {
    /// Reads `none`, `runner_up`, or an id.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "none" => Self::None,
            "runner_up" => Self::RunnerUp,
            label => Self::Queue(label.to_owned()),
        }
    }
}

/// What becomes of a part that is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Perturb {
    /// It is gone, as if it had not been written.
    #[default]
    Delete,
    /// Its tokens are hidden, and the others keep their positions.
    Mask,
}

/// What to explain, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplainRequest {
    /// Methods, each once.
    pub methods: Vec<Method>,
    /// What is taken out at a time.
    pub unit: EvidenceUnit,
    /// Which queues.
    pub classes: Classes,
    /// Compared with what.
    pub against: Against,
    /// How parts are taken out.
    pub perturb: Perturb,
    /// Whether the explanation is checked.
    pub check: bool,
    /// Draws the random choices of the check.
    pub seed: u64,
    /// Steps of integrated gradients; `None` doubles them until they add up.
    pub ig_steps: Option<usize>,
    /// What offsets count.
    pub offsets: OffsetUnit,
}

impl Default for ExplainRequest {
    fn default() -> Self {
        Self {
            methods: vec![Method::Occlusion],
            unit: EvidenceUnit::default(),
            classes: Classes::default(),
            against: Against::default(),
            perturb: Perturb::default(),
            check: true,
            seed: 0,
            ig_steps: None,
            offsets: OffsetUnit::default(),
        }
    }
}

/// One score to be explained: a queue's logit, or its lead over another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::routing) struct Target {
    pub class: usize,
    pub against: Option<usize>,
}

impl Target {
    /// The score.
    pub(in crate::routing) fn of(self, logits: &[f32]) -> f64 {
        f64::from(logits[self.class]) - self.against.map_or(0.0, |other| f64::from(logits[other]))
    }
}

impl ExplainRequest {
    /// Refuses queues that do not exist, before anything runs.
    pub(in crate::routing) fn check_names(&self, router: &RouterInfo) -> Result<(), RoutingError> {
        if let Classes::List(labels) = &self.classes {
            labels.iter().try_for_each(|label| index_of(router, label).map(drop))?;
        }
        match &self.against {
            Against::Queue(label) => index_of(router, label).map(drop),
            _ => Ok(()),
        }
    }

    /// How many scores there are to explain at the least, before the router has said which queues are likely.
    pub(super) fn fewest_targets(&self, router: &RouterInfo) -> usize {
        match &self.classes {
            Classes::Predicted => 1,
            Classes::Top3 => router.queues.len().min(3),
            Classes::All => router.queues.len(),
            // Two labels may mean one queue.
            Classes::List(labels) => {
                labels.iter().filter_map(|label| router.index_of_label(label)).collect::<BTreeSet<usize>>().len()
            }
        }
    }

    /// The scores to explain, given what the router says of the whole mail.
    pub(in crate::routing) fn targets(&self, router: &RouterInfo, logits: &[f32]) -> Result<Vec<Target>, RoutingError> {
        let order: Vec<usize> = ranked(router, logits).into_iter().map(|(index, _)| index).collect();
        let classes: Vec<usize> = match &self.classes {
            Classes::Predicted => order.iter().copied().take(1).collect(),
            Classes::Top3 => order.iter().copied().take(3).collect(),
            Classes::All => order.clone(),
            Classes::List(labels) => {
                let mut classes = Vec::new();
                for label in labels {
                    let class = index_of(router, label)?;
                    if !classes.contains(&class) {
                        classes.push(class);
                    }
                }
                classes
            }
        };
        let against = match &self.against {
            Against::Queue(label) => Some(index_of(router, label)?),
            _ => None,
        };
        let target = |class| {
            let other = match &self.against {
                Against::None => None,
                Against::RunnerUp => order.iter().copied().find(|&other| other != class),
                // A queue against itself would be zero everywhere.
                Against::Queue(_) => against.filter(|&other| other != class),
            };
            Target { class, against: other }
        };
        Ok(classes.into_iter().map(target).collect())
    }
}

/// The queue that a caller names.
pub(in crate::routing) fn index_of(router: &RouterInfo, label: &str) -> Result<usize, RoutingError> {
    router.index_of_label(label).ok_or_else(|| RoutingError::UnknownQueue {
        given: label.to_owned(),
        valid: router.queues.iter().map(|queue| queue.id.clone()).collect(),
    })
}
