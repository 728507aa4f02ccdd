//! Encoder, pooling and head together: a packed batch of mails to logits, with maps on request.

use candle_core::{Device, Tensor};

use super::ModelError;
use super::attention_pooling::QueueSum;
use super::batch::PackedBatch;
use super::batch_encoder::{BatchEncoder, Projected, WindowMaps};
use super::encoder::KeepMaps;
use super::head::Head;

/// What the classifier gives back.
#[derive(Debug, Clone)]
pub struct ClassifierOutput {
    /// One row of logits per mail, `n_queues` wide.
    pub logits: Vec<Vec<f32>>,
    /// For each window of the batch its maps; empty on the fast path.
    pub maps: Vec<WindowMaps>,
    /// Where maps were asked for: how much each token counts for each logit of its mail, `[T, C]` over all tokens of the batch.
    pub token_weights: Vec<f32>,
}

/// Logits, and the vectors that the mails are pooled into whatever the head reads.
#[derive(Debug, Clone)]
pub struct LogitsAndPooled {
    /// One row of logits per mail.
    pub logits: Vec<Vec<f32>>,
    /// `[mails, D]`, not scaled.
    pub pooled: Vec<Vec<f32>>,
}

/// What one window adds to the logits of its mail; parts of all windows are joined by [`Classifier::join`].
#[derive(Debug, Clone, PartialEq)]
pub struct WindowPart(Part);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    /// Hidden states times their shares, `[D]`, and the sum of the shares.
    Pooled { sum: Vec<f32>, share: f32 },
    /// For each queue.
    Attention(Vec<QueueSum>),
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

    /// What makes logits of hidden states.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
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

    /// Runs windows by themselves, each a mail of the batch.
    ///
    /// # Errors
    /// As [`Classifier::forward`].
    pub fn window_parts(&self, windows: &PackedBatch) -> Result<Vec<WindowPart>, ModelError> {
        let indices = 0..windows.n_windows();
        match &self.head {
            Head::Pooled(_) => {
                let sums = self.encoder.pool(windows, &KeepMaps::None)?.vectors.to_vec2::<f32>()?; // [windows, D]
                let share = |window| windows.token_weights[windows.window(window)].iter().sum();
                let part = |(window, sum)| WindowPart(Part::Pooled { sum, share: share(window) });
                Ok(indices.zip(sums).map(part).collect())
            }
            Head::Attention(pooling) => {
                let projected = self.encoder.project(windows, &KeepMaps::None, pooling.projection())?.values;
                let sums = |window| pooling.sums(windows, &projected, windows.window(window));
                Ok(indices.map(|window| WindowPart(Part::Attention(sums(window)))).collect())
            }
        }
    }

    /// Logits of mails, one row each, from the parts of all their windows.
    ///
    /// # Errors
    /// [`ModelError::NotFinite`], [`ModelError::BadBatch`] for parts of another network, candle's own.
    pub fn join(&self, mails: &[Vec<&WindowPart>]) -> Result<Vec<Vec<f32>>, ModelError> {
        let logits = match &self.head {
            Head::Pooled(head) => {
                let vectors = mails.iter().map(|parts| mean(parts)).collect::<Option<Vec<_>>>();
                let vectors = vectors.ok_or(ModelError::BadBatch)?;
                let vectors = Tensor::new(vectors, &Device::Cpu)?.to_device(self.device())?; //   [mails, D]
                head.forward(&vectors)?.to_vec2::<f32>()?
            }
            Head::Attention(pooling) => {
                let of_mail = |parts: &Vec<&WindowPart>| Some(pooling.logits_of(&joined_sums(parts)?));
                mails.iter().map(of_mail).collect::<Option<Vec<_>>>().ok_or(ModelError::BadBatch)?
            }
        };
        finite(logits)
    }

    /// Logits of every mail of the batch, and the maps asked for.
    ///
    /// # Errors
    /// [`PackedBatch::check`]'s, [`ModelError::NotFinite`] where the weights give NaN or infinity, candle's own.
    pub fn forward(&self, batch: &PackedBatch, keep: &KeepMaps) -> Result<ClassifierOutput, ModelError> {
        let shown = *keep != KeepMaps::None;
        let (logits, maps, token_weights) = match &self.head {
            Head::Pooled(head) => {
                let pooled = self.encoder.pool(batch, keep)?;
                let logits = head.forward(&pooled.vectors)?.to_vec2::<f32>()?; //    [mails, C]
                let queues = logits.first().map_or(0, Vec::len);
                let of_token = |&share: &f32| std::iter::repeat_n(share, if shown { queues } else { 0 });
                let token_weights = batch.token_weights.iter().flat_map(of_token).collect();
                (logits, pooled.maps, token_weights)
            }
            Head::Attention(pooling) => {
                let Projected { values, maps } = self.encoder.project(batch, keep, pooling.projection())?;
                let mails = 0..if shown { batch.n_mails() } else { 0 };
                let token_weights = mails.flat_map(|mail| pooling.token_weights(batch, &values, mail)).collect();
                (pooling.logits(batch, &values), maps, token_weights) //             [mails, C]
            }
        };
        Ok(ClassifierOutput { logits: finite(logits)?, maps, token_weights })
    }
}

/// The pooled vector of a mail; `None` for parts of another kind of head.
fn mean(parts: &[&WindowPart]) -> Option<Vec<f32>> {
    let (mut vector, mut total) = (Vec::new(), 0.0);
    for part in parts {
        let Part::Pooled { sum, share } = &part.0 else { return None };
        vector.resize(sum.len(), 0.0);
        vector.iter_mut().zip(sum).for_each(|(all, one)| *all += one);
        total += share;
    }
    vector.iter_mut().for_each(|value| *value /= total);
    Some(vector)
}

/// For each queue the sum over all windows; `None` for parts of another kind of head.
fn joined_sums(parts: &[&WindowPart]) -> Option<Vec<QueueSum>> {
    let mut joined: Vec<QueueSum> = Vec::new();
    for part in parts {
        let Part::Attention(sums) = &part.0 else { return None };
        joined.resize(sums.len(), QueueSum::default());
        joined.iter_mut().zip(sums).for_each(|(all, one)| *all = all.join(*one));
    }
    Some(joined)
}

fn finite(rows: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, ModelError> {
    if rows.iter().flatten().all(|value| value.is_finite()) { Ok(rows) } else { Err(ModelError::NotFinite) }
}
