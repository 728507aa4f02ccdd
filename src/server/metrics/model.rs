//! The model's queue and thread.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::{Histograms, Number, tokens};
use crate::inference::{Dropped, Event, Refused, device_name};
use crate::routing::RoutingService;

/// Seconds that the thread of one router has computed.
pub(super) type Busy = Counter<f64, AtomicU64>;

#[derive(Debug)]
pub(super) struct Model {
    info: Family<Loaded, Number>,
    batch_tokens: Histograms<Lane>,
    batch_mails: Histograms<Lane>,
    busy: Family<Named, Busy>,
    refused: Family<Reason, Counter>,
    dropped: Family<Reason, Counter>,
    errors: Counter,
    panics: Counter,
    waiting_mails: Family<Lane, Number>,
    waiting_mails_limit: Family<Lane, Number>,
    waiting_tokens: Number,
    waiting_tokens_limit: Number,
    tokens_per_second: Number,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Loaded {
    router: String,
    version: String,
    encoder: String,
    device: String,
}

/// The name that a router was made under, as in `model_info`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    router: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lane {
    lane: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    lane: &'static str,
    reason: &'static str,
}

fn mails() -> Histogram {
    Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
}

impl Model {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let this = Self {
            info: Family::default(),
            batch_tokens: Histograms::new_with_constructor(tokens),
            batch_mails: Histograms::new_with_constructor(mails),
            busy: Family::default(),
            refused: Family::default(),
            dropped: Family::default(),
            errors: Counter::default(),
            panics: Counter::default(),
            waiting_mails: Family::default(),
            waiting_mails_limit: Family::default(),
            waiting_tokens: Number::default(),
            waiting_tokens_limit: Number::default(),
            tokens_per_second: Number::default(),
        };
        registry.register("model_info", "Routers that are loaded", this.info.clone());
        registry.register("batch_tokens", "Tokens of one batch, overlaps included", this.batch_tokens.clone());
        registry.register("batch_mails", "Mails of one batch", this.batch_mails.clone());
        let help = "Time that a router's model thread has computed";
        registry.register_with_unit("model_busy", help, Unit::Seconds, this.busy.clone());
        registry.register("mails_refused", "Mails refused before they waited", this.refused.clone());
        registry.register("mails_dropped", "Mails that waited and were not run", this.dropped.clone());
        registry.register("model_errors", "Mails that the network failed on", this.errors.clone());
        registry.register("model_panics", "Panics caught on the model's thread", this.panics.clone());
        registry.register("waiting_mails", "Mails waiting for the model", this.waiting_mails.clone());
        registry.register("waiting_mails_limit", "Mails that may wait", this.waiting_mails_limit.clone());
        registry.register("waiting_tokens", "Tokens waiting for the model", this.waiting_tokens.clone());
        registry.register("waiting_tokens_limit", "Tokens that may wait", this.waiting_tokens_limit.clone());
        registry.register("tokens_per_second", "The rate of the last batches", this.tokens_per_second.clone());
        this
    }

    /// Where the busy time of a router is counted. Each has a thread of its own, so that their sum would say of none how much
    /// room is left.
    pub(super) fn busy(&self, service: &RoutingService) -> Busy {
        self.busy.get_or_create_owned(&Named { router: service.router().name.clone() })
    }

    /// Counts one event of a router with this busy time.
    pub(super) fn happened(&self, event: &Event, busy: &Busy) {
        match *event {
            Event::Batch { lane, mails, tokens, ran } => {
                let lane = Lane { lane: lane.name() };
                self.batch_tokens.get_or_create(&lane).observe(tokens as f64);
                self.batch_mails.get_or_create(&lane).observe(mails as f64);
                busy.inc_by(ran.as_secs_f64());
            }
            Event::Refused { lane, why } => {
                let reason = match why {
                    Refused::QueueFull => "queue_full",
                    Refused::OverShare => "over_share",
                    Refused::TooLate => "deadline",
                    Refused::Closed => "closed",
                };
                self.refused.get_or_create(&Reason { lane: lane.name(), reason }).inc();
            }
            Event::Dropped { lane, why } => {
                let reason = match why {
                    Dropped::Expired => "expired",
                    Dropped::Cancelled => "cancelled",
                };
                self.dropped.get_or_create(&Reason { lane: lane.name(), reason }).inc();
            }
            Event::Failed => {
                self.errors.inc();
            }
            Event::Panicked => {
                self.panics.inc();
            }
        }
    }

    /// Sets the gauges of what is loaded and what waits.
    pub(super) fn look_up<'s>(&self, services: impl Iterator<Item = &'s RoutingService>) {
        self.info.clear();
        let (mut tokens, mut tokens_limit, mut rate) = (0, 0, 0.0);
        let mut lanes: Vec<(&'static str, usize, usize)> = Vec::new();
        for service in services {
            let router = service.router();
            let loaded = Loaded {
                router: router.name.clone(),
                version: router.version.clone(),
                encoder: router.encoder.clone(),
                device: device_name(service.device()),
            };
            self.info.get_or_create(&loaded).set(1.0);
            let depth = service.depth();
            tokens += depth.tokens;
            tokens_limit += depth.tokens_limit;
            rate += depth.tokens_per_second;
            for (lane, waiting, limit) in depth.lanes {
                match lanes.iter_mut().find(|(name, ..)| *name == lane.name()) {
                    Some((_, all, limits)) => (*all, *limits) = (*all + waiting, *limits + limit),
                    None => lanes.push((lane.name(), waiting, limit)),
                }
            }
        }
        for (lane, waiting, limit) in lanes {
            self.waiting_mails.get_or_create(&Lane { lane }).set(waiting as f64);
            self.waiting_mails_limit.get_or_create(&Lane { lane }).set(limit as f64);
        }
        self.waiting_tokens.set(tokens as f64);
        self.waiting_tokens_limit.set(tokens_limit as f64);
        self.tokens_per_second.set(rate);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::encoding::text::encode;

    use super::*;
    use crate::inference::Lane as Work;

    /// An alert on mail that is refused must not speak of maps.
    #[test]
    fn what_is_refused_or_dropped_is_counted_by_its_lane_and_busy_time_by_its_router() {
        let mut registry = Registry::default();
        let model = Model::new(&mut registry);
        let busy = |router: &str| model.busy.get_or_create_owned(&Named { router: router.to_owned() });
        let (shop, office) = (busy("shop"), busy("office"));
        let ran = Duration::from_millis(1500);
        model.happened(&Event::Batch { lane: Work::Route, mails: 1, tokens: 9, ran }, &office);
        model.happened(&Event::Refused { lane: Work::Maps, why: Refused::QueueFull }, &shop);
        model.happened(&Event::Dropped { lane: Work::Explain, why: Dropped::Expired }, &shop);
        let mut told = String::new();
        encode(&mut told, &registry).unwrap();
        for line in [
            "mails_refused_total{lane=\"maps\",reason=\"queue_full\"} 1",
            "mails_dropped_total{lane=\"explain\",reason=\"expired\"} 1",
            "model_busy_seconds_total{router=\"shop\"} 0.0",
            "model_busy_seconds_total{router=\"office\"} 1.5",
        ] {
            assert!(told.lines().any(|other| other == line), "{line} is not in\n{told}");
        }
    }
}
