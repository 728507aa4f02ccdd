//! Readers stop where an error is: none takes a stream in whole.

use std::io::{self, BufRead, Read};
use std::path::Path;

use super::{ColumnNames, DatasetError, FIRST_BYTES, Format, MAX_RECORD_BYTES, Note, ReadOptions, read_stream};

/// A stream without an end: a start, then one record for ever, with one that is broken after a thousand.
struct Endless {
    start: Vec<u8>,
    record: Vec<u8>,
    broken: Vec<u8>,
    records: usize,
    pending: Vec<u8>,
    read: usize,
}

impl Read for Endless {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.pending.is_empty() {
            self.pending = match self.records {
                0 => [&self.start[..], &self.record].concat(),
                1000 => self.broken.clone(),
                _ => self.record.clone(),
            };
            self.records += 1;
        }
        if self.read > 64 << 20 {
            return Err(io::Error::other("read far beyond the error"));
        }
        let taken = out.len().min(self.pending.len());
        out[..taken].copy_from_slice(&self.pending[..taken]);
        self.pending.drain(..taken);
        self.read += taken;
        Ok(taken)
    }
}

#[test]
fn a_reader_takes_little_more_of_a_stream_than_it_needs() {
    let words = "cake ".repeat(100);
    let json = format!("{{\"text\": \"{words}\", \"queue\": \"refunds\"}}");
    let cases = [
        (Format::Jsonl, String::new(), format!("{json}\n"), "{]\n".to_owned()),
        (Format::Json, "[".to_owned(), format!("{json},\n"), "{]},\n".to_owned()),
        (Format::Csv, "text,queue\n".to_owned(), format!("{words},refunds\n"), "a,b,c\n".to_owned()),
        (Format::Comprehend, String::new(), format!("REFUNDS,{words}\n"), "a,b,c\n".to_owned()),
        (Format::FastText, String::new(), format!("__label__refunds {words}\n"), "no label\n".to_owned()),
        (
            Format::Mbox,
            String::new(),
            format!("From a\nX-Queue: q\n\n{words}\n\n"),
            "From a\n\nno header\n\n".to_owned(),
        ),
    ];
    for (format, start, record, broken) in cases {
        let (start, record, broken) = (start.into_bytes(), record.into_bytes(), broken.into_bytes());
        let needed = 1000 * record.len();
        let mut reader = io::BufReader::with_capacity(
            FIRST_BYTES,
            Endless { start, record, broken, records: 0, pending: Vec::new(), read: 0 },
        );
        let label = (format == Format::Mbox).then(|| "x-queue".to_owned());
        let columns = ColumnNames { label, ..ColumnNames::default() };
        let options = ReadOptions { columns, ..ReadOptions::default() };
        let error = read_stream(&mut reader, Path::new("f"), format, &options).unwrap_err();
        assert!(!matches!(error, DatasetError::Read { .. }), "{format}: {error}");
        let read = reader.get_ref().read;
        assert!(read < needed + 4 * FIRST_BYTES, "{format}: {read} bytes read, {needed} needed");
    }
}

#[test]
fn a_row_that_never_ends_is_given_up_at_the_limit() {
    let mut reader = io::BufReader::new(b"text,queue\n\"".chain(io::repeat(b'a')));
    assert!(!reader.fill_buf().unwrap().is_empty());
    let error = read_stream(&mut reader, Path::new("f"), Format::Csv, &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("f line 2: a record of more than"), "{error}");
}

#[test]
fn a_message_with_a_line_beyond_the_limit_is_cut_there_and_the_next_is_read() {
    let mail = |number: usize, body: &str| format!("From a\nX-Queue: q\nSubject: {number}\n\n{body}\n\n");
    let mbox = [mail(1, "a"), mail(2, &"x".repeat(MAX_RECORD_BYTES + 100)), mail(3, "c")].concat();
    let columns = ColumnNames { label: Some("x-queue".to_owned()), ..ColumnNames::default() };
    let options = ReadOptions { columns, ..ReadOptions::default() };
    let dataset = read_stream(&mut mbox.as_bytes(), Path::new("f"), Format::Mbox, &options).unwrap();
    let subjects: Vec<&str> = dataset.examples.iter().map(|example| example.subject.as_str()).collect();
    assert_eq!(subjects, ["1", "2", "3"]);
    let cut = |note: &Note| matches!(note, Note::Cut(places) if places.count == 1);
    assert!(dataset.notes.iter().any(cut), "{:?}", dataset.notes);
}
