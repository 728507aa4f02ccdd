//! One labelled mail, and where it stood.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::email::{CleanEmail, CleanOptions, Fields, Posted, clean};

/// Where a mail stands: a file, and its first line there, counted from 1, where the file holds many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<Path>,
    /// The line.
    pub line: Option<usize>,
}

impl Place {
    /// A line of a file.
    #[must_use]
    pub fn line(file: &Arc<Path>, line: usize) -> Self {
        Self { file: Arc::clone(file), line: Some(line) }
    }

    /// A file that is one mail.
    #[must_use]
    pub fn file(path: &Path) -> Self {
        Self { file: Arc::from(path), line: None }
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::file(Path::new(""))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        self.line.map_or(Ok(()), |line| write!(f, " line {line}"))
    }
}

/// One labelled mail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Example {
    /// The id in the file, or its line number.
    pub id: String,
    /// Mails of one group are never split.
    pub group: Option<String>,
    /// Subject line; of a raw message as cleaned.
    pub subject: String,
    /// Plain text, where there is some; of a raw message as cleaned.
    pub text: String,
    /// HTML, where there is some.
    pub html: Option<String>,
    /// Label as it stands in the file.
    pub queue: String,
    /// The message as it was sent, where the data holds whole messages; long attachments may be missing.
    pub raw: Option<Vec<u8>>,
    /// The words that decide the queue, where the labeller marked them.
    pub decisive: Option<String>,
    /// Trained on and never judged by: written to teach, not what the inbox gets.
    pub only_trained_on: bool,
    /// Where it stands.
    pub place: Place,
}

impl Example {
    /// The mail as the router reads it, by the same cleaning as in serving.
    #[must_use]
    pub fn clean(&self, options: &CleanOptions) -> CleanEmail {
        if let Some(raw) = &self.raw {
            return clean(&Posted::Mime(raw), options);
        }
        let fields = Fields {
            subject: Some(&self.subject),
            text: Some(&self.text),
            html: self.html.as_deref(),
            ..Fields::default()
        };
        clean(&Posted::Fields(fields), options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raw_message_is_cleaned_as_serving_cleans_it() {
        let raw = b"Subject: =?utf-8?q?Cr=C3=A8me?=\r\n\r\nIt is sour.\r\n\r\n-- \r\nAnn\r\n".to_vec();
        let mail = Example { raw: Some(raw), ..Example::default() }.clean(&CleanOptions::default());
        assert_eq!((mail.subject.text(), mail.body.text()), ("Cr\u{e8}me", "It is sour."));
    }

    #[test]
    fn a_place_names_file_and_line() {
        let file = Arc::from(Path::new("mail.csv"));
        assert_eq!(Place::line(&file, 7).to_string(), "mail.csv line 7");
        assert_eq!(Place::file(Path::new("refunds/a.eml")).to_string(), "refunds/a.eml");
    }
}
