//! Which parts of a mail are its text.
//!
//! Text parts are read in order, so that words below a photo are not lost; of alternatives the plain one is
//! taken unless it is blank or only says that the mail is HTML. Attachments are counted and never read; an attached
//! mail is handed back beside the body.

use super::html::{self, Mark};
use super::mime::Part;
use super::{AlignedText, CleanOptions, Note, calendar, charset, flowed, transfer};

/// The text of a mail before any zone is cut, and what was noticed while collecting it.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) text: AlignedText,
    pub(super) marks: Vec<Mark>,
    pub(super) attachments: usize,
    pub(super) notes: Vec<Note>,
}

/// The body of a mail, and the first mail attached to it.
pub(super) struct Collected<'p, 'a> {
    pub(super) body: Body,
    pub(super) attached: Option<&'p Part<'a>>,
}

/// Collects the text of a mail.
pub(super) fn collect<'p, 'a>(root: &'p Part<'a>, options: &CleanOptions) -> Collected<'p, 'a> {
    let mut collector = Collector { options, body: Body::default(), calendars: Vec::new(), attached: Vec::new() };
    collector.part(root, true);
    let Collector { mut body, calendars, attached, .. } = collector;
    if body.text.is_blank()
        && let Some(text) = calendars.into_iter().find(|text| !text.trim().is_empty())
    {
        body.text.append(&AlignedText::identity(&text));
        body.note(Note::Calendar);
    }
    body.limit(options);
    Collected { body, attached: attached.first().and_then(|part| part.children.first()) }
}

/// The text of HTML or plain text that came as a field.
pub(super) fn from_field(source: &str, is_html: bool, options: &CleanOptions) -> Body {
    let mut body = Body::default();
    let (source, cut) = capped(source, if is_html { options.max_html_bytes } else { options.max_body_bytes });
    if cut {
        body.note(Note::Truncated);
    }
    body.add(source, is_html || looks_like_html(source));
    body.limit(options);
    body
}

impl Body {
    /// Adds a note once.
    pub(super) fn note(&mut self, note: Note) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn limit(&mut self, options: &CleanOptions) {
        if self.text.truncate(options.max_body_bytes) {
            self.note(Note::Truncated);
        }
    }

    fn add(&mut self, source: &str, is_html: bool) {
        if is_html {
            let html = html::read(source);
            self.add_aligned(&html.text, html.marks);
        } else {
            self.add_aligned(&AlignedText::identity(source), Vec::new());
        }
    }

    fn add_aligned(&mut self, text: &AlignedText, marks: Vec<Mark>) {
        self.text.append(text);
        let shift = self.text.text().len() - text.text().len();
        self.marks.extend(
            marks
                .into_iter()
                .map(|mark| Mark { range: mark.range.start + shift..mark.range.end + shift, kind: mark.kind }),
        );
    }

    fn absorb(&mut self, other: Body) {
        if !other.text.is_blank() {
            self.add_aligned(&other.text, other.marks);
        }
        self.attachments += other.attachments;
        other.notes.into_iter().for_each(|note| self.note(note));
    }
}

struct Collector<'o, 'p, 'a> {
    options: &'o CleanOptions,
    body: Body,
    calendars: Vec<String>,
    attached: Vec<&'p Part<'a>>,
}

