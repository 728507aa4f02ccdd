//! Traces for a collector, over OTLP (HTTP, protobuf). Off unless an endpoint is set: then there is no thread and no
//! connection.
//!
//! Whoever ends a span never waits: spans go into a bounded queue, a thread of its own sends them in batches, and what
//! finds no room or reaches no collector is counted and forgotten. What stands in a span is decided where it is made
//! (`server::spans`); this module only carries it.
//!
//! ```
//! use postroom::otlp::{Counts, OtlpConfig, Traces};
//!
//! assert!(Traces::start(&OtlpConfig::default(), Counts::default())?.is_none());
//! # Ok::<(), postroom::otlp::OtlpError>(())
//! ```

mod attributes;
mod collector;
mod config;
mod counts;
mod endpoint;
mod headers;
mod queue;
mod stop;

use std::sync::Arc;
use std::time::{Duration, Instant};

use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::TelemetryResourceDetector;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};

pub use config::{OtlpConfig, OtlpError};
pub use counts::Counts;
pub use headers::Headers;

use self::collector::Collector;
use self::endpoint::Endpoint;
use self::queue::Queue;
use self::stop::Stop;

/// What makes spans and sends them. Dropped, it gives up what is not sent yet.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    stop: Arc<Stop>,
}

impl Traces {
    /// Starts the thread that sends; `None` where no endpoint is set. The collector need not be there.
    ///
    /// # Errors
    /// [`OtlpError`] for settings that cannot be used.
    pub fn start(config: &OtlpConfig, counts: Counts) -> Result<Option<Self>, OtlpError> {
        let Some(endpoint) = Endpoint::of(&config.endpoint)? else { return Ok(None) };
        let resource = resource(config)?;
        let stop = Arc::new(Stop::default());
        let shown = endpoint.shown().to_owned();
        let collector = Collector::new(config, endpoint, &resource, counts.clone(), Arc::clone(&stop))?;
        let provider = SdkTracerProvider::builder()
            // A caller's decision holds for its whole trace.
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sampling_ratio))))
            .with_span_processor(Queue::new(collector, counts))
            .with_resource(resource)
            .build();
        let scope = InstrumentationScope::builder("postroom").with_version(env!("CARGO_PKG_VERSION")).build();
        let tracer = provider.tracer_with_scope(scope);
        tracing::info!(collector = shown, ratio = config.sampling_ratio, "traces are exported");
        Ok(Some(Self { provider, tracer, stop }))
    }

    /// What makes spans.
    #[must_use]
    pub fn tracer(&self) -> &SdkTracer {
        &self.tracer
    }

    /// Sends what waits, for this long at most, and then takes no more. Blocks. Says whether all was handed over in time.
    pub fn finish(&self, within: Duration) -> bool {
        self.stop.tell(Instant::now() + within);
        self.provider.shutdown_with_timeout(within).is_ok()
    }
}

impl Drop for Traces {
    fn drop(&mut self) {
        // The provider waits for its thread when it is dropped: there must be nothing to wait for.
        self.stop.tell(Instant::now());
    }
}

/// Who sends these spans.
fn resource(config: &OtlpConfig) -> Result<Resource, OtlpError> {
    let given = attributes::parse(&config.resource_attributes).ok_or(OtlpError::Attributes)?;
    Ok(Resource::builder_empty()
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .with_attributes(given.into_iter().map(|(key, value)| KeyValue::new(key, value)))
        .with_service_name(config.service_name.clone())
        .build())
}
