//! What every request looks at: the settings, and the routers once they are loaded.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::front::Front;
use super::idempotency::Store;
use super::keys::KeyRing;
use super::metrics::Metrics;
use super::problem::Problem;
use super::{ServerConfig, ServerError};
use crate::otlp::{OtlpConfig, Traces};
use crate::routing::{Routers, RoutingService};

/// The shared state of a server; clones are handles to the same one.
#[derive(Clone)]
pub struct Handle {
    inner: Arc<Inner>,
}

struct Inner {
    config: ServerConfig,
    front: Front,
    metrics: Arc<Metrics>,
    idempotency: Store,
    routers: OnceLock<Arc<Routers>>,
    traces: OnceLock<Traces>,
    stopping: AtomicBool,
}

impl Handle {
    /// A server that is not ready yet.
    ///
    /// # Errors
    /// [`ServerError::Front`] where keys or certificate of the settings cannot be used.
    pub fn new(config: ServerConfig) -> Result<Self, ServerError> {
        let idempotency = Store::new(config.idempotency());
        let front = Front::open(&config).map_err(ServerError::Front)?;
        let (metrics, stopping) = (Metrics::new(), AtomicBool::new(false));
        let (routers, traces) = (OnceLock::new(), OnceLock::new());
        Ok(Self { inner: Arc::new(Inner { config, front, metrics, idempotency, routers, traces, stopping }) })
    }

    /// Exports traces of the requests from now on, where the settings name a collector. Only the first call counts.
    ///
    /// # Errors
    /// [`ServerError::Traces`] for settings that cannot be used.
    pub fn export_traces(&self, config: &OtlpConfig) -> Result<(), ServerError> {
        if let Some(traces) = Traces::start(config, self.metrics().spans.clone()).map_err(ServerError::Traces)? {
            // A second one would send everything twice; it is dropped here.
            let _ = self.inner.traces.set(traces);
        }
        Ok(())
    }

    /// Makes the server ready, with one router or with several. Only the first call counts.
    pub fn set_ready(&self, routers: impl Into<Routers>) {
        self.share(Arc::new(routers.into()));
    }

    /// As [`Handle::set_ready`], with routers that somebody else looks after.
    pub(super) fn share(&self, routers: Arc<Routers>) {
        let metrics = Arc::clone(self.metrics());
        routers.watch_each(Box::new(move |service| metrics.watch(service)));
        // A second set has no way to the requests; it is dropped here.
        let _ = self.inner.routers.set(routers);
    }

    /// Whether mail is answered: loaded, and not stopping.
    #[must_use]
    pub fn ready(&self) -> bool {
        self.inner.routers.get().is_some() && !self.stopping()
    }

    pub(super) fn config(&self) -> &ServerConfig {
        &self.inner.config
    }

    pub(super) fn front(&self) -> &Front {
        &self.inner.front
    }

    /// The API keys in force; `None` where nobody is asked for one.
    pub(super) fn keys(&self) -> Option<Arc<KeyRing>> {
        self.inner.front.keys()
    }

    /// What exports traces; `None` where nothing does.
    pub(super) fn traces(&self) -> Option<&Traces> {
        self.inner.traces.get()
    }

    pub(super) fn metrics(&self) -> &Arc<Metrics> {
        &self.inner.metrics
    }

    /// Answers by the keys of their requests.
    pub(super) fn idempotency(&self) -> &Store {
        &self.inner.idempotency
    }

    pub(super) fn loaded(&self) -> Option<&Arc<Routers>> {
        self.inner.routers.get()
    }

    /// The routers, or the problem that tells the caller to come back.
    pub(super) fn routers(&self) -> Result<&Arc<Routers>, Problem> {
        self.loaded().ok_or_else(Problem::loading)
    }

    /// The default router as it is now, or the problem that tells the caller to come back. A request asks once, so that
    /// its whole answer is made by one version.
    pub(super) fn service(&self) -> Result<Arc<RoutingService>, Problem> {
        self.routers()?.default_slot().live().ok_or_else(Problem::loading)
    }

    pub(super) fn stopping(&self) -> bool {
        self.inner.stopping.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.inner.stopping.store(true, Ordering::Relaxed);
    }
}
