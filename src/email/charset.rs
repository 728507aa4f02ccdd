//! Bytes to characters, by the label where it can be trusted and by the bytes where it cannot.
//!
//! The rules, in order: a byte-order mark wins; bytes outside ASCII that are strictly valid UTF-8 beat a
//! missing, unknown or single-byte label; a known label is followed; otherwise UTF-8 with every stray byte read
//! as windows-1252. On top of the WHATWG encodings come UTF-7, HZ and ISO-2022-KR, which old mail still uses.

use std::borrow::Cow;

use encoding_rs::{EUC_KR, Encoding, GB18030, ISO_2022_JP, REPLACEMENT, UTF_8, WINDOWS_1252, X_USER_DEFINED};

/// Decoded text and whether its charset had to be guessed.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) guessed: bool,
    /// Some bytes did not fit the charset and became U+FFFD.
    pub(super) damaged: bool,
}

/// What a charset label stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Charset {
    Whatwg(&'static Encoding),
    Utf7,
    Hz,
    Iso2022Kr,
    Unknown,
}

/// Decodes the bytes of a part or an encoded word.
pub(super) fn decode(bytes: &[u8], label: Option<&str>) -> Decoded {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return sure(encoding.decode_without_bom_handling(&bytes[mark..]));
    }
    let charset = label.map_or(Charset::Unknown, find);
    match charset {
        Charset::Utf7 => utf7(bytes),
        Charset::Hz => sure(GB18030.decode_without_bom_handling(&shifted(bytes, b"~{", b"~}"))),
        Charset::Iso2022Kr => sure(EUC_KR.decode_without_bom_handling(&shifted(bytes, b"\x0e", b"\x0f"))),
        Charset::Whatwg(encoding) if encoding == ISO_2022_JP => {
            sure(encoding.decode_without_bom_handling(&without_empty_escapes(bytes)))
        }
        Charset::Whatwg(encoding) if encoding != UTF_8 => by_label_unless_utf8(bytes, encoding),
        Charset::Whatwg(_) | Charset::Unknown => by_bytes(bytes, charset != Charset::Unknown || label.is_none()),
    }
}

fn utf7(bytes: &[u8]) -> Decoded {
    match ::charset::Charset::for_label(b"utf-7") {
        Some(utf7) => sure(utf7.decode_without_bom_handling(bytes)),
        None => by_bytes(bytes, false),
    }
}

fn sure((text, damaged): (Cow<'_, str>, bool)) -> Decoded {
    Decoded { text: text.into_owned(), guessed: false, damaged }
}

fn by_label_unless_utf8(bytes: &[u8], encoding: &'static Encoding) -> Decoded {
    let utf8 = if bytes.is_ascii() { None } else { std::str::from_utf8(bytes).ok() };
    if let Some(text) = utf8
        && encoding.is_single_byte()
    {
        return Decoded { text: text.to_owned(), guessed: true, damaged: false };
    }
    let (text, damaged) = encoding.decode_without_bom_handling(bytes);
    match utf8 {
        Some(text) if damaged => Decoded { text: text.to_owned(), guessed: true, damaged: false },
        _ => Decoded { text: text.into_owned(), guessed: false, damaged },
    }
}

/// UTF-8, and windows-1252 for each byte that is none. A letter cut in half becomes U+FFFD.
fn by_bytes(bytes: &[u8], label_known: bool) -> Decoded {
    if let Ok(text) = std::str::from_utf8(bytes) {
        if text.contains("\u{1b}$") {
            let (japanese, damaged) = ISO_2022_JP.decode_without_bom_handling(bytes);
            if !damaged {
                return Decoded { text: japanese.into_owned(), guessed: true, damaged };
            }
        }
        return Decoded { text: text.to_owned(), guessed: !label_known && !text.is_ascii(), damaged: false };
    }
    let mut text = String::with_capacity(bytes.len() + bytes.len() / 8);
    let mut damaged = false;
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        match chunk.invalid() {
            [] => {}
            [byte] => {
                text.push_str(&WINDOWS_1252.decode_without_bom_handling(&[*byte]).0);
            }
            _ => {
                text.push('\u{fffd}');
                damaged = true;
            }
        }
    }
    Decoded { text, guessed: true, damaged }
}

