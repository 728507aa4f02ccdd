//! The collector, as the sending thread sees it: an export is posted, repeated where that may help, and given up in time.
//!
//! <https://opentelemetry.io/docs/specs/otlp/#otlphttp>: 429, 502, 503 and 504 may be repeated, as may what got no answer.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prost::Message;
use ureq::Agent;
use ureq::http::header::{CONTENT_TYPE, RETRY_AFTER};
use ureq::http::{HeaderName, HeaderValue, StatusCode};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::endpoint::Endpoint;
use super::{Counts, OtlpConfig, OtlpError, Stop};

/// Before the first repetition; each further one waits twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// Log lines about losses: one in this time at most.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// Bytes read of a collector's answer.
const MAX_ANSWER: u64 = 64 * 1024;

/// Characters of a collector's own words in the log.
const MAX_WORDS: usize = 200;

/// Where spans are sent.
pub(super) struct Collector {
    agent: Agent,
    endpoint: Endpoint,
    headers: Vec<(HeaderName, HeaderValue)>,
    timeout: Duration,
    resource: ResourceAttributesWithSchema,
    counts: Counts,
    stop: Arc<Stop>,
    losses: Mutex<Losses>,
}

/// What the log was told.
#[derive(Default)]
struct Losses {
    told: Option<Instant>,
    failed: u64,
    dropped: u64,
    /// Whether the last export failed and the log knows.
    broken: bool,
}

/// Why an attempt failed.
#[derive(Debug)]
struct Failure {
    reason: String,
    /// Whether another attempt may succeed, and how long to wait where the collector says.
    again: Option<Option<Duration>>,
}

impl Collector {
    /// A collector that nobody has connected to yet.
    ///
    /// # Errors
    /// [`OtlpError`] for headers or certificates that cannot be used.
    pub(super) fn new(
        config: &OtlpConfig,
        endpoint: Endpoint,
        resource: &Resource,
        counts: Counts,
        stop: Arc<Stop>,
    ) -> Result<Self, OtlpError> {
        let roots = config.certificate.as_deref().map_or(Ok(RootCerts::WebPki), roots)?;
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // Another place would get the headers.
            .max_redirects(0)
            .max_redirects_will_error(false)
            // So would a proxy that the environment names for other programs: spans go to the endpoint and nowhere
            // else.
            .proxy(None)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .user_agent(concat!("postroom/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Ok(Self {
            agent,
            endpoint,
            headers: config.headers.parse()?,
            timeout: config.timeout(),
            resource: resource.into(),
            counts,
            stop,
            losses: Mutex::default(),
        })
    }

    fn send(&self, spans: Vec<SpanData>) -> OTelSdkResult {
        let count = spans.len() as u64;
        let resource_spans = group_spans_by_resource_and_scope(spans, &self.resource);
        let body = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let sent = self.post_until_taken(&body);
        let (taken, reason) = match sent {
            Ok(answer) => {
                let rejected = answer.rejected.min(count);
                (count - rejected, answer.words)
            }
            Err(failure) => (0, Some(failure.reason)),
        };
        self.counts.exported.inc_by(taken);
        self.counts.failed.inc_by(count - taken);
        self.tell(taken > 0, reason.as_deref());
        if taken > 0 { Ok(()) } else { Err(OTelSdkError::InternalFailure("the collector took no span".to_owned())) }
    }

