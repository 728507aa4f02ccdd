//! Lines that announce an earlier mail without saying when or from whom: dashes around "Original message", a
//! bare rule, "reply above this line".

use std::sync::LazyLock;

use super::lines::Line;
use super::voice;
use super::words::{FORWARDED, ORIGINAL, REPLY_ABOVE, lower};
use crate::email::pattern::Pattern;

/// What a marker line announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// A forwarded mail, said outright.
    Forwarded,
    /// "Forwarded message" without dashes: counts only above a header block.
    MaybeForwarded,
    /// An earlier mail, replied to or passed on.
    Original,
}

/// "Please " and the like may stand before "reply above this line".
const MAX_BEFORE: usize = 8;
/// Longer lines are prose that mentions a forwarded message.
const MAX_MARKER: usize = 120;

/// Longer than any "original message" that stands alone.
const MAX_PHRASE: usize = 48;

/// Reads a line as marker.
pub(super) fn marker(line: &Line<'_>) -> Option<Marker> {
    let text = line.text;
    let dashes = leading_dashes(text);
    let inner = text.trim_matches(is_dash_or_blank);
    if inner.is_empty() || (dashes < 2 && inner.len() > MAX_MARKER) {
        return None;
    }
    // Yahoo writes the whole header block behind the dashes on the same line.
    let head = inner.split("---").next().unwrap_or(inner);
    if head.len() > MAX_MARKER {
        return None;
    }
    let colon = inner.ends_with([':', '：']);
    if dashes < 2 && !colon && inner.len() > MAX_PHRASE {
        return None;
    }
    let lower = lower(head);
    let forwarded = || FORWARDED.iter().any(|stem| lower.contains(stem));
    if dashes >= 2 {
        let closed = head.len() < inner.len() || text.ends_with(['-', '_', '=', '—', '–', '*']);
        // "--- My original message was not answered ---" is said, not printed.
        if voice::we_or_i(head) {
            return None;
        }
        if closed && forwarded() {
            return Some(Marker::Forwarded);
        }
        let framed = lower.trim_matches(|c: char| !c.is_alphanumeric());
        let original = ORIGINAL.iter().any(|phrase| framed.starts_with(phrase) || framed.ends_with(phrase));
        return original.then_some(Marker::Original);
    }
    if colon && forwarded() {
        return Some(Marker::MaybeForwarded);
    }
    // Some programs write the phrase alone.
    ORIGINAL.contains(&lower.trim_end_matches([':', ' '])).then_some(Marker::Original)
}

/// A line of nothing but dashes or the like, long enough to separate something.
pub(super) fn is_rule(text: &str) -> bool {
    text.chars().count() >= 5 && is_punctuation(text)
}

/// A line of nothing but the characters that people draw lines with.
pub(super) fn is_punctuation(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| is_dash_or_blank(c) || matches!(c, '#' | '~' | '+' | 'ᐧ' | '·'))
}

/// A few words between dashes, `-------- Oprindelig besked --------`, or words and a date around them, as Lotus
/// Notes writes above its block: `Acme Desk---05/04/2026 04:20:11 PM---Which lamp?`.
pub(super) fn is_dashed(text: &str) -> bool {
    let framed = text.len() < MAX_MARKER && leading_dashes(text) >= 4 && text.ends_with("----");
    let mut pieces = text.split("---").skip(1);
    let dated = pieces.next().is_some_and(|date| date.bytes().filter(u8::is_ascii_digit).count() >= 6);
    framed || dated && pieces.next().is_some()
}

fn leading_dashes(text: &str) -> usize {
    text.chars().take_while(|c| is_dash_or_blank(*c)).filter(|c| !c.is_whitespace()).count()
}

fn is_dash_or_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '-' | '_' | '=' | '*' | '—' | '–' | '―' | '─' | '━')
}

static ABOVE: LazyLock<Pattern> = LazyLock::new(|| {
    let phrases: Vec<_> = REPLY_ABOVE.iter().map(|phrase| regex::escape(phrase)).collect();
    Pattern::new(&format!("(?i){}", phrases.join("|")))
});

/// Whether the line, or it and the next one that the client wrapped, asks to reply above it. Helpdesks decorate the
/// phrase or give it the whole line; a sentence that mentions it does neither.
pub(super) fn asks_to_reply_above(lines: &[Line<'_>], index: usize) -> bool {
    let Some(line) = lines.get(index).filter(|line| line.text.len() < 200) else { return false };
    let asks = |text: &str| {
        ABOVE.find(text).is_some_and(|found| {
            let decorated = !text.starts_with(char::is_alphabetic);
            let alone = found.start <= MAX_BEFORE || !text[found.end..].contains(char::is_alphabetic);
            found.start < line.text.len().min(60) && (decorated || alone)
        })
    };
    let next = lines.get(index + 1).filter(|next| next.depth == line.depth && (1..100).contains(&next.text.len()));
    asks(line.text) || next.is_some_and(|next| asks(&format!("{} {}", line.text, next.text)))
}

#[cfg(test)]
mod tests {
    use super::super::lines::split;
    use super::*;

    #[test]
    fn dashes_make_a_marker_and_prose_does_not() {
        for (text, expected) in [
            ("---------- Forwarded message ---------", Some(Marker::Forwarded)),
            ("-------- Välitetty viesti / Fwd.Msg --------", Some(Marker::Forwarded)),
            ("-----Ursprüngliche Nachricht-----", Some(Marker::Original)),
            ("Begin forwarded message:", Some(Marker::MaybeForwarded)),
            ("I have forwarded the message to my boss.", None),
            ("- forwarded to Ann", None),
        ] {
            assert_eq!(marker(&split(text, &[])[0]), expected, "{text}");
        }
    }

    #[test]
    fn a_wrapped_reply_line_is_recognised() {
        let lines = split("##- Please type your reply above\nthis line -##\n", &[]);
        assert!(asks_to_reply_above(&lines, 0));
    }
}
