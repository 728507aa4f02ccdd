//! Encoder, pooling and head together: a packed batch of mails to logits, with maps on request.

use candle_core::Device;

use super::ModelError;
use super::batch::PackedBatch;
use super::batch_encoder::{BatchEncoder, WindowMaps};
use super::encoder::KeepMaps;
use super::head::Head;

/// What the classifier gives back.
#[derive(Debug, Clone)]
pub struct ClassifierOutput {
    /// One row of logits per mail, `n_queues` wide.
    pub logits: Vec<Vec<f32>>,
    /// For each window of the batch its maps; empty on the fast path.
    pub maps: Vec<WindowMaps>,
}

/// Logits, and the vectors that the mails are pooled into whatever the head reads.
#[derive(Debug, Clone)]
pub struct LogitsAndPooled {
    /// One row of logits per mail.
    pub logits: Vec<Vec<f32>>,
    /// `[mails, D]`, not scaled.
    pub pooled: Vec<Vec<f32>>,
}

/// A whole router network on one device.
pub struct Classifier {
    encoder: BatchEncoder,
    head: Head,
}

impl Classifier {
    /// Joins an encoder and a head; both must lie on one device.
    #[must_use]
    pub fn new(encoder: BatchEncoder, head: Head) -> Self {
        Self { encoder, head }
    }

    /// The encoder.
    #[must_use]
    pub fn encoder(&self) -> &BatchEncoder {
        &self.encoder
    }

    /// Where it runs.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.encoder.device()
    }

    /// Logits of every mail of the batch, and its pooled vector, `[mails, D]`.
    ///
    /// # Errors
    /// As [`Classifier::forward`].
    pub fn forward_and_pool(&self, batch: &PackedBatch) -> Result<LogitsAndPooled, ModelError> {
        let pooled = self.encoder.pool(batch, &KeepMaps::None)?.vectors;
        let logits = match &self.head {
            Head::Pooled(head) => finite(head.forward(&pooled)?.to_vec2::<f32>()?)?,
            Head::Attention(_) => self.forward(batch, &KeepMaps::None)?.logits,
        };
        Ok(LogitsAndPooled { logits, pooled: finite(pooled.to_vec2::<f32>()?)? })
    }

    /// Logits of every mail of the batch, and the maps asked for.
    ///
    /// # Errors
    /// [`PackedBatch::check`]'s, [`ModelError::NotFinite`] where the weights give NaN or infinity, candle's own.
    pub fn forward(&self, batch: &PackedBatch, keep: &KeepMaps) -> Result<ClassifierOutput, ModelError> {
        let (logits, maps) = match &self.head {
            Head::Pooled(head) => {
                let pooled = self.encoder.pool(batch, keep)?;
                (head.forward(&pooled.vectors)?.to_vec2::<f32>()?, pooled.maps) //  [mails, C]
            }
            Head::Attention(pooling) => {
                let projected = self.encoder.project(batch, keep, pooling.projection())?;
                (pooling.logits(batch, &projected.values), projected.maps) //       [mails, C]
            }
        };
        Ok(ClassifierOutput { logits: finite(logits)?, maps })
    }
}

fn finite(rows: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, ModelError> {
    if rows.iter().flatten().all(|value| value.is_finite()) { Ok(rows) } else { Err(ModelError::NotFinite) }
}
