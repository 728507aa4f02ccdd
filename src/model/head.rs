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

/// The head on all tokens of one mail, on tensors and differentiable.
#[derive(Debug, Clone)]
pub struct TokenLogits {
    /// `[C]`.
    pub logits: Tensor,
    /// How much each token counts for each logit, `[T, C]`; columns sum to 1.
    pub weights: Tensor,
    /// What each token adds to each logit, `[T, C]`: weight times value; the bias is nobody's.
    pub contributions: Tensor,
}

impl Head {
    /// Logits from the hidden states `[T, D]` of all windows of one mail and the tokens' shares, `[T]`: the readable form of what
    /// serves. In the type of the hidden states.
    ///
    /// # Errors
    /// Where the shapes do not fit.
    pub fn of_tokens(&self, hidden_states: &Tensor, shares: &[f32]) -> Result<TokenLogits, ModelError> {
        let (dtype, device) = (hidden_states.dtype(), hidden_states.device());
        let (tokens, d_model) = hidden_states.dims2()?;
        let shares = Tensor::from_slice(shares, (tokens, 1), device)?.to_dtype(dtype)?; //      [T, 1]
        match self {
            Self::Attention(pooling) => {
                let matrix = |values: &[f32]| {
                    Tensor::from_slice(values, (values.len() / d_model, d_model), device)?.to_dtype(dtype)?.t()
                };
                // The logarithm of a share of 0, which a token has that another window counts, must stay finite.
                let shares = shares.maximum(1e-30)?.log()?;
                let scores = hidden_states.matmul(&matrix(pooling.query())?)?.broadcast_add(&shares)?; // [T, C]
                let weights = candle_nn::ops::softmax(&scores, 0)?; //                          [T, C]
                let values = hidden_states.matmul(&matrix(pooling.weight())?)?; //              [T, C]
                let contributions = (&weights * values)?;
                let bias = Tensor::new(pooling.bias(), device)?.to_dtype(dtype)?;
                Ok(TokenLogits { logits: (contributions.sum(0)? + bias)?, weights, contributions })
            }
            Self::Pooled(head) => {
                let pooled = shares.t()?.matmul(hidden_states)?; //                             [1, D]
                let logits = head.forward(&pooled)?.squeeze(0)?; //                             [C]
                let queues = logits.elem_count();
                let weights = shares.broadcast_as((tokens, queues))?.contiguous()?;
                let contributions = match &head.transform {
                    Transform::Normalize => {
                        let length = pooled.sqr()?.sum_all()?.sqrt()?;
                        let values = hidden_states.matmul(&head.classifier.weight().to_dtype(dtype)?.t()?)?;
                        (&weights * values.broadcast_div(&length)?)?
                    }
                    // Behind tanh no token has a part of its own.
                    Transform::Pooler(_) => weights.clone(),
                };
                Ok(TokenLogits { logits, weights, contributions })
            }
        }
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
