//! Which column is what: by the flags, or by the names that exports usually have.
//!
//! Names are compared without case, and blanks and hyphens count as `_`. Of several usual names the most telling wins; two that
//! tell as much are an error for the label and the body, since a wrong guess there would teach nonsense without a word.

use super::{ColumnNames, DatasetError, Place, ReadOptions};

type Names = &'static [&'static [&'static str]];

const SUBJECT: Names = &[&["subject"], &["title", "summary", "header", "headline"]];
const BODY: Names = &[
    &["text", "body", "message", "content"],
    &["description", "ticket", "utterance", "complaint", "document", "instruction"],
    &["email", "mail"],
];
const HTML: Names = &[&["html", "body_html", "html_body"]];
const LABEL: Names = &[
    &["queue"],
    &["label", "category", "class", "department", "intent", "topic", "topic_group", "team", "route", "target"],
];
const ID: Names = &[&["id"], &["ticket_id", "message_id", "case_id", "uuid"]];
const GROUP: Names =
    &[&["group"], &["thread", "thread_id", "conversation", "conversation_id"], &["author", "sender", "from"]];
const DECISIVE: Names = &[&["decisive"]];

/// Positions of the columns that matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Columns {
    pub(super) subject: Option<usize>,
    /// Joined by blank lines.
    pub(super) body: Vec<usize>,
    pub(super) html: Option<usize>,
    pub(super) label: Option<usize>,
    pub(super) id: Option<usize>,
    pub(super) group: Option<usize>,
    pub(super) decisive: Option<usize>,
    /// Names that a flag asks for and that are not there.
    pub(super) missing: Vec<(&'static str, String)>,
}

impl Columns {
    /// Finds the columns among the names that stand at a place.
    pub(super) fn choose(names: &[String], options: &ReadOptions, place: &Place) -> Result<Self, DatasetError> {
        let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
        let header = Header { names, plain: &plain, place };
        let ColumnNames { text, label, html, id, group } = &options.columns;
        let mut columns = Self::default();
        if text.is_empty() {
            columns.subject = header.first(SUBJECT);
            columns.body = header.only(BODY, "text", "--text")?.into_iter().collect();
        } else {
            let mut named: Vec<usize> = Vec::new();
            for name in text {
                named.extend(header.named(name, "--text", &mut columns.missing));
            }
            let has_subject = text.len() > 1 && header.position(&text[0]).is_some();
            columns.subject = has_subject.then(|| named.remove(0));
            columns.body = named;
        }
        let mut one = |name: &Option<String>, flag, guess: &dyn Fn() -> Option<usize>| match name {
            Some(name) => header.named(name, flag, &mut columns.missing),
            None => guess(),
        };
        columns.html = one(html, "--html", &|| header.first(HTML).filter(|_| text.is_empty()));
        columns.id = one(id, "--id", &|| header.first(ID));
        // An id that carries the group was asked for; only a column of that very name says more.
        let group_names = if options.group_of_id.is_some() { &GROUP[..1] } else { GROUP };
        columns.group = one(group, "--group", &|| header.first(group_names));
        columns.label = match label {
            Some(name) => header.named(name, "--label", &mut columns.missing),
            None if options.one_label.is_some() => None,
            None => header.label()?,
        };
        columns.decisive = header.first(DECISIVE);
        Ok(columns)
    }

    /// Whether some column holds text.
    pub(super) fn have_text(&self) -> bool {
        self.subject.is_some() || !self.body.is_empty() || self.html.is_some()
    }

    /// What was guessed by a name other than the plainest, for a note.
    pub(super) fn guessed(&self, names: &[String], options: &ReadOptions) -> Vec<(&'static str, String)> {
        const PLAIN: [&str; 7] = ["subject", "text", "body", "html", "queue", "label", "group"];
        let ColumnNames { text, label, group, .. } = &options.columns;
        let found = [
            ("subject", self.subject.filter(|_| text.is_empty())),
            ("text", self.body.first().copied().filter(|_| text.is_empty())),
            ("queue", self.label.filter(|_| label.is_none())),
            ("group", self.group.filter(|_| group.is_none())),
        ];
        let found = found.into_iter().filter_map(|(what, index)| Some((what, names.get(index?)?.clone())));
        let found: Vec<_> = found.collect();
        if found.iter().all(|(_, name)| PLAIN.contains(&name.as_str())) { Vec::new() } else { found }
    }
}

/// Whether a name is one that columns usually have.
pub(super) fn is_usual(name: &str) -> bool {
    let name = plain(name);
    let all = [SUBJECT, BODY, HTML, LABEL, ID, GROUP, DECISIVE];
    all.iter().any(|names| names.iter().any(|tier| tier.contains(&name.as_str())))
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace([' ', '-'], "_")
}

struct Header<'a> {
    names: &'a [String],
    plain: &'a [String],
    place: &'a Place,
}

