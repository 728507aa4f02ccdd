//! What the service counts, for Prometheus: `GET /metrics`.
//!
//! Counters and histograms are written where things happen; what can be looked up (what waits, what is loaded, how mail has
//! changed) is looked up when somebody asks. Label values come from fixed lists or from the loaded router, so the number of
//! series is bounded, and none holds anything of a mail or of a key.

mod decisions;
mod drift;
mod endpoint;
mod http;
mod log_lines;
mod model;
mod process;
mod routers;
mod traces;

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use self::decisions::Decisions;
pub(super) use self::endpoint::metrics;
pub(super) use self::http::{Http, KeyRefusal, Reload, name_of as method_name};
use self::log_lines::LostLogLines;
pub use self::log_lines::count_lost_log_line;
use self::model::Model;
use self::process::ProcessCollector;
use self::routers::RouterMetrics;
use super::spans;
use super::state::Handle;
use crate::otlp::Counts;
use crate::routing::RoutingService;

/// A gauge of any number.
type Number = Gauge<f64, std::sync::atomic::AtomicU64>;

/// A family of histograms with buckets of its own.
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// Everything that is counted.
#[derive(Debug)]
pub(super) struct Metrics {
    registry: Registry,
    pub(super) http: Http,
    decisions: Decisions,
    model: Model,
    routers: RouterMetrics,
    pub(super) spans: Counts,
    ready: Gauge,
    /// Gauges that are looked up are set and read by one asker at a time.
    looking_up: Mutex<()>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}

impl Metrics {
    pub(super) fn new() -> Arc<Self> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(ProcessCollector));
        registry.register_collector(Box::new(LostLogLines));
        let ours = registry.sub_registry_with_prefix("postroom");
        let build = Family::<Build, Gauge>::default();
        build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }).set(1);
        ours.register("build_info", "The program that answers", build);
        let ready = Gauge::default();
        ours.register("ready", "Whether /readyz answers 200", ready.clone());
        let (http, decisions, model) = (Http::new(ours), Decisions::new(ours), Model::new(ours));
        let (routers, spans) = (RouterMetrics::new(ours), traces::counts(ours));
        Arc::new(Self { registry, http, decisions, model, routers, spans, ready, looking_up: Mutex::new(()) })
    }

    /// Counts what a service decides and what happens in its queue from now on.
    pub(super) fn watch(self: &Arc<Self>, service: &RoutingService) {
        let (metrics, busy) = (Arc::clone(self), self.model.busy(service));
        service.observe(Arc::new(move |event| metrics.model.happened(event, &busy)));
        let metrics = Arc::clone(self);
        service.observe_decisions(Arc::new(move |decision| {
            metrics.decisions.decided(decision);
            // A service has one observer of its decisions.
            spans::decided(decision);
        }));
    }

    /// All of it as OpenMetrics text.
    fn text(&self, server: &Handle) -> Result<String, std::fmt::Error> {
        let _one_at_a_time = self.looking_up.lock().unwrap_or_else(PoisonError::into_inner);
        self.ready.set(i64::from(server.ready()));
        self.decisions.look_up();
        if let Some(routers) = server.loaded() {
            let live: Vec<_> = routers.all().iter().filter_map(|slot| slot.live()).collect();
            self.model.look_up(live.iter().map(AsRef::as_ref));
            self.routers.look_up(routers);
        }
        let mut text = String::with_capacity(32 * 1024);
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Bounds of histograms over durations, in seconds.
fn durations() -> Histogram {
    Histogram::new([0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
}

/// Bounds of histograms over tokens.
fn tokens() -> Histogram {
    Histogram::new([64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0])
}
