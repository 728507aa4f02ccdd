//! What the prefixes of a subject say: reply, forward, or nothing.

use super::words::{EITHER_PREFIXES, FORWARD_PREFIXES, REPLY_PREFIXES, lower};

/// What the subject says the mail is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::email) enum SubjectKind {
    /// It starts with "Re:" or the like.
    Reply,
    /// It starts with "Fwd:" or the like.
    Forward,
    /// It has no such prefix.
    Other,
    /// There is no subject, or a prefix that means either.
    Unknown,
}

/// Reads the first prefix; the outermost tells what the sender did last.
pub(super) fn kind(subject: Option<&str>) -> SubjectKind {
    let Some(subject) = subject.map(str::trim).filter(|subject| !subject.is_empty()) else {
        return SubjectKind::Unknown;
    };
    match prefix(subject) {
        None => SubjectKind::Other,
        Some(prefix) if EITHER_PREFIXES.contains(&prefix.as_str()) => SubjectKind::Unknown,
        Some(prefix) if FORWARD_PREFIXES.contains(&prefix.as_str()) => SubjectKind::Forward,
        Some(prefix) if REPLY_PREFIXES.contains(&prefix.as_str()) => SubjectKind::Reply,
        Some(_) => SubjectKind::Other,
    }
}

/// The subject without its first forward prefix.
pub(in crate::email) fn without_prefix(subject: &str) -> &str {
    match prefix(subject) {
        Some(_) => without_tags(subject).split_once([':', '：']).map_or(subject, |(_, rest)| rest.trim()),
        None => subject,
    }
}

/// Gateways put their tags first: "[EXTERNAL] [SPAM?] Re: ...", "EXTERNAL: Re: ...".
fn without_tags(subject: &str) -> &str {
    let mut rest = subject.trim_start();
    // Nobody has more.
    for _ in 0..4 {
        let bracketed = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let round = || rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).filter(|(tag, _)| is_tag(tag));
        let plain = || rest.split_once(':').filter(|(tag, _)| is_tag(tag));
        match bracketed.or_else(round).or_else(plain) {
            Some((_, after)) if after.contains([':', '：']) => rest = after.trim_start(),
            _ => break,
        }
    }
    rest
}

fn is_tag(text: &str) -> bool {
    ["external", "ext", "extern", "externe"].iter().any(|tag| text.trim().eq_ignore_ascii_case(tag))
}

/// The lower-cased word before the first colon: "RE[2]:" and "Re :" count, "Order 12:" does not.
fn prefix(subject: &str) -> Option<String> {
    let subject = without_tags(subject);
    let head = &subject[..subject.floor_char_boundary(40)];
    let (word, _) = head.split_once([':', '：'])?;
    let word = word.split(['[', '(', '^']).next().unwrap_or(word).trim().trim_end_matches('.');
    let word = lower(word);
    (!word.is_empty() && word.chars().count() <= 15).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_in_their_languages() {
        assert_eq!(kind(Some("AW: Termin")), SubjectKind::Reply);
        assert_eq!(kind(Some("[EXTERNAL] RE[2]: x")), SubjectKind::Reply);
        assert_eq!(kind(Some("WG: Fwd: x")), SubjectKind::Forward);
        for tagged in ["EXTERNAL: FW: x", "[EXT] [SUSPICIOUS] FW: x", "(External) FW: x"] {
            assert_eq!(kind(Some(tagged)), SubjectKind::Forward, "{tagged}");
            assert_eq!(without_prefix(tagged), "x");
        }
        assert_eq!(kind(Some("VS: x")), SubjectKind::Unknown);
        assert_eq!(kind(Some("Order 12: late")), SubjectKind::Other);
        assert_eq!(kind(Some(" ")), SubjectKind::Unknown);
        assert_eq!(without_prefix("Fwd: Re: x"), "Re: x");
    }
}
