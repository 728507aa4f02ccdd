//! Spans on their way to the collector.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use crate::otlp::Counts;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Span {
    outcome: &'static str,
}

/// Registers what becomes of spans; all of it stays 0 where nothing is exported.
pub(super) fn counts(registry: &mut Registry) -> Counts {
    let spans = Family::<Span, Counter>::default();
    let count = |outcome| spans.get_or_create(&Span { outcome }).clone();
    let counts = Counts { exported: count("exported"), dropped: count("dropped"), failed: count("failed") };
    registry.register("trace_spans", "Spans of requests, by what became of them", spans);
    counts
}
