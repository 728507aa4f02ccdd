//! Header blocks: split without ever failing, decoded by bytes.
//!
//! An encoded word (RFC 2047) may end in the middle of a letter, so adjacent words of one charset are joined as
//! bytes when one of them does not decode alone. Everything outside encoded words is UTF-8 (RFC 6532) or, where
//! it is not valid, in the charset of the body, else windows-1252.

use std::ops::Range;

use super::aligned::AlignedBuilder;
use super::transfer::{base64, hex};
use super::{AlignedText, charset};

/// The header fields of a message or part, in order, names in lower case.
#[derive(Debug, Default)]
pub(super) struct Headers {
    fields: Vec<(String, String)>,
}

/// A header block and where the body after it starts.
#[derive(Debug)]
pub(super) struct HeaderBlock {
    pub(super) headers: Headers,
    pub(super) body_start: usize,
    /// The block was longer than the limit; the fields past it are missing.
    pub(super) cut: bool,
}

/// More fields than any mail has; a block of a million empty fields is an attack.
const MAX_FIELDS: usize = 4096;

impl Headers {
    /// Takes fields that are already split and decodes their values.
    pub(super) fn from_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let fields =
            pairs.take(MAX_FIELDS).map(|(name, value)| (name.trim().to_ascii_lowercase(), decode(value.as_bytes())));
        Self { fields: fields.collect() }
    }

    /// Splits the header block at the front of a message or part.
    pub(super) fn parse(bytes: &[u8], max_bytes: usize) -> HeaderBlock {
        let mut fields: Vec<(String, Vec<u8>)> = Vec::new();
        let mut at = 0;
        let mut cut = false;
        while at < bytes.len() {
            let end = line_end(bytes, at);
            let line = bytes[at..end].trim_ascii_end();
            if line.is_empty() {
                at = end;
                break;
            }
            let folded = matches!(line[0], b' ' | b'\t');
            let full = end > max_bytes || fields.len() >= MAX_FIELDS;
            cut |= full;
            if let Some((name, value)) = split_field(line).filter(|_| !folded) {
                if !full {
                    fields.push((name, value.to_vec()));
                }
            } else if folded && !fields.is_empty() {
                if let Some((_, value)) = fields.last_mut().filter(|_| !full) {
                    value.extend_from_slice(b" ");
                    value.extend_from_slice(line.trim_ascii());
                }
            } else if !is_skipped(line, &bytes[end..], fields.len()) {
                // No header line: the empty line before the body is missing.
                break;
            }
            at = end;
        }
        let charset =
            fields.iter().find(|(name, _)| name == "content-type").and_then(|(_, value)| stated_charset(value));
        let fields = fields.into_iter().map(|(name, value)| (name, decode_with(&value, charset.as_deref()))).collect();
        HeaderBlock { headers: Self { fields }, body_start: at, cut }
    }

    /// The decoded value of the first field of this name (given in lower case).
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The decoded values of all fields of this name.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_str())
    }
}

/// One past the line end of the line that starts at `at`.
pub(super) fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |length| at + length + 1)
}

fn split_field(line: &[u8]) -> Option<(String, &[u8])> {
    let colon = line.iter().take(128).position(|&byte| byte == b':')?;
    let name = line[..colon].trim_ascii_end();
    if name.is_empty() || !name.iter().all(|byte| byte.is_ascii_graphic()) {
        return None;
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Some((name, line[colon + 1..].trim_ascii()))
}

/// An mbox separator, or one broken line with a header line after it.
fn is_skipped(line: &[u8], rest: &[u8], fields_so_far: usize) -> bool {
    if line.starts_with(b"From ") || line.starts_with(b">From ") {
        return true;
    }
    let next = &rest[..line_end(rest, 0)];
    fields_so_far > 1 && split_field(next).is_some()
}

/// The charset of the body, which programs that send raw bytes in headers use for those too.
fn stated_charset(content_type: &[u8]) -> Option<String> {
    let lower = String::from_utf8_lossy(content_type).to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start_matches([' ', '"', '\'']);
    let end = rest.find([';', '"', '\'', ' ']).unwrap_or(rest.len());
    Some(rest[..end].to_owned())
}

/// Decodes a raw header value.
fn decode(raw: &[u8]) -> String {
    decode_with(raw, None)
}

/// Decodes a raw header value; bytes that are no UTF-8 are read in the charset of the body.
fn decode_with(raw: &[u8], body_charset: Option<&str>) -> String {
    let mut out = String::with_capacity(raw.len());
    for piece in pieces(raw, body_charset) {
        out.push_str(&piece.text);
    }
    out
}

/// Decodes a header value that came as text, with its alignment.
pub(super) fn decode_aligned(value: &str) -> AlignedText {
    if !value.contains("=?") {
        return AlignedText::identity(value);
    }
    let mut builder = AlignedBuilder::new(value);
    for piece in pieces(value.as_bytes(), None) {
        if value[piece.range.clone()] == piece.text {
            builder.copy(piece.range);
        } else {
            builder.replace(piece.range, &piece.text);
        }
    }
    builder.finish()
}

/// A stretch of a raw header value and what it says.
struct Piece {
    range: Range<usize>,
    text: String,
}

/// An encoded word, decoded to bytes.
struct Word<'a> {
    charset: &'a str,
    bytes: Vec<u8>,
    end: usize,
}

