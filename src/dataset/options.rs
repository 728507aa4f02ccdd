//! How labelled mail is to be read: its format and the columns that matter.

use std::fmt;
use std::str::FromStr;

/// What the data stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON object a line.
    Jsonl,
    /// One JSON array of objects, or objects one after another.
    Json,
    /// A table with a header row, its columns separated by commas, semicolons or tabs.
    Csv,
    /// A table with a header row, its columns separated by tabs.
    Tsv,
    /// The training file of AWS Comprehend in multi-class mode: no header row, class and text.
    Comprehend,
    /// The labels file of an Azure custom text classification project with a single label; documents beside it.
    Azure,
    /// One mail a line, after `__label__` and its queue.
    FastText,
    /// A folder with a folder of .eml and .txt files for each queue.
    Folder,
    /// A folder with an mbox file for each queue, or one mbox file whose messages name their queue in a header.
    Mbox,
}

impl Format {
    /// All formats with their names on the command line.
    pub const ALL: [(&'static str, Self); 9] = [
        ("jsonl", Self::Jsonl),
        ("json", Self::Json),
        ("csv", Self::Csv),
        ("tsv", Self::Tsv),
        ("comprehend", Self::Comprehend),
        ("azure", Self::Azure),
        ("fasttext", Self::FastText),
        ("folder", Self::Folder),
        ("mbox", Self::Mbox),
    ];

    /// The names of all formats.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(|(name, _)| name).join(", ")
    }

    /// The names of the formats of files with mail that needs no label.
    #[must_use]
    pub fn unlabelled_names() -> String {
        let names: Vec<&str> =
            Self::ALL.iter().filter(|(_, format)| !format.only_labelled()).map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// Whether nothing but labelled mail comes in it.
    fn only_labelled(self) -> bool {
        matches!(self, Self::Comprehend | Self::Azure | Self::FastText | Self::Folder)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(_, format)| format == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// A name that is no format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no format; formats are {names}", names = Format::names())]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, format)| *format);
        found.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// The columns (keys of JSON, headers of raw mail) to read. What is not named is guessed by usual names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnNames {
    /// The text; of two or more the first is the subject, and the others make the body, a blank line between them.
    pub text: Vec<String>,
    /// The queue.
    pub label: Option<String>,
    /// The HTML, read where there is no text.
    pub html: Option<String>,
    /// The id.
    pub id: Option<String>,
    /// The author, thread or sender, whose mails are never split.
    pub group: Option<String>,
}

/// How labelled mail is to be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; found out where absent.
    pub format: Option<Format>,
    /// The columns.
    pub columns: ColumnNames,
    /// A mail that names no group has the part of its id before this character as its group.
    pub group_of_id: Option<char>,
    /// Leave mail without a label out instead of refusing the data.
    pub skip_unlabelled: bool,
    /// The label of all mail, whatever the data says: for mail of one queue, which needs none of its own.
    pub one_label: Option<String>,
}
