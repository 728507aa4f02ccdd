//! The second leg of a router: which words stand in a mail, and how often.
//!
//! On real tickets a linear model of word counts is hard to beat, and it errs elsewhere than the encoder does, so the logits
//! of both are added, those of the words the less the surer the encoder is ([`Gate`]). Counts are of the tokenizer's pieces over the whole mail: `(1 + ln count) x idf`, scaled to length 1.
//! What stands after a negation is counted apart ([`Negation`]).

mod gate;
mod negation;

use std::collections::{BTreeMap, HashMap};

pub use gate::Gate;
pub use negation::Negation;

use crate::tokenizer::{EncodedEmail, Token};

/// Nonzero features of one mail: column and value.
pub type SparseRow = Vec<(usize, f32)>;

/// The tokens that are counted, and how rare each is.
#[derive(Debug, Clone, PartialEq)]
pub struct Vocabulary {
    /// Token ids, ascending, those that are waved off last and marked; the position is the column.
    pub ids: Vec<u32>,
    /// `ln((1 + mails) / (1 + mails with the token)) + 1`.
    pub idf: Vec<f32>,
    /// Which of them count as waved off.
    pub negation: Negation,
    columns: HashMap<u32, usize>,
}

impl Vocabulary {
    /// A vocabulary from its stored form; both lists have one length.
    #[must_use]
    pub fn new(ids: Vec<u32>, idf: Vec<f32>, negation: Negation) -> Self {
        let columns = ids.iter().enumerate().map(|(column, &id)| (id, column)).collect();
        Self { ids, idf, negation, columns }
    }

    /// The tokens that stand in at least two of the mails.
    #[must_use]
    pub fn fit(mails: &[EncodedEmail], negation: Negation) -> Self {
        let mut mails_with: BTreeMap<u32, usize> = BTreeMap::new();
        for mail in mails {
            let mut ids: Vec<u32> = negation.marked(mail.tokens.iter()).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.into_iter().for_each(|id| *mails_with.entry(id).or_default() += 1);
        }
        let rarity = |count: usize| ((1.0 + mails.len() as f32) / (1.0 + count as f32)).ln() + 1.0;
        let (ids, idf) =
            mails_with.into_iter().filter(|(_, count)| *count >= 2).map(|(id, count)| (id, rarity(count))).unzip();
        Self::new(ids, idf, negation)
    }

    /// How many tokens are counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no token is counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The features of a mail, columns ascending.
    #[must_use]
    pub fn features(&self, mail: &EncodedEmail) -> SparseRow {
        self.features_of(mail.tokens.iter())
    }

    fn features_of<'a>(&'a self, tokens: impl Iterator<Item = &'a Token> + 'a) -> SparseRow {
        let mut counts: BTreeMap<usize, f32> = BTreeMap::new();
        for id in self.negation.marked(tokens) {
            if let Some(&column) = self.columns.get(&id) {
                *counts.entry(column).or_default() += 1.0;
            }
        }
        let mut row: SparseRow =
            counts.into_iter().map(|(column, count)| (column, (1.0 + count.ln()) * self.idf[column])).collect();
        let length = row.iter().map(|(_, value)| value * value).sum::<f32>().sqrt();
        row.iter_mut().for_each(|(_, value)| *value /= length.max(f32::MIN_POSITIVE));
        row
    }
}

/// A fitted leg: logits of the words of a mail.
#[derive(Debug, Clone, PartialEq)]
pub struct Lexical {
    /// What is counted.
    pub vocabulary: Vocabulary,
    /// `[n_queues, tokens]`, row-major.
    pub weight: Vec<f32>,
    /// `[n_queues]`.
    pub bias: Vec<f32>,
    /// How much of it counts.
    pub gate: Gate,
}

impl Lexical {
    /// One logit per queue, before the gate.
    #[must_use]
    pub fn logits(&self, mail: &EncodedEmail) -> Vec<f32> {
        self.logits_of(mail.tokens.iter())
    }

    /// [`Lexical::logits`] of a mail that has just these tokens.
    #[must_use]
    pub fn logits_of<'a>(&'a self, tokens: impl Iterator<Item = &'a Token> + 'a) -> Vec<f32> {
        let row = self.vocabulary.features_of(tokens);
        let of_queue = |(queue, bias): (usize, &f32)| {
            let weight = &self.weight[queue * self.vocabulary.len()..];
            bias + row.iter().map(|&(column, value)| weight[column] * value).sum::<f32>()
        };
        self.bias.iter().enumerate().map(of_queue).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::{Field, Token};

    fn mail(ids: &[u32]) -> EncodedEmail {
        let token = |&id| Token { id, field: Field::Body, range: 0..1, word: 0, unknown: false };
        EncodedEmail { tokens: ids.iter().map(token).collect(), tokens_total: ids.len() }
    }

    #[test]
    fn only_tokens_of_two_mails_are_counted_and_rare_ones_weigh_more() {
        let vocabulary = Vocabulary::fit(&[mail(&[7, 7, 3]), mail(&[3, 9]), mail(&[3, 9, 5])], Negation::default());
        assert_eq!(vocabulary.ids, [3, 9]);
        assert!((vocabulary.idf[0] - 1.0).abs() < 1e-6);
        assert!((vocabulary.idf[1] - ((4.0f32 / 3.0).ln() + 1.0)).abs() < 1e-6);
    }

    #[test]
    fn features_have_length_one_and_damp_repeats() {
        let vocabulary = Vocabulary::new(vec![3, 9], vec![1.0, 2.0], Negation::default());
        let row = vocabulary.features(&mail(&[9, 3, 3, 3, 100]));
        // 1 + ln 3 against 2: lengths by hand.
        let (a, b) = (1.0 + 3f32.ln(), 2.0f32);
        let length = (a * a + b * b).sqrt();
        assert_eq!(row.len(), 2);
        assert!((row[0].1 - a / length).abs() < 1e-6 && (row[1].1 - b / length).abs() < 1e-6);
    }

    #[test]
    fn what_is_waved_off_is_another_feature() {
        let negation = Negation { turning: vec![1], ..Negation::default() };
        let vocabulary = Vocabulary::fit(&[mail(&[1, 7]), mail(&[1, 7]), mail(&[7])], negation);
        assert_eq!(vocabulary.ids, [1, 7 | 1 << 31]);
        let columns = |ids: &[u32]| vocabulary.features(&mail(ids)).iter().map(|entry| entry.0).collect::<Vec<usize>>();
        assert_eq!(columns(&[1, 7]), [0, 1]);
        assert_eq!(columns(&[7, 1]), [0]);
    }

    #[test]
    fn a_mail_of_unknown_words_gets_the_bias() {
        let vocabulary = Vocabulary::new(vec![3], vec![1.0], Negation::default());
        let leg = Lexical { vocabulary, weight: vec![2.0, -1.0], bias: vec![0.5, 0.25], gate: Gate::default() };
        assert_eq!(leg.logits(&mail(&[8])), [0.5, 0.25]);
        assert_eq!(leg.logits(&mail(&[3])), [2.5, -0.75]);
        assert_eq!(leg.logits(&mail(&[])), [0.5, 0.25]);
    }
}
