//! Mail as a finished router sees it: pooled vectors and logits; and the sample of it that a router remembers.

use crate::artifact::{Memory, Remembered, Router};
use crate::collate::{WindowedEmail, batches, pack};
use crate::dataset::Example;
use crate::email::CleanOptions;
use crate::model::ModelError;
use crate::random::SplitMix64;
use crate::training::inbox::BATCH_TOKENS;

/// What the network says of one mail.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    /// `[d_model]`: pooled hidden states, not scaled.
    pub pooled: Vec<f32>,
    /// All logits, the words' added, before those of one queue are joined.
    pub logits: Vec<f32>,
}

/// Shows mail to the router. `progress` is told mails done and mails in all.
pub(super) fn look<'e>(
    router: &Router,
    examples: impl IntoIterator<Item = &'e Example>,
    email: &CleanOptions,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Seen>, ModelError> {
    let info = &router.info;
    let mut seen = Vec::new();
    let mut windowed = Vec::new();
    for example in examples {
        let encoded = router.tokenizer.encode(&example.clean(email), info.windows.max_tokens);
        windowed.push(WindowedEmail::new(&encoded, &router.tokenizer, &info.windows, info.pooling));
        seen.push(Seen { pooled: Vec::new(), logits: router.word_logits(&encoded) });
    }
    let mut done = 0;
    for batch in batches(&windowed, BATCH_TOKENS) {
        let output = router.classifier.forward_and_pool(&pack(batch.iter().map(|&mail| &windowed[mail])))?;
        done += batch.len();
        for (mail, (logits, pooled)) in batch.into_iter().zip(output.logits.into_iter().zip(output.pooled)) {
            seen[mail].logits = router.join(&logits, &seen[mail].logits);
            seen[mail].pooled = pooled;
        }
        progress(done, windowed.len());
    }
    Ok(seen)
}

/// Draws at most [`Memory::MAILS_PER_QUEUE`] mails of each queue and keeps them as the router sees them. Mail with a label that
/// the router does not know is passed over.
///
/// # Errors
/// Where the network fails.
pub fn remember(
    router: &Router,
    examples: &[Example],
    email: &CleanOptions,
    seed: u64,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Memory, ModelError> {
    let queues: Vec<Option<usize>> =
        examples.iter().map(|example| router.info.index_of_label(&example.queue)).collect();
    let mut drawn: Vec<usize> = Vec::new();
    for queue in 0..router.info.queues.len() {
        let mut own: Vec<usize> = (0..examples.len()).filter(|&mail| queues[mail] == Some(queue)).collect();
        SplitMix64::stream(seed, queue as u64).shuffle(&mut own);
        own.truncate(Memory::MAILS_PER_QUEUE);
        drawn.extend(own);
    }
    drawn.sort_unstable();
    let seen = look(router, drawn.iter().map(|&mail| &examples[mail]), email, progress)?;
    let mails = drawn
        .iter()
        .zip(seen)
        .filter_map(|(&mail, Seen { pooled, logits })| Some(Remembered { queue: queues[mail]?, pooled, logits }));
    Ok(Memory { mails: mails.collect() })
}
