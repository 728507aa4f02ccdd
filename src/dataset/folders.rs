//! Folders: one folder of mails for each queue, or one mbox file for each queue. Files are read in the order of their names.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::collector::{Collector, Record};
use super::{DatasetError, FIRST_BYTES, MAX_RECORD_BYTES, Note, Place, mbox};

/// What stands in a folder, by name; hidden files and folders are passed over. What cannot be looked at, such as a link
/// to nowhere, counts as a file: opening it says why, and costs no other mail.
pub(super) struct Listing {
    pub(super) folders: Vec<PathBuf>,
    pub(super) files: Vec<PathBuf>,
}

impl Listing {
    pub(super) fn of(path: &Path) -> Result<Self, DatasetError> {
        let mut listing = Self { folders: Vec::new(), files: Vec::new() };
        for entry in std::fs::read_dir(path).map_err(DatasetError::read(path))? {
            let entry = entry.map_err(DatasetError::read(path))?.path();
            if name(&entry).starts_with('.') {
                continue;
            }
            let is_dir = std::fs::metadata(&entry).is_ok_and(|found| found.is_dir());
            if is_dir { &mut listing.folders } else { &mut listing.files }.push(entry);
        }
        listing.folders.sort();
        listing.files.sort();
        Ok(listing)
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|other| other.eq_ignore_ascii_case(extension))
}

/// Reads a folder of folders of mails.
pub(super) fn mails(path: &Path, collector: &mut Collector<'_>) -> Result<(), DatasetError> {
    let Listing { mut folders, mut files } = Listing::of(path)?;
    if folders.is_empty() && collector.options.one_label.is_some() {
        // The folder of one queue.
        folders.push(path.to_owned());
        files.clear();
    }
    if folders.is_empty() {
        return Err(DatasetError::NoQueues { path: path.to_owned() });
    }
    for file in &files {
        // A queue whose folder has gone must not be missing without a word.
        std::fs::metadata(file).map_err(DatasetError::read(file))?;
    }
    let mut others = files.len();
    for folder in folders {
        let queue = name(&folder);
        let listing = Listing::of(&folder)?;
        others += listing.folders.len();
        for file in listing.files {
            if has_extension(&file, "eml") || has_extension(&file, "txt") {
                let id = format!("{queue}/{}", name(&file));
                let record = Record { label: Some(queue.clone()), ..document(&file, collector)? };
                collector.push(Record { id: record.id.or(Some(id)), ..record })?;
            } else {
                others += 1;
            }
        }
    }
    if others > 0 {
        collector.notes.push(Note::OtherFiles { count: others });
    }
    Ok(())
}

/// Reads a folder of mbox files, each named after its queue.
pub(super) fn mboxes(path: &Path, collector: &mut Collector<'_>) -> Result<(), DatasetError> {
    let files = Listing::of(path)?.files;
    let files: Vec<PathBuf> = files.into_iter().filter(|file| has_extension(file, "mbox")).collect();
    if files.is_empty() {
        return Err(DatasetError::NoQueues { path: path.to_owned() });
    }
    for file in files {
        let queue = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let opened = File::open(&file).map_err(DatasetError::read(&file))?;
        mbox::messages(&mut BufReader::with_capacity(FIRST_BYTES, opened), &file, Some(&queue), collector)?;
    }
    Ok(())
}

/// One file that is one mail: a raw message where it is named .eml, plain text otherwise. It has no label yet.
pub(super) fn document(file: &Path, collector: &mut Collector<'_>) -> Result<Record, DatasetError> {
    let place = Place::file(file);
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(DatasetError::read(file))?;
    opened.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(DatasetError::read(file))?;
    if bytes.len() > MAX_RECORD_BYTES {
        bytes.truncate(MAX_RECORD_BYTES);
        collector.cut(&place);
    }
    if has_extension(file, "eml") {
        return Ok(mbox::raw(place, bytes, Some(""), collector));
    }
    let text = collector.decode(super::lines::without_mark(&bytes), &place);
    Ok(Record { text, place, ..Record::default() })
}
