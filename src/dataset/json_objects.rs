//! The objects of a JSON stream, cut out one at a time: `[ {...}, {...} ]`, or `{...} {...}`.
//!
//! Only braces, brackets and strings are followed; whether an object is sound is for the parser to say.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use super::{DatasetError, MAX_RECORD_BYTES, Place};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before an array or the first object.
    Start,
    /// Outside an array, after an object.
    Loose,
    /// Directly after `[`.
    Opened,
    /// In an array, after an object.
    After,
    /// In an array, after a comma.
    Comma,
    /// After `]`.
    Closed,
    /// In an object of an array, or of none.
    Inside { depth: usize, in_string: bool, escaped: bool, in_array: bool },
}

/// The objects of a stream.
pub(super) struct Objects<'r> {
    reader: &'r mut dyn BufRead,
    file: Arc<Path>,
    line: usize,
    state: State,
    max_bytes: usize,
}

impl<'r> Objects<'r> {
    pub(super) fn new(reader: &'r mut dyn BufRead, path: &Path) -> Self {
        Self { reader, file: Arc::from(path), line: 1, state: State::Start, max_bytes: MAX_RECORD_BYTES }
    }

    /// Reads the next object into `object` and answers where it starts.
    pub(super) fn next(&mut self, object: &mut Vec<u8>) -> Result<Option<Place>, DatasetError> {
        object.clear();
        let mut start = self.line;
        loop {
            let chunk = self.reader.fill_buf().map_err(DatasetError::read(&self.file))?;
            if chunk.is_empty() {
                return match self.state {
                    State::Start | State::Loose | State::Closed => Ok(None),
                    State::Inside { .. } => Err(self.broken(start, "the file ends within this object")),
                    _ => Err(self.broken(self.line, "the file ends within the array: `]` is missing")),
                };
            }
            let (mut used, mut whole, mut wrong) = (0, false, None);
            for &byte in chunk {
                used += 1;
                let before = self.state;
                match step(before, byte) {
                    Ok(state) => self.state = state,
                    Err(reason) => {
                        wrong = Some(reason);
                        break;
                    }
                }
                let was_inside = matches!(before, State::Inside { .. });
                let is_inside = matches!(self.state, State::Inside { .. });
                if !was_inside && is_inside {
                    start = self.line;
                }
                if was_inside || is_inside {
                    object.push(byte);
                }
                self.line += usize::from(byte == b'\n');
                whole = was_inside && !is_inside;
                if whole || object.len() > self.max_bytes {
                    break;
                }
            }
            self.reader.consume(used);
            if let Some(reason) = wrong {
                return Err(self.broken(self.line, reason));
            }
            if object.len() > self.max_bytes {
                return Err(DatasetError::TooLong { place: Place::line(&self.file, start) });
            }
            if whole {
                return Ok(Some(Place::line(&self.file, start)));
            }
        }
    }

    fn broken(&self, line: usize, reason: &str) -> DatasetError {
        DatasetError::Broken { place: Place::line(&self.file, line), reason: reason.to_owned() }
    }
}

fn step(state: State, byte: u8) -> Result<State, &'static str> {
    let open = |in_array| State::Inside { depth: 1, in_string: false, escaped: false, in_array };
    if let State::Inside { depth, in_string, escaped, in_array } = state {
        let inside = |depth, in_string, escaped| State::Inside { depth, in_string, escaped, in_array };
        return Ok(match byte {
            _ if escaped => inside(depth, true, false),
            b'\\' if in_string => inside(depth, true, true),
            b'"' => inside(depth, !in_string, false),
            b'{' | b'[' if !in_string => inside(depth + 1, false, false),
            b'}' | b']' if !in_string && depth > 1 => inside(depth - 1, false, false),
            b'}' | b']' if !in_string && in_array => State::After,
            b'}' | b']' if !in_string => State::Loose,
            _ => state,
        });
    }
    if byte.is_ascii_whitespace() {
        return Ok(state);
    }
    match (state, byte) {
        (State::Start, b'[') => Ok(State::Opened),
        (State::Start | State::Loose, b'{') => Ok(open(false)),
        (State::Opened | State::Comma, b'{') => Ok(open(true)),
        (State::Opened | State::After, b']') => Ok(State::Closed),
        (State::After, b',') => Ok(State::Comma),
        (State::After, _) => Err("a comma or `]` is missing after an object of the array"),
        (State::Opened | State::Comma, _) => Err("the array must hold objects: { ... }, { ... }"),
        (State::Closed, _) => Err("something stands after the end of the array"),
        _ => Err("neither an array nor an object starts here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(text: &str) -> Result<Vec<String>, String> {
        // A buffer of three bytes: objects are cut wherever chunks end.
        let mut reader = std::io::BufReader::with_capacity(3, text.as_bytes());
        let mut objects = Objects { max_bytes: 40, ..Objects::new(&mut reader, Path::new("f")) };
        let (mut all, mut object) = (Vec::new(), Vec::new());
        while let Some(place) = objects.next(&mut object).map_err(|error| error.to_string())? {
            all.push(format!("{place}: {}", String::from_utf8_lossy(&object)));
        }
        Ok(all)
    }

    #[test]
    fn objects_are_cut_out_of_an_array_with_their_lines() {
        let found = objects("[\n {\"a\": \"}]\\\"{\"},\n\n{\"b\": [{}]}]\n").unwrap();
        assert_eq!(found, ["f line 2: {\"a\": \"}]\\\"{\"}", "f line 4: {\"b\": [{}]}"]);
        assert_eq!(objects("{}\n{}").unwrap().len(), 2);
        assert_eq!(objects("[]").unwrap().len(), 0);
    }

    #[test]
    fn what_is_missing_is_said() {
        let cases = [
            ("[{}\n{}]", "f line 2: a comma"),
            ("[{},\n", "f line 2: the file ends within the array"),
            ("[{}, {\n\"a\": \"]", "f line 1: the file ends within this object"),
            ("[1]", "f line 1: the array must hold objects"),
            ("[{}] {}", "f line 1: something stands after"),
            ("null", "f line 1: neither an array"),
        ];
        for (text, expected) in cases {
            let error = objects(text).unwrap_err();
            assert!(error.starts_with(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn an_object_that_never_ends_is_given_up_at_the_limit() {
        let error = objects(&format!("[{{\"a\": \"{}", "x".repeat(100))).unwrap_err();
        assert!(error.contains("a record of more than"), "{error}");
    }
}
