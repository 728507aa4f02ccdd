//! Labelled mail, whatever it stands in: JSON, tables, the label files of other services, folders of mail.
//!
//! ```text
//! path -- detect --> reader of a format -- Record --> Collector -- Dataset --> join (duplicates) --> survey (sizes)
//! ```
//!
//! Every reader takes one record at a time from a stream: memory holds the parsed mail, never the file. What a user should
//! know but need not act upon is a [`Note`]; what has to be mended is a [`DatasetError`] with the place and the remedy.
//!
//! ```
//! use std::path::Path;
//! use postroom::dataset::{Format, ReadOptions, read_stream};
//!
//! let mut csv = "title,message,department\nBirthday cake,It came cold.,Refunds\n".as_bytes();
//! let dataset = read_stream(&mut csv, Path::new("mail.csv"), Format::Csv, &ReadOptions::default())?;
//! assert_eq!(dataset.examples[0].subject, "Birthday cake");
//! assert_eq!(dataset.examples[0].queue, "Refunds");
//! # Ok::<(), postroom::dataset::DatasetError>(())
//! ```

mod azure;
mod collector;
mod columns;
mod detect;
mod duplicates;
mod error;
mod example;
mod fasttext;
mod folders;
mod json;
mod json_objects;
mod lines;
mod mbox;
mod near;
mod note;
mod options;
mod slim;
mod survey;
mod table;
mod unlabelled;
mod unseen;

pub use duplicates::{join, name_conflicts};
pub use error::DatasetError;
pub use example::{Example, Place};
pub use note::{Note, Places};
pub use options::{ColumnNames, Format, ReadOptions, UnknownFormat};
pub use survey::survey;
pub use unlabelled::{TakeMail, Unlabelled, UnlabelledContent, each_unlabelled};
pub use unseen::{Closeness, group_names, unseen};

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use collector::Collector;

/// Most bytes of one record: a line, a row, an object, a mail.
const MAX_RECORD_BYTES: usize = 32 << 20;

/// Bytes of a file that its format is told by, and size of the read buffer.
const FIRST_BYTES: usize = 64 << 10;

/// Labelled mail with what its user should know about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dataset {
    /// The mails, in the order of the files.
    pub examples: Vec<Example>,
    /// What was skipped, joined or guessed.
    pub notes: Vec<Note>,
}

impl Dataset {
    /// What a training takes: duplicates joined, sizes of the queues judged.
    #[must_use]
    pub fn for_training(self) -> Self {
        survey(join(self))
    }
}

/// Reads the labelled mail of a file or a folder.
///
/// # Errors
/// [`DatasetError`], naming the place and the remedy.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Dataset, DatasetError> {
    let error = DatasetError::read(path);
    if std::fs::metadata(path).map_err(&error)?.is_dir() {
        let mut collector = Collector::new(options);
        match options.format.map_or_else(|| detect::folder(path, options), Ok)? {
            Format::Mbox => folders::mboxes(path, &mut collector)?,
            Format::Folder => folders::mails(path, &mut collector)?,
            format => return Err(DatasetError::IsFolder { path: path.to_owned(), format }),
        }
        return collector.finish(path);
    }
    let mut reader = BufReader::with_capacity(FIRST_BYTES, File::open(path).map_err(&error)?);
    let first = reader.fill_buf().map_err(&error)?;
    let format = options.format.map_or_else(|| detect::file(path, first, options), Ok)?;
    read_stream(&mut reader, path, format, options)
}

/// Reads labelled mail from a stream; `path` is its name in errors and the place of the documents that an Azure project names.
///
/// # Errors
/// [`DatasetError`], naming the place and the remedy.
pub fn read_stream(
    reader: &mut dyn BufRead,
    path: &Path,
    format: Format,
    options: &ReadOptions,
) -> Result<Dataset, DatasetError> {
    let mut collector = Collector::new(options);
    lines::skip_mark(reader).map_err(DatasetError::read(path))?;
    match format {
        Format::Jsonl => json::lines(reader, path, &mut collector)?,
        Format::Json => json::objects(reader, path, &mut collector)?,
        Format::Csv => table::with_header(reader, path, None, &mut collector)?,
        Format::Tsv => table::with_header(reader, path, Some(b'\t'), &mut collector)?,
        Format::Comprehend => table::comprehend(reader, path, &mut collector)?,
        Format::Azure => azure::project(reader, path, &mut collector)?,
        Format::FastText => fasttext::lines(reader, path, &mut collector)?,
        Format::Mbox => mbox::by_header(reader, path, &mut collector)?,
        Format::Folder => return Err(DatasetError::NoFolder { path: path.to_owned() }),
    }
    collector.finish(path)
}

#[cfg(test)]
mod stream_tests;
