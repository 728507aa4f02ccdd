//! Mail to judge a finished router on: without what it was trained on, and with a count of what is close to that.

use std::collections::HashSet;

use super::duplicates::{Key, read};
use super::near::{Sets, Shingles, unite};
use super::{Dataset, Example, Note, Places};

/// How close mail to judge by is to the mail that was trained on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Closeness {
    /// Mails whose text was trained on; they are left out.
    pub repeats: usize,
    /// Of those that are left, mails that nearly repeat one that was trained on.
    pub near_repeats: usize,
    /// Of those that are left, mails of a group of the training data.
    pub of_known_groups: usize,
}

/// The names of all groups, before [`Dataset::for_training`] joins some of them.
#[must_use]
pub fn group_names(examples: &[Example]) -> HashSet<String> {
    examples.iter().filter_map(|example| example.group.clone()).collect()
}

/// Leaves out mail whose text was trained on, whatever its label: a repeat as [`join`](super::join) knows it. Near repeats and mail
/// of a known group stay, counted: both are common in new mail too.
#[must_use]
pub fn unseen(dataset: Dataset, trained_on: &[Example], known_groups: &HashSet<String>) -> (Dataset, Closeness) {
    let Dataset { examples, mut notes } = dataset;
    let (known, mut shingles): (HashSet<Key>, Vec<Shingles>) = trained_on.iter().map(read).unzip();
    let mut repeats = Places::default();
    let mut kept = Vec::new();
    for example in examples {
        let (key, words) = read(&example);
        if known.contains(&key) {
            repeats.add(&example.place);
        } else {
            shingles.push(words);
            kept.push(example);
        }
    }
    let mut sets = Sets::new(shingles.len());
    // What was united with a training mail is named by one: they come first.
    unite(&shingles, &mut sets);
    let near = (trained_on.len()..shingles.len()).filter(|&text| sets.find(text) < trained_on.len());
    let known_group = |mail: &&Example| mail.group.as_ref().is_some_and(|group| known_groups.contains(group));
    let closeness = Closeness {
        repeats: repeats.count,
        near_repeats: near.count(),
        of_known_groups: kept.iter().filter(known_group).count(),
    };
    notes.extend((repeats.count > 0).then_some(Note::TrainedOn(repeats)));
    (Dataset { examples: kept, notes }, closeness)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::dataset::Place;

    const LONG: &str = "I ordered a plum tart for Saturday and it has still not come although the page says that the \
        driver left the kitchen at nine this morning so please tell me where it is and whether I shall have it in time";

    fn example(text: &str, group: Option<&str>, line: usize) -> Example {
        let place = Place::line(&Arc::from(Path::new("f")), line);
        Example {
            text: text.into(),
            queue: "late".into(),
            group: group.map(str::to_owned),
            place,
            ..Example::default()
        }
    }

    #[test]
    fn a_test_keeps_what_was_not_trained_on_and_counts_what_is_close_to_it() {
        let trained_on = [example(LONG, Some("ann"), 1), example("Where is it?", None, 2)];
        let near = LONG.replace("plum", "cherry");
        let mails = vec![
            example("where  IS it?\n", None, 1),
            example(&near, None, 2),
            example("Thank you for the cake", Some("ann"), 3),
            example("Pay me back", Some("cy"), 4),
        ];
        let left = mails[1..].to_vec();
        let known = group_names(&trained_on);
        let (dataset, closeness) = unseen(Dataset { examples: mails, notes: Vec::new() }, &trained_on, &known);
        assert_eq!(dataset.examples, left);
        assert_eq!(closeness, Closeness { repeats: 1, near_repeats: 1, of_known_groups: 1 });
        let said: Vec<String> = dataset.notes.iter().map(Note::to_string).collect();
        assert_eq!(said, ["1 mail left out, its text is trained on: f line 1"]);
    }

    #[test]
    fn a_test_of_other_mail_passes_as_it_is() {
        let trained_on = [example(LONG, None, 1)];
        let test = Dataset { examples: vec![example("Pay me back", Some("cy"), 1)], notes: Vec::new() };
        let (left, closeness) = unseen(test.clone(), &trained_on, &group_names(&trained_on));
        assert_eq!((left, closeness), (test, Closeness::default()));
    }
}
