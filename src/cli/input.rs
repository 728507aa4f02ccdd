//! One mail from a file or standard input.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use encoding_rs::{Encoding, UTF_8};
use serde::Deserialize;
use serde_json::Value;

use super::raw_start::is_message;
use crate::routing::{Mail, MailContent, MailFields};

/// Where the mail comes from.
#[derive(Debug, Clone, Args)]
pub(super) struct InputArgs {
    /// File with the mail; `-` reads standard input.
    pub file: PathBuf,
    /// What the file holds; `auto` takes JSON where it starts with a brace, a raw message where it starts with a block
    /// of headers, plain text otherwise.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Auto,
    /// A raw message (RFC 5322).
    Eml,
    /// An object with subject, text or html, from, headers.
    Json,
    /// The body alone.
    Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonMail {
    id: Option<String>,
    subject: Option<String>,
    text: Option<String>,
    html: Option<String>,
    from: Option<String>,
    headers: Option<Value>,
}

impl InputArgs {
    pub(super) fn read(&self) -> anyhow::Result<Mail> {
        mail_of(read_bytes(&self.file)?, self.format)
    }
}

fn mail_of(bytes: Vec<u8>, format: Format) -> anyhow::Result<Mail> {
    // What was called a raw message says by itself what it is encoded in.
    if format == Format::Eml {
        return Ok(Mail { id: None, content: MailContent::Mime(bytes) });
    }
    let (bytes, mark) = without_mark(bytes)?;
    let format = if format == Format::Auto { guess(&bytes) } else { format };
    let content = match format {
        Format::Json => {
            let text = utf8(bytes, mark, "the JSON", "convert it to UTF-8")?;
            let mail: JsonMail = serde_json::from_str(&text).context("the file is no mail in JSON")?;
            let JsonMail { id, subject, text, html, from, headers } = mail;
            let headers = headers.as_ref().map_or_else(|| Ok(Vec::new()), headers_of)?;
            return Ok(Mail { id, content: MailContent::Fields(MailFields { subject, text, html, from, headers }) });
        }
        Format::Text => {
            let text = utf8(bytes, mark, "the text", TEXT_REMEDY)?;
            MailContent::Fields(MailFields { text: Some(text), ..MailFields::default() })
        }
        Format::Eml | Format::Auto => MailContent::Mime(bytes),
    };
    Ok(Mail { id: None, content })
}

/// What helps where text is in another encoding.
const TEXT_REMEDY: &str = "convert it to UTF-8, or give the raw mail with --format eml";

/// The bytes without a byte order mark, in UTF-8 where the mark says UTF-16; and how long a mark of UTF-8 was, for places
/// in errors.
fn without_mark(mut bytes: Vec<u8>) -> anyhow::Result<(Vec<u8>, usize)> {
    match Encoding::for_bom(&bytes) {
        None => Ok((bytes, 0)),
        Some((encoding, mark)) if encoding == UTF_8 => {
            bytes.drain(..mark);
            Ok((bytes, mark))
        }
        Some((encoding, mark)) => {
            let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes[mark..]);
            let name = encoding.name();
            let text = text
                .with_context(|| format!("the file has the mark of {name} and is not valid {name}: {TEXT_REMEDY}"))?;
            Ok((text.into_owned().into_bytes(), 0))
        }
    }
}

/// Text is refused rather than damaged: a letter that is lost may be the one that decides.
fn utf8(bytes: Vec<u8>, mark: usize, what: &str, remedy: &str) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let place = mark + error.utf8_error().valid_up_to();
        anyhow!("{what} is not valid UTF-8 from byte {place} on: {remedy}")
    })
}

/// Headers as HTTP takes them: `{"Name": "value"}`, a list of values for a header that stands several times, or
/// `[["Name", "value"]]`.
fn headers_of(value: &Value) -> anyhow::Result<Vec<(String, String)>> {
    const SHAPE: &str = "`headers` must be an object of strings, or an array of [name, value]";
    let mut headers = Vec::new();
    let mut push = |name: &str, value: &Value| match value {
        Value::String(text) => {
            headers.push((name.to_owned(), text.clone()));
            Ok(())
        }
        _ => Err(anyhow!("the header `{name}` must be a string")),
    };
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                match value {
                    Value::Array(values) => values.iter().try_for_each(|value| push(name, value))?,
                    value => push(name, value)?,
                }
            }
        }
        Value::Array(pairs) => {
            for pair in pairs {
                match pair.as_array().map(Vec::as_slice) {
                    Some([Value::String(name), value]) => push(name, value)?,
                    _ => bail!(SHAPE),
                }
            }
        }
        _ => bail!(SHAPE),
    }
    Ok(headers)
}

