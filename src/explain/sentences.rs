//! Where the sentences and lines of a mail are: the parts that a person would point at.
//!
//! Lines of a mail that was wrapped at a fixed width belong together; a short line stands for itself, as greetings, list items
//! and names do. Within such a block the sentence boundaries of Unicode (UAX #29) count.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// A line of at least so many characters was probably broken by a mail program.
const WRAPPED: usize = 50;

/// Words that end in a full stop without ending a sentence. Unicode's rules know none.
const ABBREVIATIONS: [&str; 14] =
    ["mr", "mrs", "ms", "dr", "prof", "st", "no", "nr", "vs", "approx", "tel", "ext", "e.g", "i.e"];

/// Byte ranges of the sentences, without the blanks around them, in order.
///
/// ```
/// use postroom::explain::sentences;
///
/// let mail = "Hi,\nthe cake was cold. Can I get my money back?\nAnn";
/// let found: Vec<&str> = sentences(mail).into_iter().map(|range| &mail[range]).collect();
/// assert_eq!(found, ["Hi,", "the cake was cold.", "Can I get my money back?", "Ann"]);
/// ```
#[must_use]
pub fn sentences(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for block in blocks(text) {
        // Line breaks end a sentence for Unicode; blanks of the same length keep all positions.
        let flat = text[block.clone()].replace(['\n', '\r'], " ");
        let mut goes_on = false;
        for (at, piece) in flat.split_sentence_bound_indices() {
            let start = block.start + at + (piece.len() - piece.trim_start().len());
            let end = block.start + at + piece.trim_end().len();
            if start >= end {
                continue;
            }
            match found.last_mut() {
                Some(last) if goes_on => last.end = end,
                _ => found.push(start..end),
            }
            goes_on = ends_in_abbreviation(piece);
        }
    }
    found
}

fn ends_in_abbreviation(sentence: &str) -> bool {
    let Some(before) = sentence.trim_end().strip_suffix('.') else { return false };
    let word = before.rsplit(|character: char| !character.is_alphanumeric() && character != '.').next();
    word.is_some_and(|word| {
        let initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
        initial || ABBREVIATIONS.contains(&word.to_lowercase().as_str())
    })
}

/// Runs of lines that belong together.
fn blocks(text: &str) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    let mut wrapped = false;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        match blocks.last_mut() {
            Some(last) if wrapped && continues(line) => last.end = end,
            _ => blocks.push(start..end),
        }
        wrapped = line.trim_end().chars().count() >= WRAPPED;
        start = end;
    }
    blocks
}

/// Whether a line could go on with the one before: neither blank nor an item of a list.
fn continues(line: &str) -> bool {
    let line = line.trim_start();
    let numbered = line.trim_start_matches(|character: char| character.is_ascii_digit());
    let item = line.starts_with(['-', '*', '\u{2022}', '>', '+'])
        || (numbered.len() < line.len() && numbered.starts_with([')', '.']));
    !line.is_empty() && !item
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        sentences(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn wrapped_lines_are_one_sentence_and_short_lines_their_own() {
        let mail = "Hello,\n\nI ordered the large chocolate cake for my daughter's\r\nbirthday and it never came. Please help!\n\nThanks\nAnn";
        assert_eq!(
            texts(mail),
            [
                "Hello,",
                "I ordered the large chocolate cake for my daughter's\r\nbirthday and it never came.",
                "Please help!",
                "Thanks",
                "Ann"
            ]
        );
    }

    #[test]
    fn items_of_a_list_stay_apart() {
        let mail = "I would like these things to be delivered on the same Friday:\n- two loaves\n2. one tart";
        assert_eq!(texts(mail).len(), 3);
    }

    #[test]
    fn abbreviations_and_numbers_do_not_end_a_sentence() {
        assert_eq!(
            texts("Mr. Smith paid 6.20 for it. Order no. 5 is late."),
            ["Mr. Smith paid 6.20 for it.", "Order no. 5 is late."]
        );
        assert_eq!(texts("K. Szabo wrote. Twice."), ["K. Szabo wrote.", "Twice."]);
    }

    #[test]
    fn other_scripts_have_sentences_too() {
        assert_eq!(texts("\u{30b1}\u{30fc}\u{30ad}\u{3002}\u{9045}\u{3044}\u{3002}").len(), 2);
    }

    proptest! {
        #[test]
        fn sentences_are_in_order_inside_the_text_and_miss_nothing_but_blanks(text in "[a-zA-Z .!?\n\r\u{e9}\u{1f382}\u{3002}-]{0,120}") {
            let mut next = 0;
            for range in sentences(&text) {
                prop_assert!(range.start >= next && range.start < range.end);
                prop_assert!(text[next..range.start].trim().is_empty());
                prop_assert_eq!(text[range.clone()].trim(), &text[range.clone()]);
                next = range.end;
            }
            prop_assert!(text[next..].trim().is_empty());
        }
    }
}
