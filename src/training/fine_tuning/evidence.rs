//! The words that decide a mail, where the labeller marked them: a queue is taught to look there.

use std::ops::Range;

use crate::email::CleanEmail;
use crate::tokenizer::{EncodedEmail, Field, Token};

/// Which tokens stand in `sentence`, looked for in the body and then in the subject; empty where it is in neither, as when the
/// cleaning took it for a quotation.
pub(in crate::training) fn decisive_tokens(email: &CleanEmail, encoded: &EncodedEmail, sentence: &str) -> Vec<bool> {
    let found = [(Field::Body, &email.body), (Field::Subject, &email.subject)]
        .into_iter()
        .find_map(|(field, text)| Some((field, find_words(text.text(), sentence)?)));
    let Some((field, range)) = found else { return Vec::new() };
    let inside = |token: &Token| token.field == field && token.range.start < range.end && token.range.end > range.start;
    encoded.tokens.iter().map(inside).collect()
}

/// Where `words` stand in `text`, in bytes; blanks and line breaks do not count.
fn find_words(text: &str, words: &str) -> Option<Range<usize>> {
    let wanted: String = words.split_whitespace().collect();
    let places: Vec<(usize, char)> = text.char_indices().filter(|(_, letter)| !letter.is_whitespace()).collect();
    let letters: String = places.iter().map(|(_, letter)| letter).collect();
    let first = letters[..letters.find(&wanted).filter(|_| !wanted.is_empty())?].chars().count();
    let (last, letter) = places[first + wanted.chars().count() - 1];
    Some(places[first].0..last + letter.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::email::{CleanOptions, Fields, Posted, clean};

    #[test]
    fn words_are_found_whatever_blanks_stand_between_them() {
        assert_eq!(find_words("One. Cr\u{e8}me\r\n br\u{fb}l\u{e9}e? No", "Cr\u{e8}me br\u{fb}l\u{e9}e"), Some(5..22));
        assert_eq!(find_words("a b", "b"), Some(2..3));
        assert_eq!(find_words("a b", "c"), None);
        assert_eq!(find_words("a b", " "), None);
        assert_eq!(find_words("", "a"), None);
    }

    #[test]
    fn tokens_of_the_sentence_are_marked_in_the_field_where_it_stands() {
        let fields = Fields { subject: Some("Money"), text: Some("It came.\nMoney back!"), ..Fields::default() };
        let email = clean(&Posted::Fields(fields), &CleanOptions::default());
        let token = |field, range| Token { id: 5, field, range, word: 0, unknown: false };
        let body = [0..2, 3..7, 7..8, 9..14, 15..19, 19..20].map(|range| token(Field::Body, range));
        let tokens: Vec<Token> = std::iter::once(token(Field::Subject, 0..5)).chain(body).collect();
        let mail = EncodedEmail { tokens_total: tokens.len(), tokens };
        let marked = |sentence| -> Vec<usize> {
            let marks = decisive_tokens(&email, &mail, sentence);
            (0..marks.len()).filter(|&token| marks[token]).collect()
        };
        assert_eq!(marked("Money back!"), [4, 5, 6]);
        assert_eq!(marked("came. Money"), [2, 3, 4]);
        assert!(decisive_tokens(&email, &mail, "no such words").is_empty());
    }
}
