//! The parts of a mail that are taken out one by one: sentences or words, as runs of tokens.

use std::ops::Range;

use super::sentences::sentences;
use crate::tokenizer::{EncodedEmail, Field, Token};

/// A stretch of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its tokens, as positions in [`EncodedEmail::tokens`]; never empty.
    pub tokens: Range<usize>,
    /// Where it stands.
    pub field: Field,
    /// Byte range in the clean text of the field.
    pub range: Range<usize>,
    /// How many sentences or words were put together; 1 unless there were too many.
    pub members: usize,
}

/// The sentences of a mail that have tokens. `subject` and `body` are the clean texts that were encoded.
#[must_use]
pub fn sentence_parts(mail: &EncodedEmail, subject: &str, body: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    for (field, text) in [(Field::Subject, subject), (Field::Body, body)] {
        for range in sentences(text) {
            let start = at;
            // A token that stands between two sentences, which only odd blanks could cause, goes with the second.
            while mail.tokens.get(at).is_some_and(|token| token.field == field && token.range.start < range.end) {
                at += 1;
            }
            if start < at {
                parts.push(Part { tokens: start..at, field, range, members: 1 });
            }
        }
    }
    parts
}

/// The words among some tokens of a mail.
#[must_use]
pub fn word_parts(mail: &EncodedEmail, tokens: Range<usize>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut last: Option<&Token> = None;
    for position in tokens {
        let Some(token) = mail.tokens.get(position) else { break };
        // Two pieces in one place (a character that became two) belong to one word as well.
        let same = |last: &Token| last.word == token.word || (last.field == token.field && last.range == token.range);
        match parts.last_mut() {
            Some(part) if last.is_some_and(same) => {
                part.tokens.end = position + 1;
                part.range.end = part.range.end.max(token.range.end);
            }
            _ => parts.push(Part {
                tokens: position..position + 1,
                field: token.field,
                range: token.range.clone(),
                members: 1,
            }),
        }
        last = Some(token);
    }
    parts
}

/// About `most` parts: where there are more, neighbours of one field are put together, each group of nearly equal length in
/// tokens. Parts that do not touch never join, nor do subject and body, so there may be one more than `most` for each gap.
#[must_use]
pub fn grouped(parts: Vec<Part>, most: usize) -> Vec<Part> {
    if parts.len() <= most.max(1) {
        return parts;
    }
    let tokens: usize = parts.iter().map(|part| part.tokens.len()).sum();
    let group_of = |before: usize| before * most.max(1) / tokens.max(1);
    let (mut groups, mut before, mut last_group) = (Vec::<Part>::new(), 0, None);
    for part in parts {
        let group = group_of(before);
        before += part.tokens.len();
        match groups.last_mut() {
            Some(last)
                if last_group == Some(group) && last.field == part.field && last.tokens.end == part.tokens.start =>
            {
                last.tokens.end = part.tokens.end;
                last.range.end = part.range.end;
                last.members += part.members;
            }
            _ => groups.push(part),
        }
        last_group = Some(group);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word of the texts as a token; its last letter a piece of its own where it has more than four.
    fn mail(subject: &str, body: &str) -> EncodedEmail {
        let mut mail = EncodedEmail::default();
        let mut word = 0;
        for (field, text) in [(Field::Subject, subject), (Field::Body, body)] {
            for found in text.split_whitespace() {
                let start = found.as_ptr() as usize - text.as_ptr() as usize;
                let end = start + found.len();
                let cut = if found.len() > 4 { end - 1 } else { end };
                for range in [start..cut, cut..end].into_iter().filter(|range| !range.is_empty()) {
                    mail.tokens.push(Token { id: 5, field, range, word, unknown: false });
                }
                word += 1;
            }
        }
        mail.tokens_total = mail.tokens.len();
        mail
    }

    #[test]
    fn sentences_tile_the_tokens() {
        let (subject, body) = ("Cold cake", "It was cold. Money back, please!\n\n \nAnn");
        let mail = mail(subject, body);
        let parts = sentence_parts(&mail, subject, body);
        assert_eq!(parts.len(), 4);
        assert_eq!((parts[0].field, parts[1].field), (Field::Subject, Field::Body));
        assert_eq!(&body[parts[2].range.clone()], "Money back, please!");
        let mut next = 0;
        for part in &parts {
            assert_eq!(part.tokens.start, next);
            next = part.tokens.end;
        }
        assert_eq!(next, mail.tokens.len());
    }

    #[test]
    fn pieces_of_a_word_are_one_part() {
        let mail = mail("", "one chocolate cake");
        let parts = word_parts(&mail, 0..mail.tokens.len());
        let tokens: Vec<_> = parts.iter().map(|part| part.tokens.clone()).collect();
        assert_eq!(tokens, [0..1, 1..3, 3..4]);
        assert_eq!(parts[1].range, 4..13);
    }

    #[test]
    fn too_many_parts_are_put_together_and_none_is_lost() {
        let body = "a b c d e f g h i j";
        let mail = mail("x y", body);
        let words = word_parts(&mail, 0..mail.tokens.len());
        let groups = grouped(words.clone(), 3);
        assert!(groups.len() <= 4);
        assert_eq!(groups.iter().map(|part| part.members).sum::<usize>(), 12);
        assert_eq!(groups[0].field, Field::Subject);
        let tokens: usize = groups.iter().map(|part| part.tokens.len()).sum();
        assert_eq!(tokens, mail.tokens.len());
        assert_eq!(grouped(words.clone(), 12), words);
    }
}
