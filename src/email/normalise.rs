//! The last step before the tokenizer: one form for every character, none that cannot be seen.
//!
//! - Line ends become `\n`; blanks at line ends and more than one empty line in a row go.
//! - Control characters, soft hyphens, zero-width spaces and other invisible format characters go. U+200D stays
//!   inside emoji sequences and Indic clusters, U+200C between letters that join.
//! - Letters are composed (NFC). Compatibility forms stay as they are; that is the tokenizer's business.

use std::ops::Range;

use unicode_normalization::char::canonical_combining_class;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::AlignedText;
use super::aligned::AlignedBuilder;

/// Normalises the given ranges of a text as paragraphs of one body.
pub(super) fn body(text: &str, kept: &[Range<usize>]) -> AlignedText {
    let mut writer = Writer::new(text, Lines::Keep);
    for range in kept {
        writer.write(range.clone());
    }
    writer.finish()
}

/// Normalises a text to one line.
pub(super) fn line(text: &str) -> AlignedText {
    let mut writer = Writer::new(text, Lines::Join);
    writer.write(0..text.len());
    writer.finish()
}

/// What a line end becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    Keep,
    Join,
}

/// Blanks that were read and are only written when a visible character follows.
#[derive(Debug, Default)]
struct Gap {
    posted: Range<usize>,
    line_ends: usize,
}

/// A base character with what may compose with it.
#[derive(Debug, Default)]
struct Cluster {
    text: String,
    posted: Range<usize>,
    verbatim: bool,
}

struct Writer<'a> {
    text: &'a str,
    lines: Lines,
    out: AlignedBuilder<'a>,
    gap: Option<Gap>,
    cluster: Cluster,
    previous: char,
}

impl<'a> Writer<'a> {
    fn new(text: &'a str, lines: Lines) -> Self {
        let out = AlignedBuilder::new(text);
        Self { text, lines, out, gap: None, cluster: Cluster::default(), previous: ' ' }
    }

    fn write(&mut self, range: Range<usize>) {
        let bytes = self.text.as_bytes();
        let mut at = range.start;
        while at < range.end {
            let plain = plain_ascii_run(&bytes[at..range.end]);
            if plain > 1 {
                // The last letter may still compose with a mark that follows it.
                self.flush();
                self.write_gap();
                self.out.copy(at..at + plain - 1);
                at += plain - 1;
            }
            let Some(c) = self.text[at..range.end].chars().next() else {
                break;
            };
            let end = at + c.len_utf8();
            self.write_char(c, at..end);
            at = end;
        }
    }

    fn write_char(&mut self, c: char, posted: Range<usize>) {
        if matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}' | '\u{85}' | '\u{c}' | '\u{b}') {
            let crlf = c == '\n' && posted.start > 0 && self.text.as_bytes()[posted.start - 1] == b'\r';
            self.blank(posted, usize::from(!crlf));
        } else if c.is_whitespace() {
            self.blank(posted, 0);
        } else if !self.keeps(c, posted.end) {
            // Dropped; a pending cluster stays open so that marks around it still compose.
        } else if is_boundary(c) {
            self.flush();
            self.write_gap();
            self.cluster = Cluster { text: c.to_string(), posted, verbatim: true };
            self.previous = c;
        } else {
            self.write_gap();
            if self.cluster.text.is_empty() {
                self.cluster.posted = posted;
            } else {
                self.cluster.verbatim &= self.cluster.posted.end == posted.start;
                self.cluster.posted.end = posted.end;
            }
            self.cluster.text.push(c);
            self.previous = c;
        }
    }

    /// Whether a character that may be invisible has a meaning where it stands.
    fn keeps(&self, c: char, next: usize) -> bool {
        match c {
            '\u{200d}' => is_emoji_like(self.previous) || is_joining_script(self.previous),
            '\u{200c}' => {
                is_joining_script(self.previous) && self.text[next..].chars().next().is_some_and(is_joining_script)
            }
            _ => !is_invisible(c),
        }
    }

    fn blank(&mut self, posted: Range<usize>, line_ends: usize) {
        self.flush();
        let gap = self.gap.get_or_insert_with(|| Gap { posted: posted.clone(), line_ends: 0 });
        gap.posted.end = posted.end;
        gap.line_ends += line_ends;
    }

    fn write_gap(&mut self) {
        let Some(gap) = self.gap.take() else { return };
        if self.out.text().is_empty() {
            return;
        }
        let wanted = match (self.lines, gap.line_ends) {
            (Lines::Join, _) | (Lines::Keep, 0) => " ",
            (Lines::Keep, 1) => "\n",
            (Lines::Keep, _) => "\n\n",
        };
        if self.text[gap.posted.clone()] == *wanted {
            self.out.copy(gap.posted);
        } else {
            self.out.replace(gap.posted, wanted);
        }
    }

    fn flush(&mut self) {
        let cluster = std::mem::take(&mut self.cluster);
        if cluster.text.is_empty() {
            return;
        }
        if cluster.verbatim && is_nfc_quick(cluster.text.chars()) == IsNormalized::Yes {
            self.out.copy(cluster.posted);
        } else {
            let composed: String = cluster.text.nfc().collect();
            self.out.replace(cluster.posted, &composed);
        }
    }

    fn finish(mut self) -> AlignedText {
        self.flush();
        self.out.finish()
    }
}

/// How many bytes at the front are printable ASCII, single blanks between them included.
fn plain_ascii_run(bytes: &[u8]) -> usize {
    let mut length = 0;
    while let Some(&byte) = bytes.get(length) {
        let single_blank = byte == b' ' && length > 0 && bytes.get(length + 1).is_some_and(u8::is_ascii_graphic);
        if !(byte.is_ascii_graphic() || single_blank) {
            break;
        }
        length += 1;
    }
    length
}

/// Whether a character never composes with what stands before it.
fn is_boundary(c: char) -> bool {
    c.is_ascii() || (canonical_combining_class(c) == 0 && is_nfc_quick(std::iter::once(c)) == IsNormalized::Yes)
}

fn is_emoji_like(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
}

/// Scripts in which a joiner or non-joiner changes how a word is spelled: Arabic and the Indic ones.
fn is_joining_script(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}')
        && c != '\u{feff}'
}

fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e001f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body_text(text: &str) -> String {
        let whole = 0..text.len();
        body(text, &[whole]).text().to_owned()
    }

    #[test]
    fn blanks_and_line_ends_are_tidied() {
        assert_eq!(body_text("\r\n a  b \r\nc\t\r\n\r\n\r\n\r\nd\r\n"), "a b\nc\n\nd");
        assert_eq!(line(" a\r\n\tb ").text(), "a b");
    }

    #[test]
    fn letters_are_composed_and_know_where_they_stood() {
        let whole = 0..9;
        let text = body("Cafe\u{301} zu", &[whole]);
        assert_eq!(text.text(), "Café zu");
        assert_eq!(text.posted_range(3..5), 3..6);
        assert_eq!(text.posted_range(6..8), 7..9);
    }

    #[test]
    fn invisible_characters_go_and_joiners_stay_where_they_join() {
        assert_eq!(body_text("pass\u{ad}wo\u{200b}rd\0 re\u{2060}set"), "password reset");
        assert_eq!(body_text("👩\u{200d}💻 می\u{200c}خواهم"), "👩\u{200d}💻 می\u{200c}خواهم");
        assert_eq!(body_text("e\0\u{301}"), "é");
    }
}