impl Header<'_> {
    /// The column of a name: as it is written, else without regard to case.
    fn position(&self, name: &str) -> Option<usize> {
        let exact = self.names.iter().position(|other| other == name);
        exact.or_else(|| self.plain.iter().position(|other| *other == plain(name)))
    }

    fn named(&self, name: &str, flag: &'static str, missing: &mut Vec<(&'static str, String)>) -> Option<usize> {
        let found = self.position(name);
        if found.is_none() {
            missing.push((flag, name.to_owned()));
        }
        found
    }

    /// All columns with the most telling of the names that occur.
    fn candidates(&self, names: Names) -> Vec<usize> {
        let of_tier =
            |tier: &&[&str]| (0..self.plain.len()).filter(|&at| tier.contains(&self.plain[at].as_str())).collect();
        names.iter().map(of_tier).find(|found: &Vec<usize>| !found.is_empty()).unwrap_or_default()
    }

    fn first(&self, names: Names) -> Option<usize> {
        self.candidates(names).first().copied()
    }

    fn only(&self, names: Names, what: &'static str, flag: &'static str) -> Result<Option<usize>, DatasetError> {
        self.one_of(&self.candidates(names), what, flag)
    }

    fn one_of(&self, found: &[usize], what: &'static str, flag: &'static str) -> Result<Option<usize>, DatasetError> {
        if found.len() > 1 {
            return Err(DatasetError::Ambiguous {
                place: self.place.clone(),
                what,
                flag,
                candidates: found.iter().map(|&at| self.names[at].clone()).collect(),
                columns: self.names.to_vec(),
            });
        }
        Ok(found.first().copied())
    }

    /// The label. Hugging Face data often has numbers in `label` and their names in `label_text` or `label_name`.
    fn label(&self) -> Result<Option<usize>, DatasetError> {
        let in_words = |base: &str| {
            let names = [format!("{base}_text"), format!("{base}_name")];
            self.plain.iter().position(|name| names.contains(name))
        };
        let mut found: Vec<usize> = Vec::new();
        for tier in LABEL {
            for base in *tier {
                match in_words(base) {
                    Some(words) => found.push(words),
                    None => found.extend((0..self.plain.len()).filter(|&at| self.plain[at] == *base)),
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        found.sort_unstable();
        self.one_of(&found, "label", "--label")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(names: &[&str], columns: ColumnNames) -> Result<Columns, DatasetError> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        Columns::choose(&names, &ReadOptions { columns, ..ReadOptions::default() }, &Place::default())
    }

    #[test]
    fn usual_names_are_found_whatever_their_case() {
        let columns = choose(&["ID", "Title", "Message", "Thread ID", "Department"], ColumnNames::default()).unwrap();
        assert_eq!((columns.id, columns.subject, columns.group, columns.label), (Some(0), Some(1), Some(3), Some(4)));
        assert_eq!(columns.body, [2]);
    }

    #[test]
    fn a_queue_is_taken_before_other_labels_and_words_before_numbers() {
        let columns = choose(&["body", "queue", "category"], ColumnNames::default()).unwrap();
        assert_eq!(columns.label, Some(1));
        let columns = choose(&["text", "label", "label_text"], ColumnNames::default()).unwrap();
        assert_eq!(columns.label, Some(2));
    }

    #[test]
    fn two_labels_are_an_error_that_names_both_and_the_flag() {
        let error = choose(&["text", "category", "intent", "flags"], ColumnNames::default()).unwrap_err().to_string();
        assert!(error.contains("`category`, `intent` may each be the label"), "{error}");
        assert!(error.contains("--label") && error.contains("`flags`"), "{error}");
    }

    #[test]
    fn of_several_text_columns_the_first_is_the_subject() {
        let text = ["Betreff", "frage", "details"].map(str::to_owned).to_vec();
        let names = ColumnNames { text, ..ColumnNames::default() };
        let columns = choose(&["frage", "details", "betreff", "label"], names).unwrap();
        assert_eq!((columns.subject, columns.body), (Some(2), vec![0, 1]));
    }

    #[test]
    fn a_column_that_is_not_there_is_missing() {
        let names = ColumnNames { label: Some("kind".into()), ..ColumnNames::default() };
        assert_eq!(choose(&["text", "label"], names).unwrap().missing, [("--label", "kind".to_owned())]);
    }
}
