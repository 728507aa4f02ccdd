//! The zones of a mail: whose words each line holds.
//!
//! Lines are read from top to bottom. Structure decides first (HTML elements, header blocks, quote marks), then
//! the languages of mail programs. Below a line that introduces an earlier mail only quoted lines are cut, so
//! that answers between the quotes stay; where nothing is quoted, the rest of the mail is the earlier one. A
//! forwarded mail is the sender's message to us and keeps its text.

mod contact;
mod footer;
mod label_block;
mod lines;
mod markers;
mod notice;
mod reply_header;
mod scan;
mod subject;
mod voice;
mod words;

use std::ops::Range;

use super::address;
use super::cleaned::ZoneKind;
use super::html::Mark;
use lines::Line;
use scan::Scanned;
pub(super) use subject::{SubjectKind, without_prefix};

/// What is known about the mail from its headers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    /// What the subject says the mail is.
    pub(super) subject: SubjectKind,
    /// The mail answers another one: `In-Reply-To` or `References` is set.
    pub(super) in_reply: bool,
}

/// A mail that is passed on, as far as its header block tells.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Forward {
    pub(super) from: Option<String>,
    pub(super) subject: Option<String>,
}

/// A stretch of the text and what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextZone {
    pub(super) kind: ZoneKind,
    pub(super) range: Range<usize>,
}

/// The whole mail by zones.
#[derive(Debug)]
pub(super) struct Zoned {
    /// Zones in order; together they cover the text.
    pub(super) zones: Vec<TextZone>,
    /// The sender's own lines without the quote marks of a forward.
    pub(super) own: Vec<Range<usize>>,
    pub(super) forward: Option<Forward>,
}

/// Splits a body into zones.
pub(super) fn split(text: &str, marks: &[Mark], context: Context) -> Zoned {
    let lines = lines::split(text, marks);
    let mut scanned = scan::read(&lines, context);
    let mut text_above = false;
    for section in sections(&scanned.kinds) {
        let (lines, kinds) = (&lines[section.clone()], &mut scanned.kinds[section]);
        notice::mark(lines, kinds);
        footer::mark(lines, kinds, text_above);
        text_above |= lines.iter().zip(kinds).any(|(line, kind)| *kind == ZoneKind::Text && !line.is_blank());
    }
    settle_blank_lines(&lines, &mut scanned.kinds);
    collect(&lines, scanned)
}

/// Reads the subject's prefixes.
pub(super) fn subject_kind(subject: Option<&str>) -> SubjectKind {
    subject::kind(subject)
}

/// Stretches of consecutive lines of the sender; each may have its own signature and notices.
fn sections(kinds: &[ZoneKind]) -> Vec<Range<usize>> {
    let mut start = 0;
    let runs = kinds.chunk_by(|a, b| a == b).map(|run| {
        let range = start..start + run.len();
        start = range.end;
        (run[0], range)
    });
    runs.filter(|(kind, _)| *kind == ZoneKind::Text).map(|(_, range)| range).collect()
}

/// A blank line belongs to the zone above it.
fn settle_blank_lines(lines: &[Line<'_>], kinds: &mut [ZoneKind]) {
    for index in 1..lines.len() {
        if lines[index].is_blank() {
            kinds[index] = kinds[index - 1];
        }
    }
}

fn collect(lines: &[Line<'_>], scanned: Scanned) -> Zoned {
    let mut zones: Vec<TextZone> = Vec::new();
    let mut own = Vec::new();
    for ((line, kind), base) in lines.iter().zip(scanned.kinds).zip(scanned.bases) {
        match zones.last_mut() {
            Some(last) if last.kind == kind => last.range.end = line.range.end,
            _ => zones.push(TextZone { kind, range: line.range.clone() }),
        }
        if kind == ZoneKind::Text {
            own.push(line.start_at_depth(base)..line.range.end);
        }
    }
    Zoned { zones, own, forward: scanned.forward }
}
