//! The routers by name: what was exchanged and refused, and who stands beside the default one.
//!
//! The routers count themselves; these series are set from their counts when somebody asks.

use std::sync::atomic::Ordering;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::Number;
use crate::routing::Routers;

#[derive(Debug)]
pub(super) struct RouterMetrics {
    exchanges: Family<Named, Counter>,
    refusals: Family<Named, Counter>,
    refused: Family<Named, Number>,
    canary: Family<Outcome, Counter>,
    shadow: Family<Outcome, Counter>,
    shadow_agreement: Number,
}

/// A name of the settings or of a folder in `routers.dir`: few.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Named {
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

impl RouterMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let this = Self {
            exchanges: Family::default(),
            refusals: Family::default(),
            refused: Family::default(),
            canary: Family::default(),
            shadow: Family::default(),
            shadow_agreement: Number::default(),
        };
        let help = "Routers that came in force under a name, the first included";
        registry.register("router_exchanges", help, this.exchanges.clone());
        registry.register("router_refusals", "Routers that were refused", this.refusals.clone());
        let help = "Whether the last router of a name was refused, so that an older one answers or none";
        registry.register("router_refused", help, this.refused.clone());
        registry.register("canary_mails", "Mails of the canary's share, by who answered", this.canary.clone());
        registry.register("shadow_mails", "Mails for the shadow, by what became of them", this.shadow.clone());
        let help = "Share of scored mails with the same outcome, of the versions in force; NaN before the first";
        registry.register("shadow_agreement", help, this.shadow_agreement.clone());
        // Without a shadow it stays so: 0 would be a shadow that agrees on nothing.
        this.shadow_agreement.set(f64::NAN);
        this
    }

    /// Sets all series.
    pub(super) fn look_up(&self, routers: &Routers) {
        for slot in routers.all() {
            let (state, named) = (slot.state(), Named { name: slot.name().to_owned() });
            set(&self.exchanges.get_or_create(&named), state.exchanges);
            set(&self.refusals.get_or_create(&named), state.refusals);
            self.refused.get_or_create(&named).set(f64::from(u8::from(state.refused.is_some())));
        }
        let Some(beside) = routers.beside() else { return };
        if let Some(canary) = beside.canary() {
            set(&self.canary.get_or_create(&Outcome { outcome: "canary" }), canary.answered);
            set(&self.canary.get_or_create(&Outcome { outcome: "default" }), canary.failed);
        }
        if let Some(shadow) = beside.shadow() {
            set(&self.shadow.get_or_create(&Outcome { outcome: "scored" }), shadow.scored);
            set(&self.shadow.get_or_create(&Outcome { outcome: "dropped" }), shadow.dropped);
            set(&self.shadow.get_or_create(&Outcome { outcome: "failed" }), shadow.failed);
            self.shadow_agreement.set(shadow.agreement.unwrap_or(f64::NAN));
        }
    }
}

/// The counts only ever grow, as those of a counter must.
fn set(counter: &Counter, count: u64) {
    counter.inner().store(count, Ordering::Relaxed);
}
