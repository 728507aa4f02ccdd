//! The sizes of the queues, and what they mean for a training.

use std::collections::BTreeMap;

use super::{Dataset, Note};
use crate::queues::slug;

/// The largest queue may be this many times as large as the smallest before a note is due.
const SKEW: usize = 10;

/// Below so many mails, figures about a queue mean little.
const TINY: usize = 10;

/// Adds notes about queues that are small, or small beside others.
#[must_use]
pub fn survey(mut dataset: Dataset) -> Dataset {
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    dataset.examples.iter().for_each(|example| *sizes.entry(slug(&example.queue)).or_default() += 1);
    let sizes: Vec<(String, usize)> = sizes.into_iter().collect();
    let (smallest, largest) = (sizes.iter().min_by_key(|queue| queue.1), sizes.iter().max_by_key(|queue| queue.1));
    if let (Some(smallest), Some(largest)) = (smallest, largest)
        && largest.1 > SKEW * smallest.1
    {
        dataset.notes.push(Note::Skew { largest: largest.clone(), smallest: smallest.clone() });
    }
    let tiny: Vec<(String, usize)> = sizes.into_iter().filter(|queue| queue.1 < TINY).collect();
    if !tiny.is_empty() {
        dataset.notes.push(Note::Tiny { queues: tiny });
    }
    dataset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Example;

    fn notes(sizes: &[(&str, usize)]) -> Vec<Note> {
        let mails = |&(queue, mails): &(&str, usize)| {
            std::iter::repeat_n(Example { queue: queue.to_owned(), ..Example::default() }, mails)
        };
        survey(Dataset { examples: sizes.iter().flat_map(mails).collect(), notes: Vec::new() }).notes
    }

    #[test]
    fn queues_of_like_size_need_no_note() {
        assert_eq!(notes(&[("a", 100), ("b", 10)]), []);
    }

    #[test]
    fn skew_and_tiny_queues_are_named_with_their_counts() {
        let notes = notes(&[("a", 60), ("A!", 41), ("b", 9)]);
        let skew = "`a` has 101 mails and `b` 9: rare queues are learnt worst; label more of them";
        assert_eq!(notes[0].to_string(), skew);
        assert_eq!(notes[1].to_string(), "too few mails to judge by: `b` (9); label more, or merge queues");
    }
}
