//! What the router may do alone, solved on held-out mail: scope, guards, thresholds, and the set for a person.
//!
//! Each part is solved on the mail that the parts before it let through, so that a promise speaks of the mail it will be
//! applied to: scope and guards first, then the thresholds of queues with an error budget of their own, then the common
//! threshold on the mail of the other queues, then the set on the mail that all of these hand to a person. Where too few
//! mails cannot show a promise the part is still set as carefully as they allow, and the promise says what is missing.

use std::collections::BTreeMap;

use super::promise::{self, Promise};
use crate::artifact::{Calibration, Judgement};
use crate::metrics::{
    BudgetThreshold, conformal_quantile, energy, lac_score, reaches, solve_queue_threshold, solve_recall_guard,
    solve_threshold,
};

/// What a router must know of its limits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KnowingConfig {
    /// Share of wrong answers that is acceptable among mail routed without a person.
    pub max_error_rate: f64,
    /// The same for single queues, by id.
    pub queue_max_error_rate: BTreeMap<String, f64>,
    /// Least share of a queue's mail that must reach the queue or a person, by id.
    pub recall_floor: BTreeMap<String, f64>,
    /// Share of known mail that may be taken for out of scope; 0 leaves the check out.
    pub out_of_scope_quantile: f64,
    /// Share of the mail handed to a person whose right queue may be missing from the set; 0 leaves the set out.
    pub conformal_alpha: f64,
}

/// Why such settings are refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum KnowingError {
    /// A queue that no mail is labelled with.
    #[error("{key} names `{queue}`, but no mail is labelled so; queues are {}", queues.join(", "))]
    UnknownQueue {
        /// The setting.
        key: &'static str,
        /// The id in it.
        queue: String,
        /// Ids of the queues.
        queues: Vec<String>,
    },
    /// A share outside its range.
    #[error("{key} is {value}, it must be at least 0 and below 1")]
    Share {
        /// The setting.
        key: String,
        /// Its value.
        value: f64,
    },
}

impl KnowingConfig {
    /// Checks shares and names, before an hour of training is lost.
    ///
    /// # Errors
    /// [`KnowingError`].
    pub fn check(&self, queue_ids: &[String]) -> Result<(), KnowingError> {
        let single = [
            ("max_error_rate", self.max_error_rate),
            ("out_of_scope_quantile", self.out_of_scope_quantile),
            ("conformal_alpha", self.conformal_alpha),
        ];
        let mut shares: Vec<(String, f64)> = single.map(|(key, value)| (key.to_owned(), value)).into();
        for (key, by_queue) in
            [("queue_max_error_rate", &self.queue_max_error_rate), ("recall_floor", &self.recall_floor)]
        {
            if let Some(queue) = by_queue.keys().find(|id| !queue_ids.contains(id)) {
                return Err(KnowingError::UnknownQueue { key, queue: queue.clone(), queues: queue_ids.to_vec() });
            }
            shares.extend(by_queue.iter().map(|(id, &value)| (format!("{key}.{id}"), value)));
        }
        match shares.into_iter().find(|(_, value)| !(0.0..1.0).contains(value)) {
            Some((key, value)) => Err(KnowingError::Share { key, value }),
            None => Ok(()),
        }
    }
}

/// What was solved, and what may be said of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Solved {
    /// The numbers that go into the router.
    pub calibration: Calibration,
    /// What is proven on the held-out mail and what is not, the common error budget first, where there is one.
    pub promises: Vec<Promise>,
    /// Held-out mails that would be routed without a person.
    pub routed: usize,
    /// Wrong ones among them.
    pub errors: usize,
    /// Held-out mails that the common error budget was judged on: those that scope and guards let through and that were
    /// predicted as queues without a budget of their own.
    pub solved_on: usize,
}

impl Solved {
    /// Whether the common error budget is proven. It is not where every queue has a budget of its own: nothing is promised
    /// of it.
    #[must_use]
    pub fn budget_guaranteed(&self) -> bool {
        self.promises.iter().any(|promise| promise.is_common_budget() && promise.proven)
    }
}

