//! Encoder, pooling and head together: a packed batch of mails to logits, with maps on request.

use candle_core::{DType, Device, Tensor};

use super::ModelError;
use super::batch::PackedBatch;
use super::encoder::{Encoder, KeepMaps};
use super::head::Head;

/// The maps of one window.
#[derive(Debug, Clone)]
pub struct WindowMaps {
    /// Tokens of the window, special tokens included.
    pub tokens: usize,
    /// Layer index and its map `[H, T, T]`, f32 on the CPU, for each layer asked for.
    pub layers: Vec<(usize, Tensor)>,
}

/// What the classifier gives back.
#[derive(Debug, Clone)]
pub struct ClassifierOutput {
    /// One row of logits per mail, `n_queues` wide.
    pub logits: Vec<Vec<f32>>,
    /// For each window of the batch its maps; empty on the fast path.
    pub maps: Vec<WindowMaps>,
}

/// A whole router network on one device.
#[derive(Debug, Clone)]
pub struct Classifier {
    encoder: Encoder,
    head: Head,
}

impl Classifier {
    /// Joins an encoder and a head; both must lie on one device.
    #[must_use]
    pub fn new(encoder: Encoder, head: Head) -> Self {
        Self { encoder, head }
    }

    /// The encoder.
    #[must_use]
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Where it runs.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.encoder.device()
    }

    /// Logits of every mail of the batch, and the maps asked for.
    ///
    /// # Errors
    /// [`PackedBatch::check`]'s, [`ModelError::NotFinite`] where the weights give NaN or infinity, candle's own.
    pub fn forward(&self, batch: &PackedBatch, keep: &KeepMaps) -> Result<ClassifierOutput, ModelError> {
        let config = self.encoder.config();
        batch.check(config.max_positions, config.vocab_size)?;
        let encoded = encode_padded(&self.encoder, batch, keep)?;
        let logits = self.head.forward(&encoded.pooled)?.to_vec2::<f32>()?; // [mails, C]
        if logits.iter().flatten().any(|logit| !logit.is_finite()) {
            return Err(ModelError::NotFinite);
        }
        Ok(ClassifierOutput { logits, maps: encoded.maps })
    }
}

/// Pooled vectors of a batch, with the maps asked for.
struct Encoded {
    /// `[mails, D]`, f32.
    pooled: Tensor,
    maps: Vec<WindowMaps>,
}

/// Pooled vectors `[mails, D]` (f32) of a batch: each mail's tokens of all its windows, weighted by their shares.
///
/// # Errors
/// [`PackedBatch::check`]'s and candle's own.
pub fn pool(encoder: &Encoder, batch: &PackedBatch) -> Result<Tensor, ModelError> {
    let config = encoder.config();
    batch.check(config.max_positions, config.vocab_size)?;
    Ok(encode_padded(encoder, batch, &KeepMaps::None)?.pooled)
}

fn encode_padded(encoder: &Encoder, batch: &PackedBatch, keep: &KeepMaps) -> Result<Encoded, ModelError> {
    let (input_ids, attention_mask) = batch.padded(encoder.device())?; //               [W, T]
    let output = encoder.forward(&input_ids, Some(&attention_mask), keep)?; //          [W, T, D]
    let hidden_states = output.hidden_states.to_dtype(DType::F32)?.flatten(0, 1)?; //   [W x T, D]
    let shares = batch.padded_token_weights(encoder.device())?; //                      [mails, W x T]
    Ok(Encoded {
        pooled: shares.matmul(&hidden_states)?, //                                      [mails, D]
        maps: window_maps(batch, &output.attentions)?,
    })
}

/// Cuts each window's own `T x T` out of the padded maps.
fn window_maps(batch: &PackedBatch, attentions: &[Option<Tensor>]) -> Result<Vec<WindowMaps>, ModelError> {
    if attentions.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    (0..batch.n_windows())
        .map(|window| {
            let tokens = batch.window(window).len();
            let mut layers = Vec::new();
            for (layer, map) in attentions.iter().enumerate() {
                if let Some(map) = map {
                    let map = map.get(window)?.narrow(1, 0, tokens)?.narrow(2, 0, tokens)?; // [H, T, T]
                    let map = map.to_dtype(DType::F32)?.to_device(&Device::Cpu)?.contiguous()?;
                    layers.push((layer, map));
                }
            }
            Ok(WindowMaps { tokens, layers })
        })
        .collect()
}
