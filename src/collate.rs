//! Tokens of mails to a batch for the encoder: windows with their special tokens, packed without padding.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::model::PackedBatch;
use crate::tokenizer::{EmailTokenizer, EncodedEmail, WindowConfig};

/// How the hidden states of a mail become one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pooling {
    /// The mean over all tokens of all windows, each token counted once. For a mail of one window this is the mean
    /// pooling of sentence encoders.
    #[default]
    Mean,
    /// The mean of the windows' `[CLS]` vectors.
    Cls,
}

/// One mail, ready to be packed.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowedEmail {
    /// Content tokens of each window, as ranges of [`EncodedEmail::tokens`].
    pub windows: Vec<Range<usize>>,
    input_ids: Vec<u32>,
    window_offsets: Vec<usize>,
    token_weights: Vec<f32>,
}

impl WindowedEmail {
    /// Cuts the tokens into windows, puts `[CLS]` and `[SEP]` around each and deals out the pooling shares.
    #[must_use]
    pub fn new(encoded: &EncodedEmail, tokenizer: &EmailTokenizer, config: &WindowConfig, pooling: Pooling) -> Self {
        let windows = config.windows(encoded.tokens.len());
        let owned = config.owned(&windows);
        let mut mail = Self { input_ids: Vec::new(), window_offsets: vec![0], token_weights: Vec::new(), windows };
        let n_windows = mail.windows.len() as f32;
        for (window, owned) in mail.windows.iter().zip(&owned) {
            // In a long mail the special tokens of all windows together weigh as much as those of one.
            let special = 1.0 / n_windows;
            mail.input_ids.push(tokenizer.cls());
            mail.token_weights.push(special);
            for position in window.clone() {
                mail.input_ids.push(encoded.tokens[position].id);
                let counted = pooling == Pooling::Mean && owned.contains(&position);
                mail.token_weights.push(f32::from(u8::from(counted)));
            }
            mail.input_ids.push(tokenizer.sep());
            mail.token_weights.push(if pooling == Pooling::Mean { special } else { 0.0 });
            mail.window_offsets.push(mail.input_ids.len());
        }
        let total: f32 = mail.token_weights.iter().sum();
        mail.token_weights.iter_mut().for_each(|weight| *weight /= total);
        mail
    }

    /// Tokens that the encoder will see, special tokens and overlaps included: what a batch's budget counts.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.input_ids.len()
    }

    /// Tokens of the longest window.
    #[must_use]
    pub fn longest_window(&self) -> usize {
        self.window_offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }
}

/// Positions of the mails in batches of at most `max_batch_tokens`, mails of like length together; a mail over the budget
/// is a batch of its own.
#[must_use]
pub fn batches(mails: &[WindowedEmail], max_batch_tokens: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..mails.len()).collect();
    order.sort_by_key(|&mail| (mails[mail].longest_window(), mails[mail].cost()));
    let mut batches: Vec<Vec<usize>> = Vec::new();
    let mut used = usize::MAX;
    for mail in order {
        let cost = mails[mail].cost();
        match batches.last_mut() {
            Some(batch) if used.saturating_add(cost) <= max_batch_tokens => {
                batch.push(mail);
                used += cost;
            }
            _ => {
                batches.push(vec![mail]);
                used = cost;
            }
        }
    }
    batches
}

/// Packs mails one after another.
#[must_use]
pub fn pack<'a>(mails: impl IntoIterator<Item = &'a WindowedEmail>) -> PackedBatch {
    let mut batch = PackedBatch {
        input_ids: Vec::new(),
        window_offsets: vec![0],
        mail_offsets: vec![0],
        token_weights: Vec::new(),
    };
    for mail in mails {
        let start = batch.input_ids.len();
        batch.input_ids.extend_from_slice(&mail.input_ids);
        batch.token_weights.extend_from_slice(&mail.token_weights);
        batch.window_offsets.extend(mail.window_offsets[1..].iter().map(|offset| start + offset));
        batch.mail_offsets.push(batch.window_offsets.len() - 1);
    }
    batch
}
