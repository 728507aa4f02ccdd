//! One lane's waiting line, counted by client so that no choice has to count.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use super::{Caller, Client};

/// Work that may lose its caller while it waits.
pub(super) trait Waits {
    /// Nobody waits for the answer any more.
    fn abandoned(&self) -> bool;
}

/// One mail that waits.
#[derive(Debug)]
pub(super) struct Entry<T> {
    /// Tokens that the encoder will see.
    pub cost: usize,
    pub caller: Caller,
    pub arrived: Instant,
    pub job: T,
}

/// What one client has waiting in a line.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    pub mails: usize,
    pub tokens: usize,
}

/// The entries of one lane in order of arrival, with what each client holds.
#[derive(Debug)]
pub(super) struct Line<T> {
    pub entries: VecDeque<Entry<T>>,
    pub held: HashMap<Client, Held>,
    pub tokens: usize,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), held: HashMap::new(), tokens: 0 }
    }
}

impl<T> Line<T> {
    pub(super) fn push(&mut self, entry: Entry<T>) {
        let held = self.held.entry(entry.caller.client).or_default();
        (held.mails, held.tokens) = (held.mails + 1, held.tokens + entry.cost);
        self.tokens += entry.cost;
        self.entries.push_back(entry);
    }

    /// Takes out the entries that `leaves` is true of, told by position and entry; the others keep their order.
    pub(super) fn take(&mut self, mut leaves: impl FnMut(usize, &Entry<T>) -> bool) -> Vec<Entry<T>> {
        let (mut taken, mut kept) = (Vec::new(), VecDeque::with_capacity(self.entries.len()));
        for (position, entry) in std::mem::take(&mut self.entries).into_iter().enumerate() {
            if !leaves(position, &entry) {
                kept.push_back(entry);
                continue;
            }
            self.tokens -= entry.cost;
            if let Some(held) = self.held.get_mut(&entry.caller.client) {
                (held.mails, held.tokens) = (held.mails - 1, held.tokens - entry.cost);
                if held.mails == 0 {
                    self.held.remove(&entry.caller.client);
                }
            }
            taken.push(entry);
        }
        self.entries = kept;
        taken
    }
}
