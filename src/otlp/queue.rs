//! The bounded queue between those who end spans and the thread that sends them.
//!
//! The SDK's own queue drops what finds no room and tells nobody, so places are counted here, before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};

use super::Counts;

/// Spans that may wait: about 2 MB, and some 300 mails.
const MAX_WAITING: usize = 2048;

/// Spans of one export.
const MAX_BATCH: usize = 512;

/// How long a span waits for others.
const EVERY: Duration = Duration::from_secs(1);

/// Places in the queue.
#[derive(Debug, Default)]
struct Places {
    taken: AtomicUsize,
}

impl Places {
    fn take(&self) -> bool {
        let one_more = |taken| (taken < MAX_WAITING).then_some(taken + 1);
        self.taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_ok()
    }

    fn give(&self, places: usize) {
        self.taken.fetch_sub(places, Ordering::AcqRel);
    }
}

/// Takes ended spans without ever waiting.
#[derive(Debug)]
pub(super) struct Queue {
    sending: BatchSpanProcessor,
    places: Arc<Places>,
    counts: Counts,
}

impl Queue {
    /// Starts the thread that hands batches to `exporter`.
    pub(super) fn new(exporter: impl SpanExporter + 'static, counts: Counts) -> Self {
        let places = Arc::new(Places::default());
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(MAX_WAITING)
            .with_max_export_batch_size(MAX_BATCH)
            .with_scheduled_delay(EVERY)
            .build();
        let exporter = Leaving { exporter, places: Arc::clone(&places) };
        Self { sending: BatchSpanProcessor::new(exporter, config), places, counts }
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.places.take() {
            self.sending.on_end(span);
        } else {
            self.counts.dropped.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.sending.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.sending.shutdown_with_timeout(timeout)
    }
}

/// Gives back the places of a batch, which has left the queue, and passes it on.
#[derive(Debug)]
struct Leaving<E> {
    exporter: E,
    places: Arc<Places>,
}

impl<E: SpanExporter> SpanExporter for Leaving<E> {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        self.places.give(batch.len());
        self.exporter.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Condvar, Mutex};

    use opentelemetry::trace::{Tracer, TracerProvider};
    use opentelemetry_sdk::trace::SdkTracerProvider;

    use super::*;

    /// Holds every batch until it is let go.
    #[derive(Debug, Clone, Default)]
    struct Stuck(Arc<(Mutex<bool>, Condvar)>, Arc<AtomicUsize>);

    impl SpanExporter for Stuck {
        fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
            let (free, told) = &*self.0;
            drop(told.wait_while(free.lock().unwrap(), |free| !*free).unwrap());
            self.1.fetch_add(batch.len(), Ordering::Relaxed);
            std::future::ready(Ok(()))
        }
    }

    #[test]
    fn what_finds_no_room_is_counted_and_nothing_waits() {
        let (stuck, counts) = (Stuck::default(), Counts::default());
        let provider =
            SdkTracerProvider::builder().with_span_processor(Queue::new(stuck.clone(), counts.clone())).build();
        let tracer = provider.tracer("test");
        let ended = 3 * MAX_WAITING;
        (0..ended).for_each(|_| drop(tracer.start("a span")));
        let dropped = usize::try_from(counts.dropped.get()).unwrap();
        // The queue is full, and one batch may have left it.
        assert!((ended - MAX_WAITING - MAX_BATCH..=ended - MAX_WAITING).contains(&dropped), "{dropped}");
        *stuck.0.0.lock().unwrap() = true;
        stuck.0.1.notify_all();
        provider.shutdown().unwrap();
        assert_eq!(stuck.1.load(Ordering::Relaxed) + dropped, ended);
    }
}
