//! Clean mail to token ids, each with its place in the mail.
//!
//! The `tokenizers` crate does the splitting. Its stored truncation and padding are switched off (the shipped
//! `tokenizer.json` would cut every mail at 128 tokens), and special tokens spelled out in a mail are plain text.

mod offsets;
mod windows;

pub use offsets::{OffsetIndex, OffsetUnit};
pub use windows::{SPECIAL_TOKENS, WindowConfig, WindowError};

use std::ops::Range;

use serde::Serialize;
use unicode_normalization::char::is_combining_mark;

use crate::email::CleanEmail;

/// The part of a mail that a token comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "MailField")]
pub enum Field {
    /// The subject line.
    Subject,
    /// What the sender wrote.
    Body,
}

/// One token and where it stands in the clean text of its field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// Row in the vocabulary.
    pub id: u32,
    /// Where the text stands.
    pub field: Field,
    /// Byte range in the clean text of the field.
    pub range: Range<usize>,
    /// Number of the word, counted over the whole mail; the pieces of one word share it.
    pub word: usize,
    /// The vocabulary had no pieces for this word.
    pub unknown: bool,
}

/// A mail as tokens: the subject's, then the body's, without special tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EncodedEmail {
    /// At most the ceiling's number of tokens.
    pub tokens: Vec<Token>,
    /// Tokens of the whole mail; more than `tokens.len()` only where the ceiling cut.
    pub tokens_total: usize,
}

impl EncodedEmail {
    /// The ceiling cut something.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.tokens_total > self.tokens.len()
    }

    /// Words among the tokens that were kept.
    #[must_use]
    pub fn n_words(&self) -> usize {
        self.tokens.last().map_or(0, |token| token.word + 1)
    }
}

/// Why a tokenizer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TokenizerError {
    /// `tokenizer.json` cannot be read.
    #[error("tokenizer.json is not a tokenizer: {0}")]
    BadFile(String),
    /// The encoder is fed `[CLS] ... [SEP]`; this tokenizer's template is another.
    #[error("the tokenizer puts {0} special tokens around a text, not [CLS] and [SEP]")]
    Template(usize),
    /// The tokenizer and the encoder do not belong together.
    #[error("the tokenizer has {tokens} tokens, the encoder only {vocab_size} rows for them")]
    Vocabulary {
        /// Tokens of the tokenizer.
        tokens: usize,
        /// Rows of the embedding table.
        vocab_size: usize,
    },
}

/// Text goes through the crate in pieces of about this many bytes, cut at blanks: its cost per call grows faster than
/// linearly, and no word of the vocabulary is so long.
const CHUNK_BYTES: usize = 4096;

/// A tokenizer for mail. Shared freely between threads.
#[derive(Debug)]
pub struct EmailTokenizer {
    inner: tokenizers::Tokenizer,
    cls: u32,
    sep: u32,
    unknown: Option<u32>,
    mask: Option<u32>,
    padding: Option<u32>,
}

