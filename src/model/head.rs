//! The classification head: one pooled vector per mail to one logit per queue.

use candle_core::{D, DType, Tensor};
use candle_nn::VarBuilder;

use super::ModelError;
use super::layers::Linear;

/// What happens to the pooled vector before the last linear layer.
#[derive(Debug, Clone)]
enum Transform {
    /// Scaled to length 1, as sentence encoders are used.
    Normalize,
    /// BERT's pooler: `tanh(W x + b)`.
    Pooler(Linear),
}

/// The head of a router.
#[derive(Debug, Clone)]
pub struct Head {
    transform: Transform,
    classifier: Linear,
}

impl Head {
    /// The head of our own routers: the pooled vector scaled to length 1, then `classifier.weight` `[C, D]` and `classifier.bias` `[C]`.
    ///
    /// # Errors
    /// Where a tensor is missing or has another shape.
    pub fn load_normalized(d_model: usize, n_queues: usize, weights: &VarBuilder<'_>) -> Result<Self, ModelError> {
        Ok(Self {
            transform: Transform::Normalize,
            classifier: Linear::load(d_model, n_queues, &weights.pp("classifier"))?,
        })
    }

    /// The head of `BertForSequenceClassification`: `pooler` is the builder at `pooler.dense`, `weights` the root.
    ///
    /// # Errors
    /// Where a tensor is missing or has another shape.
    pub fn load_with_pooler(
        d_model: usize,
        n_queues: usize,
        pooler: &VarBuilder<'_>,
        weights: &VarBuilder<'_>,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            transform: Transform::Pooler(Linear::load(d_model, d_model, pooler)?),
            classifier: Linear::load(d_model, n_queues, &weights.pp("classifier"))?,
        })
    }

    /// Pooled vectors `[mails, D]` to logits `[mails, C]`, in f32.
    ///
    /// # Errors
    /// Where the width is not D.
    pub fn forward(&self, pooled: &Tensor) -> Result<Tensor, ModelError> {
        let x = match &self.transform {
            Transform::Normalize => l2_normalize(pooled)?,
            Transform::Pooler(dense) => dense.forward(pooled)?.tanh()?,
        };
        self.classifier.forward(&x)
    }
}

/// Each row divided by its Euclidean length; a row of zeros stays.
///
/// # Errors
/// Only candle's own (device) errors.
pub fn l2_normalize(x: &Tensor) -> Result<Tensor, ModelError> {
    let length = x.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?.maximum(1e-12)?;
    Ok(x.to_dtype(DType::F32)?.broadcast_div(&length.to_dtype(DType::F32)?)?)
}
