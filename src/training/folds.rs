//! Splits of labelled mail: seeded, stratified by queue, and never through a group.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::dataset::Example;
use crate::random::SplitMix64;

/// The fold that each mail is held out with, and which of them are judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folds {
    /// `None` where a mail is always trained on.
    of: Vec<Option<usize>>,
    /// Mail that is only trained on is not, held out or not.
    judged: Vec<bool>,
    count: usize,
}

impl Folds {
    /// Splits the mail into at most `n_folds`; fewer where there are fewer groups.
    pub(super) fn new(examples: &[Example], targets: &[usize], n_folds: usize, seed: u64) -> Self {
        // What nearly repeats a judged mail is held out with it.
        let of_judged: HashSet<&str> = examples
            .iter()
            .filter(|example| !example.only_trained_on)
            .filter_map(|example| example.group.as_deref())
            .collect();
        let held_out = |example: &Example| {
            !example.only_trained_on || example.group.as_deref().is_some_and(|group| of_judged.contains(group))
        };
        let places: Vec<usize> = (0..examples.len()).filter(|&mail| held_out(&examples[mail])).collect();
        let subset: Vec<Example> = places.iter().map(|&mail| examples[mail].clone()).collect();
        let queues: Vec<usize> = places.iter().map(|&mail| targets[mail]).collect();
        let mut of = vec![None; examples.len()];
        for (mail, fold) in places.into_iter().zip(split(&subset, &queues, n_folds, seed)) {
            of[mail] = Some(fold);
        }
        let count = of.iter().flatten().max().map_or(0, |last| last + 1);
        Self { of, judged: examples.iter().map(|example| !example.only_trained_on).collect(), count }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The same mail in at most `count` folds: some are joined.
    pub(super) fn joined(&self, count: usize) -> Self {
        let count = count.min(self.count).max(1);
        let of = self.of.iter().map(|fold| fold.map(|fold| fold % count)).collect();
        Self { of, judged: self.judged.clone(), count }
    }

    /// The fold that a mail is held out with, judged or not: nothing that is judged on that fold may be trained on it.
    pub(super) fn of(&self, mail: usize) -> Option<usize> {
        self.of[mail]
    }

    /// The judged mails, ascending, each with its fold.
    pub(super) fn judged(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let folds = self.of.iter().zip(&self.judged).enumerate();
        folds.filter(|(_, (_, judged))| **judged).filter_map(|(mail, (fold, _))| fold.map(|fold| (mail, fold)))
    }

    /// All mails, those only trained on included.
    pub(super) fn mails(&self) -> usize {
        self.of.len()
    }
}

/// Fewer groups than this many a fold are dealt out by size alone: so few cannot be matched by queue as well.
const FEW: usize = 3;

/// The fold of each mail. Whole groups are dealt out, the largest first; a mail without a group is a group of its own.
///
/// Few groups (authors, say) go each to the emptiest fold, and with fewer groups than folds there are only as many folds
/// as groups. Many groups go each to the fold that has the smallest share of their queues so far. Where nothing is grouped,
/// or all mail is of one group, the mails of each queue are shuffled and dealt out in turn.
fn split(examples: &[Example], targets: &[usize], n_folds: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64::seeded(seed);
    let mut groups = groups(examples);
    if groups.len() == examples.len() && examples.iter().all(|example| example.group.is_none()) || groups.len() < 2 {
        return deal(targets, n_folds, &mut random);
    }
    random.shuffle(&mut groups);
    groups.sort_by_key(|members| std::cmp::Reverse(members.len()));
    let few = groups.len() < FEW * n_folds && examples.iter().all(|example| example.group.is_some());
    let mut fold_of = vec![0; examples.len()];
    let mut folds = Deal::new(n_folds.min(groups.len()), targets);
    for members in groups {
        let fold = if few { folds.emptiest() } else { folds.best(&members, targets) };
        folds.add(fold, &members, targets);
        members.into_iter().for_each(|mail| fold_of[mail] = fold);
    }
    fold_of
}

/// Deals the mails of each queue out in turn.
fn deal(targets: &[usize], n_folds: usize, random: &mut SplitMix64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..targets.len()).collect();
    random.shuffle(&mut order);
    order.sort_by_key(|&mail| targets[mail]);
    let mut folds = vec![0; targets.len()];
    for (position, mail) in order.into_iter().enumerate() {
        folds[mail] = position % n_folds;
    }
    folds
}

/// What the folds hold so far.
struct Deal {
    sizes: Vec<usize>,
    /// Mails by fold and queue.
    counts: Vec<Vec<usize>>,
    /// Mails of each queue in all.
    totals: Vec<usize>,
}

impl Deal {
    fn new(n_folds: usize, targets: &[usize]) -> Self {
        let n_queues = targets.iter().max().map_or(0, |last| last + 1);
        let mut totals = vec![0; n_queues];
        targets.iter().for_each(|&queue| totals[queue] += 1);
        Self { sizes: vec![0; n_folds], counts: vec![vec![0; n_queues]; n_folds], totals }
    }

    fn emptiest(&self) -> usize {
        (0..self.sizes.len()).min_by_key(|&fold| self.sizes[fold]).unwrap_or(0)
    }

