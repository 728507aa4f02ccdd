//! From what the readers find to mail that can be trained on: labels and text are checked in one place for all formats.

use std::collections::BTreeMap;
use std::path::Path;

use super::lines::decode;
use super::slim::slim;
use super::{Dataset, DatasetError, Example, Note, Place, Places, ReadOptions};
use crate::queues::slug;

/// What a reader found at one place. Blank and absent are the same.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) place: Place,
    pub(super) id: Option<String>,
    pub(super) group: Option<String>,
    pub(super) subject: String,
    pub(super) text: String,
    pub(super) html: Option<String>,
    pub(super) label: Option<String>,
    pub(super) decisive: Option<String>,
    /// A whole message; subject and text are then read from it.
    pub(super) raw: Option<Vec<u8>>,
}

/// Takes records, gives a dataset.
pub(super) struct Collector<'o> {
    pub(super) options: &'o ReadOptions,
    pub(super) notes: Vec<Note>,
    examples: Vec<Example>,
    blank: Places,
    unlabelled: Places,
    not_utf8: Places,
    last_not_utf8: Option<Place>,
    cut: Places,
}

impl<'o> Collector<'o> {
    pub(super) fn new(options: &'o ReadOptions) -> Self {
        Self {
            options,
            notes: Vec::new(),
            examples: Vec::new(),
            blank: Places::default(),
            unlabelled: Places::default(),
            not_utf8: Places::default(),
            last_not_utf8: None,
            cut: Places::default(),
        }
    }

    /// Checks a record and keeps it.
    pub(super) fn push(&mut self, record: Record) -> Result<(), DatasetError> {
        let Record { place, id, group, mut subject, mut text, html, label, decisive, raw } = record;
        let Some(queue) = self
            .options
            .one_label
            .clone()
            .or(label)
            .map(|label| label.trim().to_owned())
            .filter(|label| !label.is_empty())
        else {
            if self.options.skip_unlabelled {
                self.unlabelled.add(&place);
                return Ok(());
            }
            return Err(DatasetError::Unlabelled { place, keys: Vec::new() });
        };
        if slug(&queue).is_empty() {
            return Err(DatasetError::BadLabel { place, label: queue });
        }
        let mut id = filled(id);
        let html = filled(html);
        let raw = raw.map(|raw| {
            let mail = slim(raw);
            subject = mail.read.subject.text().to_owned();
            text = mail.read.body.text().to_owned();
            id = id.take().or(mail.read.message_id);
            mail.raw
        });
        if subject.trim().is_empty() && text.trim().is_empty() && html.is_none() {
            self.blank.add(&place);
            return Ok(());
        }
        let id = id.unwrap_or_else(|| place.line.map_or_else(|| place.to_string(), |line| line.to_string()));
        let of_id = || self.options.group_of_id.and_then(|mark| id.split_once(mark)).map(|(group, _)| group.to_owned());
        let group = filled(group).or_else(of_id);
        let decisive = filled(decisive);
        self.examples.push(Example {
            id,
            group,
            subject,
            text,
            html,
            queue,
            raw,
            decisive,
            only_trained_on: false,
            place,
        });
        Ok(())
    }

    /// Text of bytes, with a note where they are not UTF-8.
    pub(super) fn decode(&mut self, bytes: &[u8], place: &Place) -> String {
        let (text, fallback) = decode(bytes);
        // A record has many cells and is counted once.
        if fallback && self.last_not_utf8.as_ref() != Some(place) {
            self.not_utf8.add(place);
            self.last_not_utf8 = Some(place.clone());
        }
        text.into_owned()
    }

    /// Notes that a message was longer than a record may be.
    pub(super) fn cut(&mut self, place: &Place) {
        self.cut.add(place);
    }

    /// Whether some message was.
    pub(super) fn has_cut(&self) -> bool {
        self.cut.count > 0
    }

    /// The mail of a file or folder, with the notes.
    pub(super) fn finish(mut self, path: &Path) -> Result<Dataset, DatasetError> {
        if self.examples.is_empty() {
            return Err(match self.blank.first.into_iter().next() {
                Some(first) => DatasetError::AllBlank { path: path.to_owned(), mails: self.blank.count, first },
                None => DatasetError::Empty { path: path.to_owned() },
            });
        }
        let places = [
            (self.not_utf8, Note::NotUtf8 as fn(Places) -> Note),
            (self.cut, Note::Cut),
            (self.unlabelled, Note::Unlabelled),
            (self.blank, Note::Blank),
        ];
        self.notes.extend(places.into_iter().filter(|(places, _)| places.count > 0).map(|(places, note)| note(places)));
        self.notes.extend(about_labels(&self.examples));
        Ok(Dataset { examples: self.examples, notes: self.notes })
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Labels that are one queue, and labels that are only numbers.
fn about_labels(examples: &[Example]) -> Vec<Note> {
    let mut labels: BTreeMap<&str, usize> = BTreeMap::new();
    examples.iter().for_each(|example| *labels.entry(&example.queue).or_default() += 1);
    let mut queues: BTreeMap<String, Vec<(String, usize)>> = BTreeMap::new();
    for (&label, &mails) in &labels {
        queues.entry(slug(label)).or_default().push((label.to_owned(), mails));
    }
    let numbers = labels.keys().all(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    let joined = queues.into_iter().filter(|(_, labels)| labels.len() > 1);
    let joined = joined.map(|(queue, labels)| Note::LabelsJoined { queue, labels });
    joined.chain(numbers.then_some(Note::Numbers { labels: labels.len() })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(label: &str, text: &str) -> Record {
        Record { label: Some(label.into()), text: text.into(), ..Record::default() }
    }

    #[test]
    fn the_group_comes_from_the_id_unless_the_record_names_one() {
        let options = ReadOptions { group_of_id: Some('-'), ..ReadOptions::default() };
        let mut collector = Collector::new(&options);
        collector.push(Record { id: Some("TE-116".into()), ..record("refunds", "b") }).unwrap();
        let named = Record { id: Some("TE-117".into()), group: Some("ann".into()), ..record("refunds", "c") };
        collector.push(named).unwrap();
        let groups: Vec<_> = collector.examples.iter().map(|example| example.group.as_deref()).collect();
        assert_eq!(groups, [Some("TE"), Some("ann")]);
    }

    #[test]
    fn mail_without_text_is_skipped_with_a_note() {
        let options = ReadOptions::default();
        let mut collector = Collector::new(&options);
        collector.push(record("refunds", " \n")).unwrap();
        collector.push(record("refunds", "b")).unwrap();
        let dataset = collector.finish(Path::new("f")).unwrap();
        assert_eq!(dataset.examples.len(), 1);
        assert!(matches!(&dataset.notes[..], [Note::Blank(places)] if places.count == 1), "{:?}", dataset.notes);
    }

    #[test]
    fn labels_that_make_one_id_are_said_to_be_one_queue() {
        let options = ReadOptions::default();
        let mut collector = Collector::new(&options);
        for label in ["Refunds", "refunds!", "refunds"] {
            collector.push(record(label, "b")).unwrap();
        }
        let notes = collector.finish(Path::new("f")).unwrap().notes;
        assert_eq!(
            notes[0].to_string(),
            "the labels `Refunds` (1), `refunds` (1), `refunds!` (1) are one queue, `refunds`"
        );
    }

    #[test]
    fn a_label_that_makes_no_id_is_refused() {
        let options = ReadOptions::default();
        let error = Collector::new(&options).push(record("\u{8fd4}\u{91d1}", "b")).unwrap_err();
        assert!(matches!(error, DatasetError::BadLabel { .. }));
    }
}
