//! The rows and columns of a shown map: words or single pieces, with `[CLS]` and `[SEP]` at the ends.

use std::ops::Range;

use crate::tokenizer::{Field, Token};

/// One row or column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Positions in the window, `[CLS]` being 0.
    pub pieces: Range<usize>,
    /// Where its text stands in the clean text; `None` for `[CLS]` and `[SEP]`.
    pub place: Option<(Field, Range<usize>)>,
    /// The vocabulary had no pieces for it.
    pub unknown: bool,
}

impl Unit {
    /// `[CLS]` or `[SEP]`.
    #[must_use]
    pub fn special(&self) -> bool {
        self.place.is_none()
    }
}

/// The units of a window over `tokens` (its content tokens): whole words, or single pieces where `words` is false.
/// `[CLS]` comes first, `[SEP]` last. A word that a window cuts in two is a unit of the pieces that stand in the window.
#[must_use]
pub fn word_units(tokens: &[Token], words: bool) -> Vec<Unit> {
    let special = |position: usize| Unit { pieces: position..position + 1, place: None, unknown: false };
    let mut units = vec![special(0)];
    for (index, token) in tokens.iter().enumerate() {
        let position = index + 1;
        let same_word = words && index > 0 && tokens[index - 1].word == token.word;
        match (same_word, units.last_mut()) {
            (true, Some(unit)) => {
                unit.pieces.end = position + 1;
                unit.unknown |= token.unknown;
                if let Some((_, range)) = &mut unit.place {
                    range.end = range.end.max(token.range.end);
                }
            }
            _ => units.push(Unit {
                pieces: position..position + 1,
                place: Some((token.field, token.range.clone())),
                unknown: token.unknown,
            }),
        }
    }
    units.push(special(tokens.len() + 1));
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(word: usize, range: Range<usize>) -> Token {
        Token { id: 7, field: Field::Body, range, word, unknown: false }
    }

    #[test]
    fn pieces_of_a_word_are_one_unit() {
        let tokens = [token(0, 0..3), token(0, 3..7), token(1, 8..12)];
        let units = word_units(&tokens, true);
        let pieces: Vec<_> = units.iter().map(|unit| unit.pieces.clone()).collect();
        assert_eq!(pieces, [0..1, 1..3, 3..4, 4..5]);
        assert_eq!(units[1].place, Some((Field::Body, 0..7)));
        assert!(units[0].special() && units[3].special());
    }

    #[test]
    fn without_words_each_piece_stands_alone() {
        let tokens = [token(0, 0..3), token(0, 3..7)];
        assert_eq!(word_units(&tokens, false).len(), 4);
    }
}
