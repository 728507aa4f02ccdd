//! Logs: to standard error, for people on a terminal, as JSON lines elsewhere. Mail text and addresses never stand in
//! them above `debug`.
//!
//! A line that cannot be written (a full disk, a reader that has gone) is lost and counted in `postroom_log_lines_lost_total`;
//! the service goes on.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

use crate::otlp::OtlpConfig;
use crate::server::count_lost_log_line;

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
    let terminal = std::io::stderr().is_terminal();
    // What the subscriber cannot write it would print to standard error, and panic where that is what is full.
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(LogLines::stderr).log_internal_errors(false);
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

/// Where log lines go. Each comes as one write.
struct LogLines<W> {
    out: W,
    torn: &'static AtomicBool,
}

impl LogLines<io::Stderr> {
    fn stderr() -> Self {
        static TORN: AtomicBool = AtomicBool::new(false);
        Self { out: io::stderr(), torn: &TORN }
    }
}

impl<W: Write> Write for LogLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_all(line).map(|()| line.len())
    }

    fn write_all(&mut self, line: &[u8]) -> io::Result<()> {
        // Half a line may stand there: what comes after it must not be joined to it.
        let begun = if self.torn.load(Ordering::Relaxed) { self.out.write_all(b"\n") } else { Ok(()) };
        let written = begun.and_then(|()| self.out.write_all(line));
        self.torn.store(written.is_err(), Ordering::Relaxed);
        written.inspect_err(|_| count_lost_log_line())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A panic becomes one log line with its place. Its message may quote the text that it happened on, so that stands at
/// `debug`.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current();
        tracing::error!(place, thread = thread.name(), "a thread panicked");
        tracing::debug!(message = panic.payload_as_str(), "what the panic said");
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

    /// A disk with room for so many more bytes.
    struct Disk {
        room: usize,
        kept: Vec<u8>,
    }

    impl Write for &mut Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let fits = bytes.len().min(self.room);
            self.room -= fits;
            self.kept.extend_from_slice(&bytes[..fits]);
            Ok(fits)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_costs_log_lines_and_the_next_one_stands_by_itself() {
        static TORN: AtomicBool = AtomicBool::new(false);
        let mut disk = Disk { room: 9, kept: Vec::new() };
        let mut log = |line: &str, room| {
            disk.room += room;
            LogLines { out: &mut disk, torn: &TORN }.write_all(line.as_bytes()).is_ok()
        };
        assert_eq!(
            [log("first\n", 0), log("second\n", 0), log("third\n", 0), log("fourth\n", 100), log("fifth\n", 0)],
            [true, false, false, true, true]
        );
        assert_eq!(String::from_utf8_lossy(&disk.kept), "first\nsec\nfourth\nfifth\n");
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
