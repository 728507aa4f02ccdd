//! Mail without labels, one at a time: a folder of .eml and .mbox files at any depth, an mbox, a table, JSON.
//!
//! What cannot be read is handed over as an error at its place, and the next mail follows. Only what makes all mail of a file
//! unreadable (no text column, no such file) ends the reading.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::collector::Collector;
use super::columns::Columns;
use super::folders::{self, Listing, has_extension};
use super::json_objects::Objects;
use super::lines::{Lines, decode, skip_mark};
use super::table::{Rows, separator_of};
use super::{DatasetError, FIRST_BYTES, Format, Place, ReadOptions, detect, json, mbox};

/// One mail as it stands in the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlabelled {
    /// The id in the data.
    pub id: Option<String>,
    /// The mail.
    pub content: UnlabelledContent,
    /// Whether the mail was longer than the 32 MiB that are read of one; the content ends there.
    pub cut: bool,
}

/// A raw message, or fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnlabelledContent {
    /// RFC 5322.
    Raw(Vec<u8>),
    /// Columns of a table, keys of an object.
    Fields {
        /// Subject line.
        subject: String,
        /// Plain text.
        text: String,
        /// HTML, where there is some.
        html: Option<String>,
    },
}

/// Takes a mail, or why there is none at this place. Answers whether to go on.
pub type TakeMail<'t> = dyn FnMut(Place, Result<Unlabelled, DatasetError>) -> ControlFlow<()> + 't;

/// Folders within folders that are looked into.
const MAX_DEPTH: usize = 32;

