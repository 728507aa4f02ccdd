//! The tree of MIME parts, read so that a broken mail still gives what it holds.
//!
//! Headers, transfer encodings and charsets are ours because a raw mail must always give an answer: a parser
//! that fails on a leading empty line, a missing boundary or the 50th level loses the customer's text. Content
//! types and their parameters (RFC 2231) are read by `mailparse`.

use std::borrow::Cow;

use mailparse::{DispositionType, ParsedContentType, parse_content_disposition, parse_content_type};

use super::CleanOptions;
use super::header::{Headers, line_end};

/// One part of a mail; the mail itself is the outermost.
#[derive(Debug)]
pub(super) struct Part<'a> {
    pub(super) headers: Headers,
    pub(super) content_type: ParsedContentType,
    /// What the part holds, still in its transfer encoding.
    pub(super) body: &'a [u8],
    pub(super) children: Vec<Part<'a>>,
}

/// A parsed mail and whether all of it could be read.
#[derive(Debug)]
pub(super) struct Parsed<'a> {
    pub(super) root: Part<'a>,
    /// A limit on depth, parts or headers was hit.
    pub(super) incomplete: bool,
}

/// Reads the whole tree within the limits.
pub(super) fn parse<'a>(bytes: &'a [u8], options: &CleanOptions) -> Parsed<'a> {
    let mut reader = Reader { options, parts_left: options.max_parts.max(1), incomplete: false };
    let root = reader.part(skip_preamble(bytes), 0, "text/plain");
    Parsed { root, incomplete: reader.incomplete }
}

/// Turns the bare CR of old Macs into LF.
pub(super) fn unix_lines(bytes: &[u8]) -> Cow<'_, [u8]> {
    if bytes.contains(&b'\n') || !bytes.contains(&b'\r') {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.iter().map(|&byte| if byte == b'\r' { b'\n' } else { byte }).collect())
}

/// A byte-order mark and empty lines may stand before the first header.
fn skip_preamble(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    let mut at = 0;
    while at < bytes.len() {
        let end = line_end(bytes, at);
        if !bytes[at..end].trim_ascii().is_empty() {
            break;
        }
        at = end;
    }
    let rest = &bytes[at..];
    // A single blank before the first field name would read as a folded line.
    match rest.trim_ascii_start() {
        trimmed if trimmed.iter().take(64).take_while(|byte| byte.is_ascii_graphic()).any(|&byte| byte == b':') => {
            trimmed
        }
        _ => rest,
    }
}

impl Part<'_> {
    /// The media type in lower case.
    pub(super) fn mime(&self) -> &str {
        &self.content_type.mimetype
    }

    /// A parameter of the content type.
    pub(super) fn param(&self, name: &str) -> Option<&str> {
        self.content_type.params.get(name).map(String::as_str)
    }

    /// Whether the part asks to be a file beside the text.
    pub(super) fn is_attachment(&self) -> bool {
        let disposition = self.headers.get("content-disposition").map(|value| parse_content_disposition(capped(value)));
        match disposition {
            Some(disposition) if disposition.disposition == DispositionType::Attachment => true,
            Some(disposition) if disposition.params.contains_key("filename") => true,
            _ => self.param("name").is_some(),
        }
    }
}

/// Parameters far beyond any real length are not worth reading.
fn capped(value: &str) -> &str {
    &value[..value.floor_char_boundary(8192)]
}

struct Reader<'o> {
    options: &'o CleanOptions,
    parts_left: usize,
    incomplete: bool,
}

impl Reader<'_> {
    fn part<'a>(&mut self, bytes: &'a [u8], depth: usize, default_type: &str) -> Part<'a> {
        self.parts_left -= 1;
        let block = Headers::parse(bytes, self.options.max_header_bytes);
        self.incomplete |= block.cut;
        let body = &bytes[block.body_start..];
        let stated = block.headers.get("content-type").map(capped).filter(|value| !value.trim().is_empty());
        let mut content_type = parse_content_type(stated.unwrap_or(default_type));
        if content_type.mimetype == "text" || !content_type.mimetype.contains('/') {
            content_type.mimetype = "text/plain".to_owned();
        }
        let mut part = Part { headers: block.headers, content_type, body, children: Vec::new() };
        if part.mime().starts_with("multipart/") {
            self.read_multipart(&mut part, depth);
        } else if matches!(part.mime(), "message/rfc822" | "message/global" | "message/news") {
            // Only an identity encoding is allowed here; an encoded message stays an attachment.
            let plain = part.headers.get("content-transfer-encoding").is_none_or(|encoding| {
                !encoding.eq_ignore_ascii_case("base64") && !encoding.eq_ignore_ascii_case("quoted-printable")
            });
            if plain && self.may_descend(depth) {
                part.children.push(self.part(skip_preamble(body), depth + 1, "text/plain"));
            }
        }
        part
    }

    fn read_multipart(&mut self, part: &mut Part<'_>, depth: usize) {
        let boundary = part.param("boundary").map(|boundary| boundary.trim_end().to_owned());
        let sections = boundary.map_or_else(Vec::new, |boundary| split(part.body, boundary.as_bytes()));
        let sections = if sections.is_empty() {
            guess_boundary(part.body).map_or(sections, |guess| split(part.body, guess))
        } else {
            sections
        };
        if sections.is_empty() {
            // A multipart without a single boundary line is the text itself.
            part.content_type.mimetype = "text/plain".to_owned();
            return;
        }
        let child_type = if part.mime() == "multipart/digest" { "message/rfc822" } else { "text/plain" };
        for section in sections {
            if !self.may_descend(depth) {
                break;
            }
            part.children.push(self.part(section, depth + 1, child_type));
        }
    }

    fn may_descend(&mut self, depth: usize) -> bool {
        let allowed = depth < self.options.max_depth && self.parts_left > 0;
        self.incomplete |= !allowed;
        allowed
    }
}

