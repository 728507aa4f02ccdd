//! What was decided, why, how long it took, and how that changes.

use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::drift::Window;
use super::{Histograms, Number, durations, tokens};
use crate::routing::{Decision, Timing};

#[derive(Debug)]
pub(super) struct Decisions {
    decided: Family<Decided, Counter>,
    reasons: Family<Why, Counter>,
    truncated: Counter,
    mail_tokens: Histogram,
    stages: Histograms<Stage>,
    window: Mutex<Window>,
    drift: Drift,
}

#[derive(Debug)]
struct Drift {
    decisions: Number,
    queue_share: Family<Queue, Number>,
    needs_human_share: Number,
    out_of_scope_share: Number,
    confidence_mean: Number,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Decided {
    decision: &'static str,
    queue: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Stage {
    stage: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Queue {
    queue: String,
}

impl Decisions {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let this = Self {
            decided: Family::default(),
            reasons: Family::default(),
            truncated: Counter::default(),
            mail_tokens: tokens(),
            stages: Histograms::new_with_constructor(durations),
            window: Mutex::default(),
            drift: Drift::new(registry),
        };
        registry.register("decisions", "Mails decided, alone or in a batch", this.decided.clone());
        registry.register("decision_reasons", "Reasons of decisions; a mail may have several", this.reasons.clone());
        registry.register("mails_truncated", "Mails longer than the token ceiling", this.truncated.clone());
        registry.register("mail_tokens", "Tokens read of one mail", this.mail_tokens.clone());
        let help = "Where a mail's time went";
        registry.register_with_unit("stage_duration", help, Unit::Seconds, this.stages.clone());
        this
    }

    /// Counts one decision.
    pub(super) fn decided(&self, decision: &Decision) {
        let queue = decision.queue.as_ref().map_or("none", |queue| queue.id.as_str()).to_owned();
        self.decided.get_or_create(&Decided { decision: decision.decision.name(), queue }).inc();
        for reason in &decision.reasons {
            self.reasons.get_or_create(&Why { reason: reason.name() }).inc();
        }
        if decision.input.truncated {
            self.truncated.inc();
        }
        self.mail_tokens.observe(decision.input.tokens_used as f64);
        let Timing { parse, tokenize, queue, model, total } = decision.timing_us;
        let stages = [("parse", parse), ("tokenize", tokenize), ("queue", queue), ("model", model), ("total", total)];
        for (stage, micros) in stages {
            self.stages.get_or_create(&Stage { stage }).observe(micros as f64 / 1e6);
        }
        self.window.lock().unwrap_or_else(PoisonError::into_inner).add(decision);
    }

    /// Sets the gauges of what the last decisions were like.
    pub(super) fn look_up(&self) {
        let mix = self.window.lock().unwrap_or_else(PoisonError::into_inner).mix();
        self.drift.decisions.set(mix.decisions as f64);
        self.drift.needs_human_share.set(mix.needs_human);
        self.drift.out_of_scope_share.set(mix.out_of_scope);
        self.drift.confidence_mean.set(mix.confidence);
        self.drift.queue_share.clear();
        for (queue, share) in mix.queues {
            self.drift.queue_share.get_or_create(&Queue { queue }).set(share);
        }
    }
}

impl Drift {
    fn new(registry: &mut Registry) -> Self {
        let this = Self {
            decisions: Number::default(),
            queue_share: Family::default(),
            needs_human_share: Number::default(),
            out_of_scope_share: Number::default(),
            confidence_mean: Number::default(),
        };
        let help = "Decisions in the window that the drift gauges speak of";
        registry.register("drift_window_decisions", help, this.decisions.clone());
        let help = "Share of the window's mails with candidates whose likeliest queue that is on is this one";
        registry.register("drift_queue_share", help, this.queue_share.clone());
        let help = "Share of the window's mails handed to a person";
        registry.register("drift_needs_human_share", help, this.needs_human_share.clone());
        let help = "Share of the window's mails that look like nothing known";
        registry.register("drift_out_of_scope_share", help, this.out_of_scope_share.clone());
        let help = "Mean confidence of the likeliest queue over the window";
        registry.register("drift_confidence_mean", help, this.confidence_mean.clone());
        this
    }
}