    /// The fold in which the group adds least to the sum of squared shares over folds and queues, which is smallest when
    /// every fold has the same share of each queue; of equals the emptiest.
    fn best(&self, members: &[usize], targets: &[usize]) -> usize {
        let mut queues: BTreeMap<usize, usize> = BTreeMap::new();
        members.iter().for_each(|&mail| *queues.entry(targets[mail]).or_default() += 1);
        let growth = |fold: usize| -> f64 {
            let of_queue = |(&queue, &mails): (&usize, &usize)| {
                let total = self.totals[queue] as f64;
                self.counts[fold][queue] as f64 / total * (mails as f64 / total)
            };
            queues.iter().map(of_queue).sum()
        };
        let better =
            |&a: &usize, &b: &usize| growth(a).total_cmp(&growth(b)).then_with(|| self.sizes[a].cmp(&self.sizes[b]));
        (0..self.sizes.len()).min_by(better).unwrap_or(0)
    }

    fn add(&mut self, fold: usize, members: &[usize], targets: &[usize]) {
        self.sizes[fold] += members.len();
        members.iter().for_each(|&mail| self.counts[fold][targets[mail]] += 1);
    }
}

/// Mails by group in order of first appearance.
fn groups(examples: &[Example]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for (mail, example) in examples.iter().enumerate() {
        let new = groups.len();
        let group = example.group.as_deref().map_or(new, |name| *by_name.entry(name).or_insert(new));
        if group == new {
            groups.push(Vec::new());
        }
        groups[group].push(mail);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples(groups: &[Option<&str>]) -> Vec<Example> {
        groups.iter().map(|group| Example { group: group.map(str::to_owned), ..Example::default() }).collect()
    }

    fn counts(folds: &[usize], targets: &[usize], queue: usize, n_folds: usize) -> Vec<usize> {
        let count = |fold| (0..folds.len()).filter(|&mail| folds[mail] == fold && targets[mail] == queue).count();
        (0..n_folds).map(count).collect()
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
            assert_eq!(counts(&folds, &targets, queue, 5), [2; 5]);
        }
        assert_eq!(folds, split(&examples, &targets, 5, 7));
    }

    #[test]
    fn as_many_authors_as_folds_get_a_fold_each() {
        let names: Vec<String> = (0..60).map(|mail| format!("author {}", mail % 6)).collect();
        let examples = examples(&names.iter().map(|name| Some(name.as_str())).collect::<Vec<_>>());
        let targets: Vec<usize> = (0..60).map(|mail| mail % 4).collect();
        let folds = split(&examples, &targets, 6, 0);
        assert!((6..60).all(|mail| folds[mail] == folds[mail - 6]));
        assert_eq!(folds[..6].iter().collect::<std::collections::BTreeSet<_>>().len(), 6);
    }

    #[test]
    fn a_few_near_duplicates_do_not_undo_the_balance_of_queues() {
        // Pairs of one queue, single mails of three; a rare queue of 12 mails.
        let names: Vec<Option<String>> = (0..300).map(|mail| (mail < 40).then(|| format!("g{}", mail / 2))).collect();
        let examples = examples(&names.iter().map(Option::as_deref).collect::<Vec<_>>());
        let targets: Vec<usize> = (0..300).map(|mail| if mail < 12 { 2 } else { mail % 2 }).collect();
        let folds = split(&examples, &targets, 6, 3);
        assert!((0..40).step_by(2).all(|mail| folds[mail] == folds[mail + 1]));
        assert_eq!(counts(&folds, &targets, 2, 6), [2; 6]);
        assert_eq!(counts(&folds, &targets, 0, 6), [24; 6]);
        assert_eq!(folds, split(&examples, &targets, 6, 3));
    }

    #[test]
    fn many_groups_keep_the_proportions_of_the_queues() {
        // 60 senders with 1 to 9 mails each, most of them of one queue.
        let mut random = SplitMix64::seeded(5);
        let (mut names, mut targets) = (Vec::new(), Vec::new());
        for sender in 0..60 {
            for _ in 0..=random.next_u64() % 9 {
                names.push(format!("s{sender}"));
                targets.push(if random.next_u64().is_multiple_of(4) {
                    (random.next_u64() % 3) as usize
                } else {
                    sender % 3
                });
            }
        }
        let examples = examples(&names.iter().map(|name| Some(name.as_str())).collect::<Vec<_>>());
        let folds = split(&examples, &targets, 5, 1);
        for queue in 0..3 {
            let counts = counts(&folds, &targets, queue, 5);
            let mean = counts.iter().sum::<usize>() as f64 / 5.0;
            assert!(counts.iter().all(|&count| (count as f64 - mean).abs() <= 0.2 * mean), "{counts:?}");
        }
    }

    #[test]
    fn mail_that_is_only_trained_on_is_never_judged_and_held_out_where_it_repeats_judged_mail() {
        let mut examples = examples(&[Some("a"), Some("b"), Some("c"), Some("x"), Some("b")]);
        examples[3].only_trained_on = true;
        examples[4].only_trained_on = true;
        let folds = Folds::new(&examples, &[0, 1, 0, 1, 1], 3, 0);
        assert_eq!((folds.of(3), folds.of(4)), (None, folds.of(1)));
        assert_eq!((folds.count(), folds.mails()), (3, 5));
        let joined = folds.joined(2);
        for folds in [&folds, &joined] {
            assert_eq!(folds.judged().map(|(mail, _)| mail).collect::<Vec<_>>(), [0, 1, 2]);
            assert!(folds.of(4).is_some() && folds.of(4) == folds.of(1));
        }
        assert!(joined.judged().all(|(_, fold)| fold < 2));
    }

    #[test]
    fn one_group_for_all_is_no_group() {
        let examples = examples(&[Some("desk"); 8]);
        let folds = split(&examples, &[0, 1, 0, 1, 0, 1, 0, 1], 4, 0);
        assert_eq!(counts(&folds, &[0; 8], 0, 4), [2; 4]);
    }
}
