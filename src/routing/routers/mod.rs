//! The routers of one process, each with a name. One of them, the default, answers where a request names none.
//!
//! A request takes the router once and keeps it until it is answered. So a router can be exchanged at any moment: what
//! came before is answered by the old one, what comes after by the new one, and the old one ends with its last request. A
//! new one is loaded and tested beside the old one, and comes in force only where both went well.

mod config;
mod error;
mod slot;

pub use config::{NamedRouter, RoutersConfig};
pub use error::{LoadError, ReloadError, RoutersError};
use slot::{Found, find};
pub use slot::{Refusal, Slot, SlotState, rfc3339};

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use serde::Serialize;

use super::RoutingService;
use super::beside::Beside;
use crate::artifact::{VersionedRouter, verify_router};
use crate::queues::slug;

/// Makes a router ready to answer, verified and tested, of a directory. Blocks.
pub type Loader = Box<dyn Fn(&Path) -> Result<Arc<RoutingService>, LoadError> + Send + Sync>;

/// Told of a router before it comes in force.
pub type Watcher = Box<dyn Fn(&RoutingService) + Send + Sync>;

/// All routers by name.
pub struct Routers {
    /// The default first; others are only ever added.
    slots: RwLock<Vec<Arc<Slot>>>,
    default: Arc<Slot>,
    /// Where further ones may appear.
    dir: Option<PathBuf>,
    beside: Option<Arc<Beside>>,
    /// The time between two looks; `None`: nobody looks.
    poll: Option<Duration>,
    /// `None`: what is there stays as it is.
    loader: Option<Loader>,
    /// Told of every router before it comes in force.
    watcher: OnceLock<Watcher>,
    /// Held while one is loaded: two at a time would take the memory of two.
    loading: Mutex<()>,
}

/// What a look at a router's files led to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Reloaded {
    /// Its files are those of the router in force.
    Unchanged {
        /// The version in force.
        version: String,
    },
    /// Another router is in force.
    Exchanged {
        /// The version before; `None` where there was none.
        from: Option<String>,
        /// The version in force.
        to: String,
    },
}

impl Routers {
    /// Loads the default router in `path` and all others. One of the others that cannot be loaded is told in the log and
    /// missing until its files are whole; requests for the rest are answered meanwhile. Blocks.
    ///
    /// # Errors
    /// [`RoutersError`] where the default cannot be loaded, or the settings contradict each other.
    pub fn open(config: &RoutersConfig, path: &Path, loader: Loader) -> Result<Self, RoutersError> {
        let default = Arc::new(Slot::empty(name_of(path), Some(path.to_owned())));
        let mut slots = vec![Arc::clone(&default)];
        for NamedRouter { name, path } in &config.list {
            if !usable(name) {
                return Err(RoutersError::BadName { name: name.clone() });
            }
            if slots.iter().any(|slot| slot.name() == name) {
                return Err(RoutersError::Twice { name: name.clone() });
            }
            slots.push(Arc::new(Slot::empty(name.clone(), Some(path.clone()))));
        }
        let routers = Self {
            slots: RwLock::new(slots),
            default: Arc::clone(&default),
            dir: config.dir.clone(),
            beside: None,
            poll: config.poll(),
            loader: Some(loader),
            watcher: OnceLock::new(),
            loading: Mutex::default(),
        };
        if let Some(dir) = &config.dir {
            std::fs::read_dir(dir).map_err(|source| RoutersError::Dir { path: dir.clone(), source })?;
            routers.take_in_new();
        }
        let beside = Beside::of(config, &default, |name| routers.get(name))
            .map_err(|(setting, name)| RoutersError::NoSuch { setting, name, valid: routers.names() })?
            .map(Arc::new);
        if let Some(beside) = &beside {
            let _ = default.beside.set(Arc::clone(beside));
        }
        let routers = Self { beside, ..routers };
        let files = find(path);
        let service = routers.load(path).map_err(|source| RoutersError::Load {
            name: default.name().to_owned(),
            path: path.to_owned(),
            source,
        })?;
        default.put(service, Some(files));
        for slot in routers.all().iter().skip(1) {
            // A refusal is in the log already.
            let _ = routers.exchange(slot);
        }
        Ok(routers)
    }

    /// The router that answers where none is named.
    #[must_use]
    pub fn default_slot(&self) -> &Arc<Slot> {
        &self.default
    }

