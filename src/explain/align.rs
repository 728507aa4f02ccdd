//! Which words two mails have in common, in order.
//!
//! A longest common subsequence by bits (Hyyrö, Bit-parallel LCS-length computation revisited, 2004): one bit for each word of
//! `a`, 64 of them a step. Two mails of 8,192 words are about a million steps, whatever they hold; searching for the fewest
//! edits takes a hundred times as many where nothing is alike.

use std::collections::HashMap;

/// Steps whose bits are kept at a time: 8 MB. Longer mails are aligned in parts.
const MOST_KEPT: usize = 1 << 20;

/// Pairs of positions of a longest common subsequence, both ascending; case does not count.
///
/// ```
/// use postroom::explain::aligned;
///
/// let a = ["Where", "is", "my", "cake"];
/// let b = ["where", "is", "that", "cake", "now"];
/// assert_eq!(aligned(&a, &b), [(0, 0), (1, 1), (3, 3)]);
/// ```
#[must_use]
pub fn aligned(a: &[&str], b: &[&str]) -> Vec<(usize, usize)> {
    let mut known = HashMap::new();
    let mut numbers = |words: &[&str]| -> Vec<usize> {
        let number = |word: &&str| {
            let next = known.len();
            *known.entry(word.to_lowercase()).or_insert(next)
        };
        words.iter().map(number).collect()
    };
    let (a, b) = (numbers(a), numbers(b));
    alignment(&a, &b, MOST_KEPT).pairs
}

fn alignment(a: &[usize], b: &[usize], most_kept: usize) -> Alignment {
    let mut alignment = Alignment { pairs: Vec::new(), steps: 0, most_kept };
    alignment.align(Part { words: a, start: 0 }, Part { words: b, start: 0 });
    alignment
}

/// Words next to each other, and the place of the first.
#[derive(Clone, Copy)]
struct Part<'w> {
    words: &'w [usize],
    start: usize,
}

impl Part<'_> {
    fn split(self, at: usize) -> (Self, Self) {
        let (first, second) = self.words.split_at(at);
        (Part { words: first, ..self }, Part { words: second, start: self.start + at })
    }
}

struct Alignment {
    pairs: Vec<(usize, usize)>,
    /// What it has cost: blocks of 64 bits that were worked out.
    steps: usize,
    most_kept: usize,
}

impl Alignment {
    fn align(&mut self, a: Part<'_>, b: Part<'_>) {
        // What both begin with is always part of a longest one.
        let same = a.words.iter().zip(b.words).take_while(|(a, b)| a == b).count();
        self.pairs.extend((0..same).map(|step| (a.start + step, b.start + step)));
        let (a, b) = (a.split(same).1, b.split(same).1);
        if a.words.is_empty() || b.words.is_empty() {
            return;
        }
        if b.words.len() < 2 || b.words.len() * blocks(a.words) <= self.most_kept {
            self.align_whole(a, b);
            return;
        }
        // Hirschberg's way: the first half of `b` goes with as much of `a` as gives the longest sum.
        let (first, second) = b.split(b.words.len() / 2);
        let before = self.lengths(a.words.iter(), first.words.iter());
        let behind = self.lengths(a.words.iter().rev(), second.words.iter().rev());
        let sum = |at: usize| before[at] + behind[a.words.len() - at];
        let at = (0..=a.words.len()).max_by_key(|&at| sum(at)).unwrap_or(0);
        let (a_first, a_second) = a.split(at);
        self.align(a_first, first);
        self.align(a_second, second);
    }

    fn align_whole(&mut self, a: Part<'_>, b: Part<'_>) {
        let mut rows = vec![Row::new(a.words.len())];
        let places = places(a.words.iter());
        for word in b.words {
            let mut row = rows[rows.len() - 1].clone();
            self.steps += row.take(places.get(word));
            rows.push(row);
        }
        let from = self.pairs.len();
        let (mut i, mut j) = (a.words.len(), b.words.len());
        while i > 0 && j > 0 {
            if !rows[j].longer_by(i - 1) {
                i -= 1;
            } else if rows[j - 1].longer_by(i - 1) {
                j -= 1;
            } else {
                (i, j) = (i - 1, j - 1);
                self.pairs.push((a.start + i, b.start + j));
            }
        }
        self.pairs[from..].reverse();
    }