impl EmailTokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// [`TokenizerError`] where it is none, or not one that wraps a text in `[CLS]` and `[SEP]`.
    pub fn from_bytes(json: &[u8]) -> Result<Self, TokenizerError> {
        let bad = |source: tokenizers::Error| TokenizerError::BadFile(source.to_string());
        let mut inner = tokenizers::Tokenizer::from_bytes(json).map_err(bad)?;
        inner.with_truncation(None).map_err(bad)?;
        inner.with_padding(None);
        inner.set_encode_special_tokens(true);
        let around = inner.encode("", true).map_err(bad)?;
        let &[cls, sep] = around.get_ids() else {
            return Err(TokenizerError::Template(around.len()));
        };
        let unknown = inner.token_to_id("[UNK]").or_else(|| inner.token_to_id("<unk>"));
        let mask = inner.token_to_id("[MASK]").or_else(|| inner.token_to_id("<mask>"));
        let padding = inner.token_to_id("[PAD]").or_else(|| inner.token_to_id("<pad>"));
        Ok(Self { inner, cls, sep, unknown, mask, padding })
    }

    /// Checks that every token has a row in the encoder's embedding table.
    ///
    /// # Errors
    /// [`TokenizerError::Vocabulary`].
    pub fn check_vocabulary(&self, vocab_size: usize) -> Result<(), TokenizerError> {
        let tokens = self.inner.get_vocab_size(true);
        if tokens > vocab_size {
            return Err(TokenizerError::Vocabulary { tokens, vocab_size });
        }
        Ok(())
    }

    /// The id of a token as the vocabulary spells it.
    #[must_use]
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The id that opens each window.
    #[must_use]
    pub fn cls(&self) -> u32 {
        self.cls
    }

    /// The id that closes each window.
    #[must_use]
    pub fn sep(&self) -> u32 {
        self.sep
    }

    /// The id that stands for a word that is hidden; not every vocabulary has one.
    #[must_use]
    pub fn mask(&self) -> Option<u32> {
        self.mask
    }

    /// The id that stands for no word at all; not every vocabulary has one.
    #[must_use]
    pub fn padding(&self) -> Option<u32> {
        self.padding
    }

    /// Tokens of the subject and the body, at most `max_tokens` of them kept and all of them counted.
    #[must_use]
    pub fn encode(&self, email: &CleanEmail, max_tokens: usize) -> EncodedEmail {
        let mut encoded = EncodedEmail::default();
        for (field, text) in [(Field::Subject, email.subject.text()), (Field::Body, email.body.text())] {
            for chunk in chunks(text) {
                self.append(&mut encoded, field, text, &chunk, max_tokens);
            }
        }
        encoded
    }

    /// Appends the tokens of `text[chunk]`, and counts those that there is no room for.
    fn append(&self, encoded: &mut EncodedEmail, field: Field, text: &str, chunk: &Range<usize>, max_tokens: usize) {
        // The crate fails only where a model has no token for unknown words; such a chunk has no tokens then.
        let Ok(encoding) = self.inner.encode(&text[chunk.clone()], false) else { return };
        let words_before = encoded.n_words();
        let room = max_tokens.saturating_sub(encoded.tokens.len());
        encoded.tokens_total += encoding.len();
        let pieces = encoding.get_ids().iter().zip(encoding.get_offsets()).zip(encoding.get_word_ids()).enumerate();
        for (piece, ((&id, &(start, end)), word)) in pieces.take(room) {
            let end = with_combining_marks(text, chunk.start + end);
            encoded.tokens.push(Token {
                id,
                field,
                range: chunk.start + start..end,
                word: words_before + word.map_or(piece, |word| word as usize),
                unknown: Some(id) == self.unknown,
            });
        }
    }
}

/// The tokenizer drops accents, so a piece may end before the marks of its last letter: they belong to it.
fn with_combining_marks(text: &str, end: usize) -> usize {
    let marks: usize =
        text[end..].chars().take_while(|&character| is_combining_mark(character)).map(char::len_utf8).sum();
    end + marks
}

/// Cuts a text at blanks into ranges of about [`CHUNK_BYTES`]; a longer run without blanks is cut inside.
fn chunks(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::with_capacity(text.len() / CHUNK_BYTES + 1);
    let mut start = 0;
    while text.len() - start > CHUNK_BYTES {
        let limit = text.floor_char_boundary(start + CHUNK_BYTES);
        let end = match text[start..limit].rfind(char::is_whitespace) {
            Some(blank) if blank > 0 => start + blank,
            _ => limit,
        };
        ranges.push(start..end);
        start = end;
    }
    if start < text.len() {
        ranges.push(start..text.len());
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_tile_the_text_and_cut_at_blanks() {
        let text = "caf\u{e9} ".repeat(3000);
        let ranges = chunks(&text);
        let mut next = 0;
        for range in &ranges {
            assert_eq!(range.start, next);
            assert!(range.len() <= CHUNK_BYTES && text.is_char_boundary(range.end));
            next = range.end;
        }
        assert_eq!(next, text.len());
        assert!(ranges[..ranges.len() - 1].iter().all(|range| text[range.end..].starts_with(' ')));
    }

    #[test]
    fn a_run_without_blanks_is_cut_on_a_character_boundary() {
        let text = "\u{1f382}".repeat(5000);
        assert!(chunks(&text).len() > 1);
    }
}
