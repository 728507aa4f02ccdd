//! Mail that repeats other mail.
//!
//! Repeats are judged by what the router reads: the cleaned subject and body, without regard to case and blanks. The same mail
//! with the same label is kept once. The same mail with different labels teaches nothing, whichever is right, and is left out.
//! Mail that nearly repeats another shares its group, so that no split has one to learn from and the other to judge by.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::near::{Sets, Shingles, unite};
use super::{Dataset, Example, Note, Place, Places};
use crate::email::CleanOptions;
use crate::queues::slug;

/// Leaves repeats out and groups near duplicates, for a training; the rest stays in order.
#[must_use]
pub fn join(dataset: Dataset) -> Dataset {
    let Dataset { examples, mut notes } = dataset;
    let (keys, shingles): (Vec<Key>, Vec<Shingles>) = examples.iter().map(read).unzip();
    let texts = Texts::new(&keys);
    let conflicts = texts.conflicts(&examples);
    let doubtful: HashSet<usize> = conflicts.iter().flatten().copied().collect();
    let mut repeats = Places::default();
    let mut kept = Vec::new();
    for (index, example) in examples.iter().enumerate() {
        if doubtful.contains(&index) {
            continue;
        }
        if texts.first(index) == index {
            kept.push(index);
        } else {
            repeats.add(&example.place);
        }
    }
    notes.extend(conflict_note(&examples, &conflicts, true));
    notes.extend((repeats.count > 0).then_some(Note::Duplicates(repeats)));
    let kept: HashSet<usize> = kept.into_iter().collect();
    let keep = |index: &usize| kept.contains(index);
    let mut examples: Vec<Example> = with_index(examples, &keep);
    let shingles = with_index(shingles, &keep);
    notes.extend(group(&mut examples, &shingles));
    Dataset { examples, notes }
}

/// Names the texts that have several labels and keeps them, for judging a router.
#[must_use]
pub fn name_conflicts(mut dataset: Dataset) -> Dataset {
    let keys: Vec<Key> = dataset.examples.iter().map(|example| key(&words(example))).collect();
    let conflicts = Texts::new(&keys).conflicts(&dataset.examples);
    dataset.notes.extend(conflict_note(&dataset.examples, &conflicts, false));
    dataset
}

fn with_index<T>(items: Vec<T>, keep: &dyn Fn(&usize) -> bool) -> Vec<T> {
    items.into_iter().enumerate().filter(|(index, _)| keep(index)).map(|(_, item)| item).collect()
}

/// SHA-256 of a text without case and blanks.
pub(super) type Key = [u8; 32];

pub(super) fn read(example: &Example) -> (Key, Shingles) {
    let text = words(example);
    (key(&text), Shingles::new(&text))
}

