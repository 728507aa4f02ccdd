//! Tables: CSV and TSV with a header row, and the training file of AWS Comprehend without one.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use csv::ByteRecord;

use super::collector::{Collector, Record};
use super::columns::Columns;
use super::{DatasetError, MAX_RECORD_BYTES, Note, Place, ReadOptions};

/// Reads a table whose first row names the columns. Without a separator the header's most frequent one is taken.
pub(super) fn with_header(
    reader: &mut dyn BufRead,
    path: &Path,
    separator: Option<u8>,
    collector: &mut Collector<'_>,
) -> Result<(), DatasetError> {
    let separator = match separator {
        Some(separator) => separator,
        None => separator_of(reader.fill_buf().map_err(DatasetError::read(path))?),
    };
    let mut rows = Rows::new(reader, path, separator);
    let Some(place) = rows.next()? else { return Ok(()) };
    let names: Vec<String> = rows.record.iter().map(|name| collector.decode(name, &place).trim().to_owned()).collect();
    let columns = needed(Columns::choose(&names, collector.options, &place)?, &names, &place, collector.options)?;
    let guessed = columns.guessed(&names, collector.options);
    if !guessed.is_empty() {
        collector.notes.push(Note::Guessed { columns: guessed });
    }
    while let Some(place) = rows.next()? {
        if rows.record.len() != names.len() {
            return Err(DatasetError::Fields { place, expected: names.len(), found: rows.record.len() });
        }
        let mut cell = |at: usize| rows.record.get(at).map(|bytes| collector.decode(bytes, &place));
        let body: Vec<String> =
            columns.body.iter().filter_map(|&at| cell(at)).filter(|text| !text.trim().is_empty()).collect();
        let record = Record {
            id: columns.id.and_then(&mut cell),
            group: columns.group.and_then(&mut cell),
            subject: columns.subject.and_then(&mut cell).unwrap_or_default(),
            text: body.join("\n\n"),
            html: columns.html.and_then(&mut cell),
            label: columns.label.and_then(&mut cell),
            decisive: columns.decisive.and_then(&mut cell),
            raw: None,
            place,
        };
        collector.push(record)?;
    }
    Ok(())
}

/// Columns of a table, complete or refused.
fn needed(columns: Columns, names: &[String], place: &Place, options: &ReadOptions) -> Result<Columns, DatasetError> {
    let (place, names) = (place.clone(), names.to_vec());
    if let Some((flag, name)) = columns.missing.first().cloned() {
        return Err(DatasetError::NoSuchColumn { place, name, flag, columns: names });
    }
    if columns.label.is_none() && options.one_label.is_none() {
        return Err(DatasetError::NoColumn { place, what: "label", flag: "--label", columns: names });
    }
    if !columns.have_text() {
        return Err(DatasetError::NoColumn { place, what: "text", flag: "--text", columns: names });
    }
    Ok(columns)
}

/// Reads rows of class and text.
pub(super) fn comprehend(
    reader: &mut dyn BufRead,
    path: &Path,
    collector: &mut Collector<'_>,
) -> Result<(), DatasetError> {
    if collector.options.format.is_none() {
        collector.notes.push(Note::NoHeader);
    }
    let mut rows = Rows::new(reader, path, b',');
    while let Some(place) = rows.next()? {
        let (Some(class), Some(text), 2) = (rows.record.get(0), rows.record.get(1), rows.record.len()) else {
            return Err(DatasetError::Fields { place, expected: 2, found: rows.record.len() });
        };
        let label = collector.decode(class, &place);
        // The separator of classes in Comprehend's multi-label mode.
        if label.contains('|') {
            return Err(DatasetError::ManyLabels { place, labels: label });
        }
        let text = collector.decode(text, &place);
        collector.push(Record { label: Some(label), text, place, ..Record::default() })?;
    }
    Ok(())
}

/// The separator that the first line holds most of, outside quotes; a comma where it holds none.
pub(super) fn separator_of(first: &[u8]) -> u8 {
    let mut counts = [(b',', 0), (b';', 0), (b'\t', 0)];
    let mut quoted = false;
    for &byte in first {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' if !quoted => break,
            _ if !quoted => counts.iter_mut().filter(|(separator, _)| *separator == byte).for_each(|(_, n)| *n += 1),
            _ => {}
        }
    }
    // The first of equals.
    counts.iter().rev().max_by_key(|(_, count)| *count).map_or(b',', |(separator, _)| *separator)
}

/// The rows of a table, one at a time.
pub(super) struct Rows<'r> {
    csv: csv::Reader<Metered<'r>>,
    pub(super) record: ByteRecord,
    file: Arc<Path>,
}

