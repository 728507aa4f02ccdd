//! Windows of one or more mails, packed one after another without padding.

use candle_core::{Device, Tensor};

use super::ModelError;

/// A batch for the encoder: plain ids and offsets, made by `collate`.
///
/// Windows of one mail stand together. `window_offsets` and `mail_offsets` are cumulative: window `w` is
/// `input_ids[window_offsets[w]..window_offsets[w + 1]]`, mail `m` owns the windows `mail_offsets[m]..mail_offsets[m + 1]`.
#[derive(Debug, Clone, PartialEq)]
pub struct PackedBatch {
    /// Token ids of all windows, special tokens included.
    pub input_ids: Vec<u32>,
    /// Where each window starts, and the end of the last: one more entry than there are windows.
    pub window_offsets: Vec<usize>,
    /// First window of each mail, and the end of the last: one more entry than there are mails.
    pub mail_offsets: Vec<usize>,
    /// Share of each token in its mail's pooled vector; the shares of one mail sum to 1.
    pub token_weights: Vec<f32>,
}

impl PackedBatch {
    /// How many mails.
    #[must_use]
    pub fn n_mails(&self) -> usize {
        self.mail_offsets.len().saturating_sub(1)
    }

    /// How many windows.
    #[must_use]
    pub fn n_windows(&self) -> usize {
        self.window_offsets.len().saturating_sub(1)
    }

    /// The packed token positions of a window.
    #[must_use]
    pub fn window(&self, window: usize) -> std::ops::Range<usize> {
        self.window_offsets[window]..self.window_offsets[window + 1]
    }

    /// Tokens of the longest window.
    #[must_use]
    pub fn longest_window(&self) -> usize {
        (0..self.n_windows()).map(|w| self.window(w).len()).max().unwrap_or(0)
    }

    /// The packed token positions of a mail.
    #[must_use]
    pub fn mail_tokens(&self, mail: usize) -> std::ops::Range<usize> {
        let first = self.window_offsets[self.mail_offsets[mail]];
        first..self.window_offsets[self.mail_offsets[mail + 1]]
    }

    /// Checks what indexing relies on.
    ///
    /// # Errors
    /// [`ModelError::BadBatch`] for offsets that do not tile the tokens, [`ModelError::WindowTooLong`] and
    /// [`ModelError::UnknownToken`] for what the encoder has no rows for.
    pub fn check(&self, max_positions: usize, vocab_size: usize) -> Result<(), ModelError> {
        let tiles = |offsets: &[usize], end: usize| {
            offsets.first() == Some(&0) && offsets.last() == Some(&end) && offsets.is_sorted_by(|a, b| a < b)
        };
        if !tiles(&self.window_offsets, self.input_ids.len())
            || !tiles(&self.mail_offsets, self.n_windows())
            || self.token_weights.len() != self.input_ids.len()
        {
            return Err(ModelError::BadBatch);
        }
        if self.longest_window() > max_positions {
            return Err(ModelError::WindowTooLong { tokens: self.longest_window(), limit: max_positions });
        }
        match self.input_ids.iter().find(|&&id| id as usize >= vocab_size) {
            Some(&id) => Err(ModelError::UnknownToken { id, vocab_size }),
            None => Ok(()),
        }
    }

    /// The same windows padded to the longest: ids and mask, `[W, T]` each.
    pub(super) fn padded(&self, device: &Device) -> Result<(Tensor, Tensor), ModelError> {
        let (windows, tokens) = (self.n_windows(), self.longest_window());
        let mut input_ids = vec![0u32; windows * tokens];
        let mut attention_mask = vec![0u32; windows * tokens];
        for window in 0..windows {
            let ids = &self.input_ids[self.window(window)];
            let row = window * tokens;
            input_ids[row..row + ids.len()].copy_from_slice(ids);
            attention_mask[row..row + ids.len()].fill(1);
        }
        Ok((
            Tensor::from_vec(input_ids, (windows, tokens), device)?,
            Tensor::from_vec(attention_mask, (windows, tokens), device)?,
        ))
    }

    /// The pooling shares as a matrix `[mails, W x T]` over the padded windows.
    pub(super) fn padded_token_weights(&self, device: &Device) -> Result<Tensor, ModelError> {
        let (windows, tokens) = (self.n_windows(), self.longest_window());
        let mut weights = vec![0f32; self.n_mails() * windows * tokens];
        for mail in 0..self.n_mails() {
            for window in self.mail_offsets[mail]..self.mail_offsets[mail + 1] {
                let shares = &self.token_weights[self.window(window)];
                let start = (mail * windows + window) * tokens;
                weights[start..start + shares.len()].copy_from_slice(shares);
            }
        }
        Ok(Tensor::from_vec(weights, (self.n_mails(), windows * tokens), device)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> PackedBatch {
        PackedBatch {
            input_ids: vec![1, 2, 3, 4, 5],
            window_offsets: vec![0, 2, 5],
            mail_offsets: vec![0, 2],
            token_weights: vec![0.2; 5],
        }
    }

    #[test]
    fn a_sound_batch_passes() {
        assert!(batch().check(8, 10).is_ok());
    }

    #[test]
    fn offsets_that_do_not_tile_are_refused() {
        for offsets in [vec![0, 2, 4], vec![1, 5], vec![0, 3, 2, 5], vec![]] {
            let broken = PackedBatch { window_offsets: offsets, ..batch() };
            assert!(matches!(broken.check(8, 10), Err(ModelError::BadBatch)));
        }
    }

    #[test]
    fn long_windows_and_foreign_ids_are_refused() {
        assert!(matches!(batch().check(2, 10), Err(ModelError::WindowTooLong { tokens: 3, limit: 2 })));
        assert!(matches!(batch().check(8, 5), Err(ModelError::UnknownToken { id: 5, .. })));
    }

    #[test]
    fn padding_has_mask_zero_and_no_share() {
        let (ids, mask) = batch().padded(&Device::Cpu).unwrap();
        assert_eq!(ids.to_vec2::<u32>().unwrap(), [[1, 2, 0], [3, 4, 5]]);
        assert_eq!(mask.to_vec2::<u32>().unwrap(), [[1, 1, 0], [1, 1, 1]]);
        let shares = batch().padded_token_weights(&Device::Cpu).unwrap();
        assert_eq!(shares.to_vec2::<f32>().unwrap(), [[0.2, 0.2, 0.0, 0.2, 0.2, 0.2]]);
    }
}
