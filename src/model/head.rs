//! The classification head: what the encoder says of a mail to one logit per queue.

use candle_core::{D, DType, Device, Tensor};
use candle_nn::VarBuilder;

use super::ModelError;
use super::attention_pooling::AttentionPooling;
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
pub enum Head {
    /// Reads one vector a mail.
    Pooled(PooledHead),
    /// Reads all tokens of a mail.
    Attention(AttentionPooling),
}

/// A linear layer on the pooled vector.
#[derive(Debug, Clone)]
pub struct PooledHead {
    transform: Transform,
    classifier: Linear,
}

impl Head {
    /// The head of our own routers, from row-major lists. `weight` `[C, D]` and `bias` `[C]` read the pooled vector scaled to
    /// length 1; where there is a `query` `[C, D]`, all tokens instead.
    ///
    /// # Errors
    /// Only candle's own (device) errors.
    pub fn of_router(query: &[f32], weight: Vec<f32>, bias: Vec<f32>, device: &Device) -> Result<Self, ModelError> {
        if !query.is_empty() {
            return Ok(Self::Attention(AttentionPooling::new(query, &weight, bias)));
        }
        let (queues, d_model) = (bias.len(), weight.len() / bias.len().max(1));
        let weight = Tensor::from_vec(weight, (queues, d_model), device)?;
        let classifier = Linear::new(weight, Tensor::from_vec(bias, queues, device)?);
        Ok(Self::Pooled(PooledHead { transform: Transform::Normalize, classifier }))
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
        Ok(Self::Pooled(PooledHead {
            transform: Transform::Pooler(Linear::load(d_model, d_model, pooler)?),
            classifier: Linear::load(d_model, n_queues, &weights.pp("classifier"))?,
        }))
    }
}

impl PooledHead {
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
