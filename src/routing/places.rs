//! Places for costly reading, shared between clients by turns: one that sends a flood waits behind itself, not before
//! others.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use crate::inference::Client;

/// So many places, and a line for each client that waits for one. Clones share them.
#[derive(Clone)]
pub(super) struct Places(Arc<Mutex<State>>);

struct State {
    /// None while somebody waits.
    free: usize,
    /// The client whose turn is next is first; within a client, who has waited longest.
    lines: VecDeque<(Client, VecDeque<oneshot::Sender<Place>>)>,
}

/// A place, given on when it is dropped.
pub(super) struct Place(Places);

impl Places {
    pub(super) fn new(count: usize) -> Self {
        Self(Arc::new(Mutex::new(State { free: count, lines: VecDeque::new() })))
    }

    /// Waits for a place. A caller who leaves meanwhile leaves the line.
    pub(super) async fn place(&self, client: Client) -> Place {
        let given = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                return Place(self.clone());
            }
            let (give, given) = oneshot::channel();
            match state.lines.iter_mut().find(|(other, _)| *other == client) {
                Some((_, line)) => line.push_back(give),
                None => state.lines.push_back((client, VecDeque::from([give]))),
            }
            given
        };
        given.await.expect("whoever waits stays in line until a place is given")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whoever is next, those who have left passed over; where nobody waits, the place is free.
    fn take_next(&mut self) -> Option<oneshot::Sender<Place>> {
        while let Some((client, mut line)) = self.lines.pop_front() {
            while let Some(give) = line.pop_front() {
                if !give.is_closed() {
                    if !line.is_empty() {
                        self.lines.push_back((client, line));
                    }
                    return Some(give);
                }
            }
        }
        self.free += 1;
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let next = self.0.lock().take_next();
        if let Some(give) = next {
            // To one who has left this very moment: the place comes back, is dropped here, and goes to the next.
            drop(give.send(Self(self.0.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    /// Asks for clients in this order, all while the only place is taken.
    async fn asked(places: &Places, clients: &[&'static str]) -> JoinSet<(&'static str, Place)> {
        let mut asking = JoinSet::new();
        for &client in clients {
            let places = places.clone();
            asking.spawn(async move { (client, places.place(Client::of(client)).await) });
            tokio::task::yield_now().await;
        }
        asking
    }

    #[tokio::test]
    async fn clients_take_turns_however_many_one_of_them_has_waiting() {
        let places = Places::new(1);
        let first = places.place(Client::of("flood")).await;
        let mut asking = asked(&places, &["flood", "flood", "flood", "one", "another"]).await;
        drop(first);
        let mut served = Vec::new();
        while let Some(given) = asking.join_next().await {
            let (client, _place) = given.unwrap();
            served.push(client);
        }
        assert_eq!(served, ["flood", "one", "another", "flood", "flood"]);
    }

    #[tokio::test]
    async fn who_leaves_holds_up_nobody_and_takes_no_place_along() {
        let places = Places::new(1);
        let first = places.place(Client::of("one")).await;
        for _ in 0..100 {
            let waiting = places.place(Client::of("one"));
            assert!(timeout(Duration::from_millis(1), waiting).await.is_err());
        }
        let mut asking = asked(&places, &["one"]).await;
        drop(first);
        // Given to it and not taken up.
        asking.abort_all();
        while asking.join_next().await.is_some() {}
        let _place = timeout(Duration::from_secs(10), places.place(Client::of("another"))).await.unwrap();
    }
}
