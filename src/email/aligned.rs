//! Text that remembers where it came from.
//!
//! Cleaning takes things away and replaces others: tags, entities, quotes, odd blanks. A highlight in the
//! answer must still point into the mail as it was posted. [`AlignedText`] keeps the cleaned text, the posted
//! text and, between them, runs: stretches that were copied byte for byte, and stretches that were replaced as
//! a whole. Looking up a position is a binary search over the runs.
//!
//! ```
//! use postroom::email::{CleanOptions, Fields, Posted, clean};
//!
//! let fields = Fields { html: Some("<p>Caf&eacute; is <b>closed</b></p>"), ..Fields::default() };
//! let mail = clean(&Posted::Fields(fields), &CleanOptions::default());
//! assert_eq!(mail.body.text(), "Café is closed");
//! let range = mail.body.posted_range(0..5);
//! assert_eq!(&mail.body.posted()[range], "Caf&eacute;");
//! ```

use std::ops::Range;

/// Text in which each byte knows where it stood in the text as posted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlignedText {
    text: String,
    posted: String,
    runs: Vec<Run>,
}

/// A stretch of the cleaned text and the stretch of the posted text it came from.
///
/// Invariant: runs are sorted, do not overlap on either side, and cover the cleaned text without a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    text_start: usize,
    posted: Range<usize>,
    /// Both sides hold the same bytes, so that offsets inside the run can be carried over.
    verbatim: bool,
}

impl AlignedText {
    /// A text that was not changed at all.
    #[must_use]
    pub fn identity(text: &str) -> Self {
        let mut builder = AlignedBuilder::new(text);
        builder.copy(0..text.len());
        builder.finish()
    }

    /// The cleaned text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The decoded text as posted, into which [`AlignedText::posted_range`] points.
    #[must_use]
    pub fn posted(&self) -> &str {
        &self.posted
    }

    /// Whether nothing but blanks is left.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Where a range of bytes of [`AlignedText::text`] stood in [`AlignedText::posted`].
    ///
    /// Positions past the end or inside a character are moved to the nearest boundary around the range, so any
    /// range has an answer, and both ends of the answer are character boundaries of the posted text.
    #[must_use]
    pub fn posted_range(&self, range: Range<usize>) -> Range<usize> {
        let start = self.text.floor_char_boundary(range.start.min(self.text.len()));
        let end = self.text.ceil_char_boundary(range.end.min(self.text.len()));
        if start >= end {
            let at = self.posted_start(start);
            return at..at;
        }
        let posted_start = self.posted_start(start);
        let last = self.run_at(end - 1);
        let posted_end = self.runs.get(last).map_or(self.posted.len(), |run| {
            if run.verbatim { run.posted.start + (end - run.text_start) } else { run.posted.end }
        });
        posted_start..posted_end.max(posted_start)
    }

    fn posted_start(&self, at: usize) -> usize {
        if at >= self.text.len() {
            return self.runs.last().map_or(0, |run| run.posted.end);
        }
        let run = &self.runs[self.run_at(at)];
        if run.verbatim { run.posted.start + (at - run.text_start) } else { run.posted.start }
    }

    /// The index of the run that holds the byte `at` of the cleaned text.
    fn run_at(&self, at: usize) -> usize {
        self.runs.partition_point(|run| run.text_start <= at).saturating_sub(1)
    }

    /// Puts another text behind this one, one line break between them on both sides.
    pub(super) fn append(&mut self, other: &AlignedText) {
        let separated = !self.posted.is_empty();
        if separated {
            let at = self.posted.len();
            self.runs.push(Run { text_start: self.text.len(), posted: at..at + 1, verbatim: true });
            self.text.push('\n');
            self.posted.push('\n');
        }
        let (text_shift, posted_shift) = (self.text.len(), self.posted.len());
        self.runs.extend(other.runs.iter().map(|run| Run {
            text_start: run.text_start + text_shift,
            posted: run.posted.start + posted_shift..run.posted.end + posted_shift,
            verbatim: run.verbatim,
        }));
        self.text.push_str(&other.text);
        self.posted.push_str(&other.posted);
    }

    /// Drops what is past `max_bytes` of the cleaned text; answers whether there was any.
    pub(super) fn truncate(&mut self, max_bytes: usize) -> bool {
        let kept = self.text.floor_char_boundary(max_bytes);
        if kept == self.text.len() {
            return false;
        }
        self.text.truncate(kept);
        self.runs.retain(|run| run.text_start < kept);
        if let Some(last) = self.runs.last_mut().filter(|last| last.verbatim) {
            last.posted.end = last.posted.start + (kept - last.text_start);
        }
        true
    }

