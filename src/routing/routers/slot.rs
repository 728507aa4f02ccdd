//! The place of one router: its name, whichever of its versions is in force, and what became of the others.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::super::RoutingService;
use super::super::beside::Beside;
use super::error::chain;
use crate::artifact::{Look, look};

/// A name, and the router that answers to it now.
pub struct Slot {
    name: String,
    /// `None`: given ready-made, and never exchanged.
    path: Option<PathBuf>,
    live: RwLock<Option<Arc<RoutingService>>>,
    /// Who stands beside every version of it.
    pub(super) beside: OnceLock<Arc<Beside>>,
    history: Mutex<History>,
    exchanges: AtomicU64,
    refusals: AtomicU64,
}

/// What a look at the files finds, or why there is nothing to be looked at.
pub(super) type Found = Result<Look, String>;

/// Looks at the router in `path`.
pub(super) fn find(path: &Path) -> Found {
    look(path).map_err(|error| chain(&error))
}

#[derive(Default)]
struct History {
    /// The files of the router in force.
    in_force: Option<Look>,
    /// The files as they were when they were last loaded, verified or refused.
    tried: Option<Found>,
    /// The files at the last look, where they differ from those: tried when they look the same once more.
    changing: Option<Found>,
    /// When the router in force came in force.
    since: Option<SystemTime>,
    refused: Option<Refusal>,
}

/// A router that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// When, in RFC 3339.
    pub at: String,
    /// Why, with all causes.
    pub reason: String,
}

/// What is to be known of a slot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlotState {
    /// The name that requests use.
    pub name: String,
    /// Where its files lie; `None` where it was given ready-made.
    pub path: Option<PathBuf>,
    /// The router's own name; `None` where none is in force, as the next ones.
    pub router: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its encoder.
    pub encoder: Option<String>,
    /// How many queues it knows.
    pub queues: Option<usize>,
    /// Since when it is in force, in RFC 3339.
    pub since: Option<String>,
    /// Mails waiting for it.
    pub waiting: usize,
    /// How often a router came in force here, the first included.
    pub exchanges: u64,
    /// How often one was refused.
    pub refusals: u64,
    /// The last refusal, unless a router came in force after it.
    pub refused: Option<Refusal>,
}

impl Slot {
    pub(super) fn ready(service: Arc<RoutingService>) -> Self {
        let slot = Self::empty(service.router().name.clone(), None);
        slot.put(service, None);
        slot
    }

    pub(super) fn empty(name: String, path: Option<PathBuf>) -> Self {
        Self {
            name,
            path,
            live: RwLock::default(),
            beside: OnceLock::new(),
            history: Mutex::default(),
            exchanges: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
        }
    }

    /// The name that requests use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The router in force; `None` where none could be loaded yet. Whoever holds it keeps it, whatever comes after.
    #[must_use]
    pub fn live(&self) -> Option<Arc<RoutingService>> {
        // Nothing can panic while the lock is held.
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts a router in force and gives back the one before.
    pub(super) fn put(&self, service: Arc<RoutingService>, files: Option<Found>) -> Option<Arc<RoutingService>> {
        if let Some(beside) = self.beside.get() {
            service.set_beside(Arc::clone(beside));
        }
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        let mut history = self.history();
        let in_force = files.as_ref().and_then(|files| files.as_ref().ok()).cloned();
        *history = History { in_force, tried: files, changing: None, since: Some(SystemTime::now()), refused: None };
        self.live.write().unwrap_or_else(PoisonError::into_inner).replace(service)
    }

    pub(super) fn refuse(&self, files: Found, reason: String) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
        let mut history = self.history();
        history.tried = Some(files);
        history.changing = None;
        history.refused = Some(Refusal { at: rfc3339(SystemTime::now()), reason });
    }

    /// Whether `router.json` is that of the router in force. It does not say that the other files are.
    pub(super) fn is_in_force(&self, files: &Look) -> bool {
        self.history().in_force.as_ref().is_some_and(|in_force| in_force.same_router(files))
    }

    /// The files are those of the router in force, whatever they were before.
    pub(super) fn seen(&self, files: Look) {
        let mut history = self.history();
        history.tried = Some(Ok(files));
        history.changing = None;
        history.refused = None;
    }

    /// Looks at the files. True when they differ from those last tried and were the same at the look before, so that nobody
    /// is writing them just now.
    pub(super) fn has_changed(&self) -> bool {
        let Some(path) = &self.path else { return false };
        // Files that are gone are a change like any other: the router in force does not need them, the next start does.
        let found = find(path);
        let mut history = self.history();
        if history.tried.as_ref() == Some(&found) {
            history.changing = None;
            return false;
        }
        if history.changing.as_ref() == Some(&found) {
            return true;
        }
        history.changing = Some(found);
        false
    }

    /// What is to be known of it.
    #[must_use]
    pub fn state(&self) -> SlotState {
        let live = self.live();
        let info = live.as_ref().map(|service| service.router());
        let history = self.history();
        SlotState {
            name: self.name.clone(),
            path: self.path.clone(),
            router: info.map(|info| info.name.clone()),
            version: info.map(|info| info.version.clone()),
            encoder: info.map(|info| info.encoder.clone()),
            queues: info.map(|info| info.queues.len()),
            since: history.since.map(rfc3339),
            waiting: live.as_ref().map_or(0, |service| service.waiting()),
            exchanges: self.exchanges.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
            refused: history.refused.clone(),
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A time as people read it. A clock may say anything, and what writes dates panics before 1970 and after 9999: there it says
/// the nearest that can be written.
#[must_use]
pub fn rfc3339(time: SystemTime) -> String {
    const LAST: Duration = Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_seconds(time.clamp(UNIX_EPOCH, UNIX_EPOCH + LAST)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_wrong_makes_a_wrong_date_and_no_panic() {
        let far = Duration::from_secs(1 << 40);
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_secs(951_782_400)), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(UNIX_EPOCH - far), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(UNIX_EPOCH + far), "9999-12-31T23:59:59Z");
    }
}
