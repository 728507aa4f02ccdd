//! Whether an explanation means anything for the mail at hand: what it highlights is taken out, and as much at random.
//!
//! The measure is ERASER's comprehensiveness (DeYoung et al. 2020) at one share of the words, the comparison ours: a highlight
//! that weighs no more than a random one explains nothing, however plausible it looks.

use serde::Serialize;

use crate::random::SplitMix64;

/// The share of the words that is taken out.
pub const SHARE: f64 = 0.1;

/// Random choices to compare with.
pub const RANDOM_RUNS: usize = 10;

/// Least advantage over the mean of the random choices, as a difference of probabilities, for `supported`.
pub const MARGIN: f64 = 0.1;

/// Fewer words than this decide nothing: a tenth of them is one word or none.
pub const FEWEST_WORDS: usize = 10;

/// Differences of probabilities below this are rounding errors.
const ROUNDING: f64 = 1e-9;

/// What the measurement says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// More weight than every random choice, and clearly more than their mean.
    Supported,
    /// More than the mean of the random choices, but not clearly.
    Weak,
    /// No more than the mean of the random choices.
    NotSupported,
    /// Too few words (or sentences, where those are taken out), or a mail without any text gets this queue at least as
    /// surely.
    Undecidable,
}

/// Probabilities of the predicted queue with parts of the mail gone.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Words (or sentences) that there were to choose from.
    pub units: usize,
    /// The whole mail.
    pub full: f64,
    /// Without what the explanation ranks highest.
    pub without_top: f64,
    /// Without as much at random, once for each choice.
    pub without_random: Vec<f64>,
    /// A mail without any text.
    pub empty: f64,
}

impl Measured {
    /// Mean over the random choices.
    #[must_use]
    pub fn random_mean(&self) -> f64 {
        self.without_random.iter().sum::<f64>() / self.without_random.len().max(1) as f64
    }

    /// `(1 + random choices that weigh as much or more) / (1 + random choices)`: the smallest value is the best rank.
    #[must_use]
    pub fn rank_p(&self) -> f64 {
        let as_much = self.without_random.iter().filter(|random| **random <= self.without_top).count();
        (1 + as_much) as f64 / (1 + self.without_random.len()) as f64
    }

    /// The verdict.
    #[must_use]
    pub fn verdict(&self, fewest_units: usize) -> Verdict {
        // Drops of probability: how much the decision leaned on what was taken out.
        let (top, random) = (self.full - self.without_top, self.full - self.random_mean());
        let best = self.without_random.iter().all(|random| *random > self.without_top);
        if self.units < fewest_units || self.without_random.is_empty() || self.empty >= self.full {
            Verdict::Undecidable
        } else if best && top - random >= MARGIN {
            Verdict::Supported
        } else if top <= random + ROUNDING {
            Verdict::NotSupported
        } else {
            Verdict::Weak
        }
    }
}

/// Positions of the `ceil(share x n)` highest scores, ascending; ties go to the earlier position.
///
/// ```
/// use postroom::explain::top_share;
///
/// assert_eq!(top_share(&[0.1, 0.9, 0.3, 0.9], 0.5), [1, 3]);
/// ```
#[must_use]
pub fn top_share(scores: &[f64], share: f64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    order.truncate(count_of(scores.len(), share));
    order.sort_unstable();
    order
}

/// How many of `n` a share is: rounded up, but for what rounding errors add.
#[must_use]
pub fn count_of(n: usize, share: f64) -> usize {
    ((share * n as f64 - 1e-9).ceil().max(0.0) as usize).min(n)
}

/// `runs` random choices of `count` out of `n`, each ascending.
#[must_use]
pub fn random_choices(n: usize, count: usize, runs: usize, seed: u64) -> Vec<Vec<usize>> {
    (0..runs)
        .map(|run| {
            let mut order: Vec<usize> = (0..n).collect();
            SplitMix64::stream(seed, run as u64).shuffle(&mut order);
            order.truncate(count);
            order.sort_unstable();
            order
        })
        .collect()
}

/// Units in the order of `order` until they hold `wanted` words, at least one: a share of the words in whole sentences.
#[must_use]
pub fn fill(order: impl IntoIterator<Item = usize>, words: &[usize], wanted: usize) -> Vec<usize> {
    let (mut chosen, mut held) = (Vec::new(), 0);
    for unit in order {
        if held >= wanted && !chosen.is_empty() {
            break;
        }
        held += words[unit];
        chosen.push(unit);
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(without_top: f64, without_random: &[f64]) -> Measured {
        Measured { units: 40, full: 0.9, without_top, without_random: without_random.to_vec(), empty: 0.2 }
    }

    #[test]
    fn a_highlight_that_beats_all_random_ones_by_far_is_supported() {
        let measured = measured(0.3, &[0.88; 10]);
        assert_eq!(measured.verdict(FEWEST_WORDS), Verdict::Supported);
        assert!((measured.rank_p() - 1.0 / 11.0).abs() < 1e-12);
        assert!((measured.random_mean() - 0.88).abs() < 1e-12);
    }

    #[test]
    fn one_random_choice_as_strong_makes_it_weak() {
        let mut random = [0.88; 10];
        random[4] = 0.3;
        assert_eq!(measured(0.3, &random).verdict(FEWEST_WORDS), Verdict::Weak);
        assert!((measured(0.3, &random).rank_p() - 2.0 / 11.0).abs() < 1e-12);
    }

    #[test]
    fn a_small_advantage_is_weak_and_none_is_not_supported() {
        assert_eq!(measured(0.85, &[0.88; 10]).verdict(FEWEST_WORDS), Verdict::Weak);
        assert_eq!(measured(0.88, &[0.88; 10]).verdict(FEWEST_WORDS), Verdict::NotSupported);
        assert_eq!(measured(0.95, &[0.88; 10]).verdict(FEWEST_WORDS), Verdict::NotSupported);
    }

    #[test]
    fn where_the_empty_mail_gets_the_queue_too_nothing_can_be_said() {
        let prior = Measured { empty: 0.95, ..measured(0.1, &[0.88; 10]) };
        assert_eq!(prior.verdict(FEWEST_WORDS), Verdict::Undecidable);
        let short = Measured { units: 9, ..measured(0.1, &[0.88; 10]) };
        assert_eq!(short.verdict(FEWEST_WORDS), Verdict::Undecidable);
    }

    #[test]
    fn random_choices_are_seeded_and_each_of_the_size_asked_for() {
        let choices = random_choices(30, 3, 10, 7);
        assert_eq!(choices, random_choices(30, 3, 10, 7));
        assert_ne!(choices, random_choices(30, 3, 10, 8));
        assert!(choices.iter().all(|choice| choice.len() == 3 && choice.is_sorted_by(|a, b| a < b)));
        assert!(choices.iter().any(|choice| *choice != choices[0]));
    }

    #[test]
    fn whole_sentences_are_taken_until_they_hold_the_share() {
        assert_eq!(fill([2, 0, 1], &[5, 9, 3], 4), [0, 2]);
        assert_eq!(fill([1, 0], &[5, 9], 0), [1]);
    }
}
