//! JSON: one object a line, or objects in an array. Any keys; each object may have keys of its own.

use std::io::BufRead;
use std::path::Path;

use serde_json::{Map, Value};

use super::collector::{Collector, Record};
use super::columns::Columns;
use super::json_objects::Objects;
use super::lines::Lines;
use super::{DatasetError, Note, Place, ReadOptions};

/// Reads one object a line; blank lines are passed over.
pub(super) fn lines(reader: &mut dyn BufRead, path: &Path, collector: &mut Collector<'_>) -> Result<(), DatasetError> {
    let mut lines = Lines::new(reader, path);
    let mut keys = Keys::new(collector.options);
    while let Some((place, line)) = lines.next()? {
        if !line.trim_ascii().is_empty() {
            keys.push(place, line, collector)?;
        }
    }
    keys.finish()
}

/// Reads the objects of an array, or objects one after another.
pub(super) fn objects(
    reader: &mut dyn BufRead,
    path: &Path,
    collector: &mut Collector<'_>,
) -> Result<(), DatasetError> {
    let mut objects = Objects::new(reader, path);
    let mut keys = Keys::new(collector.options);
    let mut object = Vec::new();
    while let Some(place) = objects.next(&mut object)? {
        keys.push(place, &object, collector)?;
    }
    keys.finish()
}

/// The keys seen so far, and the columns chosen among those of the last object.
struct Keys {
    names: Vec<String>,
    columns: Columns,
    place: Place,
    /// Whether some object had a key for text: the others' text is then blank, not misnamed.
    text_seen: bool,
    guessed: bool,
    /// Names that flags ask for and no object had yet.
    unseen: Vec<(&'static str, String)>,
    started: bool,
}

impl Keys {
    fn new(options: &ReadOptions) -> Self {
        let columns = &options.columns;
        let named = [("--label", &columns.label), ("--html", &columns.html), ("--id", &columns.id)];
        let named = named.into_iter().chain([("--group", &columns.group)]);
        let named = named.filter_map(|(flag, name)| Some((flag, name.clone()?)));
        let text = columns.text.iter().map(|name| ("--text", name.clone()));
        Self {
            names: Vec::new(),
            columns: Columns::default(),
            place: Place::default(),
            text_seen: false,
            guessed: false,
            unseen: text.chain(named).collect(),
            started: false,
        }
    }

    fn push(&mut self, place: Place, bytes: &[u8], collector: &mut Collector<'_>) -> Result<(), DatasetError> {
        let text = collector.decode(bytes, &place);
        let object: Map<String, Value> = serde_json::from_str(&text).map_err(|error| broken(&place, &error))?;
        self.choose(&object, &place, collector)?;
        let columns = &self.columns;
        let must_have_label = !collector.options.skip_unlabelled && collector.options.one_label.is_none();
        if columns.label.is_none() && must_have_label {
            if let Some((flag, name)) = self.unseen.iter().find(|(flag, _)| *flag == "--label").cloned() {
                return Err(DatasetError::NoSuchColumn { place, name, flag, columns: self.names.clone() });
            }
            return Err(DatasetError::Unlabelled { place, keys: self.names.clone() });
        }
        let values: Vec<&Value> = object.values().collect();
        let cell = |at: Option<usize>| at.map_or(Ok(None), |at| plain(values[at], &self.names[at], &place));
        let mut body = Vec::new();
        for &at in &columns.body {
            body.extend(cell(Some(at))?.filter(|text| !text.trim().is_empty() || columns.body.len() == 1));
        }
        let label = match columns.label.map(|at| values[at]) {
            Some(Value::Array(labels)) if labels.len() > 1 => {
                return Err(DatasetError::ManyLabels { labels: list(labels), place });
            }
            Some(Value::Array(labels)) => labels.first().and_then(Value::as_str).map(str::to_owned),
            _ => cell(columns.label)?,
        };
        let record = Record {
            id: cell(columns.id)?,
            group: cell(columns.group)?,
            subject: cell(columns.subject)?.unwrap_or_default(),
            text: body.join("\n\n"),
            html: cell(columns.html)?,
            label,
            decisive: cell(columns.decisive)?,
            raw: None,
            place: place.clone(),
        };
        collector.push(record)
    }

