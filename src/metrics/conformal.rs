//! Sets of queues that hold the right one with a stated probability (split conformal prediction; Vovk et al. 2005).
//!
//! A score says how badly a queue fits a mail. From `n` mails with known queues take the `k`-th smallest score of the
//! right queue, `k = ceil((n + 1)(1 - alpha))`; all queues of a new mail that score no worse make a set which misses the
//! right one with probability at most `alpha`, whatever the model, as long as new mail is like the old. It promises
//! nothing for one queue alone, nor after mail has changed.

/// The rank whose order statistic covers with probability `coverage` or more; above `n` where there are too few mails.
#[must_use]
pub fn conformal_rank(n: usize, coverage: f64) -> usize {
    // The products that matter are whole numbers, which must not be rounded up a second time.
    (((n + 1) as f64 * coverage) - 1e-9).ceil().max(0.0) as usize
}

/// The fewest mails that can promise `coverage`; `None` where no number can.
#[must_use]
pub fn fewest_to_cover(coverage: f64) -> Option<usize> {
    let odds = coverage / (1.0 - coverage);
    (coverage < 1.0 && odds.is_finite()).then(|| (odds - 1e-9).ceil().max(0.0) as usize)
}

/// The largest score a queue may have to stand in the set; infinity where the mails are too few to promise `1 - alpha`.
#[must_use]
pub fn conformal_quantile(scores: &[f64], alpha: f64) -> f64 {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    match conformal_rank(sorted.len(), 1.0 - alpha) {
        0 => f64::NEG_INFINITY,
        rank => sorted.get(rank - 1).copied().unwrap_or(f64::INFINITY),
    }
}

/// A quantile for each queue from its own mails (Mondrian), so that the promise holds for every queue.
#[must_use]
pub fn mondrian_quantiles(scores: &[f64], targets: &[usize], n_queues: usize, alpha: f64) -> Vec<f64> {
    let of_queue = |queue: usize| -> Vec<f64> {
        scores.iter().zip(targets).filter(|(_, target)| **target == queue).map(|(score, _)| *score).collect()
    };
    (0..n_queues).map(|queue| conformal_quantile(&of_queue(queue), alpha)).collect()
}

/// The score LAC (Sadinle et al. 2019): `1 - p` of the queue. Gives the smallest sets on average.
#[must_use]
pub fn lac_score(probability: f64) -> f64 {
    1.0 - probability
}

/// The queues whose LAC score is at most `quantile`, likeliest first; may be empty.
#[must_use]
pub fn lac_set(probabilities: &[f64], quantile: f64) -> Vec<usize> {
    let mut set: Vec<usize> =
        (0..probabilities.len()).filter(|&queue| lac_score(probabilities[queue]) <= quantile).collect();
    set.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
    set
}

/// The score APS of every queue (Romano et al. 2020): the probability of all likelier queues plus `1 - u` of its own.
/// `u` is drawn from 0..1 for exact coverage; 0 is the deterministic, larger set.
#[must_use]
pub fn aps_scores(probabilities: &[f64], u: f64) -> Vec<f64> {
    raps_scores(probabilities, u, Penalty { per_rank: 0.0, free_ranks: 0 })
}

/// What RAPS adds to the score of unlikely queues.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalty {
    /// Added for each rank beyond the free ones (lambda).
    pub per_rank: f64,
    /// The likeliest queues without a penalty (k_reg).
    pub free_ranks: usize,
}

/// The score RAPS of every queue (Angelopoulos et al. 2021): APS with a penalty for low ranks.
#[must_use]
pub fn raps_scores(probabilities: &[f64], u: f64, penalty: Penalty) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|&a, &b| probabilities[b].total_cmp(&probabilities[a]));
    let mut scores = vec![0.0; probabilities.len()];
    let mut likelier = 0.0;
    for (position, queue) in order.into_iter().enumerate() {
        let beyond = (position + 1).saturating_sub(penalty.free_ranks) as f64;
        scores[queue] = likelier + probabilities[queue] * (1.0 - u) + penalty.per_rank * beyond;
        likelier += probabilities[queue];
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [f64; 9] = [0.02, 0.05, 0.08, 0.10, 0.15, 0.20, 0.30, 0.45, 0.60];

    fn close(found: &[f64], expected: [f64; 3]) {
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
    }

    #[test]
    fn quantiles_of_the_worked_example() {
        assert!((conformal_quantile(&SCORES, 0.1) - 0.60).abs() < 1e-6);
        assert!((conformal_quantile(&SCORES, 0.2) - 0.45).abs() < 1e-6);
        assert_eq!(conformal_quantile(&SCORES, 0.05), f64::INFINITY);
        assert_eq!([0.9, 0.8, 0.95].map(|coverage| conformal_rank(9, coverage)), [9, 8, 10]);
    }

    #[test]
    fn fewest_mails_that_can_promise_a_coverage() {
        assert_eq!([0.9, 0.95, 0.99].map(fewest_to_cover), [Some(9), Some(19), Some(99)]);
        assert_eq!(fewest_to_cover(1.0), None);
        for (coverage, n) in [(0.9, 9), (0.95, 19), (0.99, 99)] {
            assert!(conformal_rank(n, coverage) <= n && conformal_rank(n - 1, coverage) > n - 1);
        }
    }

    #[test]
    fn a_set_holds_every_queue_that_fits_likeliest_first() {
        assert_eq!(lac_set(&[0.1, 0.3, 0.6], 0.7), [2, 1]);
        assert!(lac_set(&[0.4, 0.3, 0.3], 0.5).is_empty());
        assert_eq!(lac_set(&[0.4, 0.3, 0.3], f64::INFINITY).len(), 3);
    }

    #[test]
    fn each_queue_is_judged_by_its_own_mails() {
        let targets: Vec<usize> = SCORES.iter().map(|&score| usize::from(score > 0.2)).collect();
        let quantiles = mondrian_quantiles(&SCORES, &targets, 3, 0.2);
        assert!((quantiles[0] - 0.20).abs() < 1e-6, "{quantiles:?}");
        assert_eq!(quantiles[1..], [f64::INFINITY; 2]);
    }

    #[test]
    fn aps_and_raps_scores_of_the_worked_example() {
        let probabilities = [0.1, 0.4, 0.5];
        close(&aps_scores(&probabilities, 0.0), [1.0, 0.9, 0.5]);
        close(&aps_scores(&probabilities, 0.5), [0.95, 0.7, 0.25]);
        close(&raps_scores(&probabilities, 0.0, Penalty { per_rank: 0.1, free_ranks: 1 }), [1.2, 1.0, 0.5]);
    }
}
