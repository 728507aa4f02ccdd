//! The order of the mails in an epoch.

use crate::random::SplitMix64;

/// As many mails as there are, in a shuffled order, rare queues more often: a queue's share is that of the square root
/// of its number of mails. Where all queues are equally large every mail comes exactly once.
pub(super) fn order(mails: &[usize], targets: &[usize], n_queues: usize, random: &mut SplitMix64) -> Vec<usize> {
    let mut by_queue: Vec<Vec<usize>> = vec![Vec::new(); n_queues];
    mails.iter().for_each(|&mail| by_queue[targets[mail]].push(mail));
    let weight = |members: &Vec<usize>| (members.len() as f64).sqrt();
    let total: f64 = by_queue.iter().map(weight).sum();
    let mut order = Vec::with_capacity(mails.len() + n_queues);
    for members in &mut by_queue {
        let wanted = (weight(members) / total.max(f64::MIN_POSITIVE) * mails.len() as f64).round() as usize;
        random.shuffle(members);
        // Whole passes over the queue first, so that no mail of it comes twice more often than another.
        order.extend(members.iter().cycle().take(if members.is_empty() { 0 } else { wanted.max(1) }));
    }
    random.shuffle(&mut order);
    order
}

/// What comes next in an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pick {
    /// A mail.
    Mail(usize),
    /// A mail without its deciding sentence.
    Undecided(usize),
    /// Sentences about nothing.
    Background,
}

impl Pick {
    /// The mail that is learnt from, if it is one.
    pub(super) fn mail(self) -> Option<usize> {
        match self {
            Self::Mail(mail) | Self::Undecided(mail) => Some(mail),
            Self::Background => None,
        }
    }
}

/// The same with other mails in between: some of background and some of `marked` mails that lost their deciding sentence, each as a
/// share of the mails' number.
pub(super) fn with_others(
    order: Vec<usize>,
    background: f64,
    (undecided, marked): (f64, &[usize]),
    random: &mut SplitMix64,
) -> Vec<Pick> {
    let count = |share: f64| (order.len() as f64 * share).round() as usize;
    let (nobodys, undecided) = (count(background), if marked.is_empty() { 0 } else { count(undecided) });
    let mut all: Vec<Pick> = order.into_iter().map(Pick::Mail).collect();
    all.extend((0..nobodys).map(|_| Pick::Background));
    all.extend((0..undecided).map(|_| Pick::Undecided(marked[random.below(marked.len())])));
    random.shuffle(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_queues_give_every_mail_once() {
        let mails: Vec<usize> = (0..40).collect();
        let targets: Vec<usize> = mails.iter().map(|mail| mail % 4).collect();
        let mut order = order(&mails, &targets, 4, &mut SplitMix64::seeded(3));
        assert_ne!(order, mails);
        order.sort_unstable();
        assert_eq!(order, mails);
    }

    #[test]
    fn other_mails_come_as_often_as_asked() {
        let picks = |marked: &[usize]| with_others((0..40).collect(), 0.1, (0.2, marked), &mut SplitMix64::seeded(3));
        let count = |picks: &[Pick], wanted: fn(&Pick) -> bool| picks.iter().filter(|pick| wanted(pick)).count();
        let some = picks(&[5, 7]);
        assert_eq!(count(&some, |pick| *pick == Pick::Background), 4);
        assert_eq!(count(&some, |pick| matches!(pick, Pick::Undecided(5 | 7))), 8);
        assert_eq!(count(&some, |pick| matches!(pick, Pick::Mail(_))), 40);
        assert_eq!(picks(&[]).len(), 44);
    }

    #[test]
    fn a_rare_queue_comes_more_often_than_its_share() {
        // 100 and 4 mails: shares 10 : 2 of 104.
        let mails: Vec<usize> = (0..104).collect();
        let targets: Vec<usize> = mails.iter().map(|&mail| usize::from(mail >= 100)).collect();
        let order = order(&mails, &targets, 2, &mut SplitMix64::seeded(3));
        let rare = order.iter().filter(|&&mail| mail >= 100).count();
        assert_eq!(rare, 17);
        let each = |mail: usize| order.iter().filter(|&&other| other == mail).count();
        assert!((100..104).all(|mail| (4..=5).contains(&each(mail))));
    }
}