/// What the router reads, in lower case and with single blanks.
fn words(example: &Example) -> String {
    let mail = example.clean(&CleanOptions { detect_language: false, ..CleanOptions::default() });
    let text = format!("{} {}", mail.subject.text(), mail.body.text()).to_lowercase();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn key(text: &str) -> Key {
    Sha256::digest(text.as_bytes()).into()
}

/// Mails by text, in order of first appearance.
struct Texts {
    mails: Vec<Vec<usize>>,
    text_of: Vec<usize>,
}

impl Texts {
    fn new(keys: &[Key]) -> Self {
        let mut texts: HashMap<&Key, usize> = HashMap::new();
        let mut mails: Vec<Vec<usize>> = Vec::new();
        let mut text_of = Vec::with_capacity(keys.len());
        for (index, key) in keys.iter().enumerate() {
            let text = *texts.entry(key).or_insert_with(|| {
                mails.push(Vec::new());
                mails.len() - 1
            });
            mails[text].push(index);
            text_of.push(text);
        }
        Self { mails, text_of }
    }

    /// The first mail with the text of this one.
    fn first(&self, index: usize) -> usize {
        self.mails[self.text_of[index]].first().copied().unwrap_or(index)
    }

    /// The mails of each text that has several labels.
    fn conflicts(&self, examples: &[Example]) -> Vec<Vec<usize>> {
        let several = |mails: &&Vec<usize>| {
            let label = |&index: &usize| slug(&examples[index].queue);
            mails.len() > 1 && mails[1..].iter().any(|mail| label(mail) != label(&mails[0]))
        };
        self.mails.iter().filter(several).cloned().collect()
    }
}

fn conflict_note(examples: &[Example], conflicts: &[Vec<usize>], left_out: bool) -> Option<Note> {
    let named = |mails: &Vec<usize>| -> Vec<(Place, String)> {
        let mut labels = HashSet::new();
        let of_each = mails.iter().map(|&index| &examples[index]).filter(|mail| labels.insert(slug(&mail.queue)));
        of_each.take(Places::SHOWN).map(|mail| (mail.place.clone(), mail.queue.clone())).collect()
    };
    (!conflicts.is_empty()).then(|| Note::Conflicts {
        texts: conflicts.len(),
        mails: conflicts.iter().map(Vec::len).sum(),
        first: conflicts.iter().take(Places::SHOWN).map(named).collect(),
        left_out,
    })
}

/// Gives near duplicates one group: that of the first of them that has one. Groups that they link become one.
fn group(examples: &mut [Example], shingles: &[Shingles]) -> Option<Note> {
    let mut sets = Sets::new(examples.len());
    let mut first_of: HashMap<&str, usize> = HashMap::new();
    for (index, example) in examples.iter().enumerate() {
        if let Some(group) = &example.group {
            sets.unite(index, *first_of.entry(group).or_insert(index));
        }
    }
    let united = unite(shingles, &mut sets);
    if united.is_empty() {
        return None;
    }
    let linked: HashSet<usize> = united.iter().map(|&index| sets.find(index)).collect();
    let mut names: HashMap<usize, String> = HashMap::new();
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    for (index, example) in examples.iter().enumerate() {
        let set = sets.find(index);
        *sizes.entry(set).or_default() += 1;
        if let Some(group) = &example.group {
            names.entry(set).or_insert_with(|| group.clone());
        }
    }
    for index in 0..examples.len() {
        let set = sets.find(index);
        if linked.contains(&set) {
            let like = || format!("like {}", examples[set].place);
            examples[index].group = Some(names.entry(set).or_insert_with(like).clone());
        }
    }
    let largest = linked.iter().map(|set| sizes[set]).max().unwrap_or_default();
    let mails = united.iter().collect::<HashSet<_>>().len();
    Some(Note::NearDuplicates { mails, groups: linked.len(), largest })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(text: &str, queue: &str, group: Option<&str>, line: usize) -> Example {
        let place = Place::line(&std::sync::Arc::from(std::path::Path::new("f")), line);
        Example { text: text.into(), queue: queue.into(), group: group.map(str::to_owned), place, ..Example::default() }
    }

    fn joined(examples: Vec<Example>) -> Dataset {
        join(Dataset { examples, notes: Vec::new() })
    }

    const LONG: &str = "I ordered a plum tart for Saturday and it has still not come although the page says that the \
        driver left the kitchen at nine this morning so please tell me where it is and whether I shall have it in time";

    #[test]
    fn a_mail_that_stands_twice_is_kept_once() {
        let mails = [
            example("Where is  it?\n", "Late", None, 1),
            example("where is it?", "late", None, 2),
            example("Where is it 2?", "late", None, 3),
        ];
        let dataset = joined(mails.to_vec());
        assert_eq!(dataset.examples, [mails[0].clone(), mails[2].clone()]);
        assert_eq!(dataset.notes[0].to_string(), "1 mail left out as repeats of earlier ones: f line 2");
    }

    #[test]
    fn a_text_with_two_labels_is_left_out_of_training_and_kept_for_judging() {
        let mails = vec![
            example("Where is it?", "late", None, 1),
            example("Thanks", "feedback", None, 2),
            example("Where is it?", "refunds", None, 3),
            example("Where is it?", "late", None, 4),
        ];
        let dataset = joined(mails.clone());
        assert_eq!(dataset.examples, mails[1..2]);
        let expected =
            "1 text has more than one label (3 mails, left out), correct them: f line 1 (late) and f line 3 (refunds)";
        assert_eq!(dataset.notes[0].to_string(), expected);
        let judged = name_conflicts(Dataset { examples: mails, notes: Vec::new() });
        assert_eq!(judged.examples.len(), 4);
        assert!(matches!(&judged.notes[..], [Note::Conflicts { left_out: false, .. }]));
    }

    #[test]
    fn near_duplicates_share_one_group_and_join_the_groups_they_link() {
        let near = LONG.replace("plum", "cherry");
        let mails = vec![
            example(LONG, "late", Some("ann"), 1),
            example("Thank you", "feedback", Some("bob"), 2),
            example(&near, "late", Some("bob"), 3),
            example("Something else", "feedback", Some("cy"), 4),
        ];
        let groups = |mails| joined(mails).examples.into_iter().map(|mail| mail.group).collect::<Vec<_>>();
        let expected = ["ann", "ann", "ann", "cy"].map(|group| Some(group.to_owned()));
        assert_eq!(groups(mails.clone()), expected);
        let without: Vec<Example> = mails.into_iter().map(|mail| Example { group: None, ..mail }).collect();
        let alike = Some("like f line 1".to_owned());
        assert_eq!(groups(without), [alike.clone(), None, alike, None]);
    }

    #[test]
    fn data_without_repeats_passes_as_it_is() {
        let mails = vec![example(LONG, "late", None, 1), example("Thanks", "feedback", Some("b"), 2)];
        let dataset = joined(mails.clone());
        assert_eq!((dataset.examples, dataset.notes), (mails, vec![]));
    }
}
