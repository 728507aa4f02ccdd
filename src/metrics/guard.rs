//! A recall floor: mail of a queue that must not be missed goes to that queue or to a person.

use super::conformal::conformal_rank;

/// A guard: where the queue's probability is at least this and another queue is likelier, a person decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecallGuard {
    /// The least probability that stops the mail.
    pub probability: f64,
    /// Whether the floor is promised for new mail, on average.
    pub proven: bool,
    /// Mails of the queue that it was solved on.
    pub mails: usize,
    /// Of these, predicted as the queue or stopped by the guard.
    pub caught: usize,
}

/// A guard below this would stop nearly every mail of every queue.
pub const LEAST_GUARD: f64 = 0.001;
/// With two queues or more the second likeliest never exceeds this, so a guard here stops nothing.
pub const MOST_GUARD: f64 = 0.5;

/// The largest guard with which at least `floor` of the queue's mail is caught.
///
/// `mails` holds, for each held-out mail of the queue, its probability of that queue and whether the queue is the
/// likeliest one. The guard is the probability at conformal rank `ceil((n + 1) floor)` from the top, mails already
/// predicted as the queue counting as highest, so that a new mail of the queue is caught with probability `floor` or more.
/// Too few mails, or a guard that would lie under [`LEAST_GUARD`], promise nothing: then it is as careful as it may be.
#[must_use]
pub fn solve_recall_guard(mails: &[(f64, bool)], floor: f64) -> RecallGuard {
    let mut levels: Vec<f64> =
        mails.iter().map(|&(probability, predicted)| if predicted { 1.0 } else { probability }).collect();
    levels.sort_by(|a, b| b.total_cmp(a));
    let rank = conformal_rank(levels.len(), floor);
    let at_rank = match rank {
        0 => Some(MOST_GUARD),
        rank => levels.get(rank - 1).copied(),
    };
    let wanted = at_rank.or(levels.last().copied()).unwrap_or(LEAST_GUARD);
    let probability = if wanted.is_nan() { LEAST_GUARD } else { wanted.clamp(LEAST_GUARD, MOST_GUARD) };
    RecallGuard {
        probability,
        proven: at_rank.is_some_and(|level| level >= probability.min(MOST_GUARD)),
        mails: mails.len(),
        caught: levels.iter().filter(|&&level| level >= probability).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_nearly_always_predicted_needs_no_guard() {
        let guard = solve_recall_guard(&[(0.9, true); 40], 0.95);
        assert_eq!(guard, RecallGuard { probability: MOST_GUARD, proven: true, mails: 40, caught: 40 });
    }

    #[test]
    fn the_guard_is_the_probability_at_the_conformal_rank() {
        // 99 mails: 90 predicted, 9 missed with 0.09, 0.08 .. 0.01. A floor of 95% needs rank 95: the 5th missed one.
        let missed = (1..=9).map(|i| (f64::from(i) / 100.0, false));
        let mails: Vec<(f64, bool)> = std::iter::repeat_n((0.9, true), 90).chain(missed).collect();
        let guard = solve_recall_guard(&mails, 0.95);
        assert!((guard.probability - 0.05).abs() < 1e-12 && guard.proven && guard.caught == 95, "{guard:?}");
        // 99% needs rank 99, the last one.
        let guard = solve_recall_guard(&mails, 0.99);
        assert!((guard.probability - 0.01).abs() < 1e-12 && guard.proven && guard.caught == 99, "{guard:?}");
    }

    #[test]
    fn too_few_mails_promise_nothing_and_are_all_caught() {
        let guard = solve_recall_guard(&[(0.8, true), (0.02, false)], 0.99);
        assert_eq!(guard, RecallGuard { probability: 0.02, proven: false, mails: 2, caught: 2 });
        assert!(!solve_recall_guard(&[], 0.99).proven);
    }

    #[test]
    fn a_guard_never_stops_all_mail_and_says_what_it_misses() {
        let mails: Vec<(f64, bool)> =
            std::iter::repeat_n((0.9, true), 98).chain([(0.000_1, false), (0.000_2, false)]).collect();
        let guard = solve_recall_guard(&mails, 0.99);
        assert_eq!(guard, RecallGuard { probability: LEAST_GUARD, proven: false, mails: 100, caught: 98 });
    }

    #[test]
    fn broken_probabilities_do_not_panic() {
        let guard = solve_recall_guard(&[(f64::NAN, false); 30], 0.5);
        assert!(guard.probability.is_finite());
    }
}
