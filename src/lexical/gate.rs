//! How much the words may say beside an encoder that is sure.

use crate::metrics::softmax;

/// What the words add is multiplied by `(1 - p)^power`, where `p` is how sure the encoder alone is of its likeliest queue: where
/// order decides ("cancel the order, not the refund"), the encoder knows and counts of words do not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// 0: the words always count in full.
    pub power: f32,
    /// Of the encoder's logits, for `p`.
    pub temperature: f32,
    /// `p` is over so many logits, the first: those of the training. A queue that was added later moves no other queue's logit.
    pub logits: usize,
}

impl Default for Gate {
    fn default() -> Self {
        Self { power: 0.0, temperature: 1.0, logits: 0 }
    }
}

impl Gate {
    /// What `words` add to the encoder's logits, one number for each.
    #[must_use]
    pub fn added(self, encoder: &[f32], words: &[f32]) -> Vec<f32> {
        let share = self.share(encoder);
        words.iter().map(|word| share * word).collect()
    }

    /// Both legs together.
    #[must_use]
    pub fn join(self, encoder: &[f32], words: &[f32]) -> Vec<f32> {
        encoder.iter().zip(self.added(encoder, words)).map(|(encoder, word)| encoder + word).collect()
    }

    fn share(self, encoder: &[f32]) -> f32 {
        if self.power == 0.0 {
            return 1.0;
        }
        let known = &encoder[..self.logits.min(encoder.len())];
        let probabilities = softmax(known, f64::from(self.temperature));
        let unsure = 1.0 - probabilities.into_iter().fold(0.0, f64::max);
        unsure.max(0.0).powf(f64::from(self.power)) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_power_the_words_count_in_full() {
        assert_eq!(Gate::default().join(&[50.0, 0.0], &[-1.0, 2.0]), [49.0, 2.0]);
        assert_eq!(Gate::default().join(&[], &[]), [0.0; 0]);
    }

    #[test]
    fn the_surer_the_encoder_the_less_the_words_add() {
        let gate = Gate { power: 0.5, temperature: 2.0, logits: 2 };
        // p = 1 / (1 + e^-1) at temperature 2.
        let unsure = 1.0 - 1.0 / (1.0 + (-1.0_f64).exp());
        let added = gate.added(&[2.0, 0.0], &[0.0, 3.0]);
        assert!((f64::from(added[1]) - 3.0 * unsure.sqrt()).abs() < 1e-6 && added[0] == 0.0);
        assert_eq!(gate.added(&[1e6, 0.0], &[0.0, 3.0]), [0.0, 0.0]);
    }

    #[test]
    fn a_queue_that_was_added_moves_no_other_logit() {
        let gate = Gate { power: 0.5, temperature: 1.0, logits: 2 };
        let before = gate.join(&[2.0, 0.0], &[0.0, 3.0]);
        assert_eq!(gate.join(&[2.0, 0.0, 9.0], &[0.0, 3.0, 0.0])[..2], before);
    }

    #[test]
    fn numbers_that_are_none_stay_none() {
        let gate = Gate { power: 0.5, temperature: 1.0, logits: 2 };
        assert!(gate.join(&[f32::NAN, 0.0], &[1.0, 1.0]).iter().any(|logit| logit.is_nan()));
    }
}
