//! Which format a file or folder has, by its name and its first bytes.

use std::path::Path;

use super::columns::is_usual;
use super::folders::{Listing, has_extension};
use super::lines::without_mark;
use super::table::separator_of;
use super::{ColumnNames, DatasetError, Format, ReadOptions, fasttext};

/// The format of a folder.
pub(super) fn folder(path: &Path, options: &ReadOptions) -> Result<Format, DatasetError> {
    let Listing { folders, files } = Listing::of(path)?;
    if files.iter().any(|file| has_extension(file, "mbox")) {
        Ok(Format::Mbox)
    } else if folders.is_empty() && options.one_label.is_none() {
        Err(DatasetError::NoQueues { path: path.to_owned() })
    } else {
        Ok(Format::Folder)
    }
}

/// The format of a file. What its first bytes show beyond doubt counts more than its name.
pub(super) fn file(path: &Path, first: &[u8], options: &ReadOptions) -> Result<Format, DatasetError> {
    foreign(path, first)?;
    let first = without_mark(first);
    let text = first.trim_ascii_start();
    let named = |extensions: &[&str]| extensions.iter().any(|extension| has_extension(path, extension));
    if text.is_empty() {
        return Err(DatasetError::Empty { path: path.to_owned() });
    }
    Ok(match text[0] {
        _ if text.starts_with(fasttext::PREFIX.as_bytes()) => Format::FastText,
        _ if named(&["mbox"]) || (text.starts_with(b"From ") && !named(&["csv", "tsv"])) => Format::Mbox,
        _ if named(&["tsv", "tab"]) => Format::Tsv,
        _ if named(&["csv"]) => table(first, options),
        b'[' => Format::Json,
        b'{' if is_project(text) => Format::Azure,
        b'{' if named(&["jsonl", "ndjson"]) || one_object(text) => Format::Jsonl,
        b'{' => Format::Json,
        _ if named(&["jsonl", "ndjson"]) => Format::Jsonl,
        _ if named(&["json"]) => Format::Json,
        _ if header(first).iter().filter(|name| is_usual(name)).count() >= 2 => Format::Csv,
        _ => return Err(DatasetError::NoFormat { path: path.to_owned() }),
    })
}

/// Refuses what another program has to open first.
fn foreign(path: &Path, first: &[u8]) -> Result<(), DatasetError> {
    const KINDS: [(&[u8], &str, &str); 7] = [
        (b"\x1f\x8b", "compressed with gzip", "unpack it first"),
        (b"BZh", "compressed with bzip2", "unpack it first"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd", "unpack it first"),
        (b"PK\x03\x04", "a zip archive or a spreadsheet", "unpack it, or save the sheet as CSV"),
        (b"PAR1", "a Parquet file", "write its rows as JSONL or CSV"),
        (b"\xff\xfe", "in UTF-16", "save it in UTF-8"),
        (b"\xfe\xff", "in UTF-16", "save it in UTF-8"),
    ];
    match KINDS.into_iter().find(|(start, ..)| first.starts_with(start)) {
        Some((_, what, remedy)) => Err(DatasetError::Foreign { path: path.to_owned(), what, remedy }),
        None => Ok(()),
    }
}

/// Whether a JSON object is the labels file of an Azure project.
fn is_project(text: &[u8]) -> bool {
    let has = |key: &[u8]| text.windows(key.len()).any(|window| window == key);
    has(b"\"projectKind\"") || (has(b"\"projectFileVersion\"") && has(b"\"assets\""))
}

/// Whether the first line is an object of its own.
fn one_object(text: &[u8]) -> bool {
    let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    // An object longer than the first bytes has no end here.
    line.len() == text.len() || serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

/// A table, or Comprehend's file without a header row: two columns without a usual name, the second a sentence.
fn table(first: &[u8], options: &ReadOptions) -> Format {
    let names = header(first);
    let sentence = names.get(1).is_some_and(|text| text.split_whitespace().count() >= 3);
    let usual = names.iter().any(|name| is_usual(name));
    let unnamed = names.len() == 2 && sentence && !usual && options.columns == ColumnNames::default();
    if unnamed && separator_of(first) == b',' { Format::Comprehend } else { Format::Csv }
}

/// The fields of the first row.
fn header(first: &[u8]) -> Vec<String> {
    let mut rows = csv::ReaderBuilder::new().delimiter(separator_of(first)).has_headers(false).from_reader(first);
    let mut row = csv::ByteRecord::new();
    match rows.read_byte_record(&mut row) {
        Ok(true) => row.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str, first: &str) -> Result<Format, DatasetError> {
        file(Path::new(name), first.as_bytes(), &ReadOptions::default())
    }

    #[test]
    fn formats_are_told_by_name_and_first_bytes() {
        let cases = [
            ("a.jsonl", "{\"text\": 1}\n", Format::Jsonl),
            ("a.jsonl", " [\n", Format::Json),
            ("a.json", "\u{feff}[{", Format::Json),
            ("a.json", "{\"a\": 1}\n{\"a\": 2}\n", Format::Jsonl),
            ("a.json", "{\n\"a\": 1}\n", Format::Json),
            ("a.json", "{\"metadata\": {\"projectKind\": \"X\"}}", Format::Azure),
            ("a.csv", "a;b\n", Format::Csv),
            ("a.csv", "From ,Subject ,Label\n", Format::Csv),
            ("a.csv", "REFUNDS,The cake came cold\n", Format::Comprehend),
            ("a.csv", "text,which label it has\n", Format::Csv),
            ("a.TSV", "a\tb\n", Format::Tsv),
            ("a", "Text\tLabel\n", Format::Csv),
            ("a.txt", "__label__refunds It came cold\n", Format::FastText),
            ("inbox", "From ann@example.org Mon Jan  5 09:12:00 2026\n", Format::Mbox),
        ];
        for (name, first, expected) in cases {
            assert_eq!(format(name, first).unwrap(), expected, "{name} {first:?}");
        }
    }

    #[test]
    fn what_shows_no_format_is_refused_with_the_flag() {
        let error = format("a.txt", "Hello, there").unwrap_err().to_string();
        assert!(error.contains("--format") && error.contains("fasttext"), "{error}");
        assert!(matches!(format("a.csv", " \n"), Err(DatasetError::Empty { .. })));
        let error = format("a.csv", "PK\u{3}\u{4}").unwrap_err().to_string();
        assert!(error.contains("save the sheet as CSV"), "{error}");
    }
}
