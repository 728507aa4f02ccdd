//! Which encoder to use, and how much the words count beside it: what held-out mail says.

use std::collections::BTreeMap;

use super::held_out::{Sum, best_sum, judged};
use super::{Method, Refused, TrainingError};
use crate::artifact::HeldOutRecall;

/// What each leg says of the judged mails, row by row, and their queues.
pub(super) struct Legs<'a> {
    pub tuned: Option<&'a [Vec<f32>]>,
    pub frozen: &'a [Vec<f32>],
    pub words: &'a [Vec<f32>],
    pub targets: &'a [usize],
}

/// Which encoder to use, with the words beside it.
pub(super) struct Verdict {
    pub tuned: bool,
    pub accuracy_frozen: f64,
    pub accuracy_encoder_alone: f64,
    pub sum: Sum,
}

impl Legs<'_> {
    pub(super) fn judge(&self, method: Method) -> Verdict {
        let frozen = best_sum(self.frozen, self.words, self.targets);
        let accuracy_frozen = accuracy(&frozen.logits, self.targets);
        if let Some(logits) = self.tuned {
            let tuned = best_sum(logits, self.words, self.targets);
            if method == Method::FineTuned || tuned.beats(&frozen, self.targets) {
                let accuracy_encoder_alone = accuracy(logits, self.targets);
                return Verdict { tuned: true, accuracy_frozen, accuracy_encoder_alone, sum: tuned };
            }
        }
        let accuracy_encoder_alone = accuracy(self.frozen, self.targets);
        Verdict { tuned: false, accuracy_frozen, accuracy_encoder_alone, sum: frozen }
    }
}

/// A router that word counts alone would beat helps nobody, however it was made.
pub(super) fn refuse_below_baseline(
    ours: f64,
    baseline: f64,
    held_out: impl FnOnce() -> Refused,
) -> Result<(), TrainingError> {
    if ours < baseline {
        return Err(TrainingError::BelowBaseline { ours, baseline, held_out: Box::new(held_out()) });
    }
    Ok(())
}

pub(super) fn accuracy(logits: &[Vec<f32>], targets: &[usize]) -> f64 {
    let (_, correct) = judged(logits, targets, 1.0);
    share(correct.iter().filter(|&&correct| correct).count(), correct.len())
}

pub(super) fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Held-out mail of each queue, and how much of it would go there.
pub(super) fn recall_by_queue(ids: &[String], targets: &[usize], correct: &[bool]) -> BTreeMap<String, HeldOutRecall> {
    let recall = |(queue, id): (usize, &String)| {
        let own = || targets.iter().zip(correct).filter(move |(target, _)| **target == queue);
        (id.clone(), HeldOutRecall { mails: own().count(), right: own().filter(|(_, correct)| **correct).count() })
    };
    ids.iter().enumerate().map(recall).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Calibration;

    #[test]
    fn a_router_below_the_word_counts_is_refused_with_both_figures() {
        let held_out = || Refused { queues: Vec::new(), calibration: Calibration::new(1.0, 0.0), mails: Vec::new() };
        assert!(refuse_below_baseline(0.91, 0.91, held_out).is_ok());
        let error = refuse_below_baseline(0.90, 0.912, held_out).unwrap_err().to_string();
        assert!(error.contains("right for 90.0%, word counts alone for 91.2%: it is not written"), "{error}");
    }

    #[test]
    fn fine_tuning_is_kept_only_where_held_out_mail_says_that_it_is_better() {
        let sure = [vec![3.0f32, 0.0], vec![0.0, 3.0], vec![2.0, 0.5], vec![0.5, 2.0]];
        let unsure = [vec![0.2f32, 0.0], vec![0.1, 0.0], vec![0.1, 0.2], vec![0.0, 0.1]];
        let words = vec![vec![0.0f32, 0.0]; 4];
        let targets = [0, 1, 0, 1];
        let legs = |tuned, frozen| Legs { tuned: Some(tuned), frozen, words: &words, targets: &targets };
        assert!(legs(&sure, &unsure).judge(Method::Auto).tuned);
        let verdict = legs(&unsure, &sure).judge(Method::Auto);
        assert!(!verdict.tuned && verdict.accuracy_encoder_alone == 1.0);
        assert!(legs(&unsure, &sure).judge(Method::FineTuned).tuned);
    }
}
