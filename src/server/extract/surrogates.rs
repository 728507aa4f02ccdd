//! Halves of emoji in JSON: `\ud83d` without its other half.
//!
//! Systems that cut text after so many UTF-16 units send them, and a strict reader refuses the whole mail for one. Each
//! becomes `\ufffd`, the replacement character; nothing moves, because both are six characters long.

use std::borrow::Cow;

/// The JSON with every lone surrogate escape replaced.
pub(super) fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let lone = lone_surrogates(json.as_bytes());
    if lone.is_empty() {
        return Cow::Borrowed(json);
    }
    let mut repaired = json.to_owned();
    for at in lone {
        repaired.replace_range(at..at + 6, "\\ufffd");
    }
    Cow::Owned(repaired)
}

/// Where lone escapes start.
fn lone_surrogates(json: &[u8]) -> Vec<usize> {
    let mut lone = Vec::new();
    let mut at = 0;
    while at < json.len() {
        if json[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(json, at) {
            // Another escape, such as `\\` or `\n`: both of its characters are done with.
            None => at += 2,
            Some(0xd800..=0xdbff) if matches!(unit(json, at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                lone.push(at);
                at += 6;
            }
            Some(_) => at += 6,
        }
    }
    lone
}

/// The UTF-16 unit of an escape `\uXXXX` at this place.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_are_kept() {
        let json = r#"["\ud83d", "\ude00\ud83d", "\ud83d\ude00", "\\ud83d", "\ud83d\n", "\uD83Dx"]"#;
        let repaired = replace_lone_surrogates(json);
        let texts: Vec<String> = serde_json::from_str(&repaired).unwrap();
        assert_eq!(texts, ["\u{fffd}", "\u{fffd}\u{fffd}", "\u{1f600}", "\\ud83d", "\u{fffd}\n", "\u{fffd}x"]);
        assert_eq!(repaired.len(), json.len());
    }

    #[test]
    fn broken_escapes_at_the_end_are_left_to_the_parser() {
        for json in ["\"\\", "\"\\u", "\"\\ud8", "\"\\ud83d", "\\\u{e9}"] {
            let _ = replace_lone_surrogates(json);
        }
    }
}