fn pieces(raw: &[u8], body_charset: Option<&str>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain_from = 0;
    let mut at = 0;
    while let Some(found) = find_word(raw, at) {
        push_plain(&mut pieces, raw, plain_from..found.start, body_charset);
        let mut words = vec![found.word];
        let mut end = words[0].end;
        while let Some(next) = adjacent_word(raw, end) {
            end = next.end;
            words.push(next);
        }
        pieces.push(Piece { range: found.start..end, text: join(&words) });
        (at, plain_from) = (end, end);
    }
    push_plain(&mut pieces, raw, plain_from..raw.len(), body_charset);
    pieces
}

fn push_plain(pieces: &mut Vec<Piece>, raw: &[u8], range: Range<usize>, body_charset: Option<&str>) {
    if !range.is_empty() {
        let bytes = &raw[range.clone()];
        let label = body_charset.filter(|_| std::str::from_utf8(bytes).is_err());
        let text = charset::decode(bytes, label).text;
        pieces.push(Piece { range, text });
    }
}

struct Found<'a> {
    start: usize,
    word: Word<'a>,
}

fn find_word(raw: &[u8], from: usize) -> Option<Found<'_>> {
    let mut at = from;
    while let Some(start) = raw[at..].windows(2).position(|pair| pair == b"=?").map(|offset| at + offset) {
        if let Some(word) = read_word(raw, start) {
            return Some(Found { start, word });
        }
        at = start + 2;
    }
    None
}

fn adjacent_word(raw: &[u8], from: usize) -> Option<Word<'_>> {
    let blanks = raw[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    read_word(raw, from + blanks)
}

/// Longer than RFC 2047 allows by far, short enough that a value of `=?` alone stays linear.
const MAX_WORD: usize = 4096;

/// Reads `=?charset?encoding?text?=` at `start`.
fn read_word(raw: &[u8], start: usize) -> Option<Word<'_>> {
    let rest = raw[start..].strip_prefix(b"=?")?;
    let rest = &rest[..rest.len().min(MAX_WORD)];
    let label_end = rest.iter().take(64).position(|&byte| byte == b'?')?;
    let label = std::str::from_utf8(&rest[..label_end]).ok()?;
    let [encoding, b'?', text @ ..] = &rest[label_end + 1..] else {
        return None;
    };
    let length = text.windows(2).position(|pair| pair == b"?=")?;
    let text = &text[..length];
    let bytes = match encoding {
        b'b' | b'B' => base64(text),
        b'q' | b'Q' => q_decode(text),
        _ => return None,
    };
    let charset = label.split('*').next().unwrap_or(label);
    Some(Word { charset, bytes, end: start + 2 + label_end + 3 + length + 2 })
}

fn q_decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte == b'='
            && let [high, low, tail @ ..] = tail
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            out.push(high << 4 | low);
            rest = tail;
        } else {
            out.push(if byte == b'_' { b' ' } else { byte });
        }
    }
    out
}

/// Decodes words alone where each is whole, else joined by bytes with its neighbours of the same charset.
fn join(words: &[Word<'_>]) -> String {
    let mut out = String::new();
    for group in words.chunk_by(|a, b| a.charset.eq_ignore_ascii_case(b.charset)) {
        let label = Some(group[0].charset);
        let alone: Vec<_> = group.iter().map(|word| charset::decode(&word.bytes, label)).collect();
        let whole = alone.iter().zip(group).all(|(decoded, word)| !decoded.damaged && !ends_in_mid_utf8(word, decoded));
        if whole {
            out.extend(alone.iter().map(|decoded| decoded.text.as_str()));
        } else {
            let joined: Vec<u8> = group.iter().flat_map(|word| word.bytes.iter().copied()).collect();
            out.push_str(&charset::decode(&joined, label).text);
        }
    }
    out
}

/// A cut UTF-8 letter may have been guessed to be windows-1252; the label knows better.
fn ends_in_mid_utf8(word: &Word<'_>, decoded: &charset::Decoded) -> bool {
    decoded.guessed && word.charset.to_ascii_lowercase().contains("utf")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_cut_between_two_words_is_joined() {
        assert_eq!(decode(b"=?utf-8?Q?R=C3?= =?UTF-8?Q?=BCck?= now"), "Rück now");
        assert_eq!(decode(b"=?utf-8?B?UsM=?= =?utf-8?B?vGNr?="), "Rück");
    }

    #[test]
    fn broken_words_stay_as_they_are() {
        assert_eq!(decode(b"a =?utf-8?Q?b"), "a =?utf-8?Q?b");
        assert_eq!(decode(b"=?utf-8?X?b?= c"), "=?utf-8?X?b?= c");
        assert_eq!(decode(b"=?iso-8859-1*de?q?T=FCr_auf?="), "Tür auf");
    }

    #[test]
    fn a_block_ends_at_the_first_line_that_is_no_header() {
        let block = Headers::parse(b"From me Mon\nSubject: a\n b\nX: 1\nHello there\nmore", 1000);
        assert_eq!(block.headers.get("subject"), Some("a b"));
        assert_eq!(block.body_start, 31);
    }

    #[test]
    fn a_decoded_field_knows_where_its_words_stood() {
        let text = decode_aligned("Re: =?utf-8?Q?T=C3=BCr?= zu");
        assert_eq!(text.text(), "Re: Tür zu");
        assert_eq!(text.posted_range(4..8), 4..24);
    }
}