/// Solves everything on held-out logits (one row a mail, in the order of `queue_ids`) and their right queues.
#[must_use]
pub fn solve(
    logits: &[Vec<f32>],
    targets: &[usize],
    temperature: f64,
    queue_ids: &[String],
    config: &KnowingConfig,
) -> Solved {
    let held_out = HeldOut { logits, targets, queue_ids };
    // A threshold of 0 stops nothing: what is stopped until it is solved is stopped by scope and guards.
    let mut calibration = Calibration::new(temperature, 0.0);
    let mut promises = Vec::new();

    if config.out_of_scope_quantile > 0.0 {
        calibration.out_of_scope = least_energy(logits, temperature, config.out_of_scope_quantile);
        promises.push(promise::of_scope(logits.len(), config.out_of_scope_quantile));
    }
    let judged = held_out.judge(&calibration);
    for (queue, floor) in held_out.known(&config.recall_floor) {
        let of_queue: Vec<(f64, bool)> = (0..judged.len())
            .filter(|&mail| targets[mail] == queue)
            .map(|mail| (judged[mail].probabilities[queue], judged[mail].best == queue))
            .collect();
        let guard = solve_recall_guard(&of_queue, floor);
        promises.push(promise::of_guard(&queue_ids[queue], floor, &guard));
        calibration.guards.insert(queue_ids[queue].clone(), guard.probability);
    }

    let budgets = held_out.known(&config.queue_max_error_rate);
    let open = Open::of(&held_out, &calibration);
    let common_mails = open.without_budget(&budgets);
    // Without such mail the threshold still needs a number: all mail gives it, and proves nothing of these queues.
    let common = match common_mails.as_slice() {
        [] => BudgetThreshold { guaranteed: false, ..open.solve_common(&open.all(), config.max_error_rate) },
        mails => open.solve_common(mails, config.max_error_rate),
    };
    calibration.threshold = common.threshold;
    for &(queue, rate) in &budgets {
        let solved = open.solve_queue(queue, rate);
        // What its mails cannot prove must at least be as strict as what all mails together showed.
        let threshold = if solved.guaranteed { solved.threshold } else { solved.threshold.max(common.threshold) };
        // The promise counts what the router will let go, which is less where the common threshold is the stricter one.
        let stored = open.at_threshold(queue, BudgetThreshold { threshold, ..solved });
        promises.push(promise::of_queue_budget(&queue_ids[queue], rate, &stored));
        calibration.queue_thresholds.insert(queue_ids[queue].clone(), threshold);
    }
    if budgets.is_empty() || !common_mails.is_empty() {
        promises.insert(0, promise::of_budget(config.max_error_rate, &common, !budgets.is_empty()));
    } else if budgets.len() < queue_ids.len() {
        promises.insert(0, promise::of_budget_without_mail(config.max_error_rate));
    }

    let judged = held_out.judge(&calibration);
    if config.conformal_alpha > 0.0 {
        let handed_over: Vec<f64> = (0..judged.len())
            .filter(|&mail| !judged[mail].routed_alone())
            .map(|mail| lac_score(judged[mail].probabilities.get(targets[mail]).copied().unwrap_or(0.0)))
            .collect();
        calibration.conformal =
            Some(conformal_quantile(&handed_over, config.conformal_alpha)).filter(|quantile| quantile.is_finite());
        promises.push(promise::of_set(handed_over.len(), config.conformal_alpha));
    }
    let alone: Vec<usize> = (0..judged.len()).filter(|&mail| judged[mail].routed_alone()).collect();
    let errors = alone.iter().filter(|&&mail| judged[mail].best != targets[mail]).count();
    Solved { calibration, promises, routed: alone.len(), errors, solved_on: common_mails.len() }
}

/// The energy under which at most `share` of known mail is expected: the `floor(share (n + 1))`-th smallest. `None` where
/// the mails are too few for that.
fn least_energy(logits: &[Vec<f32>], temperature: f64, share: f64) -> Option<f64> {
    let mut energies: Vec<f64> = logits.iter().map(|row| energy(row, temperature)).collect();
    energies.sort_by(f64::total_cmp);
    let rank = promise::scope_rank(energies.len(), share)?;
    energies.get(rank - 1).copied().filter(|energy| energy.is_finite())
}

/// Mail that the judged legs had not seen.
struct HeldOut<'a> {
    logits: &'a [Vec<f32>],
    targets: &'a [usize],
    queue_ids: &'a [String],
}

impl HeldOut<'_> {
    fn judge(&self, calibration: &Calibration) -> Vec<Judgement> {
        let id_of = |queue: usize| self.queue_ids.get(queue).map(String::as_str);
        self.logits.iter().map(|row| calibration.judge(row, None, id_of)).collect()
    }

    /// Settings of queues that exist, in the router's order.
    fn known(&self, by_queue: &BTreeMap<String, f64>) -> Vec<(usize, f64)> {
        let of_queue = |(queue, id): (usize, &String)| Some((queue, *by_queue.get(id)?));
        self.queue_ids.iter().enumerate().filter_map(of_queue).collect()
    }
}

/// The mail that scope and guards let through.
struct Open {
    predicted: Vec<usize>,
    confidences: Vec<f64>,
    correct: Vec<bool>,
}

impl Open {
    fn of(held_out: &HeldOut<'_>, calibration: &Calibration) -> Self {
        let mut open = Self { predicted: Vec::new(), confidences: Vec::new(), correct: Vec::new() };
        for (judgement, &target) in held_out.judge(calibration).iter().zip(held_out.targets) {
            if judgement.routed_alone() {
                open.predicted.push(judgement.best);
                open.confidences.push(judgement.confidence);
                open.correct.push(judgement.best == target);
            }
        }
        open
    }

    fn all(&self) -> Vec<usize> {
        (0..self.predicted.len()).collect()
    }

    /// The mail predicted as queues without a budget of their own.
    fn without_budget(&self, budgets: &[(usize, f64)]) -> Vec<usize> {
        let common = |mail: &usize| !budgets.iter().any(|(queue, _)| *queue == self.predicted[*mail]);
        (0..self.predicted.len()).filter(common).collect()
    }

    /// A threshold with the mail of a queue that reaches it.
    fn at_threshold(&self, queue: usize, solved: BudgetThreshold) -> BudgetThreshold {
        let reached =
            |mail: &usize| self.predicted[*mail] == queue && reaches(self.confidences[*mail], solved.threshold);
        let mails: Vec<usize> = (0..self.predicted.len()).filter(reached).collect();
        let errors = mails.iter().filter(|&&mail| !self.correct[mail]).count();
        BudgetThreshold { routed: mails.len(), errors, ..solved }
    }

    fn solve_common(&self, mails: &[usize], max_error_rate: f64) -> BudgetThreshold {
        let confidences: Vec<f64> = mails.iter().map(|&mail| self.confidences[mail]).collect();
        let correct: Vec<bool> = mails.iter().map(|&mail| self.correct[mail]).collect();
        solve_threshold(&confidences, &correct, max_error_rate)
    }

    fn solve_queue(&self, queue: usize, max_error_rate: f64) -> BudgetThreshold {
        solve_queue_threshold(&self.predicted, &self.confidences, &self.correct, queue, max_error_rate)
    }
}

#[cfg(test)]
mod tests;
