//! Tokens of mails to a batch for the encoder: windows with their special tokens, packed without padding.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::model::PackedBatch;
use crate::tokenizer::{EmailTokenizer, EncodedEmail, SPECIAL_TOKENS, WindowConfig};

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

    /// One window of any tokens, for tests that need no tokenizer.
    #[cfg(test)]
    pub(crate) fn of_tokens(input_ids: Vec<u32>) -> Self {
        let share = 1.0 / input_ids.len() as f32;
        Self {
            windows: std::iter::once(0..input_ids.len()).collect(),
            window_offsets: vec![0, input_ids.len()],
            token_weights: vec![share; input_ids.len()],
            input_ids,
        }
    }

    /// The mail with the tokens taken out for which `removed` is true, or replaced by `mask` where there is one: for each
    /// window what became of it, `None` where it is as it was. Windows keep their places, so that only those that held a
    /// removed token must be run again; a mail of one window is the shorter mail, token for token. `removed` has one entry for
    /// each content token.
    #[must_use]
    pub fn without(&self, removed: &[bool], mask: Option<u32>) -> Vec<Option<Window>> {
        let changed = |(index, content): (usize, &Range<usize>)| {
            let gone = removed.get(content.clone())?;
            if !gone.contains(&true) {
                return None;
            }
            let span = self.window_offsets[index]..self.window_offsets[index + 1];
            let mut window = Window::default();
            for (place, (&id, &weight)) in
                self.input_ids[span.clone()].iter().zip(&self.token_weights[span]).enumerate()
            {
                // The first and the last token of a window are its special ones.
                let gone = place > 0 && gone.get(place - 1).copied().unwrap_or(false);
                match (gone, mask) {
                    (true, None) => {}
                    (true, Some(mask)) => window.push(mask, weight),
                    (false, _) => window.push(id, weight),
                }
            }
            Some(window)
        };
        self.windows.iter().enumerate().map(changed).collect()
    }

    /// Tokens that must be run again where the content tokens for which `removed` is true are gone: those of the windows
    /// that [`WindowedEmail::without`] changes, before anything is taken out.
    #[must_use]
    pub fn cost_without(&self, removed: &[bool]) -> usize {
        let touched = |range: &&Range<usize>| removed.get((*range).clone()).is_some_and(|gone| gone.contains(&true));
        self.windows.iter().filter(touched).map(|range| range.len() + SPECIAL_TOKENS).sum()
    }

    /// Marks of content tokens as marks of the windows' tokens; special tokens have none. No marks at all are as many as false.
    #[must_use]
    pub fn marked(&self, marks: &[bool]) -> Vec<bool> {
        let mut marked = Vec::with_capacity(self.input_ids.len());
        for window in &self.windows {
            let of = |position: usize| marks.get(position).copied().unwrap_or(false);
            marked.push(false);
            marked.extend(window.clone().map(of));
            marked.push(false);
        }
        marked
    }

    /// The windows by themselves.
    #[must_use]
    pub fn single_windows(&self) -> Vec<Window> {
        let offsets = self.window_offsets.windows(2).map(|pair| pair[0]..pair[1]);
        offsets
            .map(|span| Window {
                input_ids: self.input_ids[span.clone()].to_vec(),
                token_weights: self.token_weights[span].to_vec(),
            })
            .collect()
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

/// One window by itself, special tokens included.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Window {
    /// Token ids, `[CLS]` first and `[SEP]` last.
    pub input_ids: Vec<u32>,
    /// Pooling shares; those of all windows of a whole mail sum to 1.
    pub token_weights: Vec<f32>,
}

impl Window {
    fn push(&mut self, id: u32, weight: f32) {
        self.input_ids.push(id);
        self.token_weights.push(weight);
    }

    /// Tokens that the encoder will see.
    #[must_use]
    pub fn cost(&self) -> usize {
        self.input_ids.len()
    }
}

/// Packs windows one after another, each as a mail of its own.
#[must_use]
pub fn pack_windows<'a>(windows: impl IntoIterator<Item = &'a Window>) -> PackedBatch {
    let mut batch = PackedBatch {
        input_ids: Vec::new(),
        window_offsets: vec![0],
        mail_offsets: vec![0],
        token_weights: Vec::new(),
    };
    for window in windows {
        batch.input_ids.extend_from_slice(&window.input_ids);
        batch.token_weights.extend_from_slice(&window.token_weights);
        batch.window_offsets.push(batch.input_ids.len());
        batch.mail_offsets.push(batch.window_offsets.len() - 1);
    }
    batch
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_with_their_tokens_in_every_window() {
        let mail = WindowedEmail {
            windows: vec![0..3, 2..5],
            input_ids: vec![101, 10, 11, 12, 102, 101, 12, 13, 14, 102],
            window_offsets: vec![0, 5, 10],
            token_weights: vec![0.1; 10],
        };
        let marked = mail.marked(&[false, true, true, false, false]);
        let ids = mail.input_ids.iter().zip(&marked).filter(|(_, marked)| **marked).map(|(id, _)| *id);
        assert_eq!((ids.collect::<Vec<_>>(), marked.len()), (vec![11, 12, 12], 10));
        assert_eq!(mail.marked(&[]), [false; 10]);
    }
}
