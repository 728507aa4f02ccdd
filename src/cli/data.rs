//! Labelled mail on the command line: which file, which format, which columns.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use sha2::{Digest, Sha256};

use crate::artifact::sha256_file;
use crate::dataset::{self, ColumnNames, Dataset, Example, Format, Note, ReadOptions};

/// Where labelled mail stands and how it is read; docs/data.md shows each format.
#[derive(Debug, Clone, Args)]
pub(super) struct DataArgs {
    /// Labelled mail: a file (JSONL, JSON, CSV, TSV, fastText, mbox, AWS Comprehend, Azure labels) or a folder with a
    /// folder of .eml files or an .mbox file for each queue.
    #[arg(value_name = "DATA")]
    pub(super) path: PathBuf,
    #[command(flatten)]
    pub(super) columns: ColumnArgs,
}

/// How labelled mail is read.
#[derive(Debug, Clone, Args)]
pub(super) struct ColumnArgs {
    /// The format, where name and first bytes do not show it: jsonl, json, csv, tsv, comprehend, azure, fasttext, folder, mbox.
    #[arg(long, value_name = "FORMAT", help_heading = "Data")]
    format: Option<Format>,
    /// Column or key of the text; of two or more the first is the subject and the others make the body.
    #[arg(long, value_name = "COLUMN,...", value_delimiter = ',', help_heading = "Data")]
    text: Vec<String>,
    /// Column or key of the queue; of one mbox file the header.
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    label: Option<String>,
    /// Column or key of the HTML, read where there is no text.
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    html: Option<String>,
    /// Column or key of the id; of raw mail a header.
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    id: Option<String>,
    /// Column or key of what belongs together (author, thread, sender); of raw mail a header. A group is never split between
    /// training and judging.
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    group: Option<String>,
    /// The group of a mail that names none is its id up to this character.
    #[arg(long, value_name = "CHARACTER", allow_hyphen_values = true, help_heading = "Data")]
    group_from_id: Option<char>,
    /// Leave mail without a label out instead of refusing the data.
    #[arg(long, help_heading = "Data")]
    skip_unlabelled: bool,
}

impl ColumnArgs {
    /// How to read mail, all of it with one label where there is one.
    pub(super) fn options(&self, one_label: Option<&str>) -> ReadOptions {
        let columns = ColumnNames {
            text: self.text.clone(),
            label: self.label.clone(),
            html: self.html.clone(),
            id: self.id.clone(),
            group: self.group.clone(),
        };
        ReadOptions {
            format: self.format,
            columns,
            group_of_id: self.group_from_id,
            skip_unlabelled: self.skip_unlabelled,
            one_label: one_label.map(str::to_owned),
        }
    }
}

impl DataArgs {
    /// Reads the labelled mail.
    pub(super) fn read(&self) -> anyhow::Result<Dataset> {
        Ok(dataset::read(&self.path, &self.columns.options(None))?)
    }

    /// Reads the labelled mail, and other mail that is only trained on.
    pub(super) fn read_with(&self, also: &[PathBuf]) -> anyhow::Result<Dataset> {
        let mut data = self.read()?;
        for path in also {
            let more = self.read_test(path)?;
            data.examples.extend(more.examples.into_iter().map(|mail| Example { only_trained_on: true, ..mail }));
            data.notes.extend(more.notes);
        }
        Ok(data)
    }

    /// Reads other mail by the same columns. It may have another format than the data, unless it is named like the data.
    pub(super) fn read_test(&self, path: &Path) -> anyhow::Result<Dataset> {
        let format = self.columns.format.filter(|_| path.extension() == self.path.extension());
        Ok(dataset::read(path, &ReadOptions { format, ..self.columns.options(None) })?)
    }

    /// SHA-256 of the data: of the file itself; of a folder, or of a file with documents beside it, that of the list of the
    /// files' names below the folder with the SHA-256 of each, as `sha256sum` writes it.
    pub(super) fn sha256(&self, examples: &[Example]) -> anyhow::Result<String> {
        let mut files: Vec<&Path> = examples.iter().map(|example| &*example.place.file).collect();
        if self.path.is_file() {
            files.push(&self.path);
        }
        files.sort_unstable();
        files.dedup();
        if files == [self.path.as_path()] {
            return Ok(sha256_file(&self.path)?);
        }
        let root = if self.path.is_file() { self.path.parent().unwrap_or(Path::new("")) } else { &self.path };
        let mut list = Sha256::new();
        for file in files {
            let name = file.strip_prefix(root).unwrap_or(file);
            list.update(format!("{}  {}\n", sha256_file(file)?, name.display()));
        }
        Ok(list.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Tells the user what there is to know about the data.
pub(super) fn tell(notes: &[Note]) {
    let mut stderr = std::io::stderr().lock();
    for note in notes {
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(stderr, "note: {note}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Place;

    fn args(path: &Path) -> DataArgs {
        DataArgs {
            path: path.to_owned(),
            columns: ColumnArgs {
                format: Some(Format::Csv),
                text: Vec::new(),
                label: None,
                html: None,
                id: None,
                group: None,
                group_from_id: None,
                skip_unlabelled: false,
            },
        }
    }

    #[test]
    fn the_checksum_of_a_folder_is_that_of_its_list_of_files() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a.eml", "b.eml"].map(|name| folder.path().join(name));
        files.iter().for_each(|file| std::fs::write(file, "hello").unwrap());
        let mails: Vec<Example> =
            files.iter().rev().map(|file| Example { place: Place::file(file), ..Example::default() }).collect();
        let hello = sha256_file(&files[0]).unwrap();
        let list = folder.path().join("list");
        std::fs::write(&list, format!("{hello}  a.eml\n{hello}  b.eml\n")).unwrap();
        assert_eq!(args(folder.path()).sha256(&mails).unwrap(), sha256_file(&list).unwrap());
        let mail = [Example { place: Place::file(&files[0]), ..Example::default() }];
        assert_eq!(args(&files[0]).sha256(&mail).unwrap(), hello);
    }
}
