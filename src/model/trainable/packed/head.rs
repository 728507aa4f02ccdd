//! The head with attention pooling on slices, from hidden states to the loss and back.

use super::matmul::{Matrix, Target, matmul};
use super::{Gradients, LEAST_EVIDENCE, Objective, Slot, Tensors};
use crate::model::PackedBatch;

/// Where the head's tensors are; see [`crate::model::trainable::TrainableHead`] for the formula.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub query: Slot,
    pub weight: Slot,
    pub bias: Slot,
    pub n_queues: usize,
    pub width: usize,
}

/// What the backward pass needs of the forward pass.
pub(super) struct Pooled {
    /// `[T, C]`: the weight of each token for each queue; over the tokens of a mail they sum to 1.
    weights: Vec<f32>,
    /// `[T, C]`: what each token says for each queue.
    values: Vec<f32>,
    /// `[mails, C]`.
    pub logits: Vec<f32>,
}

impl Head {
    pub(super) fn forward(&self, tensors: &Tensors<'_>, hidden_states: &[f32], batch: &PackedBatch) -> Pooled {
        let queues = self.n_queues;
        let mut weights = self.project(tensors.get(self.query), hidden_states); //  scores at first
        let values = self.project(tensors.get(self.weight), hidden_states);
        let mut logits = Vec::with_capacity(batch.n_mails() * queues);
        for mail in 0..batch.n_mails() {
            let tokens = batch.mail_tokens(mail);
            for (queue, bias) in tensors.get(self.bias).iter().enumerate() {
                let cells = || tokens.clone().map(|token| (token, token * queues + queue));
                let counted = |token: usize| batch.token_weights[token] > 0.0;
                let scores = cells().filter(|(token, _)| counted(*token)).map(|(_, cell)| weights[cell]);
                let highest = scores.fold(f32::NEG_INFINITY, f32::max);
                let mut total = 0.0;
                for (token, cell) in cells() {
                    let share = batch.token_weights[token];
                    weights[cell] = if share > 0.0 { share * (weights[cell] - highest).exp() } else { 0.0 };
                    total += weights[cell];
                }
                cells().for_each(|(_, cell)| weights[cell] /= total);
                logits.push(bias + cells().map(|(_, cell)| weights[cell] * values[cell]).sum::<f32>());
            }
        }
        Pooled { weights, values, logits }
    }

    /// The loss by evidence of [`Objective`], not yet scaled, and the scaled gradients of the pooling's scores, as pairs of cell
    /// and slope: with `M` the weight on the deciding tokens, `d(-ln M) / d score_t = a_t - [t decides] a_t / M`.
    pub(super) fn evidence_loss(
        &self,
        pooled: &Pooled,
        batch: &PackedBatch,
        objective: &Objective<'_>,
    ) -> (f32, Vec<(usize, f32)>) {
        let (mut loss, mut slopes) = (0.0, Vec::new());
        if objective.decisive.is_empty() || objective.evidence == 0.0 {
            return (loss, slopes);
        }
        for (mail, target) in objective.targets.iter().enumerate() {
            let Some(queue) = *target else { continue };
            let weights = || {
                batch.mail_tokens(mail).map(|token| {
                    let cell = token * self.n_queues + queue;
                    (cell, pooled.weights[cell], objective.decisive[token])
                })
            };
            let on_evidence: f32 = weights().filter(|&(.., decides)| decides).map(|(_, weight, _)| weight).sum();
            // Nobody marked a token of this mail, or only such as another window counts.
            if on_evidence < LEAST_EVIDENCE {
                continue;
            }
            loss -= objective.evidence * on_evidence.ln();
            let scale = objective.evidence * objective.scale;
            slopes.extend(weights().map(|(cell, weight, decides)| {
                (cell, scale * (weight - if decides { weight / on_evidence } else { 0.0 }))
            }));
        }
        (loss, slopes)
    }

