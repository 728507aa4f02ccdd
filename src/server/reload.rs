//! Files that may change while the service runs: read at the start, and again when they change or at SIGHUP. A new version
//! that cannot be used is told in the log, and the old one stays in force.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use super::metrics::{Metrics, Reload};

/// How often files are looked at.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What was read from files, in its latest version.
pub(super) struct Reloaded<T> {
    what: Reload,
    paths: Vec<PathBuf>,
    read: Box<dyn Fn() -> Result<T, ReadError> + Send + Sync>,
    current: RwLock<Arc<T>>,
    seen: Mutex<Vec<Stamp>>,
}

/// Why a file cannot be used.
pub(super) type ReadError = Box<dyn std::error::Error + Send + Sync>;

/// A file as far as a look from outside tells. A change of the link that a path goes over, as Kubernetes makes it, shows in
/// the time or the length of what it points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl Stamp {
    fn of(path: &Path) -> Self {
        let data = std::fs::metadata(path).ok();
        Self {
            modified: data.as_ref().and_then(|data| data.modified().ok()),
            length: data.map_or(0, |data| data.len()),
        }
    }
}

impl<T> Reloaded<T> {
    /// Reads for the first time.
    ///
    /// # Errors
    /// Those of `read`.
    pub(super) fn new<E: Into<ReadError>>(
        what: Reload,
        paths: Vec<PathBuf>,
        read: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, ReadError> {
        let seen = paths.iter().map(|path| Stamp::of(path)).collect();
        let read = Box::new(move || read().map_err(Into::into));
        let current = RwLock::new(Arc::new(read()?));
        Ok(Self { what, paths, read, current, seen: Mutex::new(seen) })
    }

    /// The version in force.
    pub(super) fn get(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads again where a file has changed since the last look, or in any case where `forced`. `false` where that failed.
    pub(super) fn look(&self, forced: bool, metrics: &Metrics) -> bool {
        let stamps: Vec<Stamp> = self.paths.iter().map(|path| Stamp::of(path)).collect();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !forced && *seen == stamps {
            return true;
        }
        *seen = stamps;
        let read = (self.read)();
        metrics.http.reloaded(self.what, read.is_ok());
        match read {
            Ok(new) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
                tracing::info!(what = self.what.name(), "read again");
                true
            }
            Err(error) => {
                let error = super::refusals::chain(error.as_ref());
                tracing::error!(what = self.what.name(), error, "cannot be read again, the old version stays in force");
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_leaves_the_old_version() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        write("1");
        let path = file.path().to_owned();
        let read = move || std::fs::read_to_string(&path).unwrap().parse::<u32>();
        let number = Reloaded::new(Reload::Keys, vec![file.path().to_owned()], read).unwrap();
        let metrics = Metrics::new();
        assert_eq!(*number.get(), 1);
        write("22");
        assert!(number.look(false, &metrics));
        assert_eq!(*number.get(), 22);
        write("none");
        assert!(!number.look(false, &metrics));
        assert_eq!(*number.get(), 22);
        write("23");
        assert!(number.look(true, &metrics));
        assert_eq!(*number.get(), 23);
        // Whatever the clock says that wrote it: later, earlier, before 1970.
        for (number_now, modified) in [
            (24, SystemTime::now() + Duration::from_secs(1 << 30)),
            (25, UNIX_EPOCH + Duration::from_secs(1)),
            (26, UNIX_EPOCH - Duration::from_secs(86_400)),
        ] {
            write(&number_now.to_string());
            std::fs::File::options().write(true).open(file.path()).unwrap().set_modified(modified).unwrap();
            assert!(number.look(false, &metrics));
            assert_eq!(*number.get(), number_now);
        }
        assert!(Reloaded::new(Reload::Keys, Vec::new(), || "x".parse::<u32>()).is_err());
    }
}
