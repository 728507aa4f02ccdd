//! From an error budget to a threshold, with a bound that holds.

use super::binomial::clopper_pearson_upper;

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

/// How many right answers in a row, without one error, prove an error rate at 95%: `ln 0.05 / ln(1 - rate)`, rounded up.
/// `None` for a rate of 0, which no number of mails proves.
#[must_use]
pub fn fewest_to_prove(max_error_rate: f64) -> Option<usize> {
    if max_error_rate.is_nan() || max_error_rate <= 0.0 {
        return None;
    }
    Some((DELTA.ln() / (1.0 - max_error_rate.min(1.0)).ln()).ceil() as usize)
}

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
    let fewest = fewest_to_prove(max_error_rate).unwrap_or(usize::MAX);

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

/// [`solve_threshold`] for one queue: on the mails that are predicted as it. A caller falls back to a threshold solved on
/// more mail where these are too few to prove the queue's budget.
#[must_use]
pub fn solve_queue_threshold(
    predicted: &[usize],
    confidences: &[f64],
    correct: &[bool],
    queue: usize,
    max_error_rate: f64,
) -> BudgetThreshold {
    let of_queue = || (0..predicted.len()).filter(|&mail| predicted[mail] == queue);
    let confidences: Vec<f64> = of_queue().map(|mail| confidences[mail]).collect();
    let correct: Vec<bool> = of_queue().map(|mail| correct[mail]).collect();
    solve_threshold(&confidences, &correct, max_error_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewest_mails_of_the_worked_examples() {
        assert_eq!([0.05, 0.02, 0.01].map(fewest_to_prove), [Some(59), Some(149), Some(299)]);
        assert_eq!(fewest_to_prove(0.0), None);
        assert_eq!(fewest_to_prove(f64::NAN), None);
        assert_eq!(fewest_to_prove(1.0), Some(0));
    }

    #[test]
    fn a_queue_has_its_own_threshold_only_where_its_mails_can_prove_it() {
        let predicted: Vec<usize> = (0..160).map(|mail| mail % 2).collect();
        let confidences: Vec<f64> = (0..160).map(|mail| 1.0 - f64::from(mail) / 400.0).collect();
        let correct: Vec<bool> = (0..160).map(|mail| mail % 2 == 0 || mail < 40).collect();
        let solve = |queue, rate| {
            let solved = solve_queue_threshold(&predicted, &confidences, &correct, queue, rate);
            solved.guaranteed.then_some(solved.routed)
        };
        // 80 right mails of queue 0 prove 5% (59 needed), not 2% (149 needed).
        assert_eq!(solve(0, 0.05), Some(80));
        assert_eq!(solve(0, 0.02), None);
        // Of queue 1 only 20 are right: no threshold holds.
        assert_eq!(solve(1, 0.05), None);
        assert_eq!(solve(2, 0.05), None);
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
