//! Which words of a mail are waved off: "not the refund", "instead of a refund". They are counted apart from those that are
//! asked for, since counts know no order.

use crate::tokenizer::{Field, Token};

/// Words that turn what follows them.
const TURNING: [&str; 10] =
    ["not", "no", "never", "without", "instead", "cannot", "forget", "ignore", "nor", "neither"];
/// The same of two tokens.
const TURNING_PAIRS: [[&str; 2]; 4] = [["rather", "than"], ["'", "t"], ["\u{2019}", "t"], ["don", "##t"]];
/// What ends their reach.
const ENDING: [&str; 19] = [
    ".", ",", ";", ":", "!", "?", "(", ")", "-", "\u{2013}", "\u{2014}", "\"", "but", "just", "only", "though", "so",
    "i", "we",
];
/// Tokens that they reach at most.
const REACH: usize = 8;
/// Set in the id of a token that is waved off: no vocabulary has so many tokens.
const WAVED_OFF: u32 = 1 << 31;

/// The tokens that turn others, by id; without any, every token counts as it stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Negation {
    /// Single tokens that turn what follows.
    pub turning: Vec<u32>,
    /// Pairs that do, one after the other: `[first, second, first, second, ...]`.
    pub turning_pairs: Vec<u32>,
    /// Tokens that end their reach.
    pub ending: Vec<u32>,
}

impl Negation {
    /// That of English, for a tokenizer that gives the id of a token, where it has it.
    #[must_use]
    pub fn english(id: impl Fn(&str) -> Option<u32>) -> Self {
        let ids = |tokens: &[&str]| tokens.iter().filter_map(|token| id(token)).collect();
        let pair = |[first, second]: &[&str; 2]| Some([id(first)?, id(second)?]);
        Self {
            turning: ids(&TURNING),
            turning_pairs: TURNING_PAIRS.iter().filter_map(pair).flatten().collect(),
            ending: ids(&ENDING),
        }
    }

    /// The ids to count: those of tokens that are waved off are marked. A new field ends the reach, too.
    pub(super) fn marked<'a>(&'a self, tokens: impl Iterator<Item = &'a Token> + 'a) -> impl Iterator<Item = u32> + 'a {
        let mut reach = 0usize;
        let mut before: Option<(u32, Field)> = None;
        tokens.map(move |token| {
            if self.ending.contains(&token.id) || before.is_some_and(|(_, field)| field != token.field) {
                reach = 0;
            }
            let id = if reach > 0 { token.id | WAVED_OFF } else { token.id };
            reach = reach.saturating_sub(1);
            let pair = |(first, _): (u32, Field)| self.turning_pairs.chunks(2).any(|pair| pair == [first, token.id]);
            if self.turning.contains(&token.id) || before.is_some_and(pair) {
                reach = REACH;
            }
            before = Some((token.id, token.field));
            id
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words as tokens, `|` between subject and body, and which of them are waved off.
    fn waved_off(text: &str) -> Vec<&str> {
        let words: Vec<&str> = text.split(' ').filter(|word| *word != "|").collect();
        let subject =
            text.split(" | ").next().filter(|_| text.contains('|')).map_or(0, |subject| subject.split(' ').count());
        let mut known: Vec<&str> =
            TURNING.iter().chain(TURNING_PAIRS.iter().flatten()).chain(&ENDING).copied().collect();
        known.extend(&words);
        let id = |word: &str| known.iter().position(|other| *other == word).map(|place| place as u32);
        let negation = Negation::english(id);
        let token = |(place, word): (usize, &&str)| Token {
            id: id(word).unwrap(),
            field: if place < subject { Field::Subject } else { Field::Body },
            range: 0..1,
            word: 0,
            unknown: false,
        };
        let tokens: Vec<Token> = words.iter().enumerate().map(token).collect();
        let marked = negation.marked(tokens.iter());
        words.iter().zip(marked).filter(|(_, id)| id & WAVED_OFF != 0).map(|(word, _)| *word).collect()
    }

    #[test]
    fn words_after_a_negation_are_waved_off_until_it_ends() {
        assert_eq!(waved_off("cancel the order , not the refund ."), ["the", "refund"]);
        assert_eq!(waved_off("do not cancel the refund , cancel the order"), ["cancel", "the", "refund"]);
        assert_eq!(waved_off("don ' t refund me but bring it"), ["refund", "me"]);
        assert_eq!(waved_off("bring it rather than a refund"), ["a", "refund"]);
        assert_eq!(waved_off("i would rather have it than that"), [] as [&str; 0]);
        assert_eq!(waved_off("not one two three four five six seven eight nine ten").len(), REACH);
        assert_eq!(waved_off("not happy | bring it"), ["happy"]);
        assert_eq!(waved_off(""), [] as [&str; 0]);
    }

    #[test]
    fn a_tokenizer_without_such_words_counts_all_alike() {
        assert_eq!(Negation::english(|_| None), Negation::default());
        let token = Token { id: 7, field: Field::Body, range: 0..1, word: 0, unknown: false };
        assert_eq!(Negation::default().marked([token].iter()).collect::<Vec<u32>>(), [7]);
    }
}
