//! Labelled mail: one JSON object a line.
//!
//! Keys: `subject`, `text` or `body`, `html`, `queue` or `label`, and optionally `id` and `group` (author, thread or
//! sender: mails of one group never stand on both sides of a split). Other keys are ignored, since exports have many.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::email::{CleanEmail, CleanOptions, Fields, Posted, clean};

/// One labelled mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The id in the file, or its line number.
    pub id: String,
    /// Mails of one group are never split.
    pub group: Option<String>,
    /// Subject line.
    pub subject: String,
    /// Plain text, where there is some.
    pub text: String,
    /// HTML, where there is some.
    pub html: Option<String>,
    /// Label as it stands in the file.
    pub queue: String,
}

impl Example {
    /// The mail as the router reads it, by the same cleaning as in serving.
    #[must_use]
    pub fn clean(&self, options: &CleanOptions) -> CleanEmail {
        let fields = Fields {
            subject: Some(&self.subject),
            text: Some(&self.text),
            html: self.html.as_deref(),
            ..Fields::default()
        };
        clean(&Posted::Fields(fields), options)
    }
}

/// Why labelled mail cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// A line is no labelled mail.
    #[error("{} line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong, and the remedy.
        reason: String,
    },
    /// The file holds no mail.
    #[error("{} holds no labelled mail", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    id: Option<serde_json::Value>,
    #[serde(default)]
    group: Option<serde_json::Value>,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default, alias = "body")]
    text: Option<String>,
    #[serde(default)]
    html: Option<String>,
    #[serde(default, alias = "label")]
    queue: Option<String>,
}

/// Reads a file line by line. `group_of_id` derives the group from the id where a line names none.
///
/// # Errors
/// [`DatasetError`], naming the file and the line.
pub fn read_jsonl(path: &Path, group_of_id: Option<char>) -> Result<Vec<Example>, DatasetError> {
    let read = |source| DatasetError::Read { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(read)?;
    let mut examples = Vec::new();
    for (index, line) in std::io::BufReader::new(file).lines().enumerate() {
        let line = line.map_err(read)?;
        if line.trim().is_empty() {
            continue;
        }
        let example = parse_line(&line, index + 1, group_of_id).map_err(|reason| DatasetError::Line {
            path: path.to_owned(),
            line: index + 1,
            reason,
        })?;
        examples.push(example);
    }
    if examples.is_empty() {
        return Err(DatasetError::Empty { path: path.to_owned() });
    }
    Ok(examples)
}

fn parse_line(line: &str, number: usize, group_of_id: Option<char>) -> Result<Example, String> {
    let line: Line = serde_json::from_str(line.trim_start_matches('\u{feff}')).map_err(|source| source.to_string())?;
    let queue = line.queue.filter(|queue| !queue.trim().is_empty());
    let queue = queue.ok_or("no `queue` (or `label`): every line needs the queue that the mail belongs to")?;
    let (subject, text) = (line.subject.unwrap_or_default(), line.text.unwrap_or_default());
    let has_html = line.html.as_ref().is_some_and(|html| !html.trim().is_empty());
    if subject.trim().is_empty() && text.trim().is_empty() && !has_html {
        return Err("no text: `subject`, `text` (or `body`) and `html` are all blank".to_owned());
    }
    let id = line.id.as_ref().map_or_else(|| number.to_string(), plain);
    let of_id = || group_of_id.and_then(|mark| id.split_once(mark)).map(|(group, _)| group.to_owned());
    let group = line.group.as_ref().map(plain).or_else(of_id);
    Ok(Example { group, subject, text, html: line.html, queue: queue.trim().to_owned(), id })
}

/// A string as it is, anything else as JSON.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_without_a_queue_says_so() {
        let error = parse_line(r#"{"subject": "a", "body": "b"}"#, 3, None).unwrap_err();
        assert!(error.contains("no `queue`"), "{error}");
    }

    #[test]
    fn the_group_comes_from_the_id() {
        let example = parse_line(r#"{"id": "TE-116", "body": "b", "queue": "refunds"}"#, 1, Some('-')).unwrap();
        assert_eq!(example.group.as_deref(), Some("TE"));
    }

    #[test]
    fn a_mail_without_any_text_is_refused() {
        assert!(parse_line(r#"{"subject": " ", "body": "", "queue": "refunds"}"#, 1, None).is_err());
    }
}