    /// The router of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Slot>> {
        self.all().into_iter().find(|slot| slot.name() == name)
    }

    /// All of them, the default first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Slot>> {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The names of all of them, the default first.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.all().iter().map(|slot| slot.name().to_owned()).collect()
    }

    /// Who stands beside the default router.
    #[must_use]
    pub fn beside(&self) -> Option<&Arc<Beside>> {
        self.beside.as_ref()
    }

    /// Has `watcher` told of every router in force and of each that comes in force from now on. Only the first call counts.
    pub fn watch_each(&self, watcher: Watcher) {
        let _none_comes_meanwhile = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.watcher.set(watcher).is_ok() {
            self.all().iter().filter_map(|slot| slot.live()).for_each(|service| self.tell(&service));
        }
    }

    fn tell(&self, service: &RoutingService) {
        if let Some(watcher) = self.watcher.get() {
            watcher(service);
        }
    }

    /// The time between two looks at the files; `None` where nobody looks.
    #[must_use]
    pub fn poll(&self) -> Option<Duration> {
        self.poll
    }

    /// Takes in the routers whose files have changed and then stayed the same for two looks. Blocks.
    pub fn look(&self) {
        self.take_in_new();
        for slot in self.all() {
            if slot.has_changed() {
                // A refusal is in the log and in the slot's state.
                let _ = self.exchange(&slot);
            }
        }
    }

    /// Takes in the router of a name now, if its files are not those of the router in force. Blocks.
    ///
    /// # Errors
    /// [`ReloadError`]; the router before goes on.
    pub fn reload(&self, name: &str) -> Result<Reloaded, ReloadError> {
        self.exchange(&*self.get(name).ok_or_else(|| ReloadError::Unknown { name: name.to_owned() })?)
    }

    /// As [`Routers::reload`] for all. Blocks.
    pub fn reload_all(&self) {
        self.take_in_new();
        for slot in self.all() {
            let _ = self.exchange(&slot);
        }
    }

    /// Takes no more mail and waits until all that was accepted is answered. Blocks.
    pub fn drain(&self) {
        self.all().iter().filter_map(|slot| slot.live()).for_each(|service| service.drain());
    }

    fn exchange(&self, slot: &Slot) -> Result<Reloaded, ReloadError> {
        let Some(path) = slot.path() else { return Err(ReloadError::Fixed { name: slot.name().to_owned() }) };
        let _one_at_a_time = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let files = find(path);
        if let (Ok(same), Some(live)) = (&files, slot.live())
            && slot.is_in_force(same)
        {
            // `router.json` is the same and names every other file by its checksum: nothing has to be loaded to compare them.
            return match verify_router(path) {
                Ok(()) => {
                    slot.seen(same.clone());
                    Ok(Reloaded::Unchanged { version: live.router().version.clone() })
                }
                Err(error) => Err(refuse(slot, files, error::chain(&error))),
            };
        }
        match self.load(path) {
            Ok(service) => {
                let to = service.router().version.clone();
                let queues = service.router().queues.len();
                self.tell(&service);
                let old = slot.put(service, Some(files));
                let from = old.map(|old| old.router().version.clone());
                tracing::info!(router = slot.name(), from, to, queues, "router in force");
                Ok(Reloaded::Exchanged { from, to })
            }
            Err(error) => Err(refuse(slot, files, error::chain(&*error))),
        }
    }

    fn load(&self, path: &Path) -> Result<Arc<RoutingService>, LoadError> {
        let Some(loader) = &self.loader else { return Err("nothing is loaded here".into()) };
        // A panic must not end whoever looks after the routers.
        catch_unwind(AssertUnwindSafe(|| loader(path)))
            .unwrap_or_else(|_| Err("loading it panicked; the log says where".into()))
    }

    /// Gives a slot to each folder that has become a router; it is loaded when it has stayed the same for two looks.
    fn take_in_new(&self) {
        let Some(entries) = self.dir.as_deref().and_then(|dir| std::fs::read_dir(dir).ok()) else { return };
        let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        found.sort();
        for path in found {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let router = path.join("router.json").is_file() || VersionedRouter::open(&path).is_ok();
            if !router || !usable(&name) {
                continue;
            }
            let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
            if slots.iter().all(|slot| slot.name() != name) {
                slots.push(Arc::new(Slot::empty(name, Some(path))));
            }
        }
    }
}

/// Tells that the files are refused; what is in force goes on.
fn refuse(slot: &Slot, files: Found, reason: String) -> ReloadError {
    let in_force = slot.live().map(|live| live.router().version.clone());
    let path = slot.path().map(|path| path.display().to_string());
    tracing::error!(router = slot.name(), path, reason, in_force, "router refused");
    slot.refuse(files, reason.clone());
    ReloadError::Refused { name: slot.name().to_owned(), reason, in_force }
}

impl From<Arc<RoutingService>> for Routers {
    /// One router under its own name, which stays as it is.
    fn from(service: Arc<RoutingService>) -> Self {
        let default = Arc::new(Slot::ready(service));
        Self {
            slots: RwLock::new(vec![Arc::clone(&default)]),
            default,
            dir: None,
            beside: None,
            poll: None,
            loader: None,
            watcher: OnceLock::new(),
            loading: Mutex::default(),
        }
    }
}

/// What the default router is called: as its directory.
fn name_of(path: &Path) -> String {
    // A path such as `.` says nothing by itself.
    let real = path.canonicalize();
    let name =
        path.file_name().or(real.as_deref().ok().and_then(Path::file_name)).unwrap_or_default().to_string_lossy();
    [name.clone().into_owned(), slug(&name)]
        .into_iter()
        .find(|name| usable(name))
        .unwrap_or_else(|| "default".to_owned())
}

/// A name that stands in a path of a URL and in a metric as it is, and is not hidden.
fn usable(name: &str) -> bool {
    !name.starts_with('.')
        && (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}
