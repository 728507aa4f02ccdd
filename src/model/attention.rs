//! Scaled dot-product attention and multi-head self-attention (Vaswani et al. 2017).
//!
//! Axis letters: B batch, H heads, T tokens, D d_model, K d_k. Rows of a weight map are queries, columns are keys.
//!
//! Two ways, one answer: [`scaled_dot_product_attention`] returns the weights, the fast path walks over blocks of
//! queries and never holds a `T x T` map.

use candle_core::{D, DType, Device, Tensor};
use candle_nn::VarBuilder;

use super::ModelError;
use super::config::EncoderConfig;
use super::layers::Linear;

/// What attention gives back.
#[derive(Debug, Clone)]
pub struct AttentionOutput {
    /// Weighted means of the values, `[..., T_q, d_v]`.
    pub context: Tensor,
    /// The weights, `[..., T_q, T_k]`; each row sums to 1.
    pub weights: Tensor,
}

/// `softmax(Q K^T / sqrt(d_k) + bias) V`, the softmax along each row.
///
/// Shapes: `queries` `[..., T_q, d_k]`, `keys` `[..., T_k, d_k]`, `values` `[..., T_k, d_v]`; `attention_bias` is added
/// to the scores and broadcasts to `[..., T_q, T_k]` (see [`padding_bias`] and [`causal_bias`]). `T_q` and `T_k` may differ.
///
/// ```
/// use candle_core::{Device, Tensor};
/// use postroom::model::scaled_dot_product_attention;
///
/// // "eggless chocolate cake": each word looks at the words whose key matches its query.
/// let queries = Tensor::new(&[[1f64, 0.], [0., 1.], [1., 1.]], &Device::Cpu)?;
/// let keys = Tensor::new(&[[2f64, 0.], [0., 1.], [1., 1.]], &Device::Cpu)?;
/// let values = Tensor::new(&[[10f64, 0.], [0., 10.], [5., 5.]], &Device::Cpu)?;
/// let output = scaled_dot_product_attention(&queries, &keys, &values, None)?;
/// let eggless = output.weights.to_vec2::<f64>()?[0].clone();
/// assert!((eggless[0] - 0.57597535).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Where the shapes do not fit.
pub fn scaled_dot_product_attention(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    attention_bias: Option<&Tensor>,
) -> Result<AttentionOutput, ModelError> {
    let weights = attention_weights(queries, keys, attention_bias)?; //          rows sum to 1
    let context = weights.matmul(values)?; //                                    [..., T_q, d_v]
    Ok(AttentionOutput { context, weights })
}

/// `softmax(Q K^T / sqrt(d_k) + bias)`.
fn attention_weights(queries: &Tensor, keys: &Tensor, attention_bias: Option<&Tensor>) -> Result<Tensor, ModelError> {
    let d_k = queries.dim(D::Minus1)?;
    let scores = queries.matmul(&keys.t()?)?; //                                 [..., T_q, T_k]
    let scores = (scores / (d_k as f64).sqrt())?;
    let scores = match attention_bias {
        Some(bias) => scores.broadcast_add(bias)?,
        None => scores,
    };
    Ok(candle_nn::ops::softmax(&scores, D::Minus1)?)
}

/// Rows of queries that the fast path scores at a time: a block is `B x H x 64 x T`, small enough for a CPU cache.
const QUERY_BLOCK: usize = 64;

/// The context of [`scaled_dot_product_attention`] without its map: `[B, H, T, K]`, block by block of queries.
fn attention_context(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    attention_bias: Option<&Tensor>,
) -> Result<Tensor, ModelError> {
    let tokens = queries.dim(2)?;
    let mut blocks = Vec::with_capacity(tokens.div_ceil(QUERY_BLOCK));
    for start in (0..tokens).step_by(QUERY_BLOCK) {
        let rows = QUERY_BLOCK.min(tokens - start);
        let block = queries.narrow(2, start, rows)?.contiguous()?;
        blocks.push(scaled_dot_product_attention(&block, keys, values, attention_bias)?.context);
    }
    Ok(Tensor::cat(&blocks, 2)?)
}

/// The large negative number that stands for "never look there". Finite, so that a row of padding alone stays finite.
fn blocked(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => -6e4,
        _ => -1e9,
    }
}

/// Turns an `attention_mask` `[B, T]` (1 = token, 0 = padding) into a bias `[B, 1, 1, T]` that blanks whole key columns.
///
/// # Errors
/// Only candle's own (device) errors.
pub fn padding_bias(attention_mask: &Tensor, dtype: DType) -> Result<Tensor, ModelError> {
    let (batch, tokens) = attention_mask.dims2()?;
    let padding = (1.0 - attention_mask.to_dtype(DType::F32)?)?;
    let bias = (padding * blocked(dtype))?;
    Ok(bias.to_dtype(dtype)?.reshape((batch, 1, 1, tokens))?)
}

/// A bias `[T, T]` that lets each query see only itself and earlier keys.
///
/// # Errors
/// Only candle's own (device) errors.
pub fn causal_bias(tokens: usize, dtype: DType, device: &Device) -> Result<Tensor, ModelError> {
    let blocked = blocked(dtype);
    let values: Vec<f64> =
        (0..tokens * tokens).map(|cell| if cell % tokens > cell / tokens { blocked } else { 0.0 }).collect();
    Ok(Tensor::from_vec(values, (tokens, tokens), device)?.to_dtype(dtype)?)
}

