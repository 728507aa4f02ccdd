//! What the mails cost before anything is timed: tokens, windows, arithmetic; and the best that this machine does.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::mails::BenchMail;
use super::process::thread_seconds;
use crate::artifact::Router;
use crate::collate::{WindowedEmail, pack};
use crate::email::CleanOptions;
use crate::model::EncoderConfig;
use crate::model::cpu::GemmProbe;

/// What the network does for one mail.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct MailWork {
    /// Tokens of each window, special tokens and overlaps included.
    pub(super) windows: Vec<usize>,
    /// Multiplications and additions.
    pub(super) operations: f64,
}

impl MailWork {
    /// Tokens of all windows.
    pub(super) fn tokens(&self) -> usize {
        self.windows.iter().sum()
    }
}

fn read(mail: &BenchMail, router: &Router, options: &CleanOptions) -> WindowedEmail {
    let (info, tokenizer) = (&router.info, &router.tokenizer);
    let encoded = tokenizer.encode(&mail.mail.content.clean(options), info.windows.max_tokens);
    WindowedEmail::new(&encoded, tokenizer, &info.windows, info.pooling)
}

/// A line `{"windows": [[id, ...], ...]}` for each mail: what the network gets, special tokens included.
pub(super) fn window_lines(mails: &[BenchMail], router: &Router, options: &CleanOptions) -> String {
    let line = |mail| {
        let packed = pack([&read(mail, router, options)]);
        let windows: Vec<&[u32]> =
            (0..packed.n_windows()).map(|window| &packed.input_ids[packed.window(window)]).collect();
        format!("{}\n", serde_json::json!({ "windows": windows }))
    };
    mails.iter().map(line).collect()
}

/// Least time of a measurement on this thread.
const LEAST: Duration = Duration::from_millis(250);

/// The work of each mail, and the CPU seconds that cleaning and tokenizing take a mail on average.
pub(super) fn measure_work(
    mails: &[BenchMail],
    router: &Router,
    options: &CleanOptions,
) -> (Vec<MailWork>, Option<f64>) {
    let read = |mail: &BenchMail| read(mail, router, options);
    let work = mails.iter().map(|mail| {
        // A window stands between [CLS] and [SEP].
        let windows: Vec<usize> = read(mail).windows.iter().map(|window| window.len() + 2).collect();
        let operations = windows.iter().map(|&tokens| router.info.encoder_config.forward_operations(tokens)).sum();
        MailWork { windows, operations }
    });
    let work = work.collect();
    let mut rounds = 0;
    let (start, clock) = (Instant::now(), thread_seconds());
    while start.elapsed() < LEAST {
        mails.iter().for_each(|mail| drop(black_box(read(mail))));
        rounds += 1;
    }
    let spent = thread_seconds().zip(clock).map(|(now, before)| now - before);
    (work, spent.map(|seconds| seconds / (rounds * mails.len().max(1)) as f64))
}

/// GFLOP/s of the plain matrix product on one thread: the best of a few tries, by the feed-forward layer's sizes.
pub(super) fn sgemm_peak(config: &EncoderConfig) -> f64 {
    let mut probe = GemmProbe::new(512, config.d_model, config.d_ff);
    probe.run();
    // The thread's clock moves in steps of the scheduler's tick, so each try takes many ticks.
    (0..3)
        .map(|_| {
            let (start, clock) = (Instant::now(), thread_seconds());
            let mut runs = 0;
            while start.elapsed() < LEAST {
                probe.run();
                runs += 1;
            }
            let wall = start.elapsed().as_secs_f64();
            let spent = thread_seconds().zip(clock).map_or(wall, |(now, before)| now - before);
            f64::from(runs) * probe.operations() / spent.max(1e-9) / 1e9
        })
        .fold(0.0, f64::max)
}

/// Tokens of batches of `batch` mails in the order given, each window padded to the longest of its batch.
pub(super) fn padded_tokens(work: &[MailWork], batch: usize) -> usize {
    let padded = |mails: &[MailWork]| {
        let windows = || mails.iter().flat_map(|mail| &mail.windows);
        windows().count() * windows().max().copied().unwrap_or(0)
    };
    work.chunks(batch.max(1)).map(padded).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_to_the_longest_window_of_the_batch() {
        let mail = |windows: &[usize]| MailWork { windows: windows.to_vec(), operations: 0.0 };
        let work = [mail(&[10]), mail(&[30, 20]), mail(&[5])];
        assert_eq!(padded_tokens(&work, 1), 10 + 60 + 5);
        assert_eq!(padded_tokens(&work, 2), 3 * 30 + 5);
        assert_eq!(padded_tokens(&[], 2), 0);
    }
}