    fn post_until_taken(&self, body: &[u8]) -> Result<Answer, Failure> {
        let deadline = Instant::now() + self.timeout;
        let mut pause = FIRST_PAUSE;
        loop {
            let by = self.stop.by().map_or(deadline, |by| by.min(deadline));
            let failure = match self.post(body, by.saturating_duration_since(Instant::now())) {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Some(asked) = failure.again else { return Err(failure) };
            let wait = asked.unwrap_or(pause);
            // No repetition once the service stops: what is left of the time is for the batches that still wait.
            if Instant::now() + wait >= deadline || !self.stop.pause(wait) {
                return Err(failure);
            }
            pause *= 2;
        }
    }

    fn post(&self, body: &[u8], within: Duration) -> Result<Answer, Failure> {
        if within.is_zero() {
            return Err(Failure { reason: "no time was left".to_owned(), again: None });
        }
        let mut request = self.agent.post(self.endpoint.url()).config().timeout_global(Some(within)).build();
        for (name, value) in &self.headers {
            request = request.header(name.clone(), value.clone());
        }
        let no_answer = |error: ureq::Error| Failure { reason: error.to_string(), again: Some(None) };
        let mut response = request.header(CONTENT_TYPE, "application/x-protobuf").send(body).map_err(no_answer)?;
        let status = response.status();
        if !status.is_success() {
            let asked =
                response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok()?.trim().parse::<u32>().ok());
            let again = matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            );
            let again = again.then(|| asked.map(|seconds| Duration::from_secs(seconds.into())));
            return Err(Failure { reason: format!("it answered {status}"), again });
        }
        // The spans are there, whatever the answer says: sending them again would double them.
        let bytes = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec().unwrap_or_default();
        Ok(Answer::of(&bytes))
    }

    /// Tells the log of losses now and then, and of their end.
    fn tell(&self, taken: bool, reason: Option<&str>) {
        let mut losses = self.losses.lock().unwrap_or_else(PoisonError::into_inner);
        let (failed, dropped) = (self.counts.failed.get(), self.counts.dropped.get());
        let (new_failed, new_dropped) = (failed - losses.failed, dropped - losses.dropped);
        let collector = self.endpoint.shown();
        if (new_failed > 0 || new_dropped > 0) && losses.told.is_none_or(|told| told.elapsed() >= TELL_EVERY) {
            tracing::warn!(
                collector,
                reason,
                failed = new_failed,
                dropped = new_dropped,
                "spans were lost; requests are answered all the same"
            );
            *losses = Losses { told: Some(Instant::now()), failed, dropped, broken: !taken };
        } else if taken && losses.broken {
            tracing::info!(collector, "the collector takes spans again");
            losses.broken = false;
        }
    }
}

impl SpanExporter for Collector {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        // Blocks: the queue's thread has nothing else to do.
        std::future::ready(self.send(batch))
    }
}

/// Headers stay out of it.
impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collector").field("endpoint", &self.endpoint.shown()).finish_non_exhaustive()
    }
}

/// What a collector said of an export that it took.
#[derive(Debug, Default, PartialEq)]
struct Answer {
    rejected: u64,
    words: Option<String>,
}

impl Answer {
    /// An answer that is no protobuf says nothing.
    fn of(bytes: &[u8]) -> Self {
        let partial = ExportTraceServiceResponse::decode(bytes).unwrap_or_default().partial_success;
        let Some(partial) = partial else { return Self::default() };
        let words: String = partial.error_message.chars().take(MAX_WORDS).collect();
        Self {
            rejected: u64::try_from(partial.rejected_spans).unwrap_or(0),
            words: (!words.is_empty()).then_some(words),
        }
    }
}

/// The certificates of a file.
fn roots(path: &std::path::Path) -> Result<RootCerts, OtlpError> {
    let pem = std::fs::read(path).map_err(|source| OtlpError::Certificate { path: path.to_owned(), source })?;
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(OtlpError::NoCertificate { path: path.to_owned() });
    }
    Ok(certificates.into())
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    use super::*;

    #[test]
    fn what_a_collector_rejects_is_read_from_its_answer() {
        let partial = ExportTracePartialSuccess { rejected_spans: 3, error_message: "too old".to_owned() };
        let bytes = ExportTraceServiceResponse { partial_success: Some(partial) }.encode_to_vec();
        assert_eq!(Answer::of(&bytes), Answer { rejected: 3, words: Some("too old".to_owned()) });
        assert_eq!(Answer::of(b""), Answer::default());
        assert_eq!(Answer::of(b"<html>not found</html>"), Answer::default());
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "no certificate").unwrap();
        let config = OtlpConfig {
            endpoint: "https://collector:4318".to_owned(),
            certificate: Some(file.path().to_owned()),
            ..OtlpConfig::default()
        };
        let error = super::super::Traces::start(&config, Counts::default()).unwrap_err().to_string();
        assert!(error.contains(&file.path().display().to_string()), "{error}");
    }
}
