//! The encoder as serving and training use it: a packed batch in, one pooled vector per mail out, maps on request.
//!
//! On the CPU the packed engine of [`super::cpu`] runs, on other devices the padded [`Encoder`]. Tests hold the two together.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use candle_core::{DType, Device, Tensor};

use super::ModelError;
use super::batch::PackedBatch;
use super::config::EncoderConfig;
use super::cpu::{CpuEncoder, EncoderShape, Precision, Scratch, WindowMap};
use super::encoder::{Encoder, KeepMaps};

/// The maps of one window.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowMaps {
    /// Tokens of the window, special tokens included.
    pub tokens: usize,
    /// The layers asked for, in the order of `weights`.
    pub layers: Vec<usize>,
    /// `[layers, H, T, T]`, row-major.
    pub weights: Vec<f32>,
}

impl WindowMaps {
    /// One layer's map, `[H, T, T]`; `None` where it was not asked for.
    #[must_use]
    pub fn layer(&self, layer: usize) -> Option<&[f32]> {
        let place = self.layers.iter().position(|&kept| kept == layer)?;
        let size = self.weights.len() / self.layers.len();
        self.weights.get(place * size..(place + 1) * size)
    }
}

/// Pooled vectors of a batch, with the maps asked for.
#[derive(Debug)]
pub struct Pooled {
    /// `[mails, d_model]`, f32, on the encoder's device.
    pub vectors: Tensor,
    /// For each window of the batch its maps; empty on the fast path.
    pub maps: Vec<WindowMaps>,
}

/// Every token of a batch multiplied by a matrix, with the maps asked for.
#[derive(Debug)]
pub struct Projected {
    /// `[tokens, rows of the matrix]`, row-major.
    pub values: Vec<f32>,
    /// For each window of the batch its maps; empty on the fast path.
    pub maps: Vec<WindowMaps>,
}

/// An encoder for packed batches, on one device.
pub struct BatchEncoder {
    config: EncoderConfig,
    kind: Kind,
}

enum Kind {
    Cpu {
        /// Several encoders may have the same weights, each its own buffers.
        encoder: Arc<CpuEncoder>,
        /// One caller at a time uses the buffers; serving has only one, the model's thread.
        scratch: Mutex<Scratch>,
    },
    Tensors(Box<Encoder>),
}

/// The weights of an encoder for the CPU as long as some encoder uses them.
pub struct SharedWeights {
    config: EncoderConfig,
    encoder: Weak<CpuEncoder>,
}

impl SharedWeights {
    /// An encoder on these weights with buffers of its own; `None` where nobody uses them any more.
    #[must_use]
    pub fn encoder(&self) -> Option<BatchEncoder> {
        Some(BatchEncoder::of_weights(self.config.clone(), self.encoder.upgrade()?))
    }
}

impl BatchEncoder {
    /// The engine for the CPU, on the threads of the global pool. `tensor` gives the values of a tensor by its name in
    /// [`EncoderConfig::tensors`].
    ///
    /// # Errors
    /// Those of `tensor`.
    pub fn on_cpu<E>(
        config: &EncoderConfig,
        precision: Precision,
        tensor: impl FnMut(&str) -> Result<Vec<f32>, E>,
    ) -> Result<Self, E> {
        let shape = EncoderShape {
            d_model: config.d_model,
            n_heads: config.n_heads,
            n_layers: config.n_layers,
            d_ff: config.d_ff,
            max_positions: config.max_positions,
            vocab_size: config.vocab_size,
            layer_norm_eps: config.layer_norm_eps,
        };
        Ok(Self::of_weights(config.clone(), Arc::new(CpuEncoder::new(&shape, precision, tensor)?)))
    }

    fn of_weights(config: EncoderConfig, encoder: Arc<CpuEncoder>) -> Self {
        let scratch = Mutex::new(Scratch::new(rayon::current_num_threads()));
        Self { config, kind: Kind::Cpu { encoder, scratch } }
    }