/// Hands the mails of a file or folder to `take`, always in the same order. Labels are neither needed nor read.
///
/// # Errors
/// [`DatasetError`] where nothing can be read at all.
pub fn each_unlabelled(path: &Path, options: &ReadOptions, take: &mut TakeMail<'_>) -> Result<(), DatasetError> {
    // A label that is given is not looked for.
    let options = ReadOptions { one_label: Some(String::new()), ..options.clone() };
    let mut source = Source { options: &options, take };
    let error = DatasetError::read(path);
    let read = if std::fs::metadata(path).map_err(&error)?.is_dir() {
        source.folder(path, &mut Vec::new())
    } else if has_extension(path, "eml") && options.format.is_none() {
        source.document(path)
    } else {
        let mut reader = BufReader::with_capacity(FIRST_BYTES, File::open(path).map_err(&error)?);
        let first = reader.fill_buf().map_err(&error)?;
        let format = match options.format {
            Some(format) => format,
            None => detect::file(path, first, &options).map_err(in_words_of_a_backlog)?,
        };
        skip_mark(&mut reader).map_err(&error)?;
        source.stream(&mut reader, path, format)
    };
    match read {
        Ok(()) | Err(Stop::Enough) => Ok(()),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// A backlog's format is named with another flag than that of labelled mail, and fewer formats are read.
fn in_words_of_a_backlog(error: DatasetError) -> DatasetError {
    match error {
        DatasetError::NoFormat { path } => DatasetError::NoBacklogFormat { path },
        other => other,
    }
}

/// Why the reading ends before the end.
enum Stop {
    /// The taker has enough.
    Enough,
    Error(DatasetError),
}

impl From<DatasetError> for Stop {
    fn from(error: DatasetError) -> Self {
        Self::Error(error)
    }
}

struct Source<'s, 't> {
    options: &'s ReadOptions,
    take: &'s mut TakeMail<'t>,
}

impl Source<'_, '_> {
    fn hand(&mut self, place: Place, mail: Result<Unlabelled, DatasetError>) -> Result<(), Stop> {
        match (self.take)(place, mail) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Enough),
        }
    }

    /// Files in the order of their names, then the folders. Other files than mail are passed over, and so is a link to
    /// one of the folders `above`, whose mail would come again and again.
    fn folder(&mut self, path: &Path, above: &mut Vec<PathBuf>) -> Result<(), Stop> {
        // A folder that has no such path cannot be listed either.
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if above.contains(&real) {
            return Ok(());
        }
        let listing = match Listing::of(path) {
            Ok(listing) => listing,
            Err(error) if above.is_empty() => return Err(error.into()),
            Err(error) => return self.hand(Place::file(path), Err(error)),
        };
        for file in listing.files {
            if has_extension(&file, "eml") || has_extension(&file, "txt") {
                self.document(&file)?;
            } else if has_extension(&file, "mbox") {
                match File::open(&file).map_err(DatasetError::read(&file)) {
                    Ok(opened) => {
                        let mut reader = BufReader::with_capacity(FIRST_BYTES, opened);
                        self.rest_of(&file, |source| source.mbox(&mut reader, &file))?;
                    }
                    Err(error) => self.hand(Place::file(&file), Err(error))?,
                }
            } else if let Err(error) = std::fs::metadata(&file)
                && error.kind() != ErrorKind::NotFound
            {
                // It may be a folder of mail that this user must not see.
                self.hand(Place::file(&file), Err(DatasetError::read(&file)(error)))?;
            }
        }
        if above.len() < MAX_DEPTH {
            above.push(real);
            for folder in listing.folders {
                self.folder(&folder, above)?;
            }
            above.pop();
        }
        Ok(())
    }

    /// Reads a file; an error that ends it is told at its place, and the next file follows.
    fn rest_of(&mut self, file: &Path, read: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        match read(self) {
            Err(Stop::Error(error)) => self.hand(Place::file(file), Err(error)),
            other => other,
        }
    }

    fn document(&mut self, file: &Path) -> Result<(), Stop> {
        let mut collector = Collector::new(self.options);
        let record = folders::document(file, &mut collector);
        let cut = collector.has_cut();
        let mail = record.map(|record| match record.raw {
            Some(raw) => Unlabelled { id: record.id, content: UnlabelledContent::Raw(raw), cut },
            None => Unlabelled { id: None, content: fields(String::new(), record.text, None), cut },
        });
        self.hand(Place::file(file), mail)
    }

    fn stream(&mut self, reader: &mut dyn BufRead, path: &Path, format: Format) -> Result<(), Stop> {
        match format {
            Format::Jsonl => self.lines(reader, path),
            Format::Json => self.objects(reader, path),
            Format::Csv => self.table(reader, path, None),
            Format::Tsv => self.table(reader, path, Some(b'\t')),
            Format::Mbox => self.mbox(reader, path),
            Format::Comprehend | Format::Azure | Format::FastText | Format::Folder => {
                Err(DatasetError::OnlyLabelled { path: path.to_owned(), format }.into())
            }
        }
    }

    fn mbox(&mut self, reader: &mut dyn BufRead, path: &Path) -> Result<(), Stop> {
        let header = self.options.columns.id.clone();
        mbox::split(reader, path, &mut |message| {
            let id = header.as_ref().and_then(|name| mbox::header(&message.bytes, name));
            let mbox::Message { place, bytes, cut } = message;
            self.hand(place, Ok(Unlabelled { id, content: UnlabelledContent::Raw(bytes), cut }))
        })
    }

    fn lines(&mut self, reader: &mut dyn BufRead, path: &Path) -> Result<(), Stop> {
        let mut lines = Lines::new(reader, path);
        loop {
            match lines.next() {
                Ok(None) => return Ok(()),
                Ok(Some((_, line))) if line.trim_ascii().is_empty() => {}
                Ok(Some((place, line))) => {
                    let mail = self.object(&place, line);
                    self.hand(place, mail)?;
                }
                Err(DatasetError::TooLong { place }) => {
                    self.hand(place.clone(), Err(DatasetError::TooLong { place }))?;
                    lines.skip_rest()?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Where an object does not end, nobody knows where the next one starts: the rest of the file is one error.
    fn objects(&mut self, reader: &mut dyn BufRead, path: &Path) -> Result<(), Stop> {
        let mut objects = Objects::new(reader, path);
        let mut object = Vec::new();
        loop {
            match objects.next(&mut object) {
                Ok(None) => return Ok(()),
                Ok(Some(place)) => {
                    let mail = self.object(&place, &object);
                    self.hand(place, mail)?;
                }
                Err(error @ (DatasetError::Broken { .. } | DatasetError::TooLong { .. })) => {
                    return self.hand(Place::file(path), Err(error));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn object(&self, place: &Place, bytes: &[u8]) -> Result<Unlabelled, DatasetError> {
        let object: Map<String, Value> =
            serde_json::from_str(&decode(bytes).0).map_err(|error| json::broken(place, &error))?;
        let names: Vec<String> = object.keys().cloned().collect();
        let columns = self.columns(&names, place)?;
        let values: Vec<&Value> = object.values().collect();
        let cell = |at: usize| json::plain(values[at], &names[at], place);
        let mut body = Vec::new();
        for &at in &columns.body {
            body.extend(cell(at)?);
        }
        let optional = |at: Option<usize>| at.map_or(Ok(None), cell);
        let subject = optional(columns.subject)?.unwrap_or_default();
        let content = fields(subject, joined(body), optional(columns.html)?);
        Ok(Unlabelled { id: optional(columns.id)?, content, cut: false })
    }

    fn table(&mut self, reader: &mut dyn BufRead, path: &Path, separator: Option<u8>) -> Result<(), Stop> {
        let separator = match separator {
            Some(separator) => separator,
            None => separator_of(reader.fill_buf().map_err(DatasetError::read(path))?),
        };
        let mut rows = Rows::new(reader, path, separator);
        let Some(place) = rows.next()? else { return Ok(()) };
        let names: Vec<String> = rows.record.iter().map(|name| decode(name).0.trim().to_owned()).collect();
        let columns = self.columns(&names, &place)?;
        loop {
            let place = match rows.next() {
                Ok(None) => return Ok(()),
                Ok(Some(place)) => place,
                // A quote that is never closed takes the rest of the file along.
                Err(
                    error
                    @ (DatasetError::Unclosed { .. } | DatasetError::TooLong { .. } | DatasetError::Broken { .. }),
                ) => {
                    return self.hand(Place::file(path), Err(error));
                }
                Err(error) => return Err(error.into()),
            };
            let found = rows.record.len();
            if found != names.len() {
                let error = DatasetError::Fields { place: place.clone(), expected: names.len(), found };
                self.hand(place, Err(error))?;
                continue;
            }
            let cell = |at: usize| rows.record.get(at).map(|bytes| decode(bytes).0.into_owned());
            let body = columns.body.iter().filter_map(|&at| cell(at)).collect();
            let subject = columns.subject.and_then(cell).unwrap_or_default();
            let content = fields(subject, joined(body), columns.html.and_then(cell));
            self.hand(place, Ok(Unlabelled { id: columns.id.and_then(cell), content, cut: false }))?;
        }
    }

    fn columns(&self, names: &[String], place: &Place) -> Result<Columns, DatasetError> {
        let columns = Columns::choose(names, self.options, place)?;
        let (place, names) = (place.clone(), names.to_vec());
        match columns.missing.first().cloned() {
            Some((flag, name)) => Err(DatasetError::NoSuchColumn { place, name, flag, columns: names }),
            None if !columns.have_text() => {
                Err(DatasetError::NoColumn { place, what: "text", flag: "--text", columns: names })
            }
            None => Ok(columns),
        }
    }
}

fn fields(subject: String, text: String, html: Option<String>) -> UnlabelledContent {
    UnlabelledContent::Fields { subject, text, html }
}

/// Columns of the body, a blank line between them.
fn joined(body: Vec<String>) -> String {
    body.into_iter().filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

impl Place {
    /// The place below a folder, for rows that people read.
    #[must_use]
    pub fn below(&self, folder: &Path) -> Self {
        let file = self.file.strip_prefix(folder).ok().filter(|rest| !rest.as_os_str().is_empty());
        Self { file: file.map_or_else(|| Arc::clone(&self.file), Arc::from), line: self.line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::MAX_RECORD_BYTES;

    fn read(path: &Path, options: &ReadOptions) -> Vec<String> {
        let mut all = Vec::new();
        each_unlabelled(path, options, &mut |place, mail| {
            let place = place.below(path);
            all.push(match mail {
                Ok(Unlabelled { content: UnlabelledContent::Raw(raw), .. }) => {
                    format!("{place}: raw {}", String::from_utf8_lossy(&raw).trim())
                }
                Ok(Unlabelled { id, content: UnlabelledContent::Fields { subject, text, .. }, .. }) => {
                    format!("{place}: {} {subject}/{text}", id.unwrap_or_default())
                }
                Err(error) => format!("{place}: {error}"),
            });
            ControlFlow::Continue(())
        })
        .unwrap();
        all
    }

    fn file(name: &str, text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn a_folder_is_read_to_its_bottom_in_the_order_of_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("a/deep")).unwrap();
        std::fs::write(at("b.eml"), "Subject: b\n\nb").unwrap();
        std::fs::write(at("a/deep/c.eml"), "Subject: c\n\nc").unwrap();
        std::fs::write(at("a/two.mbox"), "From x\nSubject: 1\n\n1\n\nFrom y\nSubject: 2\n\n2\n").unwrap();
        std::fs::write(at("a/wrong.mbox"), "no mbox\n").unwrap();
        std::fs::write(at("notes.pdf"), "%PDF").unwrap();
        let read = read(folder.path(), &ReadOptions::default());
        assert_eq!(read.len(), 5, "{read:?}");
        assert!(read[0].starts_with("b.eml: raw Subject: b"));
        assert!(read[1].starts_with("a/two.mbox line 1: raw") && read[2].starts_with("a/two.mbox line 6: raw"));
        assert!(read[3].starts_with("a/wrong.mbox: ") && read[3].contains("`From `"), "{read:?}");
        assert!(read[4].starts_with("a/deep/c.eml"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nowhere_costs_no_other_mail_and_one_to_a_folder_above_is_not_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("inbox/old")).unwrap();
        for (number, name) in ["inbox/a.eml", "inbox/c.eml", "inbox/old/d.eml"].into_iter().enumerate() {
            std::fs::write(at(name), format!("Subject: {number}\n\nbody")).unwrap();
        }
        symlink(at("gone.eml"), at("inbox/b.eml")).unwrap();
        symlink(at("gone"), at("inbox/e")).unwrap();
        symlink(".", at("inbox/again")).unwrap();
        symlink("../..", at("inbox/old/top")).unwrap();
        // The same folder by another way is no loop.
        symlink("inbox/old", at("old")).unwrap();
        // A link to itself nobody can look at, whoever asks.
        symlink(at("loop"), at("loop")).unwrap();
        let read = read(folder.path(), &ReadOptions::default());
        let starts = ["loop: cannot read", "inbox/a.eml: raw", "inbox/b.eml: cannot read", "inbox/c.eml: raw"];
        let starts = starts.into_iter().chain(["inbox/old/d.eml: raw", "old/d.eml: raw"]);
        assert!(read.iter().map(String::as_str).zip(starts).all(|(row, start)| row.starts_with(start)), "{read:?}");
        assert_eq!(read.len(), 6, "{read:?}");
    }

    /// Of each mail whether it was cut, and how it begins.
    fn cuts(path: &Path) -> Vec<(bool, String)> {
        let mut all = Vec::new();
        each_unlabelled(path, &ReadOptions::default(), &mut |_, mail| {
            let Unlabelled { content: UnlabelledContent::Raw(raw), cut, .. } = mail.unwrap() else { panic!() };
            all.push((cut, String::from_utf8_lossy(&raw).chars().take(10).collect()));
            ControlFlow::Continue(())
        })
        .unwrap();
        all
    }

    #[test]
    fn a_mail_that_is_too_long_is_read_up_to_there_says_so_and_costs_no_other() {
        let long = "x".repeat(MAX_RECORD_BYTES + 100);
        let mail = |number: usize, body: &str| format!("From a\nSubject: {number}\n\n{body}\n\n");
        // In one line, and in many.
        let lines = long.as_bytes().chunks(1000).map(|line| String::from_utf8_lossy(line) + "\n").collect::<String>();
        let mbox = [mail(1, "a"), mail(2, &long), mail(3, "c"), mail(4, &lines), mail(5, "e")].concat();
        let expected = [(1, false), (2, true), (3, false), (4, true), (5, false)];
        let expected = expected.map(|(number, cut)| (cut, format!("Subject: {number}")));
        let (folder, path) = file("mail.mbox", &mbox);
        assert_eq!(cuts(&path), expected);
        assert_eq!(cuts(folder.path()), expected);
        let (_folder, path) = file("mail.eml", &format!("Subject: 1\n\n{long}"));
        assert_eq!(cuts(&path), [(true, "Subject: 1".to_owned())]);
    }

    #[test]
    fn bad_lines_of_json_stand_between_good_ones() {
        let lines = "{\"id\": 7, \"subject\": \"s\", \"body\": \"b\"}\n{\"body\": \n\n[1]\n{\"x\": 1}\n{\"text\": \"t\", \"queue\": \"q\", \"label\": \"l\"}";
        let (_folder, path) = file("mail.jsonl", lines);
        let read = read(&path, &ReadOptions::default());
        assert_eq!(read.len(), 5, "{read:?}");
        assert!(read[0].ends_with("7 s/b") && read[4].ends_with(" /t"), "{read:?}");
        assert!(read[1].contains("line 2") && read[2].contains("line 4"), "{read:?}");
        assert!(read[3].contains("--text") && read[3].contains("`x`"), "{read:?}");
    }

    #[test]
    fn bad_rows_of_a_table_stand_between_good_ones() {
        let (_folder, path) = file("mail.csv", "Subject,Message\na,b\nc\nd,e\n\"f,g\n");
        let read = read(&path, &ReadOptions::default());
        assert_eq!(read.len(), 4, "{read:?}");
        assert!(read[0].ends_with("a/b") && read[2].ends_with("d/e"), "{read:?}");
        assert!(read[1].contains("1 fields where the header has 2") && read[3].contains("never closed"), "{read:?}");
    }

    #[test]
    fn the_rest_of_a_broken_array_is_one_error() {
        let (_folder, path) = file("mail.json", "[{\"text\": \"a\"}, {\"text\": 1} {\"text\": \"b\"}]");
        let read = read(&path, &ReadOptions::default());
        assert_eq!(read.len(), 3, "{read:?}");
        assert!(read[1].ends_with("/1") && read[2].contains("a comma"), "{read:?}");
    }

    #[test]
    fn what_makes_all_mail_unreadable_ends_the_reading() {
        let never = &mut |_, _| ControlFlow::Continue(());
        let (_folder, path) = file("mail.csv", "a,b\n1,2\n");
        let error = each_unlabelled(&path, &ReadOptions::default(), never).unwrap_err();
        assert!(matches!(error, DatasetError::NoColumn { flag: "--text", .. }), "{error}");
        let (_folder, path) = file("mail.txt", "__label__refunds It came cold\n");
        let error = each_unlabelled(&path, &ReadOptions::default(), never).unwrap_err();
        assert!(matches!(error, DatasetError::OnlyLabelled { .. }), "{error}");
    }

    #[test]
    fn a_taker_that_has_enough_ends_the_reading() {
        let (_folder, path) = file("mail.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
        let mut taken = 0;
        each_unlabelled(&path, &ReadOptions::default(), &mut |_, _| {
            taken += 1;
            ControlFlow::Break(())
        })
        .unwrap();
        assert_eq!(taken, 1);
    }
}
