//! Mails from which the deciding sentence was taken out: what is left speaks about a queue's matters and asks for nothing, so
//! no queue should be sure of it. That makes the deciding sentence matter.

use crate::tokenizer::EncodedEmail;

/// A remainder of fewer tokens is a greeting or a name, of which background mails teach as much.
const LEAST_LEFT: usize = 8;

/// The body without the sentences in which a token decides, and without the subject, which often repeats what is asked. `seams`:
/// where sentences of the body start, and its end. `None` where nothing is marked, or hardly anything is left.
pub(super) fn without_decisive(mail: &EncodedEmail, seams: &[usize], decisive: &[bool]) -> Option<EncodedEmail> {
    if !decisive.contains(&true) {
        return None;
    }
    let sentences = seams.windows(2).map(|ends| ends[0]..ends[1]);
    let rest = sentences.filter(|sentence| !decisive[sentence.clone()].contains(&true));
    let tokens: Vec<_> = rest.flat_map(|sentence| mail.tokens[sentence].iter().cloned()).collect();
    (tokens.len() >= LEAST_LEFT).then_some(tokens).map(|tokens| EncodedEmail { tokens_total: tokens.len(), tokens })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokenizer::{Field, Token};

    fn mail(tokens: u32) -> EncodedEmail {
        let token = |id| Token { id, field: Field::Body, range: 0..1, word: 0, unknown: false };
        EncodedEmail { tokens: (0..tokens).map(token).collect(), tokens_total: tokens as usize }
    }

    #[test]
    fn the_marked_sentence_and_the_subject_are_out() {
        // Two tokens of subject, then sentences of 5, 4 and 5 tokens; the middle one decides.
        let marks: Vec<bool> = (0..16).map(|token| token == 8 || token == 9).collect();
        let left = without_decisive(&mail(16), &[2, 7, 11, 16], &marks).unwrap();
        let ids: Vec<u32> = left.tokens.iter().map(|token| token.id).collect();
        assert_eq!(ids, [2, 3, 4, 5, 6, 11, 12, 13, 14, 15]);
        assert_eq!(left.tokens_total, 10);
    }

    #[test]
    fn a_mail_without_marks_or_with_little_else_gives_none() {
        assert!(without_decisive(&mail(16), &[0, 8, 16], &[false; 16]).is_none());
        assert!(without_decisive(&mail(16), &[0, 8, 16], &[]).is_none());
        let last: Vec<bool> = (0..16).map(|token| token == 15).collect();
        assert!(without_decisive(&mail(16), &[0, 7, 16], &last).is_none());
        assert!(without_decisive(&mail(16), &[0, 8, 16], &last).is_some());
    }
}
