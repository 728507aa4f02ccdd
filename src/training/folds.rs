//! Splits of labelled mail: seeded, stratified by queue, and never through a group.

use crate::dataset::Example;

/// SplitMix64 (Steele et al. 2014): all the randomness that shuffling needs, the same on every machine.
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
    }
}

/// The fold of each mail. Where all mails have a group, whole groups are dealt out, the largest first and each to the
/// emptiest fold; with fewer groups than folds there are only as many folds as groups. Otherwise the mails of each
/// queue are shuffled and dealt out in turn.
pub(super) fn split(examples: &[Example], targets: &[usize], n_folds: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64(seed);
    match groups(examples).filter(|groups| groups.len() > 1) {
        Some(mut groups) => {
            random.shuffle(&mut groups);
            groups.sort_by_key(|members| std::cmp::Reverse(members.len()));
            let mut sizes = vec![0; n_folds.min(groups.len())];
            let mut folds = vec![0; examples.len()];
            for members in groups {
                let emptiest = (0..sizes.len()).min_by_key(|&fold| sizes[fold]).unwrap_or(0);
                sizes[emptiest] += members.len();
                members.into_iter().for_each(|mail| folds[mail] = emptiest);
            }
            folds
        }
        None => {
            let mut order: Vec<usize> = (0..examples.len()).collect();
            random.shuffle(&mut order);
            order.sort_by_key(|&mail| targets[mail]);
            let mut folds = vec![0; examples.len()];
            for (position, mail) in order.into_iter().enumerate() {
                folds[mail] = position % n_folds;
            }
            folds
        }
    }
}

/// Mails by group in order of first appearance; `None` where some mail has no group.
fn groups(examples: &[Example]) -> Option<Vec<Vec<usize>>> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (mail, example) in examples.iter().enumerate() {
        let name = example.group.as_deref()?;
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, members)) => members.push(mail),
            None => groups.push((name, vec![mail])),
        }
    }
    Some(groups.into_iter().map(|(_, members)| members).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples(groups: &[Option<&str>]) -> Vec<Example> {
        groups
            .iter()
            .map(|group| Example { group: group.map(str::to_owned), ..Example::default() })
            .collect()
    }

    #[test]
    fn a_group_is_never_split() {
        let examples = examples(&[Some("a"), Some("b"), Some("a"), Some("c"), Some("b"), Some("a")]);
        let folds = split(&examples, &[0; 6], 3, 1);
        assert_eq!((folds[0], folds[1]), (folds[2], folds[4]));
        assert_eq!(folds[0], folds[5]);
        assert!(folds[0] != folds[1] && folds[1] != folds[3]);
    }

    #[test]
    fn without_groups_each_queue_is_spread_over_all_folds() {
        let examples = examples(&[None; 20]);
        let targets: Vec<usize> = (0..20).map(|mail| mail % 2).collect();
        let folds = split(&examples, &targets, 5, 7);
        for queue in 0..2 {
            for fold in 0..5 {
                let count = (0..20).filter(|&mail| targets[mail] == queue && folds[mail] == fold).count();
                assert_eq!(count, 2);
            }
        }
        assert_eq!(folds, split(&examples, &targets, 5, 7));
    }
}
