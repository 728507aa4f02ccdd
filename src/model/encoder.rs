//! The encoder: embeddings, then post-LayerNorm transformer layers, as BERT (Devlin et al. 2019) has them.
//!
//! This is the readable forward pass, differentiable and on any device: the oracle that each faster path is tested
//! against. Axis letters: B batch (windows), T tokens, D d_model, F d_ff.

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;

use super::ModelError;
use super::attention::{MultiHeadSelfAttention, padding_bias};
use super::config::EncoderConfig;
use super::layers::{LayerNorm, Linear, gelu};

/// Layers whose attention maps a caller wants kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepMaps {
    /// The fast path: no map is ever built.
    None,
    /// The maps of these layers, by index from 0; others run on the fast path.
    Layers(Vec<usize>),
}

impl KeepMaps {
    fn wants(&self, layer: usize) -> bool {
        match self {
            Self::None => false,
            Self::Layers(layers) => layers.contains(&layer),
        }
    }
}

/// What the encoder gives back.
#[derive(Debug, Clone)]
pub struct EncoderOutput {
    /// Last hidden states, `[B, T, D]`.
    pub hidden_states: Tensor,
    /// For each layer its map `[B, H, T, T]`, where it was asked for.
    pub attentions: Vec<Option<Tensor>>,
}

#[derive(Debug, Clone)]
struct Embeddings {
    words: Tensor,
    positions: Tensor,
    token_types: Tensor,
    layer_norm: LayerNorm,
}

impl Embeddings {
    fn load(config: &EncoderConfig, weights: &VarBuilder<'_>) -> Result<Self, ModelError> {
        let d = config.d_model;
        Ok(Self {
            words: weights.get((config.vocab_size, d), "word_embeddings.weight")?,
            positions: weights.get((config.max_positions, d), "position_embeddings.weight")?,
            token_types: weights.get((config.type_vocab_size, d), "token_type_embeddings.weight")?,
            layer_norm: LayerNorm::load(d, config.layer_norm_eps, &weights.pp("LayerNorm"))?,
        })
    }

    fn forward(&self, input_ids: &Tensor) -> Result<Tensor, ModelError> {
        let (batch, tokens) = input_ids.dims2()?;
        let d_model = self.words.dim(1)?;
        let words = self.words.index_select(&input_ids.flatten_all()?, 0)?.reshape((batch, tokens, d_model))?; //                         [B, T, D]
        let positions = self.positions.narrow(0, 0, tokens)?; //            [T, D]
        let token_type = self.token_types.narrow(0, 0, 1)?; //              [1, D]
        let sum = words.broadcast_add(&positions.broadcast_add(&token_type)?)?;
        self.layer_norm.forward(&sum)
    }
}

#[derive(Debug, Clone)]
struct EncoderLayer {
    attention: MultiHeadSelfAttention,
    attention_norm: LayerNorm,
    intermediate: Linear,
    output: Linear,
    output_norm: LayerNorm,
}

impl EncoderLayer {
    fn load(config: &EncoderConfig, weights: &VarBuilder<'_>) -> Result<Self, ModelError> {
        let (d, f, eps) = (config.d_model, config.d_ff, config.layer_norm_eps);
        Ok(Self {
            attention: MultiHeadSelfAttention::load(config, &weights.pp("attention"))?,
            attention_norm: LayerNorm::load(d, eps, &weights.pp("attention.output.LayerNorm"))?,
            intermediate: Linear::load(d, f, &weights.pp("intermediate.dense"))?,
            output: Linear::load(f, d, &weights.pp("output.dense"))?,
            output_norm: LayerNorm::load(d, eps, &weights.pp("output.LayerNorm"))?,
        })
    }

    fn forward(
        &self,
        x: &Tensor,
        attention_bias: Option<&Tensor>,
        keep_weights: bool,
    ) -> Result<(Tensor, Option<Tensor>), ModelError> {
        let attended = self.attention.forward(x, attention_bias, keep_weights)?; //   [B, T, D]
        let x = self.attention_norm.forward(&(x + attended.context)?)?; //            [B, T, D]
        let widened = gelu(&self.intermediate.forward(&x)?)?; //                      [B, T, F]
        let x = self.output_norm.forward(&(&x + self.output.forward(&widened)?)?)?; // [B, T, D]
        Ok((x, attended.weights))
    }
}

/// A BERT-type encoder on candle tensors.
#[derive(Debug, Clone)]
pub struct Encoder {
    config: EncoderConfig,
    embeddings: Embeddings,
    layers: Vec<EncoderLayer>,
}

impl Encoder {
    /// Reads the tensors named by [`EncoderConfig::tensors`] below the builder's prefix.
    ///
    /// # Errors
    /// Where a tensor is missing or has another shape.
    pub fn load(config: &EncoderConfig, weights: &VarBuilder<'_>) -> Result<Self, ModelError> {
        let layers = (0..config.n_layers)
            .map(|layer| EncoderLayer::load(config, &weights.pp(format!("encoder.layer.{layer}"))))
            .collect::<Result<_, _>>()?;
        Ok(Self { config: config.clone(), embeddings: Embeddings::load(config, &weights.pp("embeddings"))?, layers })
    }

    /// The encoder's sizes.
    #[must_use]
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Where its weights lie.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.embeddings.words.device()
    }

    /// The type of its weights.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.embeddings.words.dtype()
    }

    /// Runs the encoder. `input_ids` `[B, T]` (u32); `attention_mask` `[B, T]` (1 = token, 0 = padding), `None` where
    /// nothing is padded. Padding gets weight 0 in every map.
    ///
    /// # Errors
    /// [`ModelError::WindowTooLong`] where T exceeds `max_positions`; an id outside the vocabulary.
    pub fn forward(
        &self,
        input_ids: &Tensor,
        attention_mask: Option<&Tensor>,
        keep: &KeepMaps,
    ) -> Result<EncoderOutput, ModelError> {
        let tokens = input_ids.dim(1)?;
        if tokens > self.config.max_positions {
            return Err(ModelError::WindowTooLong { tokens, limit: self.config.max_positions });
        }
        let bias = attention_mask.map(|mask| padding_bias(mask, self.dtype())).transpose()?; //                                               [B, 1, 1, T]
        let mut x = self.embeddings.forward(input_ids)?; //                 [B, T, D]
        let mut attentions = Vec::with_capacity(self.layers.len());
        for (index, layer) in self.layers.iter().enumerate() {
            let (next, weights) = layer.forward(&x, bias.as_ref(), keep.wants(index))?;
            x = next;
            attentions.push(weights);
        }
        Ok(EncoderOutput { hidden_states: x, attentions })
    }
}