fn find(label: &str) -> Charset {
    let label = label.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';'));
    let lower = label.to_ascii_lowercase();
    let known = match lower.as_str() {
        "utf-7" | "utf7" | "unicode-1-1-utf-7" | "x-unicode-2-0-utf-7" | "csunicode11utf7" => {
            return Charset::Utf7;
        }
        "hz-gb-2312" | "hz" => return Charset::Hz,
        "iso-2022-kr" | "csiso2022kr" => return Charset::Iso2022Kr,
        "utf8mb4" | "utf_8" | "utf-8n" => "utf-8",
        "cp932" | "ms932" | "shift-jis" | "x-ms-cp932" => "shift_jis",
        "iso-2022-jp-1" | "iso-2022-jp-2" | "iso-2022-jp-3" | "cp50220" | "cp50221" | "iso-2022-jp-ms" => "iso-2022-jp",
        "cp936" | "ms936" | "x-cp936" => "gbk",
        "cp949" | "ms949" | "uhc" | "x-windows-949" => "euc-kr",
        "cp950" | "ms950" => "big5",
        "latin-1" | "latin1" | "8859-1" | "iso8859_1" | "ascii" | "us" | "ansi" | "us_ascii" => "windows-1252",
        "latin-9" | "iso-8859-15-1" => "iso-8859-15",
        other => {
            let windows = other.strip_prefix("windows").or_else(|| other.strip_prefix("cp-"));
            if let Some(page) = windows.map(|page| page.trim_start_matches(['-', '_'])) {
                return whatwg(&format!("windows-{page}"));
            }
            return whatwg(other);
        }
    };
    whatwg(known)
}

/// By the WHATWG tables some labels stand for no text at all; those are unknown to us.
fn whatwg(label: &str) -> Charset {
    match Encoding::for_label(label.as_bytes()) {
        Some(encoding) if encoding == REPLACEMENT || encoding == X_USER_DEFINED => Charset::Unknown,
        Some(encoding) => Charset::Whatwg(encoding),
        None => Charset::Unknown,
    }
}

/// Sets the eighth bit between two shift sequences and drops them: HZ and ISO-2022-KR to their 8-bit forms.
fn shifted(bytes: &[u8], shift_in: &[u8], shift_out: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes.strip_prefix(b"\x1b$)C").unwrap_or(bytes);
    let mut wide = false;
    while let Some((&byte, tail)) = rest.split_first() {
        if let Some(tail) = rest.strip_prefix(shift_in) {
            (wide, rest) = (true, tail);
        } else if let Some(tail) = rest.strip_prefix(shift_out) {
            (wide, rest) = (false, tail);
        } else {
            wide &= byte != b'\n';
            out.push(if wide && byte > b' ' { byte | 0x80 } else { byte });
            rest = tail;
        }
    }
    out
}

/// Drops each `ESC ( B` directly before another escape: two escapes in a row are an error to the decoder.
fn without_empty_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, tail)) = rest.split_first() {
        match rest.strip_prefix(b"\x1b(B") {
            Some(next) if next.starts_with(b"\x1b") => rest = next,
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], label: Option<&str>) -> String {
        decode(bytes, label).text
    }

    #[test]
    fn a_known_label_is_followed() {
        assert_eq!(text(b"\xcf\xf0\xe8\xe2\xe5\xf2", Some("Windows-1251")), "Привет");
        assert_eq!(text(b"\xcf\xf0\xe8", Some("\"windows_1251\"")), "При");
        assert_eq!(text(b"+AOk-t+AOk-", Some("UTF-7")), "été");
        assert_eq!(text(b"~{VPND~}!", Some("hz-gb-2312")), "中文!");
        assert_eq!(text(b"\x1b$)C\x0eGQ1[\x0f!", Some("iso-2022-kr")), "한글!");
    }

    #[test]
    fn valid_utf8_beats_a_single_byte_or_unknown_label() {
        for label in [Some("windows-1252"), Some("x-unknown"), Some("x-user-defined"), None] {
            assert_eq!(text("Tür – zu".as_bytes(), label), "Tür – zu");
        }
        assert!(decode("Tür".as_bytes(), Some("iso-8859-1")).guessed);
    }

    #[test]
    fn stray_bytes_are_windows_1252_and_half_letters_are_marked() {
        assert_eq!(text(b"T\xfcr \xe2\x82\xac", Some("utf-8")), "Tür €");
        assert_eq!(text(b"9 \xe2\x82", Some("utf-8")), "9 \u{fffd}");
    }

    #[test]
    fn joined_japanese_words_survive_back_to_back_escapes() {
        assert_eq!(text(b"\x1b$B%Q\x1b(B\x1b$B%9\x1b(B", Some("iso-2022-jp")), "パス");
    }
}
