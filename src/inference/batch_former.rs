//! Which waiting mails go into the next batch: a plain function of what waits, of who has had how much, and of the budget.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use super::Client;

/// What the choice looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    /// Tokens that the encoder will see.
    pub cost: usize,
    /// Whose mail it is.
    pub client: Client,
}

/// Who is first in a batch. The first mail runs whatever its length, alone where it is over the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    /// The oldest mail of the client that has had least.
    LeastServed,
    /// The oldest mail of all.
    Oldest,
}

impl First {
    /// Every fourth batch starts with the oldest mail of all. Thus each mail runs after at most four batches for each mail
    /// that was there before it, however many clients come, and three quarters of the turns stay fair where one floods.
    pub(super) fn of_batch(number: u64) -> Self {
        if number % 4 == 3 { Self::Oldest } else { Self::LeastServed }
    }
}

/// Positions of the mails to run next, ascending; `waiting` is in order of arrival, `served` tells what a client has had.
///
/// The turn is always with the client that has had least, what it gets in this batch included, and gives it the oldest of
/// its mails that still fits. So clients share evenly by tokens, short mails pass a long one that does not fit, and no client
/// can make others wait by sending more.
pub(super) fn choose(
    waiting: &[Waiting],
    served: impl Fn(Client) -> u64,
    first: First,
    max_batch_tokens: usize,
) -> Vec<usize> {
    let mut clients = by_client(waiting);
    let mut turns: BinaryHeap<Reverse<Turn>> = BinaryHeap::with_capacity(clients.len());
    let (mut chosen, mut used) = (Vec::new(), 0usize);
    let oldest = waiting.first().filter(|_| first == First::Oldest);
    if let Some(mail) = oldest {
        (chosen, used) = (vec![0], mail.cost);
    }
    for (index, (client, mails)) in clients.iter_mut().enumerate() {
        let mut served = served(*client);
        if let Some(mail) = oldest.filter(|mail| mail.client == *client) {
            mails.pop_front();
            served = served.saturating_add(mail.cost as u64);
        }
        if let Some(&oldest) = mails.front() {
            turns.push(Reverse(Turn { served, oldest, index }));
        }
    }
    while (chosen.is_empty() || used < max_batch_tokens)
        && let Some(Reverse(mut turn)) = turns.pop()
    {
        let mails = &mut clients[turn.index].1;
        let fits = |&position: &usize| chosen.is_empty() || used + waiting[position].cost <= max_batch_tokens;
        // What does not fit now will not fit later in this batch either.
        while mails.front().is_some_and(|position| !fits(position)) {
            mails.pop_front();
        }
        let Some(position) = mails.pop_front() else { continue };
        chosen.push(position);
        used = used.saturating_add(waiting[position].cost);
        if let Some(&oldest) = mails.front() {
            (turn.served, turn.oldest) = (turn.served.saturating_add(waiting[position].cost as u64), oldest);
            turns.push(Reverse(turn));
        }
    }
    chosen.sort_unstable();
    chosen
}

/// A client's claim to the next place: least served first, then oldest mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    served: u64,
    oldest: usize,
    index: usize,
}

