//! Mail as every leg of a router needs it.

use super::fine_tuning::decisive_tokens;
use super::sentence_starts;
use super::{Backbone, Progress, TrainingConfig};
use crate::collate::{WindowedEmail, batches, pack};
use crate::dataset::Example;
use crate::model::{KeepMaps, ModelError};
use crate::tokenizer::{EmailTokenizer, EncodedEmail};

/// Tokens of one batch while features are made.
pub(super) const BATCH_TOKENS: usize = 2048;

/// The mails, as every leg needs them.
pub(super) struct Inbox {
    pub mails: Vec<EncodedEmail>,
    /// Where background may be put into each.
    pub seams: Vec<Vec<usize>>,
    /// Which tokens of each decide, where that is marked.
    pub decisive: Vec<Vec<bool>>,
}

impl Inbox {
    pub(super) fn new(tokenizer: &EmailTokenizer, examples: &[Example], config: &TrainingConfig) -> Self {
        let read = |example: &Example| {
            let clean = example.clean(&config.email);
            let encoded = tokenizer.encode(&clean, config.windows.max_tokens);
            let seams = sentence_starts(&clean, &encoded);
            let decisive = example.decisive.as_deref().map(|words| decisive_tokens(&clean, &encoded, words));
            (encoded, (seams, decisive.unwrap_or_default()))
        };
        let (mails, (seams, decisive)) = examples.iter().map(read).unzip();
        Self { mails, seams, decisive }
    }
}

/// The pooled vector of each mail, in the order of the mails.
pub(super) fn features(
    backbone: Backbone<'_>,
    mails: &[EncodedEmail],
    config: &TrainingConfig,
    progress: &mut dyn Progress,
) -> Result<Vec<Vec<f32>>, ModelError> {
    let mails: Vec<WindowedEmail> = mails
        .iter()
        .map(|mail| WindowedEmail::new(mail, backbone.tokenizer, &config.windows, config.pooling))
        .collect();
    let mut features = vec![Vec::new(); mails.len()];
    let mut done = 0;
    for batch in batches(&mails, BATCH_TOKENS) {
        let packed = pack(batch.iter().map(|&mail| &mails[mail]));
        let pooled = backbone.encoder.pool(&packed, &KeepMaps::None)?.vectors.to_vec2::<f32>()?;
        done += batch.len();
        for (mail, vector) in batch.into_iter().zip(pooled) {
            features[mail] = vector;
        }
        progress.tell(done, mails.len());
    }
    Ok(features)
}
