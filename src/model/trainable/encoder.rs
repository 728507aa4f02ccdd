//! The encoder over packed windows, with gradients.

use candle_core::{D, DType, Device, Result, Tensor, Var};
use candle_nn::VarBuilder;

use super::Parameter;
use super::adapter::{Adapter, LoraConfig};
use super::dropout::Dropout;
use crate::model::{EncoderConfig, ModelError, PackedBatch};
use crate::random::SplitMix64;

/// What of the encoder is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Adaptation {
    /// Every linear layer and layer norm above the embeddings.
    Full,
    /// A low-rank adapter on every linear layer; the encoder itself stays.
    Lora(LoraConfig),
}

struct Linear {
    weight: Tensor,
    bias: Tensor,
    adapter: Option<Adapter>,
}

impl Linear {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = x.matmul(&self.weight.t()?)?.broadcast_add(&self.bias)?;
        let Some(adapter) = &self.adapter else { return Ok(y) };
        let narrow = (x.matmul(&adapter.down.t()?)? * adapter.scale)?; // [T, rank]
        y + narrow.matmul(&adapter.up.t()?)?
    }
}

struct LayerNorm {
    weight: Tensor,
    bias: Tensor,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention_output: Linear,
    attention_norm: LayerNorm,
    intermediate: Linear,
    output: Linear,
    output_norm: LayerNorm,
}

/// See the module.
pub struct TrainableEncoder {
    config: EncoderConfig,
    words: Tensor,
    positions: Tensor,
    token_type: Tensor,
    embedding_norm: LayerNorm,
    layers: Vec<Layer>,
    parameters: Vec<Parameter>,
}

/// Makes layers, and variables of what is trained in them.
struct Builder<'a> {
    weights: &'a VarBuilder<'a>,
    adaptation: Adaptation,
    parameters: Vec<Parameter>,
    random: SplitMix64,
}

impl Builder<'_> {
    fn trained(&mut self, name: String, tensor: &Tensor) -> Result<Tensor> {
        let var = Var::from_tensor(tensor)?;
        self.parameters.push(Parameter { name, var: var.clone() });
        Ok(var.as_tensor().clone())
    }

    fn kept_or_trained(&mut self, name: String, shape: &[usize]) -> Result<Tensor> {
        let tensor = self.weights.get(shape, &name)?;
        match self.adaptation {
            Adaptation::Full => self.trained(name, &tensor),
            Adaptation::Lora(_) => Ok(tensor),
        }
    }

    fn linear(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Linear> {
        let weight = self.kept_or_trained(format!("{name}.weight"), &[outputs, inputs])?;
        let bias = self.kept_or_trained(format!("{name}.bias"), &[outputs])?;
        let adapter = match self.adaptation {
            Adaptation::Full => None,
            Adaptation::Lora(config) => Some(self.adapter(name, inputs, outputs, config, &weight)?),
        };
        Ok(Linear { weight, bias, adapter })
    }

    /// `A` is drawn uniformly with variance `1 / (3 inputs)`, `B` is zero: training starts from the encoder as it is.
    fn adapter(
        &mut self,
        name: &str,
        inputs: usize,
        outputs: usize,
        config: LoraConfig,
        like: &Tensor,
    ) -> Result<Adapter> {
        let bound = 1.0 / (inputs as f64).sqrt();
        let values: Vec<f64> = (0..config.rank * inputs).map(|_| (2.0 * self.random.uniform() - 1.0) * bound).collect();
        let (dtype, device) = (like.dtype(), like.device());
        let down = Tensor::from_vec(values, (config.rank, inputs), device)?.to_dtype(dtype)?;
        let up = Tensor::zeros((outputs, config.rank), dtype, device)?;
        Ok(Adapter {
            down: self.trained(format!("{name}.lora_A.weight"), &down)?,
            up: self.trained(format!("{name}.lora_B.weight"), &up)?,
            scale: config.scale(),
        })
    }

    fn layer_norm(&mut self, name: &str, width: usize) -> Result<LayerNorm> {
        Ok(LayerNorm {
            weight: self.kept_or_trained(format!("{name}.weight"), &[width])?,
            bias: self.kept_or_trained(format!("{name}.bias"), &[width])?,
        })
    }
}

