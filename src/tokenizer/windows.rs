//! Overlapping windows over the tokens of a mail, so that long mail is read to its end.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// How a mail's tokens are cut into windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WindowConfig {
    /// Tokens of one window, `[CLS]` and `[SEP]` included.
    pub max_length: usize,
    /// The step from the start of one window to the next, in tokens. (The `tokenizers` crate uses this word for the overlap.)
    pub stride: usize,
    /// Ceiling on the tokens read of one mail, special tokens not counted. What lies beyond is reported, never silent.
    pub max_tokens: usize,
}

impl Default for WindowConfig {
    fn default() -> Self {
        Self { max_length: 256, stride: 228, max_tokens: 8192 }
    }
}

/// Why window settings are refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WindowError {
    /// No room for a token between `[CLS]` and `[SEP]`, or longer than the encoder's positions.
    #[error("max_length {max_length} is outside 3..={max_positions}")]
    MaxLength {
        /// The setting.
        max_length: usize,
        /// The encoder's positions.
        max_positions: usize,
    },
    /// A step of 0 never ends; one wider than a window skips tokens.
    #[error("stride {stride} is outside 1..={capacity}, the tokens that a window holds beside [CLS] and [SEP]")]
    Stride {
        /// The setting.
        stride: usize,
        /// `max_length - 2`.
        capacity: usize,
    },
    /// A ceiling that would read nothing.
    #[error("max_tokens must be at least 1")]
    MaxTokens,
}

/// Tokens that a window gives to `[CLS]` and `[SEP]`.
pub const SPECIAL_TOKENS: usize = 2;

impl WindowConfig {
    /// Checks the settings against the encoder's positions.
    ///
    /// # Errors
    /// [`WindowError`] for a setting that would skip tokens, never end or not fit.
    pub fn check(&self, max_positions: usize) -> Result<(), WindowError> {
        let Self { max_length, stride, max_tokens } = *self;
        if max_length <= SPECIAL_TOKENS || max_length > max_positions {
            return Err(WindowError::MaxLength { max_length, max_positions });
        }
        if stride == 0 || stride > self.capacity() {
            return Err(WindowError::Stride { stride, capacity: self.capacity() });
        }
        if max_tokens == 0 {
            return Err(WindowError::MaxTokens);
        }
        Ok(())
    }

    /// Content tokens that fit in a window.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.max_length.saturating_sub(SPECIAL_TOKENS).max(1)
    }

    /// The windows over `n_tokens` content tokens, as ranges of them. Every token lies in at least one; a mail without
    /// tokens has one empty window. The last window ends at the last token and may be shorter.
    #[must_use]
    pub fn windows(&self, n_tokens: usize) -> Vec<Range<usize>> {
        let (capacity, stride) = (self.capacity(), self.stride.max(1));
        let n_windows = 1 + n_tokens.saturating_sub(capacity).div_ceil(stride);
        (0..n_windows).map(|window| window * stride).map(|start| start..n_tokens.min(start + capacity)).collect()
    }

    /// For each window the tokens that it owns: a token that stands in several windows belongs to the one in which it
    /// has most context on its nearer side. The owned ranges tile the mail, so that pooling counts each token once.
    #[must_use]
    pub fn owned(&self, windows: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut owned = Vec::with_capacity(windows.len());
        let mut start = 0;
        for (index, window) in windows.iter().enumerate() {
            let end = match windows.get(index + 1) {
                // The middle of the overlap.
                Some(next) => next.start + window.end.saturating_sub(next.start) / 2,
                None => window.end,
            };
            owned.push(start..end);
            start = end;
        }
        owned
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn window_counts_follow_the_formula() {
        // ceil((n - c) / s) + 1 for n > c, with c = 510 and s = 382.
        let config = WindowConfig { max_length: 512, stride: 382, max_tokens: 8192 };
        let counts = [1, 510, 511, 892, 893, 1200, 5000].map(|n| config.windows(n).len());
        assert_eq!(counts, [1, 1, 2, 2, 3, 3, 13]);
    }

    #[test]
    fn a_mail_without_tokens_has_one_empty_window() {
        assert_eq!(WindowConfig::default().windows(0), std::slice::from_ref(&(0..0)));
    }

    #[test]
    fn settings_that_skip_tokens_are_refused() {
        let config = WindowConfig { stride: 255, ..WindowConfig::default() };
        assert_eq!(config.check(512), Err(WindowError::Stride { stride: 255, capacity: 254 }));
        let config = WindowConfig { max_length: 513, ..WindowConfig::default() };
        assert!(matches!(config.check(512), Err(WindowError::MaxLength { .. })));
    }

    proptest! {
        #[test]
        fn windows_cover_every_token_and_owned_ranges_tile(
            max_length in 3usize..600, stride_share in 0.0f64..1.0, n in 0usize..5000,
        ) {
            let capacity = max_length - SPECIAL_TOKENS;
            let stride = 1 + ((capacity - 1) as f64 * stride_share) as usize;
            let config = WindowConfig { max_length, stride, max_tokens: 8192 };
            // Tiny strides over long mail make too many windows for a quick test.
            prop_assume!(n / stride < 3000);
            prop_assert_eq!(config.check(600), Ok(()));
            let windows = config.windows(n);
            let owned = config.owned(&windows);
            let mut next = 0;
            for (window, owned) in windows.iter().zip(&owned) {
                prop_assert!(window.len() <= capacity);
                prop_assert!(owned.start == next && window.start <= owned.start && owned.end <= window.end);
                prop_assert!(owned.start <= owned.end);
                next = owned.end;
            }
            prop_assert_eq!(next, n);
        }
    }
}
