//! Sentences about nothing, put between those of a mail: the network learns that they decide nothing, wherever the one
//! that does may stand.

use crate::email::CleanEmail;
use crate::random::SplitMix64;
use crate::tokenizer::{EncodedEmail, Field, Token};

/// Tokenized sentences that belong to no queue.
#[derive(Debug, Clone, Default)]
pub struct Background {
    sentences: Vec<Vec<Token>>,
}

impl Background {
    /// From encoded sentences; each becomes part of other mails.
    #[must_use]
    pub fn new(sentences: impl IntoIterator<Item = EncodedEmail>) -> Self {
        let sentences = sentences.into_iter().map(|sentence| sentence.tokens).filter(|tokens| !tokens.is_empty());
        Self { sentences: sentences.collect() }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sentences.is_empty()
    }

    /// Their tokens, one sentence after another.
    pub(super) fn tokens(&self) -> impl Iterator<Item = &Token> {
        self.sentences.iter().flatten()
    }

    /// How many of them make a mail as long as the longest of these, at most `most`: longer mail than there is teaches nothing
    /// of it and costs the most.
    pub(super) fn that_fit(&self, mails: &[EncodedEmail], most: usize) -> usize {
        let tokens = self.tokens().count();
        let longest = mails.iter().map(|mail| mail.tokens.len()).max().unwrap_or(0);
        (longest * self.sentences.len() / tokens.max(1)).clamp(1, most.max(1)).min(most)
    }

    /// A mail of up to `most` sentences about nothing.
    pub(super) fn mail(&self, most: usize, random: &mut SplitMix64) -> EncodedEmail {
        self.insert((&EncodedEmail::default(), &[]), &[0], most, random).0
    }

    /// The mail with up to `most` sentences put in at its seams, and which of its tokens decide; places and words of the new
    /// tokens mean nothing.
    pub(super) fn insert(
        &self,
        (mail, decisive): (&EncodedEmail, &[bool]),
        seams: &[usize],
        most: usize,
        random: &mut SplitMix64,
    ) -> (EncodedEmail, Vec<bool>) {
        if self.sentences.is_empty() || seams.is_empty() || most == 0 {
            return (mail.clone(), decisive.to_vec());
        }
        let count = 1 + random.below(most);
        // Half of the time all of them go to one seam: a long run before the first word or after the last, which people do
        // write and which places drawn one by one would hardly ever make.
        let one_seam = (random.uniform() < 0.5).then(|| seams[random.below(seams.len())]);
        let mut places: Vec<usize> =
            (0..count).map(|_| one_seam.unwrap_or_else(|| seams[random.below(seams.len())])).collect();
        places.sort_unstable();
        let mut tokens = Vec::with_capacity(mail.tokens.len() + 16 * places.len());
        let mut marks = Vec::with_capacity(tokens.capacity());
        let mut from = 0;
        for place in places {
            tokens.extend_from_slice(&mail.tokens[from..place]);
            marks.extend_from_slice(decisive.get(from..place).unwrap_or_default());
            tokens.extend_from_slice(&self.sentences[random.below(self.sentences.len())]);
            if !decisive.is_empty() {
                marks.resize(tokens.len(), false);
            }
            from = place;
        }
        tokens.extend_from_slice(&mail.tokens[from..]);
        marks.extend_from_slice(decisive.get(from..).unwrap_or_default());
        (EncodedEmail { tokens_total: tokens.len(), tokens }, marks)
    }
}

