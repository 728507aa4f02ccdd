//! The connections that are open at a time: bounded, and an idle one makes room for one that has something to ask.
//!
//! Without this, clients that connect and say nothing (a mistake in a pool, or an attack) would shut everybody else out,
//! probes included.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection that fell idle more recently may have its last answer on the way still, or its next request.
pub(super) const SURELY_IDLE: Duration = Duration::from_millis(500);

/// All seats of one listener.
#[derive(Debug)]
pub(super) struct Seats {
    limit: usize,
    surely_idle: Duration,
    taken: Mutex<Taken>,
    /// A seat was given back, or a connection fell idle.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: HashMap<u64, Arc<Occupant>>,
}

/// What is known of one connection.
#[derive(Debug)]
struct Occupant {
    state: Mutex<State>,
    told_to_leave: Notify,
    asked: Notify,
}

#[derive(Debug)]
struct State {
    /// Requests being answered; HTTP/1 has one at most.
    busy: usize,
    idle_since: Instant,
    leaving: bool,
}

/// The place of one connection; given back when dropped.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    number: u64,
    occupant: Arc<Occupant>,
}

/// A request that is being answered; over when dropped.
#[derive(Debug)]
pub(super) struct Busy {
    seats: Arc<Seats>,
    occupant: Arc<Occupant>,
}

impl Seats {
    pub(super) fn new(limit: usize, surely_idle: Duration) -> Arc<Self> {
        Arc::new(Self { limit, surely_idle, taken: Mutex::default(), changed: Notify::new() })
    }

    /// A seat for a new connection. Where all are taken, the connection that has been idle longest is told to leave; where
    /// none is idle, waits until one is. `closed` hears of each that had to go.
    pub(super) async fn take(self: &Arc<Self>, mut closed: impl FnMut()) -> Seat {
        loop {
            let changed = self.changed.notified();
            if let Some(seat) = self.try_take() {
                return seat;
            }
            if self.tell_one_to_leave() {
                closed();
            }
            // Who has just fallen idle counts only a moment later.
            let _ = tokio::time::timeout(self.surely_idle, changed).await;
        }
    }

    fn try_take(self: &Arc<Self>) -> Option<Seat> {
        let mut taken = self.taken();
        if taken.seats.len() >= self.limit {
            return None;
        }
        let state = State { busy: 0, idle_since: Instant::now(), leaving: false };
        let occupant = Occupant { state: Mutex::new(state), told_to_leave: Notify::new(), asked: Notify::new() };
        let (number, occupant) = (taken.next, Arc::new(occupant));
        taken.next += 1;
        taken.seats.insert(number, Arc::clone(&occupant));
        Some(Seat { seats: Arc::clone(self), number, occupant })
    }

    /// Whether somebody was told; while one is on its way out, nobody else is.
    fn tell_one_to_leave(&self) -> bool {
        let taken = self.taken();
        let mut longest: Option<(Instant, &Arc<Occupant>)> = None;
        for occupant in taken.seats.values() {
            let state = occupant.state();
            if state.leaving {
                return false;
            }
            let idle = state.busy == 0 && state.idle_since.elapsed() >= self.surely_idle;
            if idle && longest.is_none_or(|(since, _)| state.idle_since < since) {
                longest = Some((state.idle_since, occupant));
            }
        }
        let Some((_, occupant)) = longest else { return false };
        occupant.state().leaving = true;
        occupant.told_to_leave.notify_one();
        true
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Occupant {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// A request has come.
    pub(super) fn busy(&self) -> Busy {
        self.occupant.state().busy += 1;
        self.occupant.asked.notify_one();
        Busy { seats: Arc::clone(&self.seats), occupant: Arc::clone(&self.occupant) }
    }

    /// Resolves when the connection must go: another one needs its place, or it has sent no request for `patience`.
    pub(super) async fn must_leave(&self, patience: Duration) -> &'static str {
        let told = self.told_to_leave();
        tokio::pin!(told);
        tokio::select! {
            reason = &mut told => return reason,
            asked = tokio::time::timeout(patience, self.occupant.asked.notified()) => {
                if asked.is_err() {
                    return "no request came";
                }
            }
        }
        told.await
    }

    async fn told_to_leave(&self) -> &'static str {
        loop {
            self.occupant.told_to_leave.notified().await;
            let mut state = self.occupant.state();
            if state.busy == 0 {
                return "idle, and its place was needed";
            }
            // A request came in the same moment: somebody else must go.
            state.leaving = false;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.seats.taken().seats.remove(&self.number);
        self.seats.changed.notify_one();
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = self.occupant.state();
        state.busy -= 1;
        state.idle_since = Instant::now();
        drop(state);
        self.seats.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Duration = Duration::from_millis(2);
    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn the_connection_that_has_been_idle_longest_makes_room() {
        let seats = Seats::new(2, MOMENT);
        let (first, second) = (seats.take(|| ()).await, seats.take(|| ()).await);
        tokio::time::sleep(MOMENT).await;
        drop(second.busy());
        let mut closed = 0;
        let leave = async {
            first.must_leave(LONG).await;
            drop(first);
        };
        let (_third, ()) = tokio::join!(seats.take(|| closed += 1), leave);
        assert_eq!((closed, seats.taken().seats.len()), (1, 2));
    }

    #[tokio::test]
    async fn a_connection_with_a_request_is_never_told_to_leave() {
        let seats = Seats::new(1, MOMENT);
        let seat = seats.take(|| ()).await;
        let busy = seat.busy();
        let newcomer = tokio::time::timeout(10 * MOMENT, seats.take(|| panic!("nobody is idle"))).await;
        assert!(newcomer.is_err());
        drop(busy);
        let leave = async {
            assert!(seat.must_leave(LONG).await.starts_with("idle"));
            drop(seat);
        };
        tokio::join!(async { drop(seats.take(|| ()).await) }, leave);
    }

    #[tokio::test]
    async fn a_connection_that_never_asks_is_closed() {
        let seat = Seats::new(1, MOMENT).take(|| ()).await;
        assert_eq!(seat.must_leave(MOMENT).await, "no request came");
    }
}