    /// The weights, for another encoder to use too; `None` where they are tensors.
    #[must_use]
    pub fn shared_weights(&self) -> Option<SharedWeights> {
        match &self.kind {
            Kind::Cpu { encoder, .. } => {
                Some(SharedWeights { config: self.config.clone(), encoder: Arc::downgrade(encoder) })
            }
            Kind::Tensors(_) => None,
        }
    }

    /// An encoder of tensors, wherever they lie.
    #[must_use]
    pub fn on_tensors(encoder: Encoder) -> Self {
        Self { config: encoder.config().clone(), kind: Kind::Tensors(Box::new(encoder)) }
    }

    /// The encoder's sizes.
    #[must_use]
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// Where it runs.
    #[must_use]
    pub fn device(&self) -> &Device {
        match &self.kind {
            Kind::Cpu { .. } => &Device::Cpu,
            Kind::Tensors(encoder) => encoder.device(),
        }
    }

    /// The readable encoder, where that is what runs.
    #[must_use]
    pub fn tensors(&self) -> Option<&Encoder> {
        match &self.kind {
            Kind::Cpu { .. } => None,
            Kind::Tensors(encoder) => Some(encoder),
        }
    }

    /// Whether its linear layers compute on bytes.
    #[must_use]
    pub fn runs_on_bytes(&self) -> bool {
        matches!(&self.kind, Kind::Cpu { encoder, .. } if encoder.precision() == Precision::Int8)
    }

    /// What runs, for logs: the instruction set of the CPU engine, or the type of the tensors.
    #[must_use]
    pub fn engine(&self) -> String {
        match &self.kind {
            Kind::Cpu { encoder, .. } => {
                let precision = match encoder.precision() {
                    Precision::F32 => "f32",
                    Precision::Int8 => "int8",
                };
                format!("packed {precision}, {}", encoder.instruction_set())
            }
            Kind::Tensors(encoder) => format!("tensors, {:?}", encoder.dtype()),
        }
    }

    /// Each mail's tokens of all its windows, weighted by their shares; and the maps asked for.
    ///
    /// # Errors
    /// [`PackedBatch::check`]'s and candle's own.
    pub fn pool(&self, batch: &PackedBatch, keep: &KeepMaps) -> Result<Pooled, ModelError> {
        batch.check(self.config.max_positions, self.config.vocab_size)?;
        match &self.kind {
            Kind::Cpu { encoder, scratch } => {
                // A panic in a forward leaves buffers of any content, and every forward overwrites what it reads.
                let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
                pool_packed(encoder, &self.config, batch, keep, &mut scratch)
            }
            Kind::Tensors(encoder) => pool_padded(encoder, batch, keep),
        }
    }

    /// Each token's last hidden state multiplied by `matrix` (rows of d_model values); and the maps asked for.
    ///
    /// # Errors
    /// [`PackedBatch::check`]'s and candle's own.
    pub fn project(&self, batch: &PackedBatch, keep: &KeepMaps, matrix: &[f32]) -> Result<Projected, ModelError> {
        batch.check(self.config.max_positions, self.config.vocab_size)?;
        match &self.kind {
            Kind::Cpu { encoder, scratch } => {
                let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
                let mut values = Vec::with_capacity(batch.input_ids.len() * matrix.len() / self.config.d_model);
                let maps = run_packed(encoder, &self.config, batch, keep, &mut scratch, |_, hidden_states| {
                    multiply(hidden_states, matrix, self.config.d_model, &mut values);
                });
                Ok(Projected { values, maps })
            }
            Kind::Tensors(encoder) => project_padded(encoder, batch, keep, matrix),
        }
    }
}

