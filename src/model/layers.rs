//! The building blocks of the encoder: linear layer, LayerNorm, GELU. All of them keep gradients.
//!
//! candle's fused `LayerNorm` and `softmax_last_dim` have no backward pass and lose gradients without an error
//! (<https://github.com/huggingface/candle/issues/3569>), so this file composes them from differentiable parts.

use candle_core::{D, Tensor};
use candle_nn::VarBuilder;

use super::ModelError;

/// `x W^T + b`.
#[derive(Debug, Clone)]
pub struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    /// Reads `weight` `[outputs, inputs]` and `bias` `[outputs]` below the builder's prefix.
    ///
    /// # Errors
    /// Where a tensor is missing or has another shape.
    pub fn load(inputs: usize, outputs: usize, weights: &VarBuilder<'_>) -> Result<Self, ModelError> {
        Ok(Self { weight: weights.get((outputs, inputs), "weight")?, bias: weights.get(outputs, "bias")? })
    }

    /// A layer from its tensors: `weight` `[outputs, inputs]`, `bias` `[outputs]`.
    #[must_use]
    pub fn new(weight: Tensor, bias: Tensor) -> Self {
        Self { weight, bias }
    }

    /// `[outputs, inputs]`.
    #[must_use]
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// `[outputs]`.
    #[must_use]
    pub fn bias(&self) -> &Tensor {
        &self.bias
    }

    /// `[..., inputs]` to `[..., outputs]`.
    ///
    /// # Errors
    /// Where the last axis is not `inputs` wide.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, ModelError> {
        let mut shape = x.dims().to_vec();
        let inputs = shape.pop().unwrap_or(0);
        // One flat product instead of one for each item of the batch.
        let flat = x.reshape((x.elem_count() / inputs.max(1), inputs))?; // [rows, inputs]
        let product = flat.matmul(&self.weight.t()?)?; //                   [rows, outputs]
        shape.push(self.bias.elem_count());
        Ok(product.broadcast_add(&self.bias)?.reshape(shape)?)
    }
}

/// Layer normalisation over the last axis (Ba et al. 2016), with the two-pass variance.
#[derive(Debug, Clone)]
pub struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
    eps: f64,
}

impl LayerNorm {
    /// Reads `weight` and `bias` `[width]` below the builder's prefix.
    ///
    /// # Errors
    /// Where a tensor is missing or has another shape.
    pub fn load(width: usize, eps: f64, weights: &VarBuilder<'_>) -> Result<Self, ModelError> {
        Ok(Self { weight: weights.get(width, "weight")?, bias: weights.get(width, "bias")?, eps })
    }

    /// `(x - mean) / sqrt(variance + eps) * weight + bias`, shape unchanged.
    ///
    /// # Errors
    /// Where the last axis has another width than the weights.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, ModelError> {
        let mean = x.mean_keepdim(D::Minus1)?;
        let centred = x.broadcast_sub(&mean)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        let normed = centred.broadcast_div(&(variance + self.eps)?.sqrt()?)?;
        Ok(normed.broadcast_mul(&self.weight)?.broadcast_add(&self.bias)?)
    }
}

/// The exact GELU, `x/2 (1 + erf(x / sqrt 2))` (Hendrycks and Gimpel 2016), not its tanh approximation.
///
/// # Errors
/// Only candle's own (device) errors.
pub fn gelu(x: &Tensor) -> Result<Tensor, ModelError> {
    Ok(x.gelu_erf()?)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    #[test]
    fn gelu_is_the_exact_one() {
        let x = Tensor::new(&[-3.0f64, -1.0, 0.0, 0.5, 2.0], &Device::Cpu).unwrap();
        let y = gelu(&x).unwrap().to_vec1::<f64>().unwrap();
        // x/2 (1 + erf(x/sqrt 2)) from a table of erf; the tanh form differs in the fourth decimal.
        let expected = [-0.004_049_694, -0.158_655_254, 0.0, 0.345_731_231, 1.954_499_736];
        for (y, expected) in y.iter().zip(expected) {
            assert!((y - expected).abs() < 1e-8, "{y} {expected}");
        }
    }

    #[test]
    fn layer_norm_of_a_row_far_from_zero_is_exact() {
        // E[x^2] - E[x]^2 would cancel here.
        let x = Tensor::new(&[[10_000.0f32, 10_001.0, 10_002.0]], &Device::Cpu).unwrap();
        let norm = LayerNorm {
            weight: Tensor::ones(3, DType::F32, &Device::Cpu).unwrap(),
            bias: Tensor::zeros(3, DType::F32, &Device::Cpu).unwrap(),
            eps: 1e-12,
        };
        let y = norm.forward(&x).unwrap().to_vec2::<f32>().unwrap();
        let expected = 1.5f32.sqrt();
        assert!((y[0][0] + expected).abs() < 1e-5 && y[0][1].abs() < 1e-5, "{y:?}");
    }
}
