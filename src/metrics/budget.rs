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

/// Whether a confidence lets a mail go at a threshold. None reaches a threshold of 1 or more, which means that nothing goes:
/// a probability that is rounded to 1 is no certainty.
#[must_use]
pub fn reaches(confidence: f64, threshold: f64) -> bool {
    threshold < 1.0 && confidence >= threshold
}

/// The highest threshold that can be reached: the largest number below 1.
const HIGHEST: f64 = 1.0 - f64::EPSILON / 2.0;

/// The probability that the promise is wrong.
const DELTA: f64 = 0.05;

/// How many right answers in a row, without one error, prove an error rate at 95%: `ln 0.05 / ln(1 - rate)`, rounded up.
/// `None` for a rate of 0, which no number of mails proves.
#[must_use]
pub fn fewest_to_prove(max_error_rate: f64) -> Option<usize> {
    fewest_at(max_error_rate, DELTA)
}

fn fewest_at(max_error_rate: f64, delta: f64) -> Option<usize> {
    if max_error_rate.is_nan() || max_error_rate <= 0.0 {
        return None;
    }
    Some((delta.ln() / (1.0 - max_error_rate.min(1.0)).ln()).ceil() as usize)
}

/// A second sequence of tests begins with so many times the fewest mails.
const SECOND_BEGINS: usize = 4;

/// One sequence of tests: from so many mails on, each at this risk, until one fails.
struct Sequence {
    begins: usize,
    delta: f64,
    goes_on: bool,
}

/// One sequence from the fewest mails that can prove the budget; where there are many mails a second one that begins later, each at
/// half of the risk: a single wrong label among the surest mails ends the first, and should not cost the whole promise. How many
/// mails there are says nothing of their answers, so choosing by it is free.
fn sequences(max_error_rate: f64, mails: usize) -> Vec<Sequence> {
    let sequence = |times: usize, delta: f64| {
        let fewest = fewest_at(max_error_rate, delta)?;
        Some(Sequence { begins: fewest.saturating_mul(times), delta, goes_on: true })
    };
    let two = [sequence(1, DELTA / 2.0), sequence(SECOND_BEGINS, DELTA / 2.0)];
    match two {
        [Some(first), Some(second)] if mails >= second.begins => vec![first, second],
        _ => sequence(1, DELTA).into_iter().collect(),
    }
}

/// The lowest threshold whose error rate is within the budget, judged on held-out mail; 1, which no confidence
/// [`reaches`], where no mail may go.
///
/// Goes from the surest mail down and keeps the last threshold for which it and every stricter one (with enough mail to
/// judge) has a Clopper-Pearson bound within the budget: a fixed sequence of tests, so testing many costs nothing. With many
/// mails there are two such sequences, each at half of the risk, and the lower threshold is kept. Where even that many right answers in a row could not prove the budget, the last threshold that held it on these mails is
/// returned, marked as not guaranteed.
#[must_use]
pub fn solve_threshold(confidences: &[f64], correct: &[bool], max_error_rate: f64) -> BudgetThreshold {
    let mut order: Vec<usize> = (0..confidences.len()).collect();
    order.sort_by(|&a, &b| confidences[b].total_cmp(&confidences[a]));
    let mut sequences = sequences(max_error_rate, order.len());

    let none = BudgetThreshold { threshold: 1.0, guaranteed: false, routed: 0, errors: 0 };
    let (mut proven, mut observed) = (none, none);
    let mut errors = 0;
    for (position, &mail) in order.iter().enumerate() {
        errors += usize::from(!correct[mail]);
        let routed = position + 1;
        let tied = order.get(routed).is_some_and(|&next| confidences[next].total_cmp(&confidences[mail]).is_eq());
        if tied {
            continue;
        }
        // A threshold of 1 would let none of the mail go that is counted here.
        let threshold = if confidences[mail] > HIGHEST { HIGHEST } else { confidences[mail] };
        let here = BudgetThreshold { threshold, guaranteed: false, routed, errors };
        if errors as f64 <= max_error_rate * routed as f64 {
            observed = here;
        }
        for sequence in sequences.iter_mut().filter(|sequence| sequence.goes_on && routed >= sequence.begins) {
            sequence.goes_on = clopper_pearson_upper(errors, routed, sequence.delta) <= max_error_rate;
            if sequence.goes_on {
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
    fn one_wrong_label_among_the_surest_costs_no_promise_where_there_are_many_mails() {
        let solve = |mails: u32| {
            let confidences: Vec<f64> = (0..mails).map(|mail| 1.0 - f64::from(mail) / 4000.0).collect();
            let correct: Vec<bool> = (0..mails).map(|mail| mail != 3 && mail < 900).collect();
            solve_threshold(&confidences, &correct, 0.02)
        };
        // 0.025 wants 183 mails without an error; the second sequence begins at 732, which has one.
        let solved = solve(1000);
        let bound = |errors, routed| clopper_pearson_upper(errors, routed, DELTA / 2.0);
        assert!(solved.guaranteed && solved.routed > 900 && bound(solved.errors, solved.routed) <= 0.02, "{solved:?}");
        assert!(bound(solved.errors + 1, solved.routed + 1) > 0.02, "{solved:?}");
        // Too few for a second one: the first ends at its first test.
        assert!(!solve(700).guaranteed);
    }

    #[test]
    fn too_few_mails_promise_nothing() {
        let solved = solve_threshold(&[0.9, 0.8, 0.7], &[true, true, false], 0.05);
        assert!(!solved.guaranteed && solved.routed == 2, "{solved:?}");
    }

    #[test]
    fn a_confidence_of_one_is_routed_where_it_was_counted_and_a_threshold_of_one_is_closed() {
        let solved = solve_threshold(&[1.0; 100], &[true; 100], 0.05);
        assert!(solved.guaranteed && solved.routed == 100 && reaches(1.0, solved.threshold), "{solved:?}");
        let closed = solve_threshold(&[1.0; 100], &[false; 100], 0.05);
        assert!(closed.routed == 0 && !reaches(1.0, closed.threshold), "{closed:?}");
        assert!(!reaches(f64::NAN, 0.0) && !reaches(0.9, f64::NAN) && reaches(0.9, 0.9));
    }

    #[test]
    fn equal_confidences_stand_or_fall_together() {
        let solved = solve_threshold(&[0.9, 0.8, 0.8], &[true, true, false], 0.0);
        assert_eq!(solved.routed, 1);
    }
}
