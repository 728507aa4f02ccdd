//! The end of the service, as the sending thread learns of it.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// By when the last span must be sent; unset while the service runs.
#[derive(Debug, Default)]
pub(super) struct Stop {
    by: Mutex<Option<Instant>>,
    told: Condvar,
}

impl Stop {
    /// Ends whatever pauses; an earlier end stays in force.
    pub(super) fn tell(&self, by: Instant) {
        let mut ends = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        *ends = Some(ends.map_or(by, |earlier| earlier.min(by)));
        self.told.notify_all();
    }

    /// By when it must be over, where that is known.
    pub(super) fn by(&self) -> Option<Instant> {
        *self.by.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, and says whether the service still runs.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let by = self.by.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.told.wait_timeout_while(by, time, |by| by.is_none());
        waited.unwrap_or_else(PoisonError::into_inner).0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_when_the_service_does() {
        let stop = Stop::default();
        assert!(stop.pause(Duration::from_millis(1)));
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(!stop.pause(Duration::from_secs(60))));
            stop.tell(started + Duration::from_secs(1));
        });
        assert!(started.elapsed() < Duration::from_secs(30));
        stop.tell(started);
        stop.tell(started + Duration::from_secs(5));
        assert_eq!(stop.by(), Some(started));
    }
}
