//! From an error budget to a threshold, with a bound that holds.

/// Upper bound of an error rate at confidence `1 - delta` after `errors` in `n` (Clopper and Pearson 1934).
///
/// It is the rate at which so few errors would have probability `delta`: the root of the binomial distribution function.
#[must_use]
pub fn clopper_pearson_upper(errors: usize, n: usize, delta: f64) -> f64 {
    if n == 0 || errors >= n {
        return 1.0;
    }
    let (mut low, mut high) = (errors as f64 / n as f64, 1.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if binomial_at_most(errors, n, middle) > delta {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// `P(X <= k)` for `X ~ Binomial(n, p)`, summed in logarithms.
fn binomial_at_most(k: usize, n: usize, p: f64) -> f64 {
    let (log_p, log_q) = (p.ln(), (-p).ln_1p());
    let mut log_choose = 0.0;
    let mut sum = 0.0;
    for i in 0..=k {
        sum += (log_choose + i as f64 * log_p + (n - i) as f64 * log_q).exp();
        log_choose += ((n - i) as f64).ln() - ((i + 1) as f64).ln();
    }
    sum
}

/// A threshold and what may be promised of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BudgetThreshold {
    /// Mail at or above this confidence is routed alone.
    pub threshold: f64,
    /// The bound holds at 95%; otherwise the threshold only held the budget on the mail it was chosen on.
    pub guaranteed: bool,
    /// Mails at or above it.
    pub routed: usize,
    /// Wrong ones among them.
    pub errors: usize,
}

/// The probability that the promise is wrong.
const DELTA: f64 = 0.05;

/// The lowest threshold whose error rate is within the budget, judged on held-out mail.
///
/// Goes from the surest mail down and keeps the last threshold for which it and every stricter one (with enough mail to
/// judge) has a Clopper-Pearson bound within the budget: a fixed sequence of tests, so testing many costs nothing. Where
/// even that many right answers in a row could not prove the budget, the last threshold that held it on these mails is
/// returned, marked as not guaranteed.
#[must_use]
pub fn solve_threshold(confidences: &[f64], correct: &[bool], max_error_rate: f64) -> BudgetThreshold {
    let mut order: Vec<usize> = (0..confidences.len()).collect();
    order.sort_by(|&a, &b| confidences[b].total_cmp(&confidences[a]));
    let fewest = (DELTA.ln() / (1.0 - max_error_rate).ln()).ceil() as usize;

    let none = BudgetThreshold { threshold: 1.0, guaranteed: false, routed: 0, errors: 0 };
    let (mut proven, mut observed) = (none, none);
    let (mut errors, mut proving) = (0, true);
    for (position, &mail) in order.iter().enumerate() {
        errors += usize::from(!correct[mail]);
        let routed = position + 1;
        let tied = order.get(routed).is_some_and(|&next| confidences[next].total_cmp(&confidences[mail]).is_eq());
        if tied {
            continue;
        }
        let here = BudgetThreshold { threshold: confidences[mail], guaranteed: false, routed, errors };
        if errors as f64 <= max_error_rate * routed as f64 {
            observed = here;
        }
        if proving && routed >= fewest {
            proving = clopper_pearson_upper(errors, routed, DELTA) <= max_error_rate;
            if proving {
                proven = BudgetThreshold { guaranteed: true, ..here };
            }
        }
    }
    if proven.guaranteed { proven } else { observed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_the_worked_examples() {
        for (errors, n, expected) in [
            (0, 59, 0.049_507_6),
            (0, 149, 0.019_904_8),
            (1, 93, 0.049_994_0),
            (2, 200, 0.031_142_6),
            (5, 500, 0.020_910_3),
        ] {
            let bound = clopper_pearson_upper(errors, n, 0.05);
            assert!((bound - expected).abs() < 1e-6, "{errors}/{n}: {bound}");
        }
        assert!((clopper_pearson_upper(3, 3, 0.05) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn enough_right_answers_prove_a_budget() {
        let confidences: Vec<f64> = (0..100).map(|i| 1.0 - f64::from(i) / 200.0).collect();
        let correct: Vec<bool> = (0..100).map(|i| i < 70).collect();
        let solved = solve_threshold(&confidences, &correct, 0.05);
        // 59 right in a row prove 5%; 70 right hold it, the 71st is wrong and 1 in 71 proves nothing.
        assert!(solved.guaranteed && solved.routed == 70 && solved.errors == 0, "{solved:?}");
    }

    #[test]
    fn too_few_mails_promise_nothing() {
        let solved = solve_threshold(&[0.9, 0.8, 0.7], &[true, true, false], 0.05);
        assert!(!solved.guaranteed && solved.routed == 2, "{solved:?}");
    }

    #[test]
    fn equal_confidences_stand_or_fall_together() {
        let solved = solve_threshold(&[0.9, 0.8, 0.8], &[true, true, false], 0.0);
        assert_eq!(solved.routed, 1);
    }
}
