//! Log lines that could not be written. Whoever writes them stands above the server, and lines are lost before there is one.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;

static LOST: AtomicU64 = AtomicU64::new(0);

/// Counts a line of this process's log that is lost.
pub fn count_lost_log_line() {
    LOST.fetch_add(1, Ordering::Relaxed);
}

/// Looks up the count when asked.
#[derive(Debug)]
pub(super) struct LostLogLines;

impl Collector for LostLogLines {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let lost = ConstCounter::new(LOST.load(Ordering::Relaxed));
        let help =
            "Log lines that could not be written: the disk is full, or their reader has gone or does not keep up";
        lost.encode(encoder.encode_descriptor("postroom_log_lines_lost", help, None, lost.metric_type())?)
    }
}
