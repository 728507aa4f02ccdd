//! What became of the spans.

use prometheus_client::metrics::counter::Counter;

/// Spans by what became of them. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Taken by the collector.
    pub exported: Counter,
    /// Dropped because the queue was full.
    pub dropped: Counter,
    /// Given up because the collector did not take them.
    pub failed: Counter,
}
