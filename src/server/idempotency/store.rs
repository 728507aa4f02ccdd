//! Answers by key, within a time, a number and an amount of bytes. The oldest go first.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::HeaderMap;

use crate::inference::Client;

/// Whose request it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    /// By its API key, or else by its address.
    pub(super) client: Client,
    pub(super) path: String,
    pub(super) key: String,
}

pub(super) type Fingerprint = [u8; 32];

/// An answer of status 200.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// What a key stands for.
pub(super) enum Claim {
    /// Nothing yet; the request may be done.
    Free(Place),
    /// The same request was answered.
    Answered(Answer),
    /// The same request is being answered.
    InFlight,
    /// Another request.
    AnotherRequest,
}

/// Bounds of a store.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct Bounds {
    /// How long an answer is kept.
    pub(in crate::server) time: Duration,
    pub(in crate::server) answers: usize,
    /// Of the answers' bodies.
    pub(in crate::server) bytes: usize,
}

/// The answers of a server.
#[derive(Clone)]
pub(in crate::server) struct Store {
    bounds: Bounds,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<Key, Entry>,
    /// Answered keys, the oldest first.
    order: VecDeque<(Instant, Key)>,
    bytes: usize,
}

struct Entry {
    asked: Fingerprint,
    /// `None` while the request is being answered.
    answer: Option<Answer>,
}

/// The right to answer a request. Dropped without an answer it frees the key.
pub(super) struct Place {
    key: Option<Key>,
    store: Store,
}

impl Store {
    pub(in crate::server) fn new(bounds: Bounds) -> Self {
        Self { bounds, kept: Arc::default() }
    }

    /// Looks a key up, and takes it where it is free.
    pub(super) fn claim(&self, key: Key, asked: Fingerprint) -> Claim {
        let mut kept = self.kept();
        kept.drop_older(Instant::now(), self.bounds.time);
        match kept.entries.get(&key) {
            Some(entry) if entry.asked != asked => Claim::AnotherRequest,
            Some(Entry { answer: Some(answer), .. }) => Claim::Answered(answer.clone()),
            Some(_) => Claim::InFlight,
            None => {
                kept.entries.insert(key.clone(), Entry { asked, answer: None });
                Claim::Free(Place { key: Some(key), store: self.clone() })
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // A panic while the lock is held can only come from an allocation; the answers stay sound.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn drop_older(&mut self, now: Instant, time: Duration) {
        // An instant before that of the answer counts as the same: it saturates.
        while self.order.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= time) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some((_, key)) = self.order.pop_front()
            && let Some(Entry { answer: Some(answer), .. }) = self.entries.remove(&key)
        {
            self.bytes -= answer.body.len();
        }
    }
}

impl Place {
    /// Keeps the answer, unless it alone is over the bounds.
    pub(super) fn keep(mut self, answer: Answer) {
        let Bounds { answers, bytes, .. } = self.store.bounds;
        let size = answer.body.len();
        if answers == 0 || size > bytes {
            return;
        }
        let Some(key) = self.key.take() else { return };
        let mut kept = self.store.kept();
        while kept.order.len() >= answers || kept.bytes + size > bytes {
            kept.drop_oldest();
        }
        kept.bytes += size;
        kept.order.push_back((Instant::now(), key.clone()));
        if let Some(entry) = kept.entries.get_mut(&key) {
            entry.answer = Some(answer);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.store.kept().entries.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(time: Duration) -> Store {
        Store::new(Bounds { time, answers: 2, bytes: 10 })
    }

    fn claim(store: &Store, key: &str, asked: u8) -> Claim {
        claim_of(store, "ann", key, asked)
    }

    fn claim_of(store: &Store, client: &str, key: &str, asked: u8) -> Claim {
        let key = Key { client: Client::of(client), path: "/v1/route".to_owned(), key: key.to_owned() };
        store.claim(key, [asked; 32])
    }

    fn answer(store: &Store, key: &str, body: &'static str) {
        let Claim::Free(place) = claim(store, key, 1) else { panic!("{key} is not free") };
        place.keep(Answer { headers: HeaderMap::new(), body: Bytes::from_static(body.as_bytes()) });
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_key_stands_for_one_request_until_it_is_answered_and_after() {
        let store = store(HOUR);
        let Claim::Free(place) = claim(&store, "a", 1) else { panic!() };
        assert!(matches!(claim(&store, "a", 1), Claim::InFlight));
        assert!(matches!(claim(&store, "a", 2), Claim::AnotherRequest));
        place.keep(Answer { headers: HeaderMap::new(), body: Bytes::from_static(b"yes") });
        assert!(matches!(claim(&store, "a", 1), Claim::Answered(answer) if answer.body == "yes"));
        assert!(matches!(claim(&store, "a", 2), Claim::AnotherRequest));
    }

    #[test]
    fn clients_do_not_see_each_others_keys() {
        let store = store(HOUR);
        answer(&store, "a", "1");
        assert!(matches!(claim_of(&store, "bob", "a", 1), Claim::Free(_)));
    }

    #[test]
    fn a_request_that_is_not_answered_frees_its_key() {
        let store = store(HOUR);
        drop(claim(&store, "a", 1));
        assert!(matches!(claim(&store, "a", 2), Claim::Free(_)));
    }

    #[test]
    fn the_oldest_go_where_there_are_too_many_answers_or_bytes() {
        let store = store(HOUR);
        for (key, body) in [("a", "1"), ("b", "2"), ("c", "3")] {
            answer(&store, key, body);
        }
        assert!(matches!(claim(&store, "a", 1), Claim::Free(_)));
        assert!(matches!(claim(&store, "b", 1), Claim::Answered(_)));
        answer(&store, "d", "123456789");
        assert!(matches!(claim(&store, "b", 1), Claim::Free(_)));
        assert!(matches!(claim(&store, "c", 1), Claim::Answered(_)));
        answer(&store, "e", "over the limit of ten");
        assert!(matches!(claim(&store, "e", 1), Claim::Free(_)));
        assert_eq!(store.kept().bytes, 10);
    }

    /// Instants do not follow the wall clock, but a machine that sleeps or is moved may make them leap.
    #[test]
    fn a_clock_that_leaps_neither_panics_nor_keeps_a_key_for_ever() {
        let store = store(HOUR);
        answer(&store, "a", "1");
        let at = store.kept().order[0].0;
        let drop_older = |now| store.kept().drop_older(now, HOUR);
        drop_older(at.checked_sub(HOUR).unwrap_or(at));
        drop_older(at + HOUR - Duration::from_nanos(1));
        assert!(matches!(claim(&store, "a", 1), Claim::Answered(_)));
        drop_older(at + HOUR * 24 * 365);
        assert_eq!(store.kept().bytes, 0);
        // Free again, for an answer that is kept from now on.
        answer(&store, "a", "2");
        assert!(matches!(claim(&store, "a", 1), Claim::Answered(answer) if answer.body == "2"));
    }

    #[test]
    fn an_answer_is_kept_for_a_time() {
        let store = store(Duration::ZERO);
        answer(&store, "a", "1");
        assert!(matches!(claim(&store, "a", 2), Claim::Free(_)));
        let kept = store.kept();
        assert_eq!((kept.bytes, kept.order.len()), (0, 0));
    }
}
