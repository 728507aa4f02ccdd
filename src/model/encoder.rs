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
        self.place(&words)
    }

    /// Adds positions and token type to word vectors `[B, T, D]`.
    fn place(&self, words: &Tensor) -> Result<Tensor, ModelError> {
        let tokens = words.dim(1)?;
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

    /// [`EncoderLayer::forward`] without padding, with the questions of [`MultiHeadSelfAttention::probed`].
    fn probed(
        &self,
        x: &Tensor,
        probe: Option<&Tensor>,
        gates: Option<&Tensor>,
    ) -> Result<(Tensor, Tensor), ModelError> {
        let attended = self.attention.probed(x, probe, gates)?; //                    [B, T, D]
        let x = self.attention_norm.forward(&(x + attended.context)?)?; //            [B, T, D]
        let widened = gelu(&self.intermediate.forward(&x)?)?; //                      [B, T, F]
        let x = self.output_norm.forward(&(&x + self.output.forward(&widened)?)?)?; // [B, T, D]
        Ok((x, attended.weights))
    }
}

/// One window's forward pass with everything on its way.
#[derive(Debug, Clone)]
pub struct Traced {
    /// Last hidden states, `[T, D]`.
    pub hidden_states: Tensor,
    /// For each layer its map, `[1, H, T, T]`, probes added.
    pub attentions: Vec<Tensor>,
    /// For each layer what went into it, `[1, T, D]`.
    pub inputs: Vec<Tensor>,
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

    /// The word vectors of one window, `[T, D]`: what the encoder makes of its tokens before positions are added.
    ///
    /// # Errors
    /// [`ModelError::WindowTooLong`], [`ModelError::UnknownToken`].
    pub fn word_vectors(&self, input_ids: &[u32]) -> Result<Tensor, ModelError> {
        let Self { config, embeddings, .. } = self;
        if input_ids.len() > config.max_positions {
            return Err(ModelError::WindowTooLong { tokens: input_ids.len(), limit: config.max_positions });
        }
        if let Some(&id) = input_ids.iter().find(|&&id| id as usize >= config.vocab_size) {
            return Err(ModelError::UnknownToken { id, vocab_size: config.vocab_size });
        }
        Ok(embeddings.words.index_select(&Tensor::new(input_ids, self.device())?, 0)?)
    }

    /// Runs one window from its word vectors `[T, D]`, which may be a variable. `probes` has one tensor of zeros
    /// `[1, H, T, T]` for each layer, or none at all; the gradient of a probe is that of the layer's weights.
    ///
    /// # Errors
    /// Where the shapes do not fit.
    pub fn trace(&self, words: &Tensor, probes: &[Tensor]) -> Result<Traced, ModelError> {
        let mut x = self.embeddings.place(&words.unsqueeze(0)?)?; //         [1, T, D]
        let (mut attentions, mut inputs) = (Vec::new(), Vec::new());
        for (index, layer) in self.layers.iter().enumerate() {
            let (next, weights) = layer.probed(&x, probes.get(index), None)?;
            attentions.push(weights);
            inputs.push(std::mem::replace(&mut x, next));
        }
        Ok(Traced { hidden_states: x.squeeze(0)?, attentions, inputs })
    }

    /// Last hidden states `[heads, T, D]` of a window, each with another head of one layer silenced. `input` `[1, T, D]` is what
    /// goes into the layer.
    ///
    /// # Errors
    /// Where the layer or a head does not exist.
    pub fn without_heads(&self, layer: usize, heads: &[usize], input: &Tensor) -> Result<Tensor, ModelError> {
        let n_heads = self.config.n_heads;
        let mut gates = vec![1f32; heads.len() * n_heads];
        for (row, &head) in heads.iter().enumerate() {
            gates[row * n_heads + head] = 0.0;
        }
        let gates = Tensor::from_vec(gates, (heads.len(), n_heads, 1, 1), self.device())?.to_dtype(self.dtype())?;
        let (_, tokens, width) = input.dims3()?;
        let mut x = input.broadcast_as((heads.len(), tokens, width))?.contiguous()?;
        for (index, later) in self.layers.iter().enumerate().skip(layer) {
            x = later.probed(&x, None, (index == layer).then_some(&gates))?.0;
        }
        Ok(x)
    }

    /// [`MultiHeadSelfAttention::value_norms`] of a layer, `[H, T]`.
    ///
    /// # Errors
    /// Where there is no such layer or the input is not `[1, T, D]`.
    pub fn value_norms(&self, layer: usize, input: &Tensor) -> Result<Tensor, ModelError> {
        let layer = self.layers.get(layer).ok_or(ModelError::BadBatch)?;
        layer.attention.value_norms(input)
    }
}
