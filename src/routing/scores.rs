//! How likely each queue is, for callers that want numbers of all queues instead of a decision.

use std::sync::Arc;

use super::RoutingError;
use super::decision::{InputFacts, ModelRef, Outcome};
use super::policy;
use super::service::{Mail, RoutingService, id_of};
use crate::inference::Caller;
use crate::metrics::softmax;
use crate::model::KeepMaps;

/// One queue's numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueScore {
    /// Id of the queue.
    pub queue: String,
    /// Calibrated probability that this queue is right, 0 to 1.
    pub probability: f64,
    /// The number that the probability is made of, word counts included and before calibration.
    pub logit: f32,
}

/// What the network said of one mail.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// The queues that are switched on, in the router's order. The probabilities are those among all queues: where some
    /// queue is switched off they add up to less than 1.
    pub queues: Vec<QueueScore>,
    /// What [`RoutingService::route`] decides on these numbers.
    pub decision: Outcome,
    /// How much of the mail was read.
    pub input: InputFacts,
    /// Which model answered.
    pub model: ModelRef,
}

impl Scores {
    /// The likeliest queue; the earlier one of equals. `None` only where every queue is switched off.
    #[must_use]
    pub fn best(&self) -> Option<&QueueScore> {
        self.queues.iter().rev().max_by(|a, b| a.probability.total_cmp(&b.probability))
    }

    /// The queues by falling probability; equals keep the router's order.
    #[must_use]
    pub fn ranked(&self) -> Vec<&QueueScore> {
        let mut ranked: Vec<&QueueScore> = self.queues.iter().collect();
        ranked.sort_by(|a, b| b.probability.total_cmp(&a.probability));
        ranked
    }
}

impl RoutingService {
    /// Scores every queue for one mail of a caller, read and cleaned as for a decision. It is decided on as well, and
    /// whoever counts decisions is told: the mail counts whichever way it is asked about.
    ///
    /// # Errors
    /// [`RoutingError::NothingToRead`] for a mail without text, otherwise as [`RoutingService::route_for`].
    pub async fn score(self: &Arc<Self>, mail: Mail, caller: Caller) -> Result<Scores, RoutingError> {
        let id = id_of(&mail);
        let prepared = self.prepare(mail, caller.client).await?;
        if !policy::readable(&prepared.encoded) {
            return Err(RoutingError::NothingToRead);
        }
        let inference = self.infer(&prepared, KeepMaps::None, caller).await?.inference;
        let router = self.router();
        let probabilities = softmax(&inference.logits, router.calibration.temperature);
        let queues = router.queues.iter().zip(inference.logits.iter().zip(probabilities));
        let queues = queues.filter(|(queue, _)| queue.enabled).map(|(queue, (&logit, probability))| QueueScore {
            queue: queue.id.clone(),
            probability,
            logit,
        });
        let queues = queues.collect();
        let decision = self.judge(id, prepared, Some(&inference));
        self.tell(&decision);
        Ok(Scores { queues, decision: decision.decision, input: decision.input, model: decision.model })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_ranked_by_probability_and_equals_keep_their_order() {
        let score = |queue: &str, probability| QueueScore { queue: queue.to_owned(), probability, logit: 0.0 };
        let scores = Scores {
            queues: vec![score("a", 0.2), score("b", 0.4), score("c", 0.4)],
            decision: Outcome::Route,
            input: InputFacts { tokens_total: 1, tokens_used: 1, windows: 1, truncated: false },
            model: ModelRef { router: "r".into(), version: "1".into(), encoder: "e".into() },
        };
        let ranked: Vec<&str> = scores.ranked().into_iter().map(|score| score.queue.as_str()).collect();
        assert_eq!(ranked, ["b", "c", "a"]);
        assert_eq!(scores.best().map(|score| score.queue.as_str()), Some("b"));
    }
}
