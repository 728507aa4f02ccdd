//! Character references: `&eacute;`, `&#233;`, `&#xE9;`, and the old ones without a semicolon.

use encoding_rs::WINDOWS_1252;
use html5ever::data::NAMED_ENTITIES;

/// A decoded reference and how many bytes of the source it took.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reference {
    pub(super) text: String,
    pub(super) length: usize,
}

/// The longest name that the standard knows, with its semicolon.
const MAX_NAME: usize = 32;

/// Reads the reference at the front of `source`, which starts with `&`; `None` when the `&` means itself.
pub(super) fn read(source: &str) -> Option<Reference> {
    let rest = source.strip_prefix('&')?;
    match rest.strip_prefix('#') {
        Some(number) => numeric(number),
        None => named(rest),
    }
}

fn numeric(rest: &str) -> Option<Reference> {
    let (digits, radix, prefix) = match rest.strip_prefix(['x', 'X']) {
        Some(hex) => (hex, 16, 3),
        None => (rest, 10, 2),
    };
    let length = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
    if length == 0 {
        return None;
    }
    let code = u32::from_str_radix(&digits[..length], radix).unwrap_or(u32::MAX);
    let semicolon = usize::from(digits.as_bytes().get(length) == Some(&b';'));
    Some(Reference { text: character(code).to_string(), length: prefix + length + semicolon })
}

/// The standard reads the C1 range as windows-1252, which is what its writers meant.
fn character(code: u32) -> char {
    match u8::try_from(code) {
        Ok(byte @ 0x80..=0x9f) => {
            let (text, _) = WINDOWS_1252.decode_without_bom_handling(std::slice::from_ref(&byte));
            text.chars().next().unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        _ => char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

fn named(rest: &str) -> Option<Reference> {
    let letters = rest.bytes().take(MAX_NAME).take_while(u8::is_ascii_alphanumeric).count();
    let with_semicolon = letters + usize::from(rest.as_bytes().get(letters) == Some(&b';'));
    // Only a name with its semicolon, or a prefix from the short list of old names, stands in the table.
    (2..=with_semicolon).rev().find_map(|length| {
        let &(first, second) = NAMED_ENTITIES.get(&rest[..length])?;
        let text: String = [first, second].into_iter().filter(|&code| code != 0).filter_map(char::from_u32).collect();
        (!text.is_empty()).then_some(Reference { text, length: length + 1 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_of_each_kind_are_read() {
        for (source, text, length) in [
            ("&eacute;x", "é", 8),
            ("&#233;", "é", 6),
            ("&#xE9 ", "é", 5),
            ("&#150;", "–", 6),
            ("&nbspx", "\u{a0}", 5),
            ("&amp;lt;", "&", 5),
        ] {
            assert_eq!(read(source), Some(Reference { text: text.to_owned(), length }), "{source}");
        }
        assert_eq!(read("& b"), None);
        assert_eq!(read("&#;"), None);
        assert_eq!(read("&#99999999999;").map(|reference| reference.text).as_deref(), Some("\u{fffd}"));
    }
}
