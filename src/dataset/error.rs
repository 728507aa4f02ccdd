//! Why labelled mail cannot be used: each error with its place and its remedy.

use std::path::{Path, PathBuf};

use super::{Format, Place};

/// Why labelled mail cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file or folder cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The format shows neither in the name nor in the first bytes.
    #[error("{} has no format that shows in its name or its first bytes: name it with --format ({})", path.display(), Format::names())]
    NoFormat {
        /// The file.
        path: PathBuf,
    },
    /// The format of mail to route shows neither in the name nor in the first bytes.
    #[error("{} has no format that shows in its name or its first bytes: name it with --backlog-format ({})", path.display(), Format::unlabelled_names())]
    NoBacklogFormat {
        /// The file.
        path: PathBuf,
    },
    /// A file that holds mail only after another program has opened it.
    #[error("{} is {what}: {remedy}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A folder in place of a file.
    #[error("{} is a folder, and {format} is read from a file: name the file, or leave --format out", path.display())]
    IsFolder {
        /// The folder.
        path: PathBuf,
        /// The format asked for.
        format: Format,
    },
    /// A file in place of a folder.
    #[error("{} is no folder: the format `folder` reads a folder with one folder of .eml files for each queue", path.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
    },
    /// A folder without queues.
    #[error(
        "{} holds no queues: it needs a folder of .eml or .txt files, or an .mbox file, for each queue",
        path.display()
    )]
    NoQueues {
        /// The folder.
        path: PathBuf,
    },
    /// The file holds no mail.
    #[error("{} holds no labelled mail", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// No mail of the file has text.
    #[error(
        "{} holds {mails} mails and none has text, the first at {first}: name the column of the text with --text",
        path.display()
    )]
    AllBlank {
        /// The file.
        path: PathBuf,
        /// How many.
        mails: usize,
        /// The first of them.
        first: Place,
    },
    /// A mail without a label.
    #[error(
        "{place}: no `queue`{}: every mail needs a label; --label names its column, --skip-unlabelled leaves such mail out",
        among(keys)
    )]
    Unlabelled {
        /// Where.
        place: Place,
        /// The columns, where none of them is the label.
        keys: Vec<String>,
    },
    /// A label that no id can be made of.
    #[error(
        "{place}: the label `{label}` holds no letter a-z and no digit, and the ids of queues are made of these: rename it"
    )]
    BadLabel {
        /// Where.
        place: Place,
        /// The label.
        label: String,
    },
    /// A mail with several labels.
    #[error(
        "{place}: more than one label ({labels}), and a mail goes to one queue: keep the label of the team that must act"
    )]
    ManyLabels {
        /// Where.
        place: Place,
        /// The labels.
        labels: String,
    },
    /// A needed column is missing.
    #[error("{place}: no column is known to be the {what}: name it with {flag}; the columns are {}", list(columns))]
    NoColumn {
        /// Where the columns are named.
        place: Place,
        /// What it should hold.
        what: &'static str,
        /// The flag that names it.
        flag: &'static str,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// A column that was asked for is missing.
    #[error("{place}: there is no column `{name}` for {flag}; the columns are {}", list(columns))]
    NoSuchColumn {
        /// Where the columns are named.
        place: Place,
        /// The name asked for.
        name: String,
        /// The flag it was named with.
        flag: &'static str,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// Several columns may be meant.
    #[error(
        "{place}: {} may each be the {what}: choose with {flag}; the columns are {}",
        list(candidates),
        list(columns)
    )]
    Ambiguous {
        /// Where the columns are named.
        place: Place,
        /// What it should hold.
        what: &'static str,
        /// The flag that chooses.
        flag: &'static str,
        /// The columns that may be meant.
        candidates: Vec<String>,
        /// The columns there are.
        columns: Vec<String>,
    },
    /// A record that is not what the format says.
    #[error("{place}: {reason}")]
    Broken {
        /// Where.
        place: Place,
        /// What is wrong, and the remedy.
        reason: String,
    },
    /// A row with too few or too many fields.
    #[error(
        "{place}: {found} fields where the header has {expected}: put text that holds the separator in double quotes"
    )]
    Fields {
        /// Where.
        place: Place,
        /// Fields of the header.
        expected: usize,
        /// Fields of the row.
        found: usize,
    },
    /// A quoted field that goes on to the end of the file.
    #[error("{place}: a quote is opened that is never closed: close it, and write a double quote inside quotes twice")]
    Unclosed {
        /// Where the row starts.
        place: Place,
    },
    /// A record longer than any mail.
    #[error(
        "{place}: a record of more than {} MiB: a line break, a bracket or a closing quote is missing, or this is no mail",
        super::MAX_RECORD_BYTES >> 20
    )]
    TooLong {
        /// Where it starts.
        place: Place,
    },
    /// A format of labelled mail, given as mail to route.
    #[error("{} is read as {format}, a format of labelled mail: give a folder of .eml or .mbox files, an mbox, CSV, TSV, JSON or JSONL", path.display())]
    OnlyLabelled {
        /// The file.
        path: PathBuf,
        /// The format.
        format: Format,
    },
    /// An mbox file without a word on where the queue stands.
    #[error(
        "{} is one mbox file: name the header that holds the queue (--label X-Queue), or give a folder with an .mbox file for each queue",
        path.display()
    )]
    NoLabelHeader {
        /// The file.
        path: PathBuf,
    },
    /// An Azure project of another kind.
    #[error(
        "{} is an Azure project of the kind {kind}: only CustomSingleLabelClassification has one queue for a mail",
        path.display()
    )]
    ProjectKind {
        /// The file.
        path: PathBuf,
        /// Its kind.
        kind: String,
    },
    /// A document outside the folder of the Azure project.
    #[error("{}: the document `{location}` lies outside the file's folder: put the documents beside the file", path.display())]
    Outside {
        /// The labels file.
        path: PathBuf,
        /// The document.
        location: String,
    },
}

impl DatasetError {
    /// Wraps what the system said of a file.
    pub(super) fn read(path: &Path) -> impl Fn(std::io::Error) -> Self + '_ {
        |source| Self::Read { path: path.to_owned(), source }
    }
}

fn among(keys: &[String]) -> String {
    if keys.is_empty() { String::new() } else { format!(" among {}", list(keys)) }
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 30;
    let quoted: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    quoted.join(", ") + &more
}
