//! One mail from a file or standard input.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use serde::Deserialize;

use crate::routing::{Mail, MailContent, MailFields};

/// Where the mail comes from.
#[derive(Debug, Clone, Args)]
pub(super) struct InputArgs {
    /// File with the mail; `-` reads standard input.
    pub file: PathBuf,
    /// What the file holds; `auto` takes JSON where it starts with a brace, a raw message where it starts with header
    /// lines, plain text otherwise.
    #[arg(long, value_enum, default_value_t = Format::Auto)]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Auto,
    /// A raw message (RFC 5322).
    Eml,
    /// An object with subject, text or html, from.
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
}

impl InputArgs {
    pub(super) fn read(&self) -> anyhow::Result<Mail> {
        let bytes = read_bytes(&self.file)?;
        let format = if self.format == Format::Auto { guess(&bytes) } else { self.format };
        let content = match format {
            Format::Json => {
                let text = String::from_utf8(bytes).context("the JSON is not UTF-8")?;
                let mail: JsonMail = serde_json::from_str(&text).context("the file is no mail in JSON")?;
                let JsonMail { id, subject, text, html, from } = mail;
                let fields = MailFields { subject, text, html, from, headers: Vec::new() };
                return Ok(Mail { id, content: MailContent::Fields(fields) });
            }
            Format::Text => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                MailContent::Fields(MailFields { text: Some(text), ..MailFields::default() })
            }
            Format::Eml | Format::Auto => MailContent::Mime(bytes),
        };
        Ok(Mail { id: None, content })
    }
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
        return Format::Json;
    }
    let first = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let name = first.split(|&byte| byte == b':').next().unwrap_or_default();
    let header = name.len() < first.len()
        && !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        && (name.contains(&b'-') || COMMON_HEADERS.iter().any(|known| name.eq_ignore_ascii_case(known)));
    if header || first.starts_with(b"From ") { Format::Eml } else { Format::Text }
}

/// Headers without a hyphen that a message may start with.
const COMMON_HEADERS: [&[u8]; 8] = [b"from", b"to", b"cc", b"subject", b"date", b"received", b"sender", b"references"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_apart_by_their_start() {
        assert_eq!(guess(b" {\"text\": \"a\"}"), Format::Json);
        assert_eq!(guess(b"Subject: late\r\n\r\nhello"), Format::Eml);
        assert_eq!(guess(b"MIME-Version: 1.0\n"), Format::Eml);
        assert_eq!(guess(b"Hello: my cake is late"), Format::Text);
        assert_eq!(guess(b"My cake is late"), Format::Text);
    }
}