    /// The length of the longest common subsequence of all of `b` and the first words of `a`, for each number of them.
    fn lengths<'w>(
        &mut self,
        a: impl ExactSizeIterator<Item = &'w usize>,
        b: impl Iterator<Item = &'w usize>,
    ) -> Vec<usize> {
        let n_words = a.len();
        let places = places(a);
        let mut row = Row::new(n_words);
        for word in b {
            self.steps += row.take(places.get(word));
        }
        let mut length = 0;
        let longer = (0..n_words).map(|word| {
            length += usize::from(row.longer_by(word));
            length
        });
        std::iter::once(0).chain(longer).collect()
    }
}

fn blocks(words: &[usize]) -> usize {
    words.len().div_ceil(64)
}

/// For each word of `a` the blocks that hold it, with a bit for each place.
fn places<'w>(a: impl Iterator<Item = &'w usize>) -> HashMap<usize, Vec<(usize, u64)>> {
    let mut places: HashMap<usize, Vec<(usize, u64)>> = HashMap::new();
    for (place, word) in a.enumerate() {
        let (block, bit) = (place / 64, 1 << (place % 64));
        let held = places.entry(*word).or_default();
        match held.last_mut() {
            Some((last, bits)) if *last == block => *bits |= bit,
            _ => held.push((block, bit)),
        }
    }
    places
}

/// Words of `b` that have been read: a bit of 0 where one more word of `a` makes the longest common subsequence longer.
#[derive(Clone)]
struct Row(Vec<u64>);

impl Row {
    fn new(n_words: usize) -> Self {
        Self(vec![u64::MAX; n_words.div_ceil(64)])
    }

    fn longer_by(&self, word: usize) -> bool {
        self.0[word / 64] >> (word % 64) & 1 == 0
    }

    /// Reads the next word of `b`, which stands at these places of `a`; gives the steps.
    fn take(&mut self, places: Option<&Vec<(usize, u64)>>) -> usize {
        // A word that `a` does not have changes nothing.
        let Some(places) = places else { return 0 };
        let mut places = places.iter().peekable();
        let mut carry = false;
        for (block, bits) in self.0.iter_mut().enumerate() {
            let held = places.next_if(|(at, _)| *at == block).map_or(0, |(_, bits)| *bits);
            let (sum, first) = bits.overflowing_add(*bits & held);
            let (sum, second) = sum.overflowing_add(u64::from(carry));
            carry = first || second;
            *bits = sum | (*bits & !held);
        }
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The length of a longest common subsequence, by the textbook's table.
    fn longest(a: &[usize], b: &[usize]) -> usize {
        let mut above = vec![0; b.len() + 1];
        for x in a {
            let mut row = vec![0];
            for (column, y) in b.iter().enumerate() {
                let best = if x == y { above[column] + 1 } else { above[column + 1].max(row[column]) };
                row.push(best);
            }
            above = row;
        }
        above[b.len()]
    }

    proptest! {
        /// Aligned whole or in parts.
        #[test]
        fn pairs_are_equal_words_in_order_and_as_many_as_can_be(
            a in prop::collection::vec(0usize..12, 0..300),
            b in prop::collection::vec(0usize..12, 0..300),
            most_kept in prop_oneof![Just(MOST_KEPT), 1usize..40],
        ) {
            let pairs = alignment(&a, &b, most_kept).pairs;
            prop_assert!(pairs.is_sorted_by(|x, y| x.0 < y.0 && x.1 < y.1));
            prop_assert!(pairs.iter().all(|&(x, y)| a[x] == b[y]));
            prop_assert_eq!(pairs.len(), longest(&a, &b));
        }
    }

    /// Nothing alike, everything alike but turned round, and a few words again and again.
    #[test]
    fn the_longest_mails_cost_a_bounded_number_of_steps_whatever_they_hold() {
        const WORDS: usize = 8192;
        let up: Vec<usize> = (0..WORDS).collect();
        let down: Vec<usize> = (0..WORDS).rev().collect();
        let other: Vec<usize> = (WORDS..2 * WORDS).collect();
        let few: Vec<usize> = (0..WORDS).map(|word| word * word % 7).collect();
        let mixed: Vec<usize> = (0..WORDS).map(|word| word * word % 11).collect();
        for (a, b) in [(&up, &down), (&up, &other), (&few, &mixed), (&mixed, &few)] {
            for most_kept in [MOST_KEPT, MOST_KEPT / 16] {
                let steps = alignment(a, b, most_kept).steps;
                assert!(steps <= 3 * WORDS * WORDS / 64, "{steps} steps");
            }
        }
    }
}
