//! The block of labelled fields that Outlook, Apple Mail and others write above an earlier mail.
//!
//! ```text
//! Von: Acme Service <service@acme.example>
//! Gesendet: Montag, 4. Mai 2026 16:20
//! An: Mara Lindqvist
//! Betreff: Ihre Anfrage 4410
//! ```
//!
//! The structure decides: lines `label: value` of one depth, at least three different fields, a sender among
//! them. Labels may be bold (`*From:*`), stand in separate paragraphs, and values may wrap.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::lines::Line;
use super::words::{Field, LABELS, lower};

/// A header block and what it says about the earlier mail.
#[derive(Debug, Default)]
pub(super) struct LabelBlock {
    /// One past the last line of the block.
    pub(super) end: usize,
    /// The value of the sender field.
    pub(super) from: Option<String>,
    /// The value of the subject field.
    pub(super) subject: Option<String>,
    fields: Vec<Field>,
    dated: bool,
}

static FIELDS: LazyLock<HashMap<&str, Field>> =
    LazyLock::new(|| LABELS.iter().flat_map(|(field, labels)| labels.iter().map(|label| (*label, *field))).collect());

/// A block has at most this many lines; long lists of recipients wrap.
const MAX_LINES: usize = 40;
/// A block that lost its line breaks is still no page.
const MAX_ONE_LINE: usize = 600;
/// How many lines of a wrapped value may stand between two labels.
const MAX_WRAPPED: usize = 4;

