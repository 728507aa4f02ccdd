//! Content-Transfer-Encoding, read as leniently as mail is written.
//!
//! A decoder that gives up at the first odd byte loses the mail. These go on: base64 restarts after padding and
//! hands back plain text that a list server appended; quoted-printable keeps what is no escape.

use std::borrow::Cow;

use super::header::line_end;

/// Undoes a transfer encoding; an unknown name means the bytes stand as they are.
pub(super) fn decode<'a>(body: &'a [u8], encoding: &str) -> Cow<'a, [u8]> {
    match encoding.trim().trim_matches('"').to_ascii_lowercase().as_str() {
        "base64" => Cow::Owned(base64(body)),
        "quoted-printable" => Cow::Owned(quoted_printable(body)),
        "x-uuencode" | "x-uue" | "uuencode" => Cow::Owned(uuencoded(body)),
        _ => Cow::Borrowed(body),
    }
}

/// Base64 with any line length, missing padding, several padded blocks and a plain tail.
pub(super) fn base64(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    let mut bits: u32 = 0;
    let mut count = 0;
    let mut padded = false;
    let mut at = 0;
    while at < body.len() {
        let end = line_end(body, at);
        let line = &body[at..end];
        let encoded = line.trim_ascii().iter().all(|&byte| sextet(byte).is_some() || byte == b'=');
        let has_words = line.trim_ascii().contains(&b' ');
        if !encoded && (padded || has_words && count == 0 && !out.is_empty()) {
            // Text that was appended to the encoded block as it is.
            out.push(b'\n');
            out.extend_from_slice(&body[at..]);
            return out;
        }
        at = end;
        for &byte in line {
            if let Some(value) = sextet(byte) {
                bits = bits << 6 | u32::from(value);
                count += 1;
                if count == 4 {
                    out.extend_from_slice(&bits.to_be_bytes()[1..]);
                    (bits, count) = (0, 0);
                }
            } else if byte == b'=' {
                flush_quad(&mut out, bits, count);
                (bits, count) = (0, 0);
                padded = true;
            }
        }
    }
    flush_quad(&mut out, bits, count);
    out
}

fn flush_quad(out: &mut Vec<u8>, bits: u32, count: u32) {
    match count {
        2 => out.push((bits >> 4) as u8),
        3 => out.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
        _ => {}
    }
}

fn sextet(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

/// Quoted-printable with lower-case hex, blanks after a soft break, and `=` that starts no escape.
fn quoted_printable(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.iter().position(|&byte| byte == b'=') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if let [high, low, tail @ ..] = rest
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            out.push(high << 4 | low);
            rest = tail;
        } else if let Some(tail) = after_soft_break(rest) {
            rest = tail;
        } else {
            out.push(b'=');
        }
    }
    out.extend_from_slice(rest);
    out
}

/// What follows a soft line break (the `=` is already read); `None` when this is none.
fn after_soft_break(rest: &[u8]) -> Option<&[u8]> {
    let blanks = rest.iter().take_while(|&&byte| matches!(byte, b' ' | b'\t')).count();
    match &rest[blanks..] {
        [b'\r', b'\n', tail @ ..] | [b'\n', tail @ ..] => Some(tail),
        [] => Some(&[]),
        _ => None,
    }
}

/// The value of one hexadecimal digit of either case.
pub(super) fn hex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}

/// The lines between `begin` and `end`; anything else is no data.
fn uuencoded(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() / 4 * 3);
    for line in body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end) {
        if line.starts_with(b"begin ") {
            continue;
        }
        if line == b"end" {
            break;
        }
        let Some((&first, data)) = line.split_first() else {
            continue;
        };
        let length = usize::from(first.wrapping_sub(b' ') & 0x3f);
        let decoded = data.chunks(4).flat_map(|quad| {
            let bits = (0..4).fold(0u32, |bits, index| {
                let byte = quad.get(index).copied().unwrap_or(b' ');
                bits << 6 | u32::from(byte.wrapping_sub(b' ') & 0x3f)
            });
            let [_, bytes @ ..] = bits.to_be_bytes();
            bytes
        });
        out.extend(decoded.take(length));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_goes_on_after_padding() {
        assert_eq!(base64(b"SGk=\r\nSG8=\r\n"), b"HiHo");
        assert_eq!(base64(b"SGkh"), b"Hi!");
        assert_eq!(base64(b"SGk"), b"Hi");
        assert_eq!(base64(b"SGkh\nthe list footer\n"), b"Hi!\nthe list footer\n");
        assert_eq!(base64(b"SGk=\n-- \nlist footer\n"), b"Hi\n-- \nlist footer\n");
    }

    #[test]
    fn quoted_printable_keeps_what_is_no_escape() {
        assert_eq!(quoted_printable(b"49=e2=82=ac SAVE=ZZ20=\r\n and= \n more="), "49€ SAVE=ZZ20 and more".as_bytes());
    }

    #[test]
    fn uuencoded_text_is_read() {
        assert_eq!(uuencoded(b"begin 644 a.txt\n#0V%T\n`\nend\n"), b"Cat");
    }
}
