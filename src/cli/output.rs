//! Answers on standard output. A disk that is full or a reader that has gone must not panic, as `println!` does: a command that
//! cannot say its answer fails and says why, one whose reader has read enough ends quietly.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use anyhow::Context;

/// Writes text as it is.
///
/// # Errors
/// Where it cannot be written whole; not where the reader has gone, as `head` goes when it has enough.
pub(super) fn print(text: impl Display) -> anyhow::Result<()> {
    put(std::io::stdout().lock(), format_args!("{text}"))
}

/// As [`print`], and ends the line.
pub(super) fn print_line(text: impl Display) -> anyhow::Result<()> {
    put(std::io::stdout().lock(), format_args!("{text}\n"))
}

fn put(mut out: impl Write, text: std::fmt::Arguments<'_>) -> anyhow::Result<()> {
    match out.write_fmt(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to standard output"),
    }
}

/// What a command says while it changes something: it must not stop half-way because it cannot be heard.
#[derive(Default)]
pub(super) struct Said {
    failed: Option<anyhow::Error>,
}

impl Said {
    /// As [`print()`], later told by [`Said::end`].
    pub(super) fn print(&mut self, text: impl Display) {
        self.keep(print(text));
    }

    /// As [`print_line`], later told by [`Said::end`].
    pub(super) fn line(&mut self, text: impl Display) {
        self.keep(print_line(text));
    }

    fn keep(&mut self, printed: anyhow::Result<()>) {
        if let Err(error) = printed {
            self.failed.get_or_insert(error);
        }
    }

    /// The first line that could not be written, behind what was done all the same.
    ///
    /// # Errors
    /// That line's.
    pub(super) fn end(self, done: impl Display) -> anyhow::Result<()> {
        match self.failed {
            None => Ok(()),
            Some(error) => Err(error.context(format!("{done}; only saying so failed"))),
        }
    }
}

/// A share as people read it; what is not certain is not called so.
pub(super) fn percent(share: f64) -> String {
    if (0.9995..1.0).contains(&share) { "over 99.9%".to_owned() } else { format!("{:.1}%", 100.0 * share) }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A file whose disk, or a pipe whose reader, is gone.
    struct Gone(ErrorKind);

    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_and_a_reader_that_has_enough_is_none() {
        let error = put(Gone(ErrorKind::StorageFull), format_args!("answer")).unwrap_err();
        assert_eq!(error.to_string(), "cannot write to standard output");
        put(Gone(ErrorKind::BrokenPipe), format_args!("answer")).unwrap();
    }

    #[test]
    fn only_certainty_is_a_hundred_percent() {
        assert_eq!(
            [0.5, 0.9994, 0.9995, 0.99999, 1.0].map(percent),
            ["50.0%", "99.9%", "over 99.9%", "over 99.9%", "100.0%"]
        );
    }

    #[test]
    fn what_was_done_is_told_with_what_could_not_be_said() {
        let mut said = Said::default();
        said.keep(put(Gone(ErrorKind::StorageFull), format_args!("first")));
        said.keep(Ok(()));
        let error = said.end("the router is written").unwrap_err();
        assert_eq!(error.to_string(), "the router is written; only saying so failed");
        Said::default().end("nothing").unwrap();
    }
}
