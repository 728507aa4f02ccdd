//! Lines of a stream, bounded in length; bytes to text.

use std::borrow::Cow;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use super::{DatasetError, MAX_RECORD_BYTES, Place};

/// The lines of a stream, numbered from 1. No more than one line is held.
pub(super) struct Lines<'r> {
    reader: &'r mut dyn BufRead,
    file: Arc<Path>,
    line: usize,
    buffer: Vec<u8>,
    max_bytes: usize,
}

impl<'r> Lines<'r> {
    pub(super) fn new(reader: &'r mut dyn BufRead, path: &Path) -> Self {
        Self { reader, file: Arc::from(path), line: 0, buffer: Vec::new(), max_bytes: MAX_RECORD_BYTES }
    }

    /// The next line without its end, and its place.
    pub(super) fn next(&mut self) -> Result<Option<(Place, &[u8])>, DatasetError> {
        self.buffer.clear();
        self.line += 1;
        let place = Place::line(&self.file, self.line);
        // Two bytes for the line's end.
        let mut bounded = Read::take(&mut *self.reader, self.max_bytes as u64 + 2);
        if bounded.read_until(b'\n', &mut self.buffer).map_err(DatasetError::read(&self.file))? == 0 {
            return Ok(None);
        }
        let line = self.buffer.strip_suffix(b"\n").unwrap_or(&self.buffer);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > self.max_bytes {
            return Err(DatasetError::TooLong { place });
        }
        Ok(Some((place, line)))
    }
}

impl Lines<'_> {
    /// Skips what is left of a line that was too long.
    pub(super) fn skip_rest(&mut self) -> Result<(), DatasetError> {
        while !self.buffer.ends_with(b"\n") {
            self.buffer.clear();
            let mut bounded = Read::take(&mut *self.reader, self.max_bytes as u64);
            if bounded.read_until(b'\n', &mut self.buffer).map_err(DatasetError::read(&self.file))? == 0 {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Skips the byte order mark of UTF-8.
pub(super) fn skip_mark(reader: &mut dyn BufRead) -> io::Result<()> {
    if without_mark(reader.fill_buf()?).len() < reader.fill_buf()?.len() {
        reader.consume(MARK.len());
    }
    Ok(())
}

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes without the byte order mark of UTF-8.
pub(super) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(MARK).unwrap_or(bytes)
}

/// Text and whether it had to be read as windows-1252, as bytes that are not UTF-8 mostly are.
pub(super) fn decode(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (Cow::Borrowed(text), false),
        Err(_) => (encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes).0, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, max_bytes: usize) -> Vec<Result<String, String>> {
        let mut reader = text.as_bytes();
        let mut lines = Lines { max_bytes, ..Lines::new(&mut reader, Path::new("f")) };
        let mut all = Vec::new();
        loop {
            match lines.next() {
                Ok(Some((place, line))) => all.push(Ok(format!("{place}: {}", String::from_utf8_lossy(line)))),
                Ok(None) => return all,
                Err(error) => {
                    all.push(Err(error.to_string()));
                    return all;
                }
            }
        }
    }

    #[test]
    fn lines_are_numbered_and_lose_either_ending() {
        let expected = ["f line 1: a", "f line 2: ", "f line 3: b"].map(|line| Ok(line.to_owned()));
        assert_eq!(lines("a\r\n\nb", 10), expected);
    }

    #[test]
    fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        assert_eq!(lines("abcd\r\nabcd", 4).len(), 2);
        let long = lines("ab\nabcde\n", 4);
        assert!(long[1].as_ref().is_err_and(|error| error.starts_with("f line 2: a record of more than")), "{long:?}");
    }

    #[test]
    fn an_endless_line_is_given_up_at_the_limit() {
        let mut reader = io::BufReader::new(io::repeat(b'a'));
        let mut lines = Lines { max_bytes: 1000, ..Lines::new(&mut reader, Path::new("f")) };
        assert!(matches!(lines.next(), Err(DatasetError::TooLong { .. })));
        assert!(lines.buffer.capacity() < 4000, "{}", lines.buffer.capacity());
    }

    #[test]
    fn the_line_after_one_that_is_too_long_can_be_read() {
        for text in ["abcdefghijklmnopq\nxy\n", "abcde\nxy", "abcdef\nxy"] {
            let mut reader = text.as_bytes();
            let mut lines = Lines { max_bytes: 4, ..Lines::new(&mut reader, Path::new("f")) };
            assert!(matches!(lines.next(), Err(DatasetError::TooLong { .. })), "{text:?}");
            lines.skip_rest().unwrap();
            let (place, line) = lines.next().unwrap().unwrap();
            assert_eq!((place.line, line), (Some(2), &b"xy"[..]), "{text:?}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_windows_1252() {
        assert_eq!(decode(b"cr\xe8me \x80 5"), (Cow::Owned("cr\u{e8}me \u{20ac} 5".to_owned()), true));
        assert_eq!(decode("cr\u{e8}me".as_bytes()), (Cow::Borrowed("cr\u{e8}me"), false));
    }
}