/// Splits the width into heads: `[B, T, D]` to `[B, H, T, K]`.
///
/// # Errors
/// Where D is not a multiple of `n_heads`.
pub fn split_heads(x: &Tensor, n_heads: usize) -> Result<Tensor, ModelError> {
    let (batch, tokens, width) = x.dims3()?;
    Ok(x.reshape((batch, tokens, n_heads, width / n_heads))?.transpose(1, 2)?.contiguous()?)
}

/// Puts the heads side by side again: `[B, H, T, K]` to `[B, T, D]`.
///
/// # Errors
/// Only candle's own (device) errors.
pub fn merge_heads(x: &Tensor) -> Result<Tensor, ModelError> {
    let (batch, n_heads, tokens, d_k) = x.dims4()?;
    Ok(x.transpose(1, 2)?.reshape((batch, tokens, n_heads * d_k))?)
}

/// What one self-attention layer gives back.
#[derive(Debug, Clone)]
pub struct SelfAttentionOutput {
    /// `[B, T, D]`, after the output projection.
    pub context: Tensor,
    /// `[B, H, T, T]`; `None` on the fast path.
    pub weights: Option<Tensor>,
}

/// Multi-head self-attention with the output projection, before the residual.
#[derive(Debug, Clone)]
pub struct MultiHeadSelfAttention {
    query: Linear,
    key: Linear,
    value: Linear,
    output: Linear,
    n_heads: usize,
}

impl MultiHeadSelfAttention {
    /// Reads `self.query`, `self.key`, `self.value` and `output.dense` below the builder's prefix.
    ///
    /// # Errors
    /// Where a tensor is missing or has another shape.
    pub fn load(config: &EncoderConfig, weights: &VarBuilder<'_>) -> Result<Self, ModelError> {
        let d = config.d_model;
        Ok(Self {
            query: Linear::load(d, d, &weights.pp("self.query"))?,
            key: Linear::load(d, d, &weights.pp("self.key"))?,
            value: Linear::load(d, d, &weights.pp("self.value"))?,
            output: Linear::load(d, d, &weights.pp("output.dense"))?,
            n_heads: config.n_heads,
        })
    }

    /// [`MultiHeadSelfAttention::forward`] without padding, open to questions: `probe` `[B, H, T, T]` is added to the weights (zeros
    /// whose gradient is that of the weights), `gates` `[B, H, 1, 1]` are multiplied to each head's context.
    ///
    /// # Errors
    /// Where the shapes do not fit.
    pub fn probed(
        &self,
        hidden_states: &Tensor,
        probe: Option<&Tensor>,
        gates: Option<&Tensor>,
    ) -> Result<AttentionOutput, ModelError> {
        let queries = split_heads(&self.query.forward(hidden_states)?, self.n_heads)?; // [B, H, T, K]
        let keys = split_heads(&self.key.forward(hidden_states)?, self.n_heads)?; //      [B, H, T, K]
        let values = split_heads(&self.value.forward(hidden_states)?, self.n_heads)?; //  [B, H, T, K]
        let weights = attention_weights(&queries, &keys, None)?; //                        [B, H, T, T]
        let weights = match probe {
            Some(probe) => (weights + probe)?,
            None => weights,
        };
        let context = weights.matmul(&values)?; //                                         [B, H, T, K]
        let context = match gates {
            Some(gates) => context.broadcast_mul(gates)?,
            None => context,
        };
        Ok(AttentionOutput { context: self.output.forward(&merge_heads(&context)?)?, weights })
    }

    /// Length of what each token hands over through each head, `|(h_j W_V + b_V) W_O|`, `[H, T]` (Kobayashi et al. 2020).
    ///
    /// # Errors
    /// Where `hidden_states` is not `[1, T, D]`.
    pub fn value_norms(&self, hidden_states: &Tensor) -> Result<Tensor, ModelError> {
        let values = split_heads(&self.value.forward(hidden_states)?, self.n_heads)?.squeeze(0)?; // [H, T, K]
        let d_k = values.dim(2)?;
        let mut norms = Vec::with_capacity(self.n_heads);
        for head in 0..self.n_heads {
            // Contiguous: the product on CUDA takes no other stride.
            let output = self.output.weight().narrow(1, head * d_k, d_k)?.contiguous()?; //  [D, K]
            let handed = values.get(head)?.matmul(&output.t()?)?; //                    [T, D]
            norms.push(handed.sqr()?.sum(1)?.sqrt()?); //                               [T]
        }
        Ok(Tensor::stack(&norms, 0)?)
    }

    /// Lets every token look at every other. `hidden_states` `[B, T, D]`; the map is kept only with `keep_weights`.
    ///
    /// # Errors
    /// Where the shapes do not fit.
    pub fn forward(
        &self,
        hidden_states: &Tensor,
        attention_bias: Option<&Tensor>,
        keep_weights: bool,
    ) -> Result<SelfAttentionOutput, ModelError> {
        let queries = split_heads(&self.query.forward(hidden_states)?, self.n_heads)?; // [B, H, T, K]
        let keys = split_heads(&self.key.forward(hidden_states)?, self.n_heads)?; //      [B, H, T, K]
        let values = split_heads(&self.value.forward(hidden_states)?, self.n_heads)?; //  [B, H, T, K]
        let (context, weights) = if keep_weights {
            let output = scaled_dot_product_attention(&queries, &keys, &values, attention_bias)?;
            (output.context, Some(output.weights)) //                                     [B, H, T, T]
        } else {
            (attention_context(&queries, &keys, &values, attention_bias)?, None)
        };
        let context = merge_heads(&context)?; //                                          [B, T, D]
        Ok(SelfAttentionOutput { context: self.output.forward(&context)?, weights })
    }
}