/// Appends `[tokens, D]` times the transpose of `[rows, D]`.
fn multiply(hidden_states: &[f32], matrix: &[f32], d_model: usize, out: &mut Vec<f32>) {
    let dot = |a: &[f32], b: &[f32]| {
        // Sixteen sums at a time, so that the compiler keeps them in vectors.
        let mut sums = [0f32; 16];
        let (a, b) = (a.chunks_exact(16), b.chunks_exact(16));
        let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
        for (a, b) in a.zip(b) {
            sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
        }
        sums.iter().sum::<f32>() + rest
    };
    for state in hidden_states.chunks_exact(d_model) {
        out.extend(matrix.chunks_exact(d_model).map(|row| dot(state, row)));
    }
}

fn pool_packed(
    encoder: &CpuEncoder,
    config: &EncoderConfig,
    batch: &PackedBatch,
    keep: &KeepMaps,
    scratch: &mut Scratch,
) -> Result<Pooled, ModelError> {
    let d_model = config.d_model;
    let mut vectors = vec![0f32; batch.n_mails() * d_model];
    let maps = run_packed(encoder, config, batch, keep, scratch, |group, hidden_states| {
        for (mail, vector) in vectors.chunks_exact_mut(d_model).enumerate() {
            let tokens = batch.mail_tokens(mail);
            for token in tokens.start.max(group.start)..tokens.end.min(group.end) {
                let share = batch.token_weights[token];
                let state = &hidden_states[(token - group.start) * d_model..][..d_model];
                vector.iter_mut().zip(state).for_each(|(sum, value)| *sum += share * value);
            }
        }
    });
    Ok(Pooled { vectors: Tensor::from_vec(vectors, (batch.n_mails(), d_model), &Device::Cpu)?, maps })
}

/// Tokens that go through the engine at once, give or take a window: enough rows for many threads, and a bound on the memory of
/// a forward pass (8 KB a token in MiniLM) whatever the longest mail.
const GROUP_TOKENS: usize = 2048;

/// Runs groups of windows one after another and hands each group's tokens and hidden states, `[tokens, D]`, to `take`.
fn run_packed(
    encoder: &CpuEncoder,
    config: &EncoderConfig,
    batch: &PackedBatch,
    keep: &KeepMaps,
    scratch: &mut Scratch,
    mut take: impl FnMut(Range<usize>, &[f32]),
) -> Vec<WindowMaps> {
    let mut maps = empty_maps(config, batch, keep);
    for group in groups(&batch.window_offsets, GROUP_TOKENS) {
        let tokens = batch.window_offsets[group.start]..batch.window_offsets[group.end];
        let offsets: Vec<usize> =
            batch.window_offsets[group.start..=group.end].iter().map(|offset| offset - tokens.start).collect();
        let mut wanted: Vec<WindowMap<'_>> = maps
            .iter_mut()
            .skip(group.start)
            .take(group.len())
            .enumerate()
            .flat_map(|(window, maps)| {
                let size = config.n_heads * maps.tokens * maps.tokens;
                let weights = maps.weights.chunks_exact_mut(size.max(1));
                maps.layers.iter().zip(weights).map(move |(&layer, weights)| WindowMap { window, layer, weights })
            })
            .collect();
        let ids = &batch.input_ids[tokens.clone()];
        take(tokens, encoder.forward_with_maps(ids, &offsets, scratch, &mut wanted));
    }
    maps
}

/// Cuts windows into as few groups as `limit` tokens each allow, of nearly equal size; a group ends with the window that fills it.
fn groups(window_offsets: &[usize], limit: usize) -> Vec<Range<usize>> {
    let n_windows = window_offsets.len().saturating_sub(1);
    let n_tokens = window_offsets.last().copied().unwrap_or(0);
    let share = n_tokens.div_ceil(n_tokens.div_ceil(limit).max(1));
    let mut groups = Vec::new();
    let mut first = 0;
    for window in 0..n_windows {
        if window + 1 == n_windows || window_offsets[window + 1] - window_offsets[first] >= share {
            groups.push(first..window + 1);
            first = window + 1;
        }
    }
    groups
}

