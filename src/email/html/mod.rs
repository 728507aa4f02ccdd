//! HTML to text, each byte aligned with the source.
//!
//! One pass, no tree: tags are read where they stand, text is copied from its place, and elements that matter
//! (hidden parts, quotes, signatures, `pre`) are kept on a small stack until their end tag. The result is what
//! a reader sees, and marks that say where mail programs put quotes and signatures.

mod entity;
mod role;
mod tag;

use std::ops::Range;

use super::AlignedText;
use super::aligned::AlignedBuilder;
use role::{Break, Role};
use tag::{Markup, Scanner, Tag};

/// The visible text of an HTML part and what its elements say about it.
#[derive(Debug)]
pub(super) struct HtmlText {
    pub(super) text: AlignedText,
    pub(super) marks: Vec<Mark>,
}

/// A stretch of the text that a mail program has marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) kind: MarkKind,
    pub(super) range: Range<usize>,
}

/// What a mail program says about a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkKind {
    /// An earlier mail.
    Quote,
    /// A `blockquote` that may be a quoted mail or the sender's own layout.
    Blockquote,
    /// The line that introduces a quote.
    ReplyHeader,
    /// The header block of an earlier mail which follows as sibling.
    HistoryHeader,
    /// A signature.
    Signature,
}

/// More open marked elements than any mail has.
const MAX_OPEN: usize = 200;

/// Reads the visible text of an HTML source.
pub(super) fn read(source: &str) -> HtmlText {
    let mut walker = Walker {
        source,
        scanner: Scanner::new(source),
        out: AlignedBuilder::new(source),
        open: Vec::new(),
        marks: Vec::new(),
        hidden_classes: Vec::new(),
        hidden: 0,
        small: false,
        preformatted: 0,
        gap: Gap::default(),
    };
    walker.walk();
    HtmlText { text: walker.out.finish(), marks: walker.marks }
}

/// An open element that does something to its content.
struct Open {
    name: String,
    role: Role,
    text_start: usize,
    /// Elements of the same name that are open inside it.
    nested: usize,
    /// Elements open inside it that end what is open in them, counted while it hides.
    containers: usize,
    /// Whether the text around it is hidden by its size.
    small_around: bool,
}

/// The blanks that will stand before the next visible character.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Gap {
    line_ends: usize,
    blank: bool,
}

struct Walker<'a> {
    source: &'a str,
    scanner: Scanner<'a>,
    out: AlignedBuilder<'a>,
    open: Vec<Open>,
    marks: Vec<Mark>,
    hidden_classes: Vec<String>,
    hidden: usize,
    /// The text is hidden by its size.
    small: bool,
    preformatted: usize,
    gap: Gap,
}

