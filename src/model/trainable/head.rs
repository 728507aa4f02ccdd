//! The head with attention pooling: each queue weighs the tokens of a mail by itself.

use candle_core::{DType, Device, Result, Tensor, Var};

use super::Parameter;
use crate::model::PackedBatch;

/// `logit_c = sum_t a_tc (h_t . v_c) + b_c` with `a_tc` the softmax over a mail's tokens of `h_t . q_c + ln share_t`.
///
/// A query of zeros weighs the tokens by their shares, which is mean pooling: training starts there.
#[derive(Debug, Clone)]
pub struct TrainableHead {
    query: Var,
    weight: Var,
    bias: Var,
}

impl TrainableHead {
    /// A head from `weight` `[C, D]` and `bias` `[C]`, both row-major, that pools by the mean.
    ///
    /// # Errors
    /// Where the lists do not have these lengths.
    pub fn new(weight: &[f32], bias: &[f32], dtype: DType, device: &Device) -> Result<Self> {
        let (queues, width) = (bias.len(), weight.len() / bias.len().max(1));
        let tensor = |values: &[f32], shape: &[usize]| {
            Var::from_tensor(&Tensor::from_slice(values, shape, device)?.to_dtype(dtype)?)
        };
        Ok(Self {
            query: Var::zeros((queues, width), dtype, device)?,
            weight: tensor(weight, &[queues, width])?,
            bias: tensor(bias, &[queues])?,
        })
    }

    /// Query, weight and bias.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        [("pooling.query", &self.query), ("classifier.weight", &self.weight), ("classifier.bias", &self.bias)]
            .map(|(name, var)| Parameter { name: name.to_owned(), var: var.clone() })
            .into()
    }

    /// Hidden states `[T, D]` of a batch to logits `[mails, C]`.
    ///
    /// # Errors
    /// Where the batch is not that of the hidden states.
    pub fn forward(&self, hidden_states: &Tensor, batch: &PackedBatch) -> Result<Tensor> {
        Ok(self.forward_with_weights(hidden_states, batch)?.0)
    }

    /// The same, with the pooling's weights `[T, C]`.
    ///
    /// # Errors
    /// Where the batch is not that of the hidden states.
    pub fn forward_with_weights(&self, hidden_states: &Tensor, batch: &PackedBatch) -> Result<(Tensor, Tensor)> {
        let (dtype, device) = (hidden_states.dtype(), hidden_states.device());
        let shares: Vec<f32> = batch.token_weights.iter().map(|share| share.max(1e-30).ln()).collect();
        let shares = Tensor::from_vec(shares, (batch.input_ids.len(), 1), device)?.to_dtype(dtype)?;
        let scores = hidden_states.matmul(&self.query.t()?)?.broadcast_add(&shares)?; //  [T, C]
        let values = hidden_states.matmul(&self.weight.t()?)?; //                         [T, C]
        let (mut logits, mut all_weights) = (Vec::with_capacity(batch.n_mails()), Vec::with_capacity(batch.n_mails()));
        for mail in 0..batch.n_mails() {
            let tokens = batch.mail_tokens(mail);
            let scores = scores.narrow(0, tokens.start, tokens.len())?;
            let weights = candle_nn::ops::softmax(&scores, 0)?; //                     columns sum to 1
            let values = values.narrow(0, tokens.start, tokens.len())?;
            logits.push((&weights * values)?.sum_keepdim(0)?); //                      [1, C]
            all_weights.push(weights);
        }
        Ok((Tensor::cat(&logits, 0)?.broadcast_add(&self.bias)?, Tensor::cat(&all_weights, 0)?))
    }
}