/// Room for the maps asked for; none on the fast path.
fn empty_maps(config: &EncoderConfig, batch: &PackedBatch, keep: &KeepMaps) -> Vec<WindowMaps> {
    let KeepMaps::Layers(layers) = keep else { return Vec::new() };
    (0..batch.n_windows())
        .map(|window| {
            let tokens = batch.window(window).len();
            let layers: Vec<usize> = layers.iter().copied().filter(|&layer| layer < config.n_layers).collect();
            let weights = vec![0f32; layers.len() * config.n_heads * tokens * tokens];
            WindowMaps { tokens, layers, weights }
        })
        .collect()
}

fn pool_padded(encoder: &Encoder, batch: &PackedBatch, keep: &KeepMaps) -> Result<Pooled, ModelError> {
    let (input_ids, attention_mask) = batch.padded(encoder.device())?; //               [W, T]
    let output = encoder.forward(&input_ids, Some(&attention_mask), keep)?; //          [W, T, D]
    let hidden_states = output.hidden_states.to_dtype(DType::F32)?.flatten(0, 1)?; //   [W x T, D]
    let shares = batch.padded_token_weights(encoder.device())?; //                      [mails, W x T]
    Ok(Pooled {
        vectors: shares.matmul(&hidden_states)?, //                                     [mails, D]
        maps: unpad_maps(batch, &output.attentions)?,
    })
}

fn project_padded(
    encoder: &Encoder,
    batch: &PackedBatch,
    keep: &KeepMaps,
    matrix: &[f32],
) -> Result<Projected, ModelError> {
    let device = encoder.device();
    let (input_ids, attention_mask) = batch.padded(device)?; //                         [W, T]
    let output = encoder.forward(&input_ids, Some(&attention_mask), keep)?; //          [W, T, D]
    let hidden_states = output.hidden_states.to_dtype(DType::F32)?.flatten(0, 1)?; //   [W x T, D]
    let d_model = hidden_states.dim(1)?;
    let matrix = Tensor::from_slice(matrix, (matrix.len() / d_model, d_model), device)?;
    let all = hidden_states.matmul(&matrix.t()?)?.to_vec2::<f32>()?; //                 [W x T, rows]
    let longest = batch.longest_window();
    let kept = (0..batch.n_windows()).flat_map(|window| {
        let first = window * longest;
        first..first + batch.window(window).len()
    });
    Ok(Projected {
        values: kept.flat_map(|row| all[row].iter().copied()).collect(),
        maps: unpad_maps(batch, &output.attentions)?,
    })
}

/// Cuts each window's own `T x T` out of the padded maps.
fn unpad_maps(batch: &PackedBatch, attentions: &[Option<Tensor>]) -> Result<Vec<WindowMaps>, ModelError> {
    if attentions.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    (0..batch.n_windows())
        .map(|window| {
            let tokens = batch.window(window).len();
            let (mut layers, mut weights) = (Vec::new(), Vec::new());
            for (layer, map) in attentions.iter().enumerate() {
                if let Some(map) = map {
                    let map = map.get(window)?.narrow(1, 0, tokens)?.narrow(2, 0, tokens)?; // [H, T, T]
                    layers.push(layer);
                    weights.extend(map.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?);
                }
            }
            Ok(WindowMaps { tokens, layers, weights })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_tile_the_windows_and_none_is_much_over_the_limit() {
        assert!(groups(&[0], 8).is_empty());
        assert_eq!(groups(&[0, 3, 8, 16], 8), [0..2, 2..3]);
        assert_eq!(groups(&[0, 3, 6, 9], 8), [0..2, 2..3]);
        assert_eq!(groups(&[0, 100, 101], 8), [0..1, 1..2]);
        let offsets: Vec<usize> = (0..=300).map(|window| window * 10).collect();
        let cut = groups(&offsets, 2048);
        assert_eq!(cut, [0..150, 150..300]);
    }
}
