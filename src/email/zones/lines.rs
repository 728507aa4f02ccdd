//! The lines of a mail with what stands in front of them: quote marks, blanks, and the marks of HTML.

use std::ops::Range;

use crate::email::html::{Mark, MarkKind};

/// One line of the body.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// The whole line with its line end.
    pub(super) range: Range<usize>,
    /// Where the content starts after one, two, ... quote marks.
    pub(super) content_starts: Vec<usize>,
    /// The content without quote marks and outer blanks.
    pub(super) text: &'a str,
    /// A blank stands at the end of the line, as behind the dashes of a standard signature.
    pub(super) ends_in_blank: bool,
    /// How often the line is quoted: `>` marks and quoting HTML elements.
    pub(super) depth: usize,
    /// Depth that comes from HTML elements and is therefore no text in front of the line.
    pub(super) element_depth: usize,
    /// An HTML element says for certain that this is an earlier mail.
    pub(super) surely_quoted: bool,
    /// An HTML element says that this line introduces a quote.
    pub(super) reply_header: bool,
    /// An HTML element says that an earlier mail starts with this line.
    pub(super) history_header: bool,
    /// An HTML element says that this is a signature.
    pub(super) signature: bool,
}

impl Line<'_> {
    /// Whether nothing but quote marks and blanks stands on the line.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    /// Where the content starts when the line belongs to a mail that is itself quoted `base` times.
    pub(super) fn start_at_depth(&self, base: usize) -> usize {
        let marks = base.saturating_sub(self.element_depth).min(self.content_starts.len());
        if marks == 0 { self.range.start } else { self.content_starts[marks - 1] }
    }
}

/// Splits a body into lines.
pub(super) fn split<'a>(text: &'a str, marks: &[Mark]) -> Vec<Line<'a>> {
    let mut lines = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let length = line_length(&text[start..]);
        lines.push(read(&text[start..start + length], start));
        start += length;
    }
    for mark in marks {
        apply(&mut lines, mark);
    }
    lines
}

/// The length of the first line with its line end: LF, CRLF, or the bare CR of old Macs.
fn line_length(text: &str) -> usize {
    match text.bytes().position(|byte| matches!(byte, b'\n' | b'\r')) {
        Some(at) if text[at..].starts_with("\r\n") => at + 2,
        Some(at) => at + 1,
        None => text.len(),
    }
}

/// More quote marks than any thread has.
const MAX_DEPTH: usize = 50;

fn read(raw: &str, start: usize) -> Line<'_> {
    let mut content_starts = Vec::new();
    let mut rest = raw;
    loop {
        let unblanked = rest.trim_start_matches([' ', '\t', '\u{a0}', '\u{feff}']);
        // A mark may stand behind one or two blanks; four make it somebody's indented code.
        let blanks = rest.len() - unblanked.len();
        let Some(after) = unblanked.strip_prefix('>').filter(|_| blanks <= 3 && content_starts.len() < MAX_DEPTH)
        else {
            break;
        };
        rest = after.strip_prefix(' ').unwrap_or(after);
        content_starts.push(start + raw.len() - rest.len());
    }
    let text = rest.trim_matches(|c: char| c.is_whitespace() || is_invisible(c));
    Line {
        range: start..start + raw.len(),
        depth: content_starts.len(),
        content_starts,
        ends_in_blank: raw.trim_end_matches(['\n', '\r']).ends_with(' '),
        text,
        element_depth: 0,
        surely_quoted: false,
        reply_header: false,
        history_header: false,
        signature: false,
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{feff}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn apply(lines: &mut [Line<'_>], mark: &Mark) {
    let from = lines.partition_point(|line| line.range.start < mark.range.start);
    let to = lines.partition_point(|line| line.range.start < mark.range.end);
    // The blank lines above an element stand in front of it, not in it.
    let from = (from..to).find(|&index| !lines[index].is_blank()).unwrap_or(to.max(from));
    let covered = &mut lines[from..to.max(from)];
    if mark.kind == MarkKind::HistoryHeader {
        if let Some(line) = covered.first_mut() {
            line.history_header = true;
        }
        return;
    }
    for line in covered {
        match mark.kind {
            MarkKind::Quote | MarkKind::Blockquote => {
                line.depth += 1;
                line.element_depth += 1;
                line.surely_quoted |= mark.kind == MarkKind::Quote;
            }
            MarkKind::ReplyHeader => line.reply_header = true,
            MarkKind::Signature => line.signature = true,
            MarkKind::HistoryHeader => {}
        }
    }
}

/// The first line at or after `from` that is not blank.
pub(super) fn next_filled(lines: &[Line<'_>], from: usize) -> Option<usize> {
    (from..lines.len()).find(|&index| !lines[index].is_blank())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quote_marks_are_counted_through_blanks() {
        assert_eq!(split("a\r\nb\rc\n\nd", &[]).len(), 5);
        let lines = split(" > a\n>> b\n> > > c\n    > code\nplain\n>\n", &[]);
        let depths: Vec<_> = lines.iter().map(|line| (line.depth, line.text)).collect();
        assert_eq!(depths, [(1, "a"), (2, "b"), (3, "c"), (0, "> code"), (0, "plain"), (1, "")]);
        assert_eq!(lines[2].start_at_depth(2), "> a\n>> b\n> > > c\n".find("> c").unwrap() + 1);
    }
}
