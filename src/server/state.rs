//! What every request looks at: the settings, and the router once it is loaded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::ServerConfig;
use super::problem::Problem;
use crate::routing::RoutingService;

/// The shared state of a server; clones are handles to the same one.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<Inner>,
}

struct Inner {
    config: ServerConfig,
    service: OnceLock<Arc<RoutingService>>,
    stopping: AtomicBool,
}

impl Handle {
    /// A server that is not ready yet.
    #[must_use]
    pub fn new(config: ServerConfig) -> Self {
        Self { inner: Arc::new(Inner { config, service: OnceLock::new(), stopping: AtomicBool::new(false) }) }
    }

    /// Makes the server ready. Only the first call counts.
    pub fn set_ready(&self, service: Arc<RoutingService>) {
        // A second router has no way to the requests; it is dropped here.
        let _ = self.inner.service.set(service);
    }

    /// Whether mail is answered: loaded, and not stopping.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.inner.service.get().is_some() && !self.stopping()
    }

    pub(super) fn config(&self) -> &ServerConfig {
        &self.inner.config
    }

    pub(super) fn loaded(&self) -> Option<&Arc<RoutingService>> {
        self.inner.service.get()
    }

    /// The service, or the problem that tells the caller to come back.
    pub(super) fn service(&self) -> Result<&Arc<RoutingService>, Problem> {
        self.loaded().ok_or_else(Problem::loading)
    }

    pub(super) fn stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }
}
