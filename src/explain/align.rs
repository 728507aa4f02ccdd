//! Which words two mails have in common, in order.

use similar::{Algorithm, DiffOp, capture_diff_slices};

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
    let lower = |words: &[&str]| words.iter().map(|word| word.to_lowercase()).collect::<Vec<_>>();
    let (a, b) = (lower(a), lower(b));
    let mut pairs = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &a, &b) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            pairs.extend((0..len).map(|step| (old_index + step, new_index + step)));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The length of a longest common subsequence, by the textbook's table.
    fn longest(a: &[&str], b: &[&str]) -> usize {
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
        #[test]
        fn pairs_are_equal_words_in_order_and_as_many_as_can_be(a in "[ab ]{0,24}", b in "[abc ]{0,24}") {
            let (a, b): (Vec<&str>, Vec<&str>) = (a.split(' ').collect(), b.split(' ').collect());
            let pairs = aligned(&a, &b);
            prop_assert!(pairs.is_sorted_by(|x, y| x.0 < y.0 && x.1 < y.1));
            prop_assert!(pairs.iter().all(|&(x, y)| a[x] == b[y]));
            prop_assert_eq!(pairs.len(), longest(&a, &b));
        }
    }
}
