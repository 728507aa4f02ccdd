//! The user's own mail: whatever `postroom eval` reads, one `.eml` file, or a folder that holds nothing but such files.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::cli::data::{DataArgs, tell};
use crate::dataset::Example;
use crate::routing::{Mail, MailContent, MailFields};

/// A mail to send.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BenchMail {
    /// The mail.
    pub(super) mail: Mail,
}

impl BenchMail {
    pub(super) fn of_fields(subject: String, text: String, html: Option<String>) -> Self {
        let fields = MailFields { subject: Some(subject), text: Some(text), html, ..MailFields::default() };
        Self { mail: Mail { id: None, content: MailContent::Fields(fields) } }
    }

    fn of_message(bytes: Vec<u8>) -> Self {
        Self { mail: Mail { id: None, content: MailContent::Mime(bytes) } }
    }
}

impl From<Example> for BenchMail {
    fn from(example: Example) -> Self {
        match example.raw {
            Some(raw) => Self::of_message(raw),
            None => Self::of_fields(example.subject, example.text, example.html),
        }
    }
}

/// Reads the mail that the arguments name.
pub(super) fn read(data: &DataArgs) -> anyhow::Result<Vec<BenchMail>> {
    let messages = messages(&data.path)?;
    if !messages.is_empty() {
        let read = |file: &PathBuf| std::fs::read(file).with_context(|| format!("cannot read {}", file.display()));
        return messages.iter().map(|file| Ok(BenchMail::of_message(read(file)?))).collect();
    }
    let dataset = data.read()?;
    tell(&dataset.notes);
    if dataset.examples.is_empty() {
        bail!("{} holds no mail", data.path.display());
    }
    Ok(dataset.examples.into_iter().map(BenchMail::from).collect())
}

/// The `.eml` files that a path is or directly holds.
fn messages(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_message =
        |path: &Path| path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("eml")) && path.is_file();
    if is_message(path) {
        return Ok(vec![path.to_owned()]);
    }
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
        files.push(entry?.path());
    }
    files.retain(|file| is_message(file));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_and_a_folder_of_messages_are_found_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("b.eml"), "Subject: b\n\nb").unwrap();
        std::fs::write(file("a.EML"), "Subject: a\n\na").unwrap();
        std::fs::write(file("notes.txt"), "no mail").unwrap();
        assert_eq!(messages(folder.path()).unwrap(), [file("a.EML"), file("b.eml")]);
        assert_eq!(messages(&file("b.eml")).unwrap(), [file("b.eml")]);
        assert!(messages(&file("notes.txt")).unwrap().is_empty());
    }

    #[test]
    fn labelled_mail_keeps_the_message_as_it_was_sent() {
        let raw = Example { raw: Some(b"Subject: x\n\ny".to_vec()), ..Example::default() };
        assert_eq!(BenchMail::from(raw).mail.content, MailContent::Mime(b"Subject: x\n\ny".to_vec()));
    }
}