    /// Chooses the columns anew where an object has other keys than the last.
    fn choose(
        &mut self,
        object: &Map<String, Value>,
        place: &Place,
        collector: &mut Collector<'_>,
    ) -> Result<(), DatasetError> {
        if self.started && object.keys().eq(self.names.iter()) {
            return Ok(());
        }
        self.started = true;
        self.names = object.keys().cloned().collect();
        self.place = place.clone();
        self.columns = Columns::choose(&self.names, collector.options, place)?;
        self.unseen.retain(|name| self.columns.missing.contains(name));
        self.text_seen |= self.columns.have_text();
        if !self.text_seen && self.columns.missing.is_empty() {
            let (place, columns) = (place.clone(), self.names.clone());
            return Err(DatasetError::NoColumn { place, what: "text", flag: "--text", columns });
        }
        let guessed = self.columns.guessed(&self.names, collector.options);
        if !self.guessed && !guessed.is_empty() {
            self.guessed = true;
            collector.notes.push(Note::Guessed { columns: guessed });
        }
        Ok(())
    }

    /// A name that no object had is a slip of the pen.
    fn finish(self) -> Result<(), DatasetError> {
        match self.unseen.into_iter().next().filter(|_| self.started) {
            Some((flag, name)) => {
                Err(DatasetError::NoSuchColumn { place: self.place, name, flag, columns: self.names })
            }
            None => Ok(()),
        }
    }
}

/// Text as it is, numbers and truth values as they are written, null as nothing.
pub(super) fn plain(value: &Value, key: &str, place: &Place) -> Result<Option<String>, DatasetError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Bool(_) | Value::Number(_) => Ok(Some(value.to_string())),
        Value::Array(_) | Value::Object(_) => {
            let reason = format!("`{key}` holds a list or an object where text is needed: choose another key");
            Err(DatasetError::Broken { place: place.clone(), reason })
        }
    }
}

fn list(values: &[Value]) -> String {
    values.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")
}

/// The parser counts lines within the object; the place counts them in the file.
pub(super) fn broken(place: &Place, error: &serde_json::Error) -> DatasetError {
    let reason = error.to_string();
    let reason = reason.rsplit_once(" at line ").map_or(reason.as_str(), |(reason, _)| reason);
    let line = place.line.map(|line| line + error.line().saturating_sub(1));
    let place = Place { line, ..place.clone() };
    let column = error.column();
    DatasetError::Broken { place, reason: format!("no JSON object: {reason} at column {column}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{ColumnNames, Dataset, Format, read_stream};

    fn read(text: &str, columns: ColumnNames) -> Result<Dataset, DatasetError> {
        let options = ReadOptions { columns, ..ReadOptions::default() };
        read_stream(&mut text.as_bytes(), Path::new("f"), Format::Jsonl, &options)
    }

    #[test]
    fn a_line_without_a_queue_says_so_and_lists_its_keys() {
        let error = read("\n\n{\"subject\": \"a\", \"body\": \"b\"}", ColumnNames::default()).unwrap_err().to_string();
        assert!(error.starts_with("f line 3: no `queue` among `subject`, `body`"), "{error}");
    }

    #[test]
    fn each_line_may_have_keys_of_its_own() {
        let lines = "{\"body\": \"b\", \"queue\": \"q\"}\n{\"queue\": \"q\", \"subject\": \"s\", \"text\": \"t\"}\n{\"queue\": \"q\", \"text\": null, \"subject\": 7}";
        let examples = read(lines, ColumnNames::default()).unwrap().examples;
        assert_eq!((examples[1].subject.as_str(), examples[1].text.as_str()), ("s", "t"));
        assert_eq!((examples[2].subject.as_str(), examples[2].text.as_str()), ("7", ""));
    }

    #[test]
    fn a_key_that_no_line_has_is_named() {
        let columns = ColumnNames { group: Some("sendr".into()), ..ColumnNames::default() };
        let error = read("{\"text\": \"b\", \"queue\": \"q\", \"sender\": \"s\"}", columns).unwrap_err().to_string();
        assert!(error.contains("no column `sendr` for --group") && error.contains("`sender`"), "{error}");
    }

    #[test]
    fn text_may_be_missing_in_some_lines_but_not_in_all() {
        let lines = "{\"text\": \"b\", \"queue\": \"q\"}\n{\"queue\": \"q\"}";
        assert!(matches!(&read(lines, ColumnNames::default()).unwrap().notes[..], [Note::Blank(_)]));
        let error = read("{\"queue\": \"q\", \"note\": \"b\"}", ColumnNames::default()).unwrap_err();
        assert!(matches!(error, DatasetError::NoColumn { flag: "--text", .. }), "{error}");
    }

    #[test]
    fn a_list_of_labels_is_refused() {
        let error = read("{\"text\": \"b\", \"label\": [\"a\", \"b\"]}", ColumnNames::default()).unwrap_err();
        assert!(matches!(error, DatasetError::ManyLabels { .. }), "{error}");
    }
}