    /// Adds the gradients of the head's tensors and returns that of the hidden states. `upstream`: those of the logits
    /// `[mails, C]`, and what comes to the pooling's scores beside, by cell.
    pub(super) fn backward(
        &self,
        tensors: &Tensors<'_>,
        hidden_states: &[f32],
        batch: &PackedBatch,
        pooled: Pooled,
        (upstream, to_scores): (&[f32], Vec<(usize, f32)>),
        gradients: &mut Gradients,
    ) -> Vec<f32> {
        let queues = self.n_queues;
        let Pooled { mut weights, mut values, .. } = pooled;
        for mail in 0..batch.n_mails() {
            for queue in 0..queues {
                let slope = upstream[mail * queues + queue];
                let cells = || batch.mail_tokens(mail).map(|token| token * queues + queue);
                let mean: f32 = cells().map(|cell| weights[cell] * values[cell]).sum();
                for cell in cells() {
                    let (weight, value) = (weights[cell], values[cell]);
                    weights[cell] = slope * weight * (value - mean); //  of the score
                    values[cell] = slope * weight; //                    of the value
                }
            }
        }
        to_scores.into_iter().for_each(|(cell, slope)| weights[cell] += slope);
        if let Some(bias) = gradients.of(self.bias) {
            for row in upstream.chunks_exact(queues) {
                bias.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
            }
        }
        let mut grad_states = vec![0.0; hidden_states.len()];
        let rows = hidden_states.len() / self.width;
        let states = Matrix::new(hidden_states, rows, self.width);
        for (slot, slopes) in [(self.query, &weights), (self.weight, &values)] {
            let slopes = Matrix::new(slopes, rows, queues);
            if let Some(gradient) = gradients.of(slot) {
                matmul(self.target(gradient), slopes.transposed(), states, 1.0, 1);
            }
            let matrix = Matrix::new(tensors.get(slot), queues, self.width);
            matmul(self.target(&mut grad_states), slopes, matrix, 1.0, rayon::current_num_threads());
        }
        grad_states
    }

    fn target<'a>(&self, values: &'a mut [f32]) -> Target<'a> {
        Target { values, row_stride: self.width, add: true }
    }

    /// `[T, D]` times the transpose of `[C, D]`.
    fn project(&self, matrix: &[f32], hidden_states: &[f32]) -> Vec<f32> {
        let rows = hidden_states.len() / self.width;
        let mut out = vec![0.0; rows * self.n_queues];
        let target = Target { values: &mut out, row_stride: self.n_queues, add: false };
        let matrix = Matrix::new(matrix, self.n_queues, self.width).transposed();
        matmul(target, Matrix::new(hidden_states, rows, self.width), matrix, 1.0, rayon::current_num_threads());
        out
    }
}

/// Cross entropy, summed over the mails, against targets of which a share, `smoothing`, is spread over all queues; and its gradient,
/// `[mails, C]`. A mail without a target should be given to every queue alike.
pub(super) fn cross_entropy(
    logits: &[f32],
    targets: &[Option<usize>],
    n_queues: usize,
    smoothing: &[f32],
) -> (f32, Vec<f32>) {
    let mut loss = 0.0;
    let mut gradient = Vec::with_capacity(logits.len());
    for ((row, &target), &smoothing) in logits.chunks_exact(n_queues).zip(targets).zip(smoothing) {
        let highest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let total: f32 = row.iter().map(|logit| (logit - highest).exp()).sum();
        for (queue, logit) in row.iter().enumerate() {
            let wanted = wanted(target, queue, n_queues, smoothing);
            loss -= wanted * (logit - highest - total.ln());
            gradient.push((logit - highest).exp() / total - wanted);
        }
    }
    (loss, gradient)
}

/// The share of a mail that a queue should get.
pub(super) fn wanted(target: Option<usize>, queue: usize, n_queues: usize, smoothing: f32) -> f32 {
    let even = 1.0 / n_queues as f32;
    match target {
        None => even,
        Some(target) => smoothing * even + if queue == target { 1.0 - smoothing } else { 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothed_cross_entropy_is_the_one_of_the_textbook() {
        // Logits (2, 1, 0.1), target 0, smoothing 0.1: 0.5136967; without smoothing the gradient is softmax minus target.
        let (loss, _) = cross_entropy(&[2.0, 1.0, 0.1], &[Some(0)], 3, &[0.1]);
        assert!((loss - 0.513_696_7).abs() < 1e-6, "{loss}");
        let (_, gradient) = cross_entropy(&[2.0, 1.0, 0.1], &[Some(0)], 3, &[0.0]);
        let want = [0.659_001 - 1.0, 0.242_433, 0.098_566];
        assert!(gradient.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-5), "{gradient:?}");
        // A mail for nobody is best given to all alike.
        let (_, gradient) = cross_entropy(&[0.7, 0.7, 0.7], &[None], 3, &[0.1]);
        assert!(gradient.iter().all(|slope| slope.abs() < 1e-6), "{gradient:?}");
    }
}
