//! Ranges of values: what a type alone does not say.

use std::fmt::Display;

use super::error::Source;
use super::{Config, ConfigError};
use crate::otlp::OtlpConfig;
use crate::server::ServerConfig;
use crate::telemetry;

/// A value that is out of its range.
pub(super) struct Refusal {
    key: &'static str,
    given: String,
    expected: String,
}

impl Refusal {
    pub(super) fn of(self, from: &Source) -> ConfigError {
        let Self { key, given, expected } = self;
        ConfigError::WrongType { from: from.clone(), key: key.to_owned(), given, expected }
    }
}

/// A day: longer timeouts are typing errors, and far longer ones overflow the clock.
const MAX_MS: u64 = 86_400_000;

pub(super) fn check(config: &Config) -> Result<(), Refusal> {
    let server = &config.server;
    for origin in &server.cors_origins {
        let plain = origin == "*"
            || origin.split_once("://").is_some_and(|(scheme, host)| {
                !scheme.is_empty() && !host.is_empty() && !host.contains(['/', ' ', '*'])
            });
        if !plain {
            return Err(Refusal {
                key: "server.cors_origins",
                given: format!("\"{origin}\""),
                expected: "scheme://host or scheme://host:port without a path, or *".to_owned(),
            });
        }
    }
    range("server.max_connections", server.max_connections, 1, 1_000_000)?;
    range("server.max_body_bytes", server.max_body_bytes, 1, 1 << 30)?;
    range("server.max_batch_emails", server.max_batch_emails, 1, ServerConfig::MOST_BATCH_EMAILS)?;
    range("server.idempotency_keep_ms", server.idempotency_keep_ms, 0, MAX_MS)?;
    range("server.idempotency_max_answers", server.idempotency_max_answers, 0, 10_000_000)?;
    range("server.idempotency_max_bytes", server.idempotency_max_bytes, 0, 1 << 34)?;
    range("server.idle_timeout_ms", server.idle_timeout_ms, 1, MAX_MS)?;
    range("server.head_timeout_ms", server.head_timeout_ms, 1, MAX_MS)?;
    range("server.write_timeout_ms", server.write_timeout_ms, 1, MAX_MS)?;
    range("server.body_timeout_ms", server.body_timeout_ms, 1, MAX_MS)?;
    range("server.request_timeout_ms", server.request_timeout_ms, 1, MAX_MS)?;
    range("server.max_request_timeout_ms", server.max_request_timeout_ms, 1, MAX_MS)?;
    range("server.drain_delay_ms", server.drain_delay_ms, 0, MAX_MS)?;
    range("server.drain_timeout_ms", server.drain_timeout_ms, 0, MAX_MS)?;

    range("routers.poll_ms", config.routers.poll_ms, 0, MAX_MS)?;
    range("routers.canary_share", config.routers.canary_share, 0.0, 1.0)?;

    range("model.threads", config.model.threads, 0, 1024)?;

    if let Some(threshold) = config.routing.policy.threshold {
        range("routing.policy.threshold", threshold, 0.0, 1.0)?;
    }
    let email = &config.routing.email;
    range("routing.email.max_body_bytes", email.max_body_bytes, 1, 1 << 30)?;
    range("routing.email.max_html_bytes", email.max_html_bytes, 1, 1 << 30)?;
    range("routing.email.max_header_bytes", email.max_header_bytes, 1, 1 << 30)?;
    range("routing.email.max_depth", email.max_depth, 1, 100)?;
    range("routing.email.max_parts", email.max_parts, 1, 100_000)?;

    let inference = &config.routing.inference;
    range("routing.inference.max_waiting_mails", inference.max_waiting_mails, 1, 1_000_000)?;
    range("routing.inference.max_waiting_tokens", inference.max_waiting_tokens, 1, 1 << 30)?;
    range("routing.inference.max_batch_tokens", inference.max_batch_tokens, 1, 1 << 20)?;
    range("routing.inference.max_waiting_maps", inference.max_waiting_maps, 1, 1000)?;

    // With none of one of these, no explanation would ever be answered, or none that says anything.
    let explain = &config.routing.explain;
    range("routing.explain.max_running", explain.max_running, 1, 1_000_000)?;
    range("routing.explain.max_batch_tokens", explain.max_batch_tokens, 1, 1 << 20)?;
    range("routing.explain.max_tokens", explain.max_tokens, 1, 1 << 30)?;
    range("routing.explain.max_sentences", explain.max_sentences, 1, 1_000_000)?;
    range("routing.explain.max_words", explain.max_words, 1, 1_000_000)?;

    telemetry::filter(&config.telemetry.log).map_err(|error| Refusal {
        key: "telemetry.log",
        given: format!("\"{}\"", config.telemetry.log),
        expected: format!("a level or directives ({error})"),
    })?;
    otlp(&config.telemetry.otlp)
}

fn otlp(otlp: &OtlpConfig) -> Result<(), Refusal> {
    range("telemetry.otlp.timeout_ms", otlp.timeout_ms, 1, MAX_MS)?;
    range("telemetry.otlp.sampling_ratio", otlp.sampling_ratio, 0.0, 1.0)?;
    // What was given may hold what lets somebody in: it is not repeated.
    otlp.check().map_err(|error| {
        let (key, expected) = error.expected();
        Refusal { key, given: "not usable".to_owned(), expected: expected.to_owned() }
    })
}

fn range<T: PartialOrd + Display + Copy>(key: &'static str, value: T, least: T, most: T) -> Result<(), Refusal> {
    // Not a number is in no range.
    if value >= least && value <= most {
        return Ok(());
    }
    Err(Refusal { key, given: value.to_string(), expected: format!("{least} to {most}") })
}
