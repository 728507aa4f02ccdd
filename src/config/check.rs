//! Ranges of values: what a type alone does not say.

use std::fmt::Display;

use super::error::Source;
use super::{Config, ConfigError};
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
    range("server.max_connections", server.max_connections, 1, 1_000_000)?;
    range("server.max_body_bytes", server.max_body_bytes, 1, 1 << 30)?;
    range("server.max_batch_emails", server.max_batch_emails, 1, 10_000)?;
    range("server.idle_timeout_ms", server.idle_timeout_ms, 1, MAX_MS)?;
    range("server.body_timeout_ms", server.body_timeout_ms, 1, MAX_MS)?;
    range("server.request_timeout_ms", server.request_timeout_ms, 1, MAX_MS)?;
    range("server.drain_delay_ms", server.drain_delay_ms, 0, MAX_MS)?;
    range("server.drain_timeout_ms", server.drain_timeout_ms, 0, MAX_MS)?;

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

    telemetry::filter(&config.telemetry.log).map_err(|error| Refusal {
        key: "telemetry.log",
        given: format!("\"{}\"", config.telemetry.log),
        expected: format!("a level or directives ({error})"),
    })?;
    Ok(())
}

fn range<T: PartialOrd + Display + Copy>(key: &'static str, value: T, least: T, most: T) -> Result<(), Refusal> {
    // Not a number is in no range.
    if value >= least && value <= most {
        return Ok(());
    }
    Err(Refusal { key, given: value.to_string(), expected: format!("{least} to {most}") })
}