impl TrainableEncoder {
    /// Takes the tensors named by [`EncoderConfig::tensors`]; `seed` draws the adapters.
    ///
    /// # Errors
    /// Where a tensor is missing or has another shape.
    pub fn new(config: &EncoderConfig, weights: &VarBuilder<'_>, adaptation: Adaptation, seed: u64) -> Result<Self> {
        let (d, f) = (config.d_model, config.d_ff);
        let words = weights.get((config.vocab_size, d), "embeddings.word_embeddings.weight")?;
        let positions = weights.get((config.max_positions, d), "embeddings.position_embeddings.weight")?;
        let types = weights.get((config.type_vocab_size, d), "embeddings.token_type_embeddings.weight")?;
        let embedding_norm = LayerNorm {
            weight: weights.get(d, "embeddings.LayerNorm.weight")?,
            bias: weights.get(d, "embeddings.LayerNorm.bias")?,
        };
        let mut builder = Builder { weights, adaptation, parameters: Vec::new(), random: SplitMix64::seeded(seed) };
        let mut layers = Vec::with_capacity(config.n_layers);
        for layer in 0..config.n_layers {
            let at = |part: &str| format!("encoder.layer.{layer}.{part}");
            layers.push(Layer {
                query: builder.linear(&at("attention.self.query"), d, d)?,
                key: builder.linear(&at("attention.self.key"), d, d)?,
                value: builder.linear(&at("attention.self.value"), d, d)?,
                attention_output: builder.linear(&at("attention.output.dense"), d, d)?,
                attention_norm: builder.layer_norm(&at("attention.output.LayerNorm"), d)?,
                intermediate: builder.linear(&at("intermediate.dense"), d, f)?,
                output: builder.linear(&at("output.dense"), f, d)?,
                output_norm: builder.layer_norm(&at("output.LayerNorm"), d)?,
            });
        }
        let parameters = builder.parameters;
        let token_type = types.narrow(0, 0, 1)?;
        Ok(Self { config: config.clone(), words, positions, token_type, embedding_norm, layers, parameters })
    }