impl Walker<'_> {
    fn walk(&mut self) {
        let mut at = 0;
        while at < self.source.len() {
            let text_end = self.source[at..].find('<').map_or(self.source.len(), |offset| at + offset);
            self.text(at..text_end);
            if text_end == self.source.len() {
                break;
            }
            at = match self.scanner.markup(text_end) {
                Markup::Tag(tag) => self.tag(&tag, text_end),
                Markup::Comment(end) => end,
                Markup::Text => {
                    self.visible(text_end..text_end + 1);
                    text_end + 1
                }
            };
        }
        while !self.open.is_empty() {
            self.close_last();
        }
    }

    /// Handles a tag that starts at `start` and answers where reading goes on.
    fn tag(&mut self, tag: &Tag<'_>, start: usize) -> usize {
        if tag.name.contains('@') {
            // An address in angle brackets that nobody escaped.
            self.visible(start..tag.end);
            return tag.end;
        }
        let name = tag.name.to_ascii_lowercase();
        if tag.is_end {
            self.end_tag(&name);
            self.line_break(&name);
            return tag.end;
        }
        self.line_break(&name);
        if role::RAW.contains(&name.as_str()) && !tag.attributes.ends_with('/') {
            let Some(end) = self.scanner.raw_text_end(tag.end, &name) else {
                return tag.end;
            };
            if name == "style" {
                self.hidden_classes.extend(role::hidden_classes(&self.source[tag.end..end]));
                self.hidden_classes.truncate(role::MAX_HIDDEN_CLASSES);
            }
            return end;
        }
        if !role::VOID.contains(&name.as_str()) {
            self.start_tag(name, tag.attributes);
        } else if matches!(role::role(&name, tag.attributes, &[]), Role::Marked(MarkKind::HistoryHeader)) {
            let at = self.out.text().len();
            self.marks.push(Mark { kind: MarkKind::HistoryHeader, range: at..at + 1 });
        }
        tag.end
    }

    fn start_tag(&mut self, name: String, attributes: &str) {
        // What was never closed ends where the next of its kind starts, and a paragraph where any block does.
        // A cell of a table inside a cell is no next one.
        if self.open.last().is_some_and(|last| last.containers == 0 && role::ends_before(&last.name, &name)) {
            self.close_last();
        }
        if let Some(last) = self.open.iter_mut().rev().find(|open| open.name == name) {
            last.nested += 1;
        }
        if role::contains_others(&name)
            && let Some(last) = self.open.last_mut()
        {
            last.containers += 1;
        }
        let role = role::role(&name, attributes, &self.hidden_classes);
        let seen_again = self.small && role::sets_size(&name, attributes);
        if (role == Role::Plain && !seen_again) || self.open.len() >= MAX_OPEN {
            return;
        }
        if let Some(outer) = self.open.iter_mut().rev().find(|open| open.name == name) {
            outer.nested -= 1;
        }
        let small_around = self.small;
        self.small = role == Role::Small || self.small && !seen_again;
        match role {
            Role::Hidden => self.hidden += 1,
            Role::Preformatted => self.preformatted += 1,
            Role::Plain | Role::Small | Role::Marked(_) => {}
        }
        self.open.push(Open { name, role, text_start: self.out.text().len(), nested: 0, containers: 0, small_around });
    }

    fn end_tag(&mut self, name: &str) {
        if role::contains_others(name) {
            self.end_hidden_inside(name);
        }
        let Some(index) = self.open.iter().rposition(|open| open.name == name) else {
            return;
        };
        if self.open[index].nested > 0 {
            self.open[index].nested -= 1;
            return;
        }
        while self.open.len() > index {
            self.close_last();
        }
    }

    /// An element within a line, or one whose end tag may be left out, ends with what it stands in: a hidden `span` that nobody
    /// closed hides no more than that.
    fn end_hidden_inside(&mut self, name: &str) {
        while let Some(last) = self.open.last_mut() {
            if last.name == name {
                return;
            }
            if last.containers > 0 {
                last.containers -= 1;
                return;
            }
            if last.role != Role::Hidden || !role::may_stay_open(&last.name) {
                return;
            }
            self.close_last();
        }
    }

    fn close_last(&mut self) {
        let Some(open) = self.open.pop() else { return };
        self.small = open.small_around;
        match open.role {
            Role::Hidden => self.hidden -= 1,
            Role::Preformatted => self.preformatted -= 1,
            Role::Marked(kind) => {
                self.marks.push(Mark { kind, range: open.text_start..self.out.text().len().max(open.text_start + 1) });
            }
            Role::Plain | Role::Small => {}
        }
    }

    fn line_break(&mut self, name: &str) {
        match role::line_break(name) {
            Break::None => {}
            Break::Cell => self.gap.blank = true,
            // Two line breaks in a row are an empty line; two nested blocks are not.
            Break::Line if name == "br" => self.gap.line_ends = (self.gap.line_ends + 1).min(2),
            Break::Line => self.gap.line_ends = self.gap.line_ends.max(1),
            Break::Paragraph => self.gap.line_ends = 2,
        }
    }

    /// Writes a stretch of text between tags.
    fn text(&mut self, range: Range<usize>) {
        if !self.is_seen() {
            return;
        }
        let bytes = self.source.as_bytes();
        let mut at = range.start;
        while at < range.end {
            let stop = bytes[at..range.end]
                .iter()
                .position(|byte| byte.is_ascii_whitespace() || *byte == b'&')
                .map_or(range.end, |offset| at + offset);
            if stop > at {
                self.visible(at..stop);
            }
            if stop == range.end {
                break;
            }
            at = if bytes[stop] == b'&' { self.reference(stop, range.end) } else { self.blank(stop) };
        }
    }

    fn reference(&mut self, at: usize, end: usize) -> usize {
        match entity::read(&self.source[at..end]) {
            Some(reference) => {
                let stop = at + reference.length;
                self.write_gap(at);
                self.out.replace(at..stop, &reference.text);
                stop
            }
            None => {
                self.visible(at..at + 1);
                at + 1
            }
        }
    }

    fn blank(&mut self, at: usize) -> usize {
        if self.preformatted > 0 && self.source.as_bytes()[at] == b'\n' {
            self.gap.line_ends = (self.gap.line_ends + 1).min(2);
        } else {
            self.gap.blank = true;
        }
        at + 1
    }

    fn is_seen(&self) -> bool {
        self.hidden == 0 && !self.small
    }

    fn visible(&mut self, range: Range<usize>) {
        if self.is_seen() {
            self.write_gap(range.start);
            self.out.copy(range);
        }
    }

    fn write_gap(&mut self, at: usize) {
        let gap = std::mem::take(&mut self.gap);
        if self.out.text().is_empty() {
            return;
        }
        match gap {
            Gap { line_ends: 0, blank: false } => {}
            Gap { line_ends: 0, blank: true } => {
                let single = at > 0 && self.source.as_bytes()[at - 1] == b' ';
                if single { self.out.copy(at - 1..at) } else { self.out.replace(at..at, " ") }
            }
            Gap { line_ends: 1, .. } => self.out.replace(at..at, "\n"),
            Gap { .. } => self.out.replace(at..at, "\n\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str) -> String {
        read(source).text.text().to_owned()
    }

    #[test]
    fn what_a_reader_sees_is_kept() {
        assert_eq!(text("<p>a<br>b</p><p>c &amp;\n d</p>"), "a\nb\n\nc & d");
        assert_eq!(text("<table><tr><td>Name</td><td>Ann</td></tr><tr><td>No</td></tr></table>"), "Name Ann\nNo");
        assert_eq!(text("a <b>b</b>c 1 < 2 <x@y.example>"), "a bc 1 < 2 <x@y.example>");
        assert_eq!(text("<pre>a\n b</pre>"), "a\nb");
    }

    #[test]
    fn what_a_reader_does_not_see_goes() {
        let source = "<head><title>t</title><style>.k{display:none}</style><body><div style='display:none'>x<div>y</div></div>\
                      <!--[if mso]><p>o</p><![endif]--><span class=k>k</span>seen<script>1<2</script>";
        assert_eq!(text(source), "seen");
    }

    #[test]
    fn what_is_hidden_by_size_alone_is_seen_where_a_size_is_set() {
        let mjml = "<div style='line-height:0;font-size:0;'>gone<table><tr><td><div style='font-size:16px;line-height:1.5'>Are there nuts?\
                    <div>Ann</div></div></td></tr></table></div><div>end</div>";
        assert_eq!(text(mjml), "Are there nuts?\nAnn\n\nend");
        assert_eq!(text("<span style='font-size:0;line-height:0'>preview</span>seen"), "seen");
    }

    #[test]
    fn a_hidden_element_that_nobody_closed_hides_no_more_than_a_browser_does() {
        assert_eq!(
            text("<div><span style='display:none'>preview</div><div>I want a refund.</div>"),
            "I want a refund."
        );
        assert_eq!(text("<td><span style='display:none'>preview</td><td>I want a refund.</td>"), "I want a refund.");
        for open in [
            "<div><p style='display:none'>preview</div><div>I want a refund.</div>",
            "<p style='display:none'>preview<div>I want a refund.</div>",
            "<table><tr><td style='display:none'>preview<td>I want a refund.</tr></table>",
            "<ul><li style='display:none'>preview<li>I want a refund.</ul>",
        ] {
            assert_eq!(text(open), "I want a refund.", "{open}");
        }
        for nested in [
            "<table><tr><td style='display:none'><table><tr><td>preview</td></tr></table>more</td><td>seen</td></tr></table>",
            "<table><tr style='display:none'><td><table><tr><td>preview</td></tr></table></td></tr><tr><td>seen</td></tr></table>",
            "<ul><li style='display:none'>a<ul><li>preview</li></ul>more</li><li>seen</li></ul>",
        ] {
            assert_eq!(text(nested), "seen", "{nested}");
        }
        let closed = "<div><span style='display:none'>a<div>b<div>c</div></div>d</span>seen</div>";
        assert_eq!(text(closed), "seen");
        assert_eq!(text("<div style='display:none'>a<p>b</div>seen"), "seen");
    }

    #[test]
    fn quotes_are_marked_and_nest() {
        let html = read("hi<blockquote type=cite>a<blockquote>b</blockquote></blockquote>end");
        assert_eq!(html.text.text(), "hi\n\na\n\nb\n\nend");
        let kinds: Vec<_> = html.marks.iter().map(|mark| (mark.kind, mark.range.clone())).collect();
        assert_eq!(kinds, [(MarkKind::Blockquote, 5..8), (MarkKind::Quote, 2..8)]);
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = format!("{}deep{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        assert_eq!(text(&deep), "deep");
        assert_eq!(text(&"<blockquote>".repeat(100_000)), "");
    }
}