    /// The same text with `later`, whose posted text is this cleaned text, laid over it.
    pub(super) fn then(self, later: &AlignedText) -> AlignedText {
        debug_assert_eq!(self.text, later.posted);
        let mut builder = AlignedBuilder::new("");
        for (index, run) in later.runs.iter().enumerate() {
            let text_end = later.runs.get(index + 1).map_or(later.text.len(), |next| next.text_start);
            let piece = &later.text[run.text_start..text_end];
            if run.verbatim {
                self.copy_runs(run.posted.clone(), &mut builder);
            } else {
                builder.push(piece, self.posted_range(run.posted.clone()), false);
            }
        }
        AlignedText { text: builder.text, runs: builder.runs, posted: self.posted }
    }

    /// Copies a range of this text with its runs.
    fn copy_runs(&self, range: Range<usize>, builder: &mut AlignedBuilder<'_>) {
        let mut at = range.start;
        let mut index = self.run_at(at);
        while at < range.end {
            let run = &self.runs[index];
            let run_end = self.runs.get(index + 1).map_or(self.text.len(), |next| next.text_start);
            let end = run_end.min(range.end);
            let posted = if run.verbatim {
                run.posted.start + (at - run.text_start)..run.posted.start + (end - run.text_start)
            } else {
                run.posted.clone()
            };
            builder.push(&self.text[at..end], posted, run.verbatim);
            at = end;
            index += 1;
        }
    }
}

/// Writes an [`AlignedText`] from left to right.
#[derive(Debug)]
pub(super) struct AlignedBuilder<'a> {
    posted: &'a str,
    text: String,
    runs: Vec<Run>,
}

impl<'a> AlignedBuilder<'a> {
    /// Starts an empty text over the posted one.
    pub(super) fn new(posted: &'a str) -> Self {
        Self { posted, text: String::with_capacity(posted.len() / 2), runs: Vec::new() }
    }

    /// What has been written so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Copies a range of the posted text as it is.
    pub(super) fn copy(&mut self, posted: Range<usize>) {
        self.push(&self.posted[posted.clone()], posted, true);
    }

    /// Writes `text` in the place of a range of the posted text.
    pub(super) fn replace(&mut self, posted: Range<usize>, text: &str) {
        self.push(text, posted, false);
    }

    /// Takes the last byte, an ASCII character that was copied, off the end again.
    pub(super) fn drop_last_byte(&mut self) {
        self.text.pop();
        if let Some(last) = self.runs.last_mut() {
            last.posted.end -= 1;
            if last.posted.is_empty() {
                self.runs.pop();
            }
        }
    }

    /// The finished text.
    pub(super) fn finish(self) -> AlignedText {
        AlignedText { text: self.text, posted: self.posted.to_owned(), runs: self.runs }
    }

    fn push(&mut self, text: &str, posted: Range<usize>, verbatim: bool) {
        if text.is_empty() {
            return;
        }
        if let Some(last) = self.runs.last_mut()
            && verbatim
            && last.verbatim
            && last.posted.end == posted.start
        {
            last.posted.end = posted.end;
        } else {
            self.runs.push(Run { text_start: self.text.len(), posted, verbatim });
        }
        self.text.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_points_at_itself() {
        let text = AlignedText::identity("grüße");
        assert_eq!(text.posted_range(0..4), 0..4);
        assert_eq!(text.posted_range(3..4), 2..4, "inside a character: the whole character");
        assert_eq!(text.posted_range(90..95), 7..7);
    }

    #[test]
    fn a_replaced_stretch_answers_as_a_whole() {
        let mut builder = AlignedBuilder::new("a&amp;b");
        builder.copy(0..1);
        builder.replace(1..6, "&");
        builder.copy(6..7);
        let text = builder.finish();
        assert_eq!(text.text(), "a&b");
        assert_eq!(text.posted_range(1..2), 1..6);
        assert_eq!(text.posted_range(2..3), 6..7);
    }

    #[test]
    fn layers_compose() {
        let mut first = AlignedBuilder::new("x&amp;yz");
        first.copy(0..1);
        first.replace(1..6, "&");
        first.copy(6..8);
        let first = first.finish();
        let mut second = AlignedBuilder::new("x&yz");
        second.copy(1..3);
        let composed = first.then(&second.finish());
        assert_eq!(composed.text(), "&y");
        assert_eq!(composed.posted_range(0..1), 1..6);
        assert_eq!(composed.posted_range(1..2), 6..7);
        assert_eq!(composed.posted(), "x&amp;yz");
    }

    #[test]
    fn truncation_keeps_the_runs_in_step() {
        let mut text = AlignedText::identity("grüße");
        assert!(text.truncate(3));
        assert_eq!((text.text(), text.posted_range(0..9)), ("gr", 0..2));
        assert!(!text.truncate(2));
    }

    #[test]
    fn a_text_behind_another_keeps_its_places() {
        let mut text = AlignedText::identity("a");
        text.append(&AlignedText::identity("bc"));
        assert_eq!((text.text(), text.posted()), ("a\nbc", "a\nbc"));
        assert_eq!(text.posted_range(3..4), 3..4);
    }
}
