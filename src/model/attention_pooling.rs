//! Attention pooling: each queue weighs the tokens of a mail by itself, so that one sentence can decide a long one.
//!
//! `logit_c = sum_t a_tc (h_t . v_c) + b_c`, with `a_tc` the softmax over a mail's tokens of `h_t . q_c + ln share_t`. With
//! queries of zero the weights are the shares themselves, which is mean pooling. Axis letters: T tokens, D d_model, C queues.

use std::ops::Range;

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

    /// The queries, `[C, D]` row-major.
    #[must_use]
    pub fn query(&self) -> &[f32] {
        &self.projection[..self.projection.len() / 2]
    }

    /// The values, `[C, D]` row-major.
    #[must_use]
    pub fn weight(&self) -> &[f32] {
        &self.projection[self.projection.len() / 2..]
    }

    /// `[C]`.
    #[must_use]
    pub fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// Rows of the projection: values of one projected token.
    #[must_use]
    pub fn width(&self) -> usize {
        2 * self.bias.len()
    }

    /// One row of logits per mail from the projected tokens, `[T, 2 C]`.
    #[must_use]
    pub fn logits(&self, batch: &PackedBatch, projected: &[f32]) -> Vec<Vec<f32>> {
        let of_mail = |mail| self.logits_of(&self.sums(batch, projected, batch.mail_tokens(mail)));
        (0..batch.n_mails()).map(of_mail).collect()
    }

    /// What a stretch of a batch's tokens adds to each queue's weighted mean.
    #[must_use]
    pub fn sums(&self, batch: &PackedBatch, projected: &[f32], tokens: Range<usize>) -> Vec<QueueSum> {
        let rows = &projected[tokens.start * self.width()..tokens.end * self.width()];
        let rows = rows.chunks_exact(self.width()).zip(&batch.token_weights[tokens]);
        (0..self.bias.len()).map(|queue| self.sum(queue, rows.clone())).collect()
    }

    /// The logits of a mail from the sums over all its tokens.
    #[must_use]
    pub fn logits_of(&self, sums: &[QueueSum]) -> Vec<f32> {
        self.bias.iter().zip(sums).map(|(bias, sum)| bias + sum.weighted / sum.total).collect()
    }

    /// How much each token of a mail counts for each queue, `[T, C]`; columns sum to 1.
    #[must_use]
    pub fn token_weights(&self, batch: &PackedBatch, projected: &[f32], mail: usize) -> Vec<f32> {
        let tokens = batch.mail_tokens(mail);
        let (queues, sums) = (self.bias.len(), self.sums(batch, projected, tokens.clone()));
        let mut weights = Vec::with_capacity(tokens.len() * queues);
        for token in tokens {
            let (scores, share) = (&projected[token * self.width()..], batch.token_weights[token]);
            weights.extend(sums.iter().enumerate().map(|(queue, sum)| {
                if share > 0.0 { share * (scores[queue] - sum.highest).exp() / sum.total } else { 0.0 }
            }));
        }
        weights
    }

    fn sum<'a>(&self, queue: usize, rows: impl Iterator<Item = (&'a [f32], &'a f32)> + Clone) -> QueueSum {
        let counted = rows.filter(|(_, share)| **share > 0.0);
        let highest = counted.clone().map(|(row, _)| row[queue]).fold(f32::NEG_INFINITY, f32::max);
        let value = queue + self.bias.len();
        let mut sum = QueueSum { highest, ..QueueSum::default() };
        for (row, share) in counted {
            let weight = share * (row[queue] - highest).exp();
            sum.weighted += weight * row[value];
            sum.total += weight;
        }
        sum
    }
}

/// A queue's weighted mean over some tokens, in parts that can be joined: windows of a mail are pooled apart and together alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueSum {
    /// The highest score; weights are relative to it.
    highest: f32,
    /// Weights times values.
    weighted: f32,
    /// Weights.
    total: f32,
}

impl Default for QueueSum {
    /// The sum over no tokens.
    fn default() -> Self {
        Self { highest: f32::NEG_INFINITY, weighted: 0.0, total: 0.0 }
    }
}

impl QueueSum {
    /// The sum over the tokens of both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        let highest = self.highest.max(other.highest);
        // Where one side has no tokens its factor would be the exponential of a difference of infinities.
        let factor = |side: Self| if side.total > 0.0 { (side.highest - highest).exp() } else { 0.0 };
        let (a, b) = (factor(self), factor(other));
        Self { highest, weighted: a * self.weighted + b * other.weighted, total: a * self.total + b * other.total }
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

    #[test]
    fn windows_pooled_apart_and_joined_give_the_logits_of_the_whole_mail() {
        let pooling = AttentionPooling::new(&[0.0], &[0.0], vec![0.25]);
        let batch = batch(&[0.2, 0.3, 0.1, 0.4]);
        let projected = [0.5, 4.0, -90.0, 8.0, 3.0, -1.0, 60.0, 2.0];
        let whole = pooling.logits(&batch, &projected)[0][0];
        let join = |cut: usize| {
            let left = pooling.sums(&batch, &projected, 0..cut)[0];
            let right = pooling.sums(&batch, &projected, cut..4)[0];
            pooling.logits_of(&[left.join(right)])[0]
        };
        assert!((0..=4).all(|cut| (join(cut) - whole).abs() < 1e-5));
    }

    #[test]
    fn weights_of_tokens_sum_to_one_and_make_the_logits() {
        let pooling = AttentionPooling::new(&[0.0, 0.0], &[0.0, 0.0], vec![0.25, 0.0]);
        let batch = batch(&[0.2, 0.3, 0.0, 0.5]);
        let projected: Vec<f32> = (0..16).map(|index| (index as f32 * 1.7).sin() * 3.0).collect();
        let (weights, logits) = (pooling.token_weights(&batch, &projected, 0), pooling.logits(&batch, &projected));
        for queue in 0..2 {
            let of_token = |token: usize| weights[2 * token + queue];
            assert!(((0..4).map(of_token).sum::<f32>() - 1.0).abs() < 1e-5 && of_token(2) == 0.0);
            let logit: f32 = (0..4).map(|token| of_token(token) * projected[4 * token + 2 + queue]).sum();
            assert!((logit + pooling.bias()[queue] - logits[0][queue]).abs() < 1e-5);
        }
    }
}
