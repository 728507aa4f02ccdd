//! What a user should know about the data, one sentence each.

use std::fmt;

use super::Place;

/// How many, and the first few of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// How many.
    pub count: usize,
    /// The first, at most [`Places::SHOWN`].
    pub first: Vec<Place>,
}

impl Places {
    /// Places that are named.
    pub const SHOWN: usize = 3;

    pub(super) fn add(&mut self, place: &Place) {
        self.count += 1;
        if self.first.len() < Self::SHOWN {
            self.first.push(place.clone());
        }
    }
}

impl fmt::Display for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first: Vec<String> = self.first.iter().map(Place::to_string).collect();
        let more = if self.count > self.first.len() { ", ..." } else { "" };
        write!(f, "{}{more}", first.join(", "))
    }
}

/// A fact about the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// Columns were chosen by their names.
    Guessed {
        /// What is read from which column.
        columns: Vec<(&'static str, String)>,
    },
    /// A table without a header row was taken for a training file of AWS Comprehend.
    NoHeader,
    /// Mail without text was skipped.
    Blank(Places),
    /// Mail without a label was skipped.
    Unlabelled(Places),
    /// Text that is not UTF-8 was read as windows-1252.
    NotUtf8(Places),
    /// Messages were read up to the limit of a record.
    Cut(Places),
    /// Files in folders of queues that are no mail.
    OtherFiles {
        /// How many.
        count: usize,
    },
    /// Labels that make the same id are one queue.
    LabelsJoined {
        /// The queue's id.
        queue: String,
        /// The labels, each with its mails.
        labels: Vec<(String, usize)>,
    },
    /// All labels are numbers.
    Numbers {
        /// How many labels.
        labels: usize,
    },
    /// The same mail with the same label stood there more than once.
    Duplicates(Places),
    /// Mail to judge by repeats mail that is trained on.
    TrainedOn(Places),
    /// The same text has several labels.
    Conflicts {
        /// Different texts.
        texts: usize,
        /// Mails that hold them.
        mails: usize,
        /// The first few texts: places and labels of their first mails.
        first: Vec<Vec<(Place, String)>>,
        /// Whether the mails were left out.
        left_out: bool,
    },
    /// Mails that nearly repeat another share a group.
    NearDuplicates {
        /// Mails that nearly repeat another.
        mails: usize,
        /// Groups that they are in.
        groups: usize,
        /// Mails of the largest of these groups.
        largest: usize,
    },
    /// Queues of very different sizes.
    Skew {
        /// The largest queue and its mails.
        largest: (String, usize),
        /// The smallest queue and its mails.
        smallest: (String, usize),
    },
    /// Queues with so few mails that figures about them mean little.
    Tiny {
        /// Queues and their mails.
        queues: Vec<(String, usize)>,
    },
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guessed { columns } => {
                let columns: Vec<String> = columns.iter().map(|(what, name)| format!("{what} from `{name}`")).collect();
                write!(f, "read {}; --text, --label and --group choose other columns", columns.join(", "))
            }
            Self::NoHeader => {
                write!(
                    f,
                    "no header row: read as an AWS Comprehend file (class, text); --format csv reads a header row"
                )
            }
            Self::Blank(places) => write!(f, "{} without text skipped: {places}", mails(places.count)),
            Self::Unlabelled(places) => write!(f, "{} without a label skipped: {places}", mails(places.count)),
            Self::NotUtf8(places) => {
                write!(f, "{} not in UTF-8 read as windows-1252: {places}", mails(places.count))
            }
            Self::Cut(places) => {
                let limit = super::MAX_RECORD_BYTES >> 20;
                write!(f, "{} longer than {limit} MiB read up to there: {places}", mails(places.count))
            }
            Self::OtherFiles { count } => write!(f, "{count} files that are neither .eml nor .txt ignored"),
            Self::LabelsJoined { queue, labels } => {
                write!(f, "the labels {} are one queue, `{queue}`", counted(labels))
            }
            Self::Numbers { labels } => {
                write!(f, "all {labels} labels are numbers; --label names the column of their names, if there is one")
            }
            Self::Duplicates(places) => {
                write!(f, "{} left out as repeats of earlier ones: {places}", mails(places.count))
            }
            Self::TrainedOn(places) => {
                let whose = if places.count == 1 { "its text is" } else { "their texts are" };
                write!(f, "{} left out, {whose} trained on: {places}", mails(places.count))
            }
            Self::Conflicts { texts, mails: count, first, left_out } => {
                let first: Vec<String> = first.iter().map(|mails| together(mails)).collect();
                let more = if *texts > first.len() { "; ..." } else { "" };
                let out = if *left_out { ", left out" } else { "" };
                let first = first.join("; ");
                let texts = if *texts == 1 { "1 text has".to_owned() } else { format!("{texts} texts have") };
                write!(f, "{texts} more than one label ({}{out}), correct them: {first}{more}", mails(*count))
            }
            Self::NearDuplicates { mails: count, groups, largest } => write!(
                f,
                "near duplicates: {} kept on the side of the mail they nearly repeat in every split ({groups} groups, the largest of {})",
                mails(*count),
                mails(*largest)
            ),
            Self::Skew { largest, smallest } => write!(
                f,
                "`{}` has {} and `{}` {}: rare queues are learnt worst; label more of them",
                largest.0,
                mails(largest.1),
                smallest.0,
                smallest.1
            ),
            Self::Tiny { queues } => {
                write!(f, "too few mails to judge by: {}; label more, or merge queues", counted(queues))
            }
        }
    }
}

fn mails(count: usize) -> String {
    if count == 1 { "1 mail".to_owned() } else { format!("{count} mails") }
}

fn counted(names: &[(String, usize)]) -> String {
    names.iter().map(|(name, count)| format!("`{name}` ({count})")).collect::<Vec<_>>().join(", ")
}

fn together(mails: &[(Place, String)]) -> String {
    mails.iter().map(|(place, label)| format!("{place} ({label})")).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_places_are_named() {
        let mut places = Places::default();
        for name in ["a", "b", "c", "d"] {
            places.add(&Place::file(std::path::Path::new(name)));
        }
        assert_eq!(Note::Blank(places).to_string(), "4 mails without text skipped: a, b, c, ...");
    }
}