/// Where sentences of the body start, as token positions, the end of the mail included: the places at which others may be
/// put in.
#[must_use]
pub fn sentence_starts(email: &CleanEmail, encoded: &EncodedEmail) -> Vec<usize> {
    let text = email.body.text();
    let mut starts = Vec::new();
    for (position, token) in encoded.tokens.iter().enumerate() {
        if token.field != Field::Body {
            continue;
        }
        let before = text.get(..token.range.start).unwrap_or_default();
        let blank = before.trim_end_matches([' ', '\t']);
        let ends = blank.is_empty() || blank.ends_with(['\n', '.', '!', '?', '\u{2026}']);
        if ends && (blank.len() < before.len() || blank.is_empty() || blank.ends_with('\n')) {
            starts.push(position);
        }
    }
    starts.push(encoded.tokens.len());
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(ids: &[u32]) -> EncodedEmail {
        let token = |&id| Token { id, field: Field::Body, range: 0..1, word: 0, unknown: false };
        EncodedEmail { tokens: ids.iter().map(token).collect(), tokens_total: ids.len() }
    }

    #[test]
    fn whole_sentences_go_in_at_seams_and_the_mail_keeps_its_order() {
        let background = Background::new([tokens(&[90, 91]), tokens(&[80])]);
        let mail = tokens(&[1, 2, 3, 4]);
        let mut random = SplitMix64::seeded(1);
        for _ in 0..50 {
            let decisive = [false, false, true, false];
            let (longer, marks) = background.insert((&mail, &decisive), &[0, 2, 4], 5, &mut random);
            let marked = longer.tokens.iter().zip(&marks).filter(|(_, decides)| **decides).map(|(token, _)| token.id);
            assert_eq!((marked.collect::<Vec<u32>>(), marks.len()), (vec![3], longer.tokens.len()));
            let ids: Vec<u32> = longer.tokens.iter().map(|token| token.id).collect();
            let own: Vec<u32> = ids.iter().copied().filter(|&id| id < 10).collect();
            assert_eq!(own, [1, 2, 3, 4]);
            assert!(ids.len() > 4 && ids.len() <= 14 && longer.tokens_total == ids.len());
            let joined = ids.windows(2).any(|pair| pair == [1, 2]) && ids.windows(2).any(|pair| pair == [3, 4]);
            assert!(joined, "{ids:?}");
            assert!(ids.iter().enumerate().all(|(at, &id)| id != 90 || ids[at + 1] == 91));
        }
    }

    #[test]
    fn half_of_the_mails_get_all_sentences_at_one_seam() {
        let background = Background::new([tokens(&[90])]);
        let mail = tokens(&[1, 2, 3]);
        let mut random = SplitMix64::seeded(1);
        let together = |longer: &EncodedEmail| {
            let own: Vec<usize> = (0..longer.tokens.len()).filter(|&at| longer.tokens[at].id < 10).collect();
            let gaps = own.windows(2).filter(|pair| pair[1] - pair[0] > 1).count();
            gaps + usize::from(own[0] > 0) + usize::from(own[2] + 1 < longer.tokens.len()) == 1
        };
        let count = (0..400)
            .map(|_| background.insert((&mail, &[]), &[0, 1, 2, 3], 20, &mut random).0)
            .filter(|longer| together(longer))
            .count();
        // Places drawn one by one fall together now and then, too.
        assert!((180..260).contains(&count), "{count}");
    }

    #[test]
    fn a_mail_about_nothing_is_made_of_whole_sentences() {
        let background = Background::new([tokens(&[90, 91])]);
        let mail = background.mail(3, &mut SplitMix64::seeded(2));
        assert!([2, 4, 6].contains(&mail.tokens.len()) && mail.tokens_total == mail.tokens.len());
    }

    #[test]
    fn short_mail_gets_few_sentences() {
        let background = Background::new([tokens(&[90, 91]), tokens(&[80, 81, 82, 83])]);
        let mails = [tokens(&[1; 5]), tokens(&[1; 13])];
        assert_eq!(background.that_fit(&mails, 20), 4);
        assert_eq!(background.that_fit(&mails, 3), 3);
        assert_eq!(background.that_fit(&mails, 0), 0);
        assert_eq!(background.that_fit(&[tokens(&[1])], 20), 1);
        assert_eq!(Background::default().that_fit(&mails, 20), 1);
    }

    #[test]
    fn without_sentences_or_seams_a_mail_stays() {
        let mail = tokens(&[1, 2]);
        let mut random = SplitMix64::seeded(1);
        assert_eq!(Background::default().insert((&mail, &[]), &[0], 5, &mut random).0, mail);
        assert_eq!(Background::new([tokens(&[9])]).insert((&mail, &[]), &[], 5, &mut random).0, mail);
    }
}
