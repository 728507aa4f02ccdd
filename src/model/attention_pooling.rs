//! Attention pooling: each queue weighs the tokens of a mail by itself, so that one sentence can decide a long one.
//!
//! `logit_c = sum_t a_tc (h_t . v_c) + b_c`, with `a_tc` the softmax over a mail's tokens of `h_t . q_c + ln share_t`. With
//! queries of zero the weights are the shares themselves, which is mean pooling. Axis letters: T tokens, D d_model, C queues.

use super::batch::PackedBatch;

/// The pooling and the linear head behind it.
#[derive(Debug, Clone)]
pub struct AttentionPooling {
    /// `[2 C, D]`: all queries, then all values.
    projection: Vec<f32>,
    /// `[C]`
    bias: Vec<f32>,
}

impl AttentionPooling {
    /// From row-major `query` and `weight`, `[C, D]` each.
    #[must_use]
    pub fn new(query: &[f32], weight: &[f32], bias: Vec<f32>) -> Self {
        Self { projection: [query, weight].concat(), bias }
    }

    /// What the encoder multiplies its hidden states with: rows of D values.
    pub(super) fn projection(&self) -> &[f32] {
        &self.projection
    }

    /// Rows of the projection: values of one projected token.
    #[must_use]
    pub fn width(&self) -> usize {
        2 * self.bias.len()
    }

    /// One row of logits per mail from the projected tokens, `[T, 2 C]`.
    #[must_use]
    pub fn logits(&self, batch: &PackedBatch, projected: &[f32]) -> Vec<Vec<f32>> {
        let rows = |mail: usize| {
            let tokens = batch.mail_tokens(mail);
            let rows = &projected[tokens.start * self.width()..tokens.end * self.width()];
            rows.chunks_exact(self.width()).zip(&batch.token_weights[tokens])
        };
        (0..batch.n_mails())
            .map(|mail| {
                self.bias.iter().enumerate().map(|(queue, bias)| bias + self.pooled(queue, rows(mail))).collect()
            })
            .collect()
    }

    /// The weighted mean of a queue's values over the tokens of one mail.
    fn pooled<'a>(&self, queue: usize, rows: impl Iterator<Item = (&'a [f32], &'a f32)> + Clone) -> f32 {
        let counted = rows.filter(|(_, share)| **share > 0.0);
        let highest = counted.clone().map(|(row, _)| row[queue]).fold(f32::NEG_INFINITY, f32::max);
        let value = queue + self.bias.len();
        let (mut weighted, mut total) = (0.0, 0.0);
        for (row, share) in counted {
            let weight = share * (row[queue] - highest).exp();
            weighted += weight * row[value];
            total += weight;
        }
        weighted / total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(shares: &[f32]) -> PackedBatch {
        PackedBatch {
            input_ids: vec![0; shares.len()],
            window_offsets: vec![0, shares.len()],
            mail_offsets: vec![0, 1],
            token_weights: shares.to_vec(),
        }
    }

    #[test]
    fn queries_of_zero_pool_by_the_shares() {
        let pooling = AttentionPooling::new(&[0.0], &[0.0], vec![0.5]);
        let logits = pooling.logits(&batch(&[0.25, 0.75]), &[0.0, 4.0, 0.0, 8.0]);
        assert!((logits[0][0] - 7.5).abs() < 1e-6);
    }

    #[test]
    fn a_token_that_a_queue_looks_for_outweighs_the_others() {
        // Score ln 3 against 0: weights 3/4 and 1/4.
        let pooling = AttentionPooling::new(&[0.0], &[0.0], vec![0.0]);
        let logits = pooling.logits(&batch(&[0.5, 0.5]), &[3f32.ln(), 4.0, 0.0, 8.0]);
        assert!((logits[0][0] - 5.0).abs() < 1e-5, "{logits:?}");
    }

    #[test]
    fn a_token_that_another_window_counts_is_left_out_however_loud() {
        let pooling = AttentionPooling::new(&[0.0], &[0.0], vec![0.0]);
        let logits = pooling.logits(&batch(&[1.0, 0.0]), &[0.0, 2.0, 80.0, 100.0]);
        assert_eq!(logits[0][0], 2.0);
    }

    #[test]
    fn huge_scores_do_not_overflow() {
        let pooling = AttentionPooling::new(&[0.0], &[0.0], vec![0.0]);
        let logits = pooling.logits(&batch(&[0.5, 0.5]), &[1e4, 1.0, -1e4, 9.0]);
        assert_eq!(logits[0][0], 1.0);
    }
}
