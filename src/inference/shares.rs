//! How much of the model each client has had: who has had least goes next.
//!
//! Counts are tokens since the queue was last empty. A client that comes late starts level with the one that has had least
//! of those who wait, so that it neither waits for what others had before nor is owed anything for having stayed away.

use std::collections::HashMap;

use super::Client;

/// Clients remembered while they have nothing waiting; with more, only those who wait are.
const REMEMBERED: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Shares {
    served: HashMap<Client, u64>,
    /// The least of those who wait.
    floor: u64,
}

impl Shares {
    /// Tokens that a client has had, as the choice of the next batch counts.
    pub(super) fn of(&self, client: Client) -> u64 {
        self.served.get(&client).map_or(self.floor, |&served| served.max(self.floor))
    }

    pub(super) fn charge(&mut self, client: Client, tokens: usize) {
        let served = self.of(client).saturating_add(tokens as u64);
        self.served.insert(client, served);
    }

    /// After a batch: `waiting` are the clients that still wait.
    pub(super) fn settle(&mut self, waiting: &[Client]) {
        let Some(floor) = waiting.iter().map(|&client| self.of(client)).min() else {
            *self = Self::default();
            return;
        };
        self.floor = floor;
        self.served.retain(|_, served| *served > floor);
        if self.served.len() > REMEMBERED {
            self.served.retain(|client, _| waiting.contains(client));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_late_starts_level_with_who_has_had_least() {
        let (busy, patient, late) = (Client::of("busy"), Client::of("patient"), Client::of("late"));
        let mut shares = Shares::default();
        shares.charge(busy, 900);
        shares.charge(patient, 300);
        shares.settle(&[busy, patient]);
        assert_eq!((shares.of(busy), shares.of(patient), shares.of(late)), (900, 300, 300));
    }

    #[test]
    fn an_empty_queue_forgets_everything() {
        let mut shares = Shares::default();
        shares.charge(Client::of("a"), 900);
        shares.settle(&[]);
        assert_eq!(shares.of(Client::of("a")), 0);
        assert!(shares.served.is_empty());
    }

    #[test]
    fn clients_that_come_once_are_not_remembered_for_ever() {
        let (steady, mut shares) = (Client::of("steady"), Shares::default());
        for index in 0..3 * REMEMBERED {
            shares.charge(Client::of(&index), 10);
            shares.settle(&[steady]);
        }
        assert!(shares.served.len() <= REMEMBERED + 1);
    }
}