impl<'p, 'a> Collector<'_, 'p, 'a> {
    fn part(&mut self, part: &'p Part<'a>, is_root: bool) {
        if self.body.text.text().len() >= self.options.max_body_bytes {
            return self.body.note(Note::Truncated);
        }
        match part.mime() {
            "multipart/alternative" => self.alternatives(part),
            "multipart/signed" | "multipart/report" => {
                if let Some(first) = part.children.first() {
                    self.part(first, false);
                }
            }
            "multipart/encrypted" | "application/pgp-encrypted" => self.body.note(Note::Encrypted),
            "multipart/related" => self.related(part),
            "multipart/digest" => self.digest(part),
            mime if mime.starts_with("multipart/") => part.children.iter().for_each(|child| self.part(child, false)),
            "message/rfc822" | "message/global" | "message/news" => {
                self.attached.push(part);
                self.body.attachments += 1;
            }
            "application/pkcs7-mime" | "application/x-pkcs7-mime" => {
                let signed = part.param("smime-type").is_some_and(|kind| kind.eq_ignore_ascii_case("signed-data"));
                self.body.note(if signed { Note::Unreadable } else { Note::Encrypted });
            }
            "text/calendar" => {
                self.body.attachments += usize::from(part.is_attachment());
                let text = self.decode(part, self.options.max_body_bytes);
                self.calendars.push(calendar::text(&text));
            }
            "text/plain" | "text/html" | "text/markdown" | "text/enriched" | "text/richtext" | "text/x-amp-html"
                if is_root || !part.is_attachment() =>
            {
                self.text(part);
            }
            _ => self.body.attachments += 1,
        }
    }

    fn text(&mut self, part: &Part<'_>) {
        let is_html = !matches!(part.mime(), "text/plain" | "text/markdown");
        let source = self.decode(part, if is_html { self.options.max_html_bytes } else { self.options.max_body_bytes });
        if source.trim_start().starts_with("-----BEGIN PGP MESSAGE-----") {
            self.body.note(Note::Encrypted);
        } else if part.param("format").is_some_and(|format| format.eq_ignore_ascii_case("flowed")) && !is_html {
            let delete_space = part.param("delsp").is_some_and(|value| value.eq_ignore_ascii_case("yes"));
            self.body.add_aligned(&flowed::unflow(&source, delete_space), Vec::new());
        } else if !source.is_empty() {
            self.body.add(&source, is_html || looks_like_html(&source));
        }
    }

    /// All plain alternatives, or the first other one with words in it.
    fn alternatives(&mut self, part: &'p Part<'a>) {
        let (plain, others): (Vec<_>, Vec<_>) = part.children.iter().partition(|child| child.mime() == "text/plain");
        let plain = self.apart(&plain);
        if !plain.text.is_blank() && !is_stub(plain.text.text()) {
            // Apple Mail puts files and attached mail into the other alternative: its text goes, they do not.
            let files = self.apart(&others).attachments;
            self.body.attachments += files;
            return self.body.absorb(plain);
        }
        for child in others {
            let body = self.apart(&[child]);
            if !body.text.is_blank() {
                return self.body.absorb(body);
            }
            // Files beside an empty text still count.
            self.body.absorb(body);
        }
        self.body.absorb(plain);
    }

    /// Reads parts into a body of their own; calendars and attached mails are kept here.
    fn apart(&mut self, parts: &[&'p Part<'a>]) -> Body {
        let mut inner =
            Collector { options: self.options, body: Body::default(), calendars: Vec::new(), attached: Vec::new() };
        parts.iter().for_each(|part| inner.part(part, false));
        self.calendars.append(&mut inner.calendars);
        self.attached.append(&mut inner.attached);
        inner.body
    }

    /// The root of a related set; pictures inside the text are no attachments.
    fn related(&mut self, part: &'p Part<'a>) {
        let root = part.children.iter().position(|child| {
            child.mime().starts_with("multipart/") || matches!(child.mime(), "text/html" | "text/plain")
        });
        for (index, child) in part.children.iter().enumerate() {
            if Some(index) == root || child.headers.get("content-id").is_none() {
                self.part(child, false);
            }
        }
    }

    /// The texts of the mails of a digest, one after the other.
    fn digest(&mut self, part: &'p Part<'a>) {
        for mail in part.children.iter().flat_map(|child| &child.children) {
            let inner = collect(mail, self.options).body;
            self.body.absorb(inner);
        }
    }

    fn decode(&mut self, part: &Part<'_>, limit: usize) -> String {
        // Quoted-printable takes three bytes for one; what is longer than that is over the limit in any case.
        let raw = &part.body[..part.body.len().min(limit.saturating_mul(4))];
        let encoding = part.headers.get("content-transfer-encoding").unwrap_or_default();
        let bytes = transfer::decode(raw, encoding);
        let stated = part.param("charset").map(str::to_owned);
        let label = if part.mime() == "text/html" { stated.or_else(|| meta_charset(&bytes)) } else { stated };
        let decoded = charset::decode(&bytes, label.as_deref());
        if decoded.guessed {
            self.body.note(Note::CharsetGuessed);
        }
        let (text, cut) = capped(&decoded.text, limit);
        if cut || raw.len() < part.body.len() {
            self.body.note(Note::Truncated);
        }
        text.to_owned()
    }
}

fn capped(text: &str, limit: usize) -> (&str, bool) {
    let end = text.floor_char_boundary(limit);
    (&text[..end], end < text.len())
}

/// The charset that an HTML source states for itself.
fn meta_charset(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]).to_ascii_lowercase();
    let (_, rest) = head.split_once("charset=")?;
    let label: String = rest
        .trim_start_matches(['"', '\''])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
        .collect();
    // The source is decoded by now if it says so in ASCII, whatever UTF-16 it claims to be.
    (!label.is_empty() && !label.starts_with("utf-16")).then_some(label)
}

/// HTML that was labelled as plain text.
fn looks_like_html(source: &str) -> bool {
    let head = source.trim_start().get(..15).unwrap_or_default().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html>") || head.starts_with("<html ")
}

/// A plain alternative that only sends the reader to the HTML one.
pub(super) fn is_stub(text: &str) -> bool {
    let text = text.trim();
    text.len() < 300 && text.to_ascii_lowercase().contains("html") && !text.contains("\n\n")
}