/// More than any mail; guards against a device file or a disk image given by mistake.
const MAX_BYTES: u64 = 100 * 1024 * 1024;

fn read_bytes(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > MAX_BYTES {
        bail!("{} is larger than {MAX_BYTES} bytes: this is no mail", path.display());
    }
    Ok(bytes)
}

fn guess(bytes: &[u8]) -> Format {
    let text = bytes.trim_ascii_start();
    if text.starts_with(b"{") {
        Format::Json
    } else if is_message(text) {
        Format::Eml
    } else {
        Format::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> MailContent {
        mail_of(bytes.to_vec(), Format::Auto).unwrap().content
    }

    fn fields(bytes: &[u8]) -> MailFields {
        match read(bytes) {
            MailContent::Fields(fields) => fields,
            _ => panic!("taken for a raw message"),
        }
    }

    fn refused(bytes: &[u8], format: Format) -> String {
        let Err(error) = mail_of(bytes.to_vec(), format) else { panic!("taken") };
        format!("{error:#}")
    }

    #[test]
    fn formats_are_told_apart_by_their_start() {
        assert_eq!(guess(b" {\"text\": \"a\"}"), Format::Json);
        assert_eq!(guess(b"Subject: late\r\n\r\nhello"), Format::Eml);
        assert_eq!(guess(b"MIME-Version: 1.0\n"), Format::Eml);
        assert_eq!(guess(b"Hello: my cake is late"), Format::Text);
        assert_eq!(guess(b"Follow-up: my cake is late\nplease help"), Format::Text);
        assert_eq!(guess(b"My cake is late"), Format::Text);
    }

    #[test]
    fn a_byte_order_mark_hides_no_format() {
        assert_eq!(fields("\u{feff}{\"subject\": \"a\"}".as_bytes()).subject.as_deref(), Some("a"));
        assert!(matches!(read("\u{feff}Subject: a\n\nb".as_bytes()), MailContent::Mime(_)));
        assert_eq!(fields("\u{feff}late".as_bytes()).text.as_deref(), Some("late"));
        let utf16 = |text: &str| -> Vec<u8> {
            std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
        };
        assert_eq!(fields(&utf16("zu sp\u{e4}t")).text.as_deref(), Some("zu sp\u{e4}t"));
        assert_eq!(fields(&utf16("{\"text\": \"a\"}")).text.as_deref(), Some("a"));
        assert!(refused(b"\xff\xfea", Format::Auto).contains("UTF-16LE"));
    }

    #[test]
    fn text_that_is_not_utf_8_is_refused_with_its_place_and_raw_mail_is_not() {
        let told = refused(b"r\xe9fund", Format::Auto);
        assert!(told.contains("from byte 1 on") && told.contains("--format eml"), "{told}");
        assert!(refused(b"\xef\xbb\xbfr\xe9fund", Format::Text).contains("from byte 4 on"));
        assert!(refused(b"{\"text\": \"\xe9\"}", Format::Auto).contains("from byte 10 on"));
        assert!(matches!(read(b"Subject: a\n\nr\xe9fund"), MailContent::Mime(_)));
    }

    #[test]
    fn headers_come_in_the_forms_of_http() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let many = fields(br#"{"text": "a", "headers": {"X-A": "1", "X-B": ["2", "3"]}}"#);
        assert_eq!(many.headers, [pair("X-A", "1"), pair("X-B", "2"), pair("X-B", "3")]);
        assert_eq!(fields(br#"{"text": "a", "headers": [["X-A", "1"]]}"#).headers, [pair("X-A", "1")]);
        assert!(fields(br#"{"text": "a", "headers": null}"#).headers.is_empty());
        assert!(refused(br#"{"text": "a", "headers": {"X-A": 1}}"#, Format::Auto).contains("X-A"));
        assert!(refused(br#"{"text": "a", "headers": [["X-A"]]}"#, Format::Auto).contains("[name, value]"));
    }
}
