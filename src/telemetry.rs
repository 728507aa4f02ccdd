//! Logs: to standard error, for people on a terminal, as JSON lines elsewhere. Mail text and addresses never stand in
//! them above `debug`.
//!
//! A line that cannot be written (a full disk, a reader that has gone or does not keep up) is lost and counted in
//! `postroom_log_lines_lost_total`; the service goes on.

mod lines;

use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use self::lines::LogLines;
use crate::otlp::OtlpConfig;

/// Settings of the log and of traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// What is logged: a level, or directives such as `info,postroom::server=debug`.
    pub log: String,
    /// How a log line looks.
    pub format: LogFormat,
    /// Where traces go.
    pub otlp: OtlpConfig,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { log: "info".to_owned(), format: LogFormat::default(), otlp: OtlpConfig::default() }
    }
}

/// How a log line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// `pretty` on a terminal, `json` elsewhere.
    #[default]
    Auto,
    /// A line for people.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// Why logging cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter cannot be read.
    #[error("log filter `{text}` is neither a level nor a list of directives such as info,postroom::server=debug")]
    Filter {
        /// What was given.
        text: String,
        /// What is wrong with it.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// The system gives no thread.
    #[error("the thread that writes the log cannot be started")]
    Thread(#[from] io::Error),
    /// Something else has set up logging already.
    #[error("logging was set up twice")]
    Twice(#[from] tracing_subscriber::util::TryInitError),
}

/// Starts logging for the whole process, panics included.
///
/// # Errors
/// [`TelemetryError`].
pub fn init(config: &TelemetryConfig) -> Result<(), TelemetryError> {
    let filter = filter(&config.log)?;
    let terminal = io::stderr().is_terminal();
    let out = to_stderr()?;
    // What the subscriber cannot write it would print to standard error, and panic where that is what is full.
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || out).log_internal_errors(false);
    match config.format {
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init()?,
        LogFormat::Auto if !terminal => lines.json().flatten_event(true).finish().try_init()?,
        LogFormat::Auto | LogFormat::Pretty => lines.with_ansi(terminal).finish().try_init()?,
    }
    log_panics();
    Ok(())
}

pub(crate) fn filter(text: &str) -> Result<EnvFilter, TelemetryError> {
    EnvFilter::builder()
        .with_default_directive(tracing_subscriber::filter::LevelFilter::INFO.into())
        .parse(text)
        .map_err(|source| TelemetryError::Filter { text: text.to_owned(), source })
}

/// Lines of the log that [`init`] started.
static LINES: OnceLock<LogLines> = OnceLock::new();

/// The lines to standard error, whose thread is started once.
fn to_stderr() -> io::Result<&'static LogLines> {
    if let Some(lines) = LINES.get() {
        return Ok(lines);
    }
    let lines = LogLines::to(io::stderr())?;
    // Where another one was faster, this thread has no work and ends.
    Ok(LINES.get_or_init(|| lines))
}

/// Longest that the end of the process waits for whoever reads the log.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Waits until what was logged is written, for a second at most: for whoever ends the process. `false` where the reader
/// of the log takes no more, so that writing to standard error would block.
pub fn flush() -> bool {
    LINES.get().is_none_or(|lines| lines.flush(LAST_LINES))
}

/// A panic becomes one log line with its place. Its message may quote the text that it happened on, so that stands at
/// `debug`.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        tracing::error!(place, thread = thread.name(), "a thread panicked");
        tracing::debug!(message = panic.payload_as_str(), "what the panic said");
        if thread.name() == Some("main") {
            // The process ends.
            flush();
        }
    }));
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn a_filter_that_means_nothing_is_refused() {
        assert!(filter("info,postroom::server=debug").is_ok());
        assert!(filter("postroom=loud").is_err());
    }

    #[test]
    fn a_panic_is_told_by_its_place_and_not_by_its_words() {
        #[derive(Clone, Default)]
        struct Log(Arc<Mutex<Vec<u8>>>);
        impl std::io::Write for Log {
            fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let log = Log::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let usual = std::panic::take_hook();
        log_panics();
        tracing::subscriber::with_default(lines, || {
            let _ = std::panic::catch_unwind(|| panic!("Quetzal <ann@mail.example>"));
        });
        std::panic::set_hook(usual);
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("a thread panicked") && text.contains("telemetry.rs"), "{text}");
        assert!(!text.contains("Quetzal") && !text.contains("ann@"), "{text}");
    }
}