/// The positions of each client's mails, in order of arrival.
fn by_client(waiting: &[Waiting]) -> Vec<(Client, VecDeque<usize>)> {
    let mut clients: Vec<(Client, VecDeque<usize>)> = Vec::new();
    let mut places: HashMap<Client, usize> = HashMap::new();
    for (position, mail) in waiting.iter().enumerate() {
        let place = *places.entry(mail.client).or_insert_with(|| {
            clients.push((mail.client, VecDeque::new()));
            clients.len() - 1
        });
        clients[place].1.push_back(position);
    }
    clients
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::shares::Shares;
    use super::*;

    fn of_one_client(costs: &[usize], budget: usize) -> Vec<usize> {
        let waiting: Vec<Waiting> = costs.iter().map(|&cost| Waiting { cost, client: Client::of("a") }).collect();
        choose(&waiting, |_| 0, First::LeastServed, budget)
    }

    fn mail(client: &str, cost: usize) -> Waiting {
        Waiting { cost, client: Client::of(client) }
    }

    /// Runs batches until nothing waits; whose mails ran, batch by batch.
    fn run_all(mut waiting: Vec<Waiting>, budget: usize) -> Vec<Vec<Client>> {
        let (mut shares, mut batches) = (Shares::default(), Vec::new());
        while !waiting.is_empty() {
            let first = First::of_batch(batches.len() as u64);
            let chosen = choose(&waiting, |client| shares.of(client), first, budget);
            let mut batch = Vec::new();
            for position in chosen.into_iter().rev() {
                let mail = waiting.remove(position);
                shares.charge(mail.client, mail.cost);
                batch.push(mail.client);
            }
            shares.settle(&waiting.iter().map(|mail| mail.client).collect::<Vec<_>>());
            batches.push(batch);
        }
        batches
    }

    #[test]
    fn nothing_waiting_nothing_chosen() {
        assert!(of_one_client(&[], 100).is_empty());
        assert!(choose(&[], |_| 0, First::Oldest, 100).is_empty());
    }

    #[test]
    fn a_mail_over_the_budget_runs_alone() {
        assert_eq!(of_one_client(&[500, 10], 100), [0]);
        assert_eq!(choose(&[mail("a", 500), mail("b", 10)], |_| 0, First::Oldest, 100), [0]);
        assert_eq!(of_one_client(&[5, 5], 0), [0]);
    }

    #[test]
    fn short_mails_pass_a_long_one_that_does_not_fit() {
        assert_eq!(of_one_client(&[60, 90, 30, 20], 100), [0, 2]);
    }

    #[test]
    fn a_client_with_one_mail_does_not_wait_for_another_s_hundred() {
        let mut waiting = vec![mail("flood", 50); 100];
        waiting.push(mail("single", 50));
        assert_eq!(choose(&waiting, |_| 0, First::LeastServed, 100), [0, 100]);
    }

    #[test]
    fn clients_share_by_tokens_not_by_mails() {
        let mut waiting = vec![mail("long", 90); 20];
        waiting.extend(vec![mail("short", 10); 200]);
        let batches = run_all(waiting, 180);
        let tokens = |client: &str, cost: usize| {
            cost * batches[..8].iter().flatten().filter(|&&other| other == Client::of(client)).count()
        };
        let (long, short) = (tokens("long", 90), tokens("short", 10));
        assert!(long.abs_diff(short) <= 4 * 90, "{long} {short}");
    }

    #[test]
    fn the_oldest_mail_runs_though_new_clients_never_stop_coming() {
        // Each new client has had nothing, and would go first for ever.
        let (mut shares, mut waiting) = (Shares::default(), vec![mail("old", 100)]);
        shares.charge(Client::of("old"), 1000);
        for number in 0..4 {
            waiting.push(mail(&format!("new {number}"), 100));
            let chosen = choose(&waiting, |client| shares.of(client), First::of_batch(number), 100);
            if chosen == [0] {
                return assert_eq!(number, 3);
            }
            for position in chosen.into_iter().rev() {
                waiting.remove(position);
            }
        }
        panic!("the oldest mail never ran");
    }

    proptest! {
        #[test]
        fn the_budget_holds_and_every_mail_runs_once(
            mails in prop::collection::vec((0u8..4, 1usize..300), 1..60),
            budget in 1usize..500,
        ) {
            let waiting: Vec<Waiting> =
                mails.iter().map(|&(client, cost)| Waiting { cost, client: Client::of(&client) }).collect();
            for first in [First::LeastServed, First::Oldest] {
                let chosen = choose(&waiting, |_| 0, first, budget);
                let used: usize = chosen.iter().map(|&position| waiting[position].cost).sum();
                prop_assert!(used <= budget || chosen.len() == 1);
                prop_assert!(!chosen.is_empty() && chosen.is_sorted());
            }
            prop_assert_eq!(run_all(waiting, budget).concat().len(), mails.len());
        }

        #[test]
        fn a_mail_runs_within_four_batches_for_each_that_was_there_before(
            mails in prop::collection::vec((0u8..6, 1usize..300), 1..40),
            budget in 1usize..500,
        ) {
            let marked = mails.len() - 1;
            let mut waiting: Vec<Waiting> =
                mails.iter().map(|&(client, cost)| Waiting { cost, client: Client::of(&client) }).collect();
            waiting[marked].client = Client::of("marked");
            let batches = run_all(waiting, budget);
            let ran = batches.iter().position(|batch| batch.contains(&Client::of("marked"))).unwrap();
            prop_assert!(ran < 4 * mails.len());
        }
    }
}
