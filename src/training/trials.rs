//! Whether an error budget holds on mail that it was not solved on: many random halves, solved on one and counted on the other.

use serde::Serialize;

use super::knowing::{KnowingConfig, solve};
use crate::evaluation::JudgedMail;
use crate::metrics::fit_temperature;
use crate::random::SplitMix64;

/// What became of the budget.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BudgetTrials {
    /// The budget: wrong answers among mail routed alone, as a share.
    pub max_error_rate: f64,
    /// Random halves.
    pub trials: usize,
    /// Of these, halves in which the mail routed alone held the budget.
    pub within: usize,
    /// Of these, halves in which the budget could be proven on the other one.
    pub proven: usize,
    /// The highest share of wrong answers of a half.
    pub worst: f64,
    /// The share of mail routed alone, on average.
    pub coverage: f64,
}

/// Solves temperature and threshold on a random half of the mails and counts on the other, so many times.
#[must_use]
pub fn budget_trials(
    mails: &[JudgedMail],
    queue_ids: &[String],
    max_error_rate: f64,
    trials: usize,
    seed: u64,
) -> BudgetTrials {
    let config = KnowingConfig { max_error_rate, ..KnowingConfig::default() };
    let mut sum = BudgetTrials { max_error_rate, trials, within: 0, proven: 0, worst: 0.0, coverage: 0.0 };
    for trial in 0..trials {
        let mut order: Vec<usize> = (0..mails.len()).collect();
        SplitMix64::stream(seed, trial as u64).shuffle(&mut order);
        let (one, other) = order.split_at(mails.len() / 2);
        let logits: Vec<Vec<f32>> = one.iter().map(|&mail| mails[mail].logits.clone()).collect();
        let targets: Vec<usize> = one.iter().map(|&mail| mails[mail].target).collect();
        let solved = solve(&logits, &targets, fit_temperature(&logits, &targets), queue_ids, &config);
        let id_of = |queue: usize| queue_ids.get(queue).map(String::as_str);
        let judged = other.iter().map(|&mail| (mail, solved.calibration.judge(&mails[mail].logits, None, id_of)));
        let alone: Vec<_> = judged.filter(|(_, judgement)| judgement.routed_alone()).collect();
        let wrong = alone.iter().filter(|(mail, judgement)| judgement.best != mails[*mail].target).count();
        let rate = wrong as f64 / alone.len().max(1) as f64;
        sum.within += usize::from(rate <= max_error_rate);
        sum.proven += usize::from(solved.budget_guaranteed());
        sum.worst = sum.worst.max(rate);
        sum.coverage += alone.len() as f64 / (other.len().max(1) * trials) as f64;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mail of queue 0 or 1 whose logits favour it by `lead`; below 0 they are wrong.
    fn mail(place: usize, lead: f32) -> JudgedMail {
        let target = place % 2;
        let mut logits = vec![0.0; 2];
        logits[target] = lead;
        JudgedMail {
            id: place.to_string(),
            target,
            logits,
            baseline: None,
            tokens: 3,
            decisive_position: None,
            subject: String::new(),
        }
    }

    #[test]
    fn sure_mail_is_routed_and_unsure_mail_that_errs_is_not() {
        let lead = |place: usize| match place {
            ..1600 => 6.0,
            _ if place.is_multiple_of(3) => -0.3,
            _ => 0.3,
        };
        let mails: Vec<JudgedMail> = (0..2000).map(|place| mail(place, lead(place))).collect();
        let ids = ["a".to_owned(), "b".to_owned()];
        let trials = budget_trials(&mails, &ids, 0.02, 10, 0);
        assert_eq!((trials.within, trials.proven, trials.worst), (10, 10, 0.0));
        assert!((trials.coverage - 0.8).abs() < 0.02, "{trials:?}");
        assert_eq!(trials, budget_trials(&mails, &ids, 0.02, 10, 0));
    }

    #[test]
    fn a_router_that_guesses_keeps_no_budget() {
        let mails: Vec<JudgedMail> =
            (0..400).map(|place| mail(place, if place.is_multiple_of(10) { -4.0 } else { 4.0 })).collect();
        let trials = budget_trials(&mails, &["a".to_owned(), "b".to_owned()], 0.02, 10, 0);
        assert_eq!(trials.proven, 0);
        assert!(trials.within == 10 && trials.coverage == 0.0, "{trials:?}");
    }
}