    /// What an optimizer moves.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Where it lies.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.words.device()
    }

    /// The type of its weights.
    #[must_use]
    pub fn dtype(&self) -> DType {
        self.words.dtype()
    }

    /// Last hidden states `[T, D]` of a batch, windows one after another. `dropout` is `None` except while training.
    ///
    /// # Errors
    /// [`PackedBatch::check`]'s and candle's own.
    pub fn forward(
        &self,
        batch: &PackedBatch,
        mut dropout: Option<&mut Dropout>,
    ) -> std::result::Result<Tensor, ModelError> {
        batch.check(self.config.max_positions, self.config.vocab_size)?;
        let windows = Padding::new(batch, self.device())?;
        let mut x = self.embed(batch)?; //                                        [T, D]
        for layer in &self.layers {
            x = self.layer(layer, &x, &windows, dropout.as_deref_mut())?; //      [T, D]
        }
        Ok(x)
    }

    fn embed(&self, batch: &PackedBatch) -> Result<Tensor> {
        let device = self.device();
        let positions: Vec<u32> =
            (0..batch.n_windows()).flat_map(|window| 0..batch.window(window).len() as u32).collect();
        let words = self.words.index_select(&Tensor::new(batch.input_ids.as_slice(), device)?, 0)?; // [T, D]
        let positions = self.positions.index_select(&Tensor::new(positions, device)?, 0)?; //           [T, D]
        let sum = (words + positions)?.broadcast_add(&self.token_type)?;
        self.norm(&self.embedding_norm, &sum)
    }

    fn layer(&self, layer: &Layer, x: &Tensor, windows: &Padding, mut dropout: Option<&mut Dropout>) -> Result<Tensor> {
        let queries = layer.query.forward(x)?; //                                 [T, D]
        let keys = layer.key.forward(x)?; //                                      [T, D]
        let values = layer.value.forward(x)?; //                                  [T, D]
        let context = self.attend(&queries, &keys, &values, windows)?; //         [T, D]
        let attended = drop_some(layer.attention_output.forward(&context)?, dropout.as_deref_mut())?;
        let x = self.norm(&layer.attention_norm, &(x + attended)?)?; //           [T, D]
        let widened = layer.intermediate.forward(&x)?.gelu_erf()?; //             [T, F]
        let narrowed = drop_some(layer.output.forward(&widened)?, dropout)?; //   [T, D]
        self.norm(&layer.output_norm, &(x + narrowed)?)
    }

    /// `softmax(Q K^T / sqrt(d_k)) V` for each head and window.
    fn attend(&self, queries: &Tensor, keys: &Tensor, values: &Tensor, windows: &Padding) -> Result<Tensor> {
        let (n_heads, d_k) = (self.config.n_heads, self.config.d_k());
        let heads = |x: &Tensor| {
            let x = x.index_select(&windows.places, 0)?.reshape((windows.windows, windows.longest, n_heads, d_k))?;
            x.transpose(1, 2)?.contiguous()
        };
        let scores = heads(queries)?.matmul(&heads(keys)?.transpose(2, 3)?.contiguous()?)?; // [W, H, T, T]
        let scores = (scores / (d_k as f64).sqrt())?.broadcast_add(&windows.bias.to_dtype(queries.dtype())?)?;
        let context = candle_nn::ops::softmax(&scores, D::Minus1)?.matmul(&heads(values)?)?; // [W, H, T, K]
        let context = context.transpose(1, 2)?.reshape((windows.windows * windows.longest, n_heads * d_k))?;
        context.index_select(&windows.rows, 0)
    }

    fn norm(&self, norm: &LayerNorm, x: &Tensor) -> Result<Tensor> {
        let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
        let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
        let normal = centred.broadcast_div(&(variance + self.config.layer_norm_eps)?.sqrt()?)?;
        normal.broadcast_mul(&norm.weight)?.broadcast_add(&norm.bias)
    }
}

/// Packed windows as padded ones and back.
struct Padding {
    windows: usize,
    /// Tokens of the longest window.
    longest: usize,
    /// `[W x longest]`: the packed row of each padded one.
    places: Tensor,
    /// `[T]`: the padded row of each packed one.
    rows: Tensor,
    /// `[W, 1, 1, longest]`: 0, or a large negative number where a key is padding.
    bias: Tensor,
}

impl Padding {
    fn new(batch: &PackedBatch, device: &Device) -> Result<Self> {
        let (windows, longest) = (batch.n_windows(), batch.longest_window());
        let (mut places, mut rows, mut bias) = (Vec::new(), Vec::new(), Vec::new());
        for window in 0..windows {
            let tokens = batch.window(window);
            for position in 0..longest {
                // Padding repeats a row of the window: as a key the bias shuts it out, as a query nobody reads it.
                places.push((tokens.start + position.min(tokens.len() - 1)) as u32);
                bias.push(if position < tokens.len() { 0f32 } else { -1e30 });
                if position < tokens.len() {
                    rows.push((window * longest + position) as u32);
                }
            }
        }
        Ok(Self {
            windows,
            longest,
            places: Tensor::new(places, device)?,
            rows: Tensor::new(rows, device)?,
            bias: Tensor::from_vec(bias, (windows, 1, 1, longest), device)?,
        })
    }
}

fn drop_some(x: Tensor, dropout: Option<&mut Dropout>) -> Result<Tensor> {
    match dropout {
        Some(dropout) => dropout.apply(&x),
        None => Ok(x),
    }
}
