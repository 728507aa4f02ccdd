//! What a router said of one labelled mail.

use crate::artifact::{Calibration, Judgement};
use crate::queues::Queue;

/// A labelled mail with the numbers that every figure is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedMail {
    /// Id of the mail in its file.
    pub id: String,
    /// Its right queue, an index into the router's queues.
    pub target: usize,
    /// One logit a queue, the sum of all legs.
    pub logits: Vec<f32>,
    /// Logits of the word counts alone, the baseline; `None` where the router counts no words.
    pub baseline: Option<Vec<f32>>,
    /// Tokens of the whole mail.
    pub tokens: usize,
    /// Where in the mail the sentence stands that decides, 0 (first) to 1 (last), where the data says.
    pub decisive_position: Option<f64>,
    /// Subject line; it stands in the HTML report and nowhere else.
    pub subject: String,
}

impl JudgedMail {
    /// What may be done with the mail alone, as the policy asks it: `threshold` is that of the settings
    /// (`routing.policy.threshold`), in place of all of the router's; a queue that is only suggested stays closed whatever
    /// it is. `queue` gives the queue of a logit.
    pub(super) fn judge<'q>(
        &self,
        calibration: &Calibration,
        threshold: Option<f64>,
        queue: impl Fn(usize) -> Option<&'q Queue>,
    ) -> Judgement {
        let id_of = |index: usize| queue(index).map(|queue| queue.id.as_str());
        let mut judgement = calibration.judge(&self.logits, threshold, id_of);
        judgement.below_threshold |= queue(judgement.best).is_some_and(|queue| queue.suggest_only);
        judgement
    }
}