/// Reads the block that starts at line `start`; `announced` when a marker or rule stands before it.
pub(super) fn read(lines: &[Line<'_>], start: usize, announced: bool) -> Option<LabelBlock> {
    let depth = lines[start].depth;
    let first = label(lines[start].text)?;
    if first.field == Field::Copy {
        return None;
    }
    let line = lines[start].text;
    if line.len() < MAX_ONE_LINE {
        let block = LabelBlock::on_one_line(line, start + 1);
        if block.is_believable(false) {
            return Some(block);
        }
    }
    let mut block = LabelBlock::default();
    let mut at = start;
    while at < lines.len().min(start + MAX_LINES) {
        let Some(found) = label(lines[at].text).filter(|_| lines[at].depth == depth) else {
            break;
        };
        let next = next_label(lines, at + 1, depth);
        let value_end = next.filter(|next| !lines[at + 1..*next].iter().any(Line::is_blank)).unwrap_or(at + 1);
        block.add(found, lines[at + 1..value_end].iter().map(|line| line.text));
        block.end = value_end;
        match next {
            Some(next) => at = next,
            None => break,
        }
    }
    block.is_believable(announced).then_some(block)
}

/// The next line with a label, over blank lines and wrapped values.
fn next_label(lines: &[Line<'_>], from: usize, depth: usize) -> Option<usize> {
    let mut wrapped = 0;
    let mut blank = 0;
    for (index, line) in lines.iter().enumerate().skip(from) {
        if line.is_blank() {
            blank += 1;
            if blank > 1 || wrapped > 0 {
                return None;
            }
        } else if line.depth != depth {
            return None;
        } else if label(line.text).is_some() {
            return Some(index);
        } else {
            wrapped += 1;
            if wrapped > MAX_WRAPPED || blank > 0 {
                return None;
            }
        }
    }
    None
}

impl LabelBlock {
    /// Whether the block names a recipient.
    pub(super) fn has_recipient(&self) -> bool {
        self.fields.contains(&Field::To)
    }

    /// A block that an HTML element marks but whose labels are in no table.
    pub(super) fn unread(end: usize) -> Self {
        Self { end, ..Self::default() }
    }

    /// A block whose line breaks are lost: "From: A <a@x.example>To: B Subject: hello".
    pub(super) fn on_one_line(text: &str, end: usize) -> Self {
        let text = text.trim_end_matches(|c: char| c.is_whitespace() || c == '*');
        let mut labels: Vec<(usize, Label<'_>)> = Vec::new();
        for (at, c) in text.char_indices().take(4000) {
            if !matches!(c, ':' | '：') {
                continue;
            }
            let word_start = |words: usize| {
                let mut starts = text[..at].trim_end().char_indices().rev().filter(|(_, c)| !c.is_alphabetic());
                starts.nth(words).map_or(0, |(index, c)| index + c.len_utf8())
            };
            let last_word = word_start(0);
            // The end of the value before it may run into the label: "09:26:50 MEZBetreff:".
            let capitals =
                text[last_word..at].char_indices().filter(|(_, c)| c.is_uppercase()).map(|(at, _)| last_word + at);
            let mut starts = [word_start(1), last_word].into_iter().chain(capitals);
            if let Some(start) = starts.find(|&start| label(&text[start..]).is_some())
                && let Some(found) = label(&text[start..])
            {
                labels.push((start, found));
            }
        }
        let mut block = Self { end, ..Self::default() };
        for (index, (_, found)) in labels.iter().enumerate() {
            let value_start = text.len() - found.value.len();
            let value_end = labels.get(index + 1).map_or(text.len(), |(next, _)| *next);
            let value = text.get(value_start..value_end).unwrap_or_default().trim();
            block.add(Label { field: found.field, value }, std::iter::empty());
        }
        block
    }

    fn add<'a>(&mut self, label: Label<'_>, wrapped: impl Iterator<Item = &'a str>) {
        let mut value = label.value.to_owned();
        for line in wrapped {
            value.push(' ');
            value.push_str(line);
        }
        if !self.fields.contains(&label.field) {
            self.fields.push(label.field);
        }
        match label.field {
            Field::From => self.from = self.from.take().or(Some(value)),
            Field::Subject => self.subject = self.subject.take().or(Some(value)),
            Field::Date => self.dated |= value.bytes().filter(u8::is_ascii_digit).count() >= 3,
            Field::To | Field::Copy | Field::Other => {}
        }
    }

    /// A contact form, a booking and a bank transfer have labelled lines too; a header block that nothing announces has a sender,
    /// and either an address in it or both a date and a subject.
    fn is_believable(&self, announced: bool) -> bool {
        let has = |field| self.fields.contains(&field);
        let addressed = self.from.as_deref().is_some_and(|from| from.contains('@'));
        let real = self.fields.iter().filter(|field| **field != Field::Other).count();
        if announced {
            return real >= 2 && (has(Field::From) || (has(Field::Subject) && has(Field::Date)));
        }
        let titled = has(Field::Subject) && has(Field::Date) && self.dated;
        has(Field::From) && real >= 3 && (titled || addressed && (has(Field::Subject) || has(Field::Date)))
    }
}

#[derive(Clone, Copy)]
struct Label<'a> {
    field: Field,
    value: &'a str,
}

/// Longer than any label.
const MAX_LABEL: usize = 40;

/// Reads `Label: value`, bold or plain.
fn label(text: &str) -> Option<Label<'_>> {
    let text = text.trim_start_matches(['*', '_', '|', ' ']);
    let head = &text[..text.floor_char_boundary(MAX_LABEL)];
    let (name, colon) = head.find([':', '：']).map(|at| (&head[..at], at))?;
    let name = lower(name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_')));
    let field = *FIELDS.get(name.as_str())?;
    let rest = &text[colon..];
    let value = rest.trim_start_matches([':', '：', '*']).trim_matches(|c: char| c.is_whitespace() || c == '*');
    Some(Label { field, value })
}

#[cfg(test)]
mod tests {
    use super::super::lines::split;
    use super::*;

    fn block(text: &str) -> Option<LabelBlock> {
        read(&split(text, &[]), 0, false)
    }

    #[test]
    fn blocks_are_read_over_wraps_and_paragraphs() {
        let wrapped =
            block("From: A <a@x.example>\nTo: B,\n C <c@x.example>\nSubject: one\n two\nDate: Mon\n\nText").unwrap();
        assert_eq!((wrapped.end, wrapped.subject.as_deref()), (6, Some("one two")));
        let bold = block("*Von:* A\n\n*Gesendet:* 4. Mai 2026 16:20\n\n*Betreff:* x\n\nText").unwrap();
        assert_eq!((bold.end, bold.from.as_deref()), (5, Some("A")));
    }

    #[test]
    fn a_travel_form_is_no_header_block() {
        assert!(block("From: Berlin\nTo: Munich\nDate: tomorrow\nSeats: 2").is_none());
        assert!(block("From: Bakery Main Street\nTo: 12 Elm Road\nDate: 12.05.2026\n\nNever mind.").is_none());
        assert!(block("From: Ann\nTo: Bob\nDate: 12.05.2026\nSubject: the cake").is_some());
        assert!(block("From: Ann <ann@x.example>\nTo: Bob\nDate: Monday").is_some());
        assert!(block("To: whom it may concern\nplease help").is_none());
    }
}
