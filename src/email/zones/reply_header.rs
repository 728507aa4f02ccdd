//! The line "On Monday somebody wrote:", in any of its languages and however the client wrapped it.
//!
//! A header is built from evidence: a verb of writing, a date, an address, the word the line starts with, a
//! colon at its end. No single word decides, so that a paragraph that starts with "On" or "Le" stays. Lines are
//! joined while they are wrapped, from the latest line that makes a whole header.

use std::sync::LazyLock;

use super::lines::{Line, next_filled};
use super::words::{OPENERS, WROTE};
use crate::email::pattern::Pattern;

/// A line, or several wrapped ones, that introduce an earlier mail.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReplyHeader {
    /// One past the last line.
    pub(super) end: usize,
    /// The next filled line is quoted deeper, so only quoted lines belong to the earlier mail.
    pub(super) quote_follows: bool,
    /// The joined text.
    pub(super) text: String,
}

/// A header is wrapped over at most this many lines.
const MAX_LINES: usize = 5;
/// "wrote:" behind the bracket of an address, in any language.
const MAX_BRACKET_REST: usize = 24;
/// Longer lines without an address are sentences.
const MAX_UNCONFIRMED: usize = 120;
/// Longer than any header.
const MAX_LENGTH: usize = 500;

static VERB: LazyLock<Pattern> = LazyLock::new(|| {
    let verbs: Vec<_> = WROTE.iter().map(|verb| regex::escape(verb)).collect();
    Pattern::new(&format!("(?i)(?:^|[^\\p{{Latin}}\\p{{Cyrillic}}])(?:{})", verbs.join("|")))
});

/// The English verb stands at the very end: "I wrote on 10 May and had this reply:" is a sentence.
static ENGLISH_VERB: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(r"(?i)\b(?:wrote|writes)(?: in message .{1,80}| back| (?:on|at) [\d.,/:\sapm-]{6,40})?\W*$")
});

static DATE: LazyLock<Pattern> = LazyLock::new(|| {
    Pattern::new(
        r"(?x)
        \b(?:19|20)\d\d\b | \d{1,2}[:.h]\d\d\b | \d{1,4}[./-]\d{1,2}[./-]\d{1,4} | \d{1,2}\s?[日월月]",
    )
});

/// A date with its year. Where neither an address nor a quote confirms a header, it needs this and a time: a
/// sentence such as "On 3 May 2026 I ordered a lamp, and you wrote:" has not both.
static FULL_DATE: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(r"\b(?:19|20)\d\d\b|\b\d{1,4}[./-]\s?\d{1,2}[./-]\s?\d{1,4}\b|\d年"));

static TIME: LazyLock<Pattern> = LazyLock::new(|| Pattern::new(r"\b\d{1,2}[:.h]\d\d\b|\d時"));

static ADDRESS: LazyLock<Pattern> = LazyLock::new(|| Pattern::new(r"[^\s<>@]@[^\s<>@]+\s?[>)\]]"));

/// A date and a time at the front of a line, as old Gmail wrote it: "2013/7/20 Name <address>".
static ISO_START: LazyLock<Pattern> =
    LazyLock::new(|| Pattern::new(r"^\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:[ ,]+\d{1,2}:\d\d(?::\d\d)?)?(?: (?:GMT|UTC))?"));