impl<'r> Rows<'r> {
    pub(super) fn new(reader: &'r mut dyn BufRead, path: &Path, separator: u8) -> Self {
        let metered = Metered { reader, last: b'\n', ended: false, read: 0, limit: 0 };
        let csv = csv::ReaderBuilder::new().delimiter(separator).has_headers(false).flexible(true).from_reader(metered);
        Self { csv, record: ByteRecord::new(), file: Arc::from(path) }
    }

    /// Reads a row into `record` and answers where it starts.
    pub(super) fn next(&mut self) -> Result<Option<Place>, DatasetError> {
        let next_line = self.csv.position().line() as usize;
        let read = self.csv.get_ref().read;
        self.csv.get_mut().limit = read + MAX_RECORD_BYTES as u64;
        match self.csv.read_byte_record(&mut self.record) {
            Ok(false) => return Ok(None),
            Ok(true) => {}
            Err(_) if self.csv.get_ref().read >= self.csv.get_ref().limit => {
                return Err(DatasetError::TooLong { place: Place::line(&self.file, next_line) });
            }
            Err(error) => {
                let reason = error.to_string();
                return Err(match error.into_kind() {
                    csv::ErrorKind::Io(source) => DatasetError::read(&self.file)(source),
                    _ => DatasetError::Broken { place: Place::line(&self.file, next_line), reason },
                });
            }
        }
        // Counted from the end, because the reader's own start is that of blank lines before the row.
        let inside = self.record.as_slice().iter().filter(|&&byte| byte == b'\n').count();
        let after = self.csv.position().line() as usize;
        // Every line of the stream has an end, so only a quote can hold a row open up to the end of the stream.
        if self.csv.get_ref().ended {
            return Err(DatasetError::Unclosed { place: Place::line(&self.file, after.saturating_sub(inside).max(1)) });
        }
        let place = Place::line(&self.file, after.saturating_sub(inside + 1).max(1));
        Ok(Some(place))
    }
}

/// A stream with `\n` at the end of every line, the last one too, that fails once a row has read too much.
struct Metered<'r> {
    reader: &'r mut dyn BufRead,
    /// The last byte.
    last: u8,
    /// Whether the end was read.
    ended: bool,
    /// Bytes handed on.
    read: u64,
    /// Bytes after which a row is too long.
    limit: u64,
}

impl Read for Metered<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                self.ended = matches!(self.last, b'\n' | b'\r');
                let missing = usize::from(!self.ended).min(out.len());
                out[..missing].fill(b'\n');
                self.last = b'\n';
                return Ok(missing);
            }
            let taken = chunk.len().min(out.len());
            let mut written = 0;
            for &byte in &chunk[..taken] {
                if !(byte == b'\n' && self.last == b'\r') {
                    out[written] = if byte == b'\r' { b'\n' } else { byte };
                    written += 1;
                }
                self.last = byte;
            }
            self.reader.consume(taken);
            self.read += written as u64;
            if self.read >= self.limit {
                return Err(io::Error::from(io::ErrorKind::FileTooLarge));
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<String>, DatasetError> {
        let mut reader = text.as_bytes();
        let mut rows = Rows::new(&mut reader, Path::new("f"), b',');
        let mut all = Vec::new();
        while let Some(place) = rows.next()? {
            let fields: Vec<_> = rows.record.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect();
            all.push(format!("{place}: {}", fields.join("|")));
        }
        Ok(all)
    }

    #[test]
    fn rows_know_their_line_in_any_kind_of_file() {
        let expected = ["f line 1: a|b", "f line 3: c\nd|e", "f line 6: g|h"];
        for end in ["\n", "\r\n", "\r"] {
            let text = "a,b\n\n\"c\nd\",e\n\ng,h".replace('\n', end);
            assert_eq!(rows(&text).unwrap(), expected, "{text:?}");
            assert_eq!(rows(&(text + end)).unwrap(), expected);
        }
    }

    #[test]
    fn a_quote_that_is_never_closed_names_its_row() {
        for text in ["a,b\nc,\"d\ne,f\n", "a,b\nc,\"d"] {
            let error = rows(text).unwrap_err();
            assert!(error.to_string().starts_with("f line 2: a quote is opened"), "{error}");
        }
        for text in ["a,b\nc,\"d\ne\"", "a,b\nc,\"d\ne\n\"\n\n", "a,5\" cake"] {
            assert!(rows(text).is_ok(), "{text:?}");
        }
    }

    #[test]
    fn the_separator_is_the_most_frequent_of_the_header() {
        assert_eq!(separator_of(b"a;b;\"c,d,e,f\"\n,,,,"), b';');
        assert_eq!(separator_of(b"a\tb\n"), b'\t');
        assert_eq!(separator_of(b"a"), b',');
    }
}
