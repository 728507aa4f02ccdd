//! The shadow: asked about the same mail after it was answered, when the router in force has nothing to do.
//!
//! Its decisions are counted and thrown away. It works on one mail at a time; a few wait, and what finds no place, or finds the
//! router in force busy when its turn comes, is dropped and counted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::super::routers::Slot;
use super::super::{Decision, Mail, RoutingService};
use super::report::{Seen, ShadowReport, Tally};
use crate::inference::Caller;

/// Mails that may wait for the shadow, with their texts.
const PLACES: usize = 64;

pub(super) struct Shadow {
    shared: Arc<Shared>,
}

struct Shared {
    slot: Arc<Slot>,
    places: Arc<Semaphore>,
    turn: Semaphore,
    /// Mails that the shadow decided on.
    scored: AtomicU64,
    /// Mails that found no place, or the router in force busy.
    dropped: AtomicU64,
    /// Mails that the shadow failed on, or that came while it was not loaded.
    failed: AtomicU64,
    tally: Mutex<Tally>,
}

/// A copy of a mail that has a place before the shadow.
pub(super) struct Copy {
    mail: Mail,
    shared: Arc<Shared>,
    place: OwnedSemaphorePermit,
}

impl Shadow {
    pub(super) fn new(slot: Arc<Slot>) -> Self {
        Self {
            shared: Arc::new(Shared {
                slot,
                places: Arc::new(Semaphore::new(PLACES)),
                turn: Semaphore::new(1),
                scored: AtomicU64::new(0),
                dropped: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                tally: Mutex::default(),
            }),
        }
    }

    /// A copy of the mail, where there is a place for it.
    pub(super) fn copy(&self, mail: &Mail) -> Option<Copy> {
        match Arc::clone(&self.shared.places).try_acquire_owned() {
            Ok(place) => Some(Copy { mail: mail.clone(), shared: Arc::clone(&self.shared), place }),
            Err(_) => {
                self.shared.dropped.fetch_add(1, Ordering::Relaxed);
                None
            }
        }
    }

    pub(super) fn report(&self) -> ShadowReport {
        let shared = &self.shared;
        let [scored, dropped, failed] =
            [&shared.scored, &shared.dropped, &shared.failed].map(|count| count.load(Ordering::Relaxed));
        let report = shared.tally.lock().unwrap_or_else(PoisonError::into_inner).report(shared.slot.name());
        ShadowReport { scored, dropped, failed, ..report }
    }
}

impl Copy {
    /// Asks the shadow about the mail beside everything else, and counts how its decision compares.
    pub(super) fn score(self, live: Arc<RoutingService>, decision: &Decision) {
        let answered = Seen::of(decision);
        tokio::spawn(async move {
            let Self { mail, shared, place } = self;
            let turn = shared.turn.acquire().await;
            if live.waiting() > 0 {
                shared.dropped.fetch_add(1, Ordering::Relaxed);
                return;
            }
            // Held no longer than needed: the router may be exchanged meanwhile.
            drop(live);
            let scored = match shared.slot.live() {
                Some(service) => service.decide(mail, Caller::default()).await.ok(),
                None => None,
            };
            match scored {
                Some(scored) => {
                    shared.scored.fetch_add(1, Ordering::Relaxed);
                    let mut tally = shared.tally.lock().unwrap_or_else(PoisonError::into_inner);
                    tally.add(&answered, &Seen::of(&scored));
                }
                None => {
                    shared.failed.fetch_add(1, Ordering::Relaxed);
                }
            }
            drop((turn, place));
        });
    }
}