/// Reads the header that starts at line `start`.
pub(super) fn read(lines: &[Line<'_>], start: usize) -> Option<ReplyHeader> {
    let depth = lines[start].depth;
    let mut joined = String::new();
    for end in start..lines.len().min(start + MAX_LINES) {
        let line = &lines[end];
        // A client that breaks an address before its bracket makes the rest look quoted.
        let deeper = line.depth > depth && line.text.len() > MAX_BRACKET_REST;
        if line.is_blank() || deeper || line.depth < depth || joined.len() + line.text.len() > MAX_LENGTH {
            return None;
        }
        if !joined.is_empty() {
            joined.push(' ');
        }
        joined.push_str(line.text);
        let quote_follows = quote_follows(lines, end + 1, depth);
        if !may_end(line.text, quote_follows) && !starts_with_opener(&joined) {
            continue;
        }
        if is_header(&joined, quote_follows) && !later_start(lines, start + 1, end, quote_follows) {
            return Some(ReplyHeader { end: end + 1, quote_follows, text: joined });
        }
    }
    None
}

/// A header that starts on a later line leaves this line to the sender's text. The second half of a wrapped
/// header is none: it has no date, or no opener where the first half has one.
fn later_start(lines: &[Line<'_>], from: usize, end: usize, quote_follows: bool) -> bool {
    let opened = starts_with_opener(lines[from - 1].text);
    (from..=end).any(|start| {
        let joined = lines[start..=end].iter().map(|line| line.text).collect::<Vec<_>>().join(" ");
        let whole = date_start(&joined).is_some() && (!opened || starts_with_opener(&joined));
        whole && is_header(&joined, quote_follows)
    })
}

fn quote_follows(lines: &[Line<'_>], from: usize, depth: usize) -> bool {
    next_filled(lines, from).is_some_and(|next| lines[next].depth > depth || lines[next].text.starts_with("| "))
}

/// Cheap test on the last line, so that the patterns run on few lines.
fn may_end(text: &str, quote_follows: bool) -> bool {
    quote_follows || text.ends_with([':', '：', '-', '*', '>']) || text.contains("GMT")
}

fn is_header(text: &str, quote_follows: bool) -> bool {
    // "About the mail of 5 May:" refers to a mail, it does not quote one.
    if text.contains("の件") && !quote_follows {
        return false;
    }
    let dashed = text.starts_with("--") && text.ends_with("--");
    let text = text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '-' | '_'));
    let verb = writes(text);
    let Some(date) = date_start(text) else {
        let ends = dashed || text.ends_with([':', '：']);
        return someone_wrote(text) || (verb && ends && quote_follows && text.len() < 150);
    };
    let addressed = ADDRESS.is_match(text);
    let colon = text.ends_with([':', '：']);
    let iso = ISO_START.find(text);
    if !verb {
        // "2026年5月5日 9:12 Name <address>:" names no verb at all.
        let named = addressed && (colon || quote_follows) && date < 40 && text.len() < 250;
        return named || iso.is_some_and(|found| text[found].ends_with("GMT")) && text.len() < 100;
    }
    let opened = starts_with_opener(text);
    let dated = || FULL_DATE.is_match(text) && TIME.is_match(text) && text.len() < MAX_UNCONFIRMED;
    if quote_follows || dashed || (colon && (addressed || dated())) {
        return addressed || date < 40 || opened;
    }
    opened && addressed && text.ends_with("wrote")
}

/// "Name <address> wrote:" without a date.
fn someone_wrote(text: &str) -> bool {
    text.ends_with([':', '：']) && text.len() < 120 && ADDRESS.is_match(text) && writes(text) && !text.contains(". ")
}

fn writes(text: &str) -> bool {
    ENGLISH_VERB.is_match(text) || VERB.is_match(text)
}

fn starts_with_opener(text: &str) -> bool {
    let head: String = text.chars().take(12).collect::<String>().to_lowercase();
    OPENERS.iter().any(|opener| head.starts_with(opener))
}

/// Where the first date stands, in figures or, at the front, spelled out: "Mon, 3 March".
fn date_start(text: &str) -> Option<usize> {
    static SPELLED: LazyLock<Pattern> = LazyLock::new(|| {
        Pattern::new(
            r"(?x)^(?:
                (?:\p{L}+\ )?\p{L}{2,12}\.?,?\ (?:\p{L}{2,12}\.?\ )?\d{1,2}\b
              | (?:\p{L}+\ )?\d{1,2}\.?\ \p{L}{3,12}\b)",
        )
    });
    let spelled = SPELLED.find(text).filter(|_| text.len() < 250);
    spelled.or_else(|| DATE.find(text)).map(|found| found.start)
}

#[cfg(test)]
mod tests {
    use super::super::lines::split;
    use super::*;

    fn ends(text: &str) -> Option<usize> {
        read(&split(text, &[]), 0).map(|header| header.end)
    }

    #[test]
    fn wrapped_headers_are_joined() {
        assert_eq!(ends("On Tue, May 5, 2026 at 9:12 AM Acme Desk <\ndesk@acme.example> wrote:\n\n> Hello"), Some(2));
        assert_eq!(ends("Am Di., 5. Mai 2026 um 09:12 Uhr schrieb Acme <\nhilfe@acme.example>:\n> x"), Some(2));
        assert_eq!(ends("2026年5月5日(火) 9:12 Acme サポート <help@acme.example>:\n\n> x"), Some(1));
    }

    #[test]
    fn prose_is_no_header() {
        for text in [
            "On Monday I wrote to you about the lamp.",
            "Le problème vient du lecteur.\nLe 5 mai 2026 à 09:12, Acme <a@acme.example> a écrit :",
            "I wrote the following on the form:",
            "On the 5th of May at 10:30 your driver wrote down the wrong address",
        ] {
            assert_eq!(ends(text), None, "{text}");
        }
    }
}