/// The sections between boundary lines; a missing last boundary ends with the body.
fn split<'a>(body: &'a [u8], boundary: &[u8]) -> Vec<&'a [u8]> {
    let mut sections = Vec::new();
    let mut section_start = None;
    let mut at = 0;
    while at < body.len() {
        let end = line_end(body, at);
        if let Some(closing) = boundary_line(&body[at..end], boundary) {
            if let Some(start) = section_start.take() {
                sections.push(without_last_line_end(&body[start..at]));
            }
            if closing {
                break;
            }
            section_start = Some(end);
        }
        at = end;
    }
    if let Some(start) = section_start
        && start < body.len()
    {
        sections.push(&body[start..]);
    }
    sections
}

/// `Some(is_closing)` when the line is `--boundary` or `--boundary--`.
fn boundary_line(line: &[u8], boundary: &[u8]) -> Option<bool> {
    let rest = line.strip_prefix(b"--")?.strip_prefix(boundary)?.trim_ascii_end();
    match rest {
        b"" => Some(false),
        b"--" => Some(true),
        _ => None,
    }
}

/// The line end before a boundary belongs to the boundary (RFC 2046, 5.1.1).
fn without_last_line_end(section: &[u8]) -> &[u8] {
    let section = section.strip_suffix(b"\n").unwrap_or(section);
    section.strip_suffix(b"\r").unwrap_or(section)
}

/// Where the stated boundary is missing or wrong: the first line `--x` with a header line below it.
fn guess_boundary(body: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    while at < body.len().min(4096) {
        let end = line_end(body, at);
        let line = body[at..end].trim_ascii_end();
        if line.len() > 4 && line.starts_with(b"--") && !line.contains(&b' ') {
            let next = &body[end..line_end(body, end)];
            if next.len() > 8 && next[..8].eq_ignore_ascii_case(b"content-") {
                return Some(&line[2..]);
            }
        }
        at = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mimes(mail: &str) -> Vec<String> {
        fn walk(part: &Part<'_>, into: &mut Vec<String>) {
            into.push(part.mime().to_owned());
            part.children.iter().for_each(|child| walk(child, into));
        }
        let mut into = Vec::new();
        walk(&parse(mail.as_bytes(), &CleanOptions::default()).root, &mut into);
        into
    }

    #[test]
    fn boundaries_count_at_line_starts_only() {
        let mail = "Content-Type: multipart/mixed; boundary=CUT\n\n--CUT\n\nthe string --CUT here\n--CUTTER\n--CUT--\nepilogue\n--CUT\n";
        assert_eq!(mimes(mail), ["multipart/mixed", "text/plain"]);
    }

    #[test]
    fn a_wrong_or_missing_boundary_is_guessed() {
        let mail = "Content-Type: multipart/mixed\n\n--abc\nContent-Type: text/html\n\nx\n--abc--\n";
        assert_eq!(mimes(mail), ["multipart/mixed", "text/html"]);
        assert_eq!(mimes("Content-Type: multipart/mixed; boundary=x\n\njust text\n"), ["text/plain"]);
    }

    #[test]
    fn limits_leave_what_was_read() {
        let part = "--x\n\nhi\n";
        let mail = format!("Content-Type: multipart/mixed; boundary=x\n\n{}", part.repeat(2000));
        let parsed = parse(mail.as_bytes(), &CleanOptions::default());
        assert!(parsed.incomplete);
        assert_eq!(parsed.root.children.len(), CleanOptions::default().max_parts - 1);
    }
}
