//! Positions in a text in the unit that the caller counts in.
//!
//! Rust counts bytes, Python code points, browsers and Java UTF-16 units: one emoji before a word and the three differ.

use serde::{Deserialize, Serialize};

/// What an offset counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OffsetUnit {
    /// UTF-8 bytes, as Rust and Go count.
    Byte,
    /// Unicode code points, as Python counts.
    #[default]
    Char,
    /// UTF-16 code units, as JavaScript, Java and C# count.
    Utf16,
}

/// Converts byte positions of one text into another unit. Built once per text, each look-up is a binary search.
#[derive(Debug, Clone)]
pub struct OffsetIndex {
    /// After each non-ASCII character: its end in bytes, and what bytes exceed code points and UTF-16 units by up to there.
    steps: Vec<Step>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    byte_end: usize,
    over_chars: usize,
    over_utf16: usize,
}

impl OffsetIndex {
    /// Reads the text once.
    ///
    /// ```
    /// use postroom::tokenizer::{OffsetIndex, OffsetUnit};
    ///
    /// let index = OffsetIndex::new("\u{1f382} cake");
    /// assert_eq!(index.convert(5, OffsetUnit::Char), 2);
    /// assert_eq!(index.convert(5, OffsetUnit::Utf16), 3);
    /// ```
    #[must_use]
    pub fn new(text: &str) -> Self {
        let (mut over_chars, mut over_utf16) = (0, 0);
        let steps = text
            .char_indices()
            .filter(|(_, character)| !character.is_ascii())
            .map(|(start, character)| {
                over_chars += character.len_utf8() - 1;
                over_utf16 += character.len_utf8() - character.len_utf16();
                Step { byte_end: start + character.len_utf8(), over_chars, over_utf16 }
            })
            .collect();
        Self { steps }
    }

    /// The position of a byte offset (on a character boundary) in the given unit.
    #[must_use]
    pub fn convert(&self, byte: usize, unit: OffsetUnit) -> usize {
        let before = self.steps.partition_point(|step| step.byte_end <= byte);
        let Some(step) = before.checked_sub(1).map(|index| self.steps[index]) else {
            return byte;
        };
        match unit {
            OffsetUnit::Byte => byte,
            OffsetUnit::Char => byte - step.over_chars,
            OffsetUnit::Utf16 => byte - step.over_utf16,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_boundary_converts_as_counting_does(text in "\\PC{0,60}|[a-z\u{e9}\u{1f382}\u{301}\r\n]{0,40}") {
            let index = OffsetIndex::new(&text);
            for byte in (0..=text.len()).filter(|&byte| text.is_char_boundary(byte)) {
                let before = &text[..byte];
                prop_assert_eq!(index.convert(byte, OffsetUnit::Byte), byte);
                prop_assert_eq!(index.convert(byte, OffsetUnit::Char), before.chars().count());
                prop_assert_eq!(index.convert(byte, OffsetUnit::Utf16), before.encode_utf16().count());
            }
        }
    }
}
