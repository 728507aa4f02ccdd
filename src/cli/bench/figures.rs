//! The figures of a run, as `--json` prints them. What a run could not know is absent.

use serde::Serialize;

use super::drive::Outcome;
use super::process::{CpuTime, Resident};
use super::work::{MailWork, padded_tokens};

/// All figures of a run.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    /// Who answered.
    pub(super) target: String,
    /// Where the mails come from.
    pub(super) source: String,
    /// Different mails.
    pub(super) mails: usize,
    #[serde(flatten)]
    pub(super) rates: Rates,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens: Option<Tokens>,
    pub(super) levels: Vec<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) memory: Option<Memory>,
}

/// What is known of an engine in this process.
#[derive(Debug, Default, Serialize)]
#[serde(default)]
pub(super) struct Rates {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) router: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) engine: Option<String>,
    /// Of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threads: Option<usize>,
    /// Of the plain matrix product on one thread, measured before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sgemm_gflops: Option<f64>,
    /// Cleaning and tokenizing one mail on a thread of its own, measured before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) clean_and_tokenize_cpu_ms: Option<f64>,
}

/// Tokens of all different mails together.
#[derive(Debug, Serialize)]
pub(super) struct Tokens {
    /// What the network computes: windows one after another, so that no token is padding.
    pub(super) packed: usize,
    /// What a server would compute that pads batches of `padded_batch` mails to their longest window.
    pub(super) padded: usize,
    pub(super) padded_batch: usize,
    /// Of the longest mail.
    pub(super) longest: usize,
}

/// One number of clients.
#[derive(Debug, Serialize)]
pub(super) struct Level {
    pub(super) clients: usize,
    /// Requests that were answered with a decision.
    pub(super) answered: usize,
    /// Requests that the target was too busy for.
    pub(super) refused: usize,
    pub(super) seconds: f64,
    pub(super) mails_per_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tokens_per_s: Option<f64>,
    pub(super) latency_ms: Latency,
    /// User and system time of the whole process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu_ms_per_mail: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stages: Option<Stages>,
    /// Arithmetic of the network for each second that its threads were on a CPU, in GFLOP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) gflops: Option<f64>,
    /// `gflops` as a share of `sgemm_gflops`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) share_of_sgemm: Option<f64>,
    /// Resident memory after the warm-up and after the last answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) rss_mb: Option<[f64; 2]>,
    /// Latencies for the chart.
    #[serde(skip)]
    pub(super) sorted_ms: Vec<f64>,
    /// Tokens and latency of each answer, for the chart.
    #[serde(skip)]
    pub(super) by_length: Vec<(usize, f64)>,
}

/// Of all answers.
#[derive(Debug, Default, Serialize)]
pub(super) struct Latency {
    pub(super) mean: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
}

/// Shares of the CPU time; they sum to 1.
#[derive(Debug, Serialize)]
pub(super) struct Stages {
    pub(super) clean_and_tokenize: f64,
    pub(super) network: f64,
    /// Waiting, waking, deciding, and the clients themselves.
    pub(super) rest: f64,
}

/// Resident memory in MB (10^6 bytes).
#[derive(Debug, Serialize)]
pub(super) struct Memory {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before_load_mb: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) after_load_mb: Option<f64>,
    pub(super) now_mb: f64,
    pub(super) peak_mb: f64,
}

pub(super) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

impl Figures {
    pub(super) fn new(
        (target, source, mails): (String, String, usize),
        rates: Rates,
        tokens: Option<Tokens>,
        memory: Option<Memory>,
        levels: Vec<Level>,
    ) -> Self {
        Self { target, source, mails, rates, tokens, levels, memory }
    }
}

impl Tokens {
    /// `None` where nobody counted.
    pub(super) fn of(work: &[MailWork], padded_batch: usize) -> Option<Self> {
        (!work.is_empty()).then(|| Self {
            packed: work.iter().map(MailWork::tokens).sum(),
            padded: padded_tokens(work, padded_batch),
            padded_batch,
            longest: work.iter().map(MailWork::tokens).max().unwrap_or(0),
        })
    }
}

impl Level {
    pub(super) fn new(
        clients: usize,
        outcome: &Outcome,
        cpu: Option<&CpuTime>,
        work: &[MailWork],
        rates: &Rates,
        (warm, end): (Option<Resident>, Option<Resident>),
    ) -> Self {
        let answered = outcome.answered.len();
        let done = || outcome.answered.iter().filter_map(|answer| Some((work.get(answer.mail as usize)?, answer)));
        let mut sorted_ms: Vec<f64> = outcome.answered.iter().map(|answer| f64::from(answer.micros) / 1e3).collect();
        sorted_ms.sort_unstable_by(f64::total_cmp);
        let per_second = |count: f64| count / outcome.seconds.max(1e-9);
        let per_mail = |seconds: f64| 1e3 * seconds / answered.max(1) as f64;
        let network = cpu.map(|cpu| cpu.network).filter(|&seconds| seconds > 0.0);
        let operations: f64 = done().map(|(work, _)| work.operations).sum();
        let gflops = network.filter(|_| !work.is_empty()).map(|seconds| operations / seconds / 1e9);
        Self {
            clients,
            answered,
            refused: outcome.refused,
            seconds: outcome.seconds,
            mails_per_s: per_second(answered as f64),
            tokens_per_s: (!work.is_empty())
                .then(|| per_second(done().map(|(work, _)| work.tokens()).sum::<usize>() as f64)),
            latency_ms: Latency::of(&sorted_ms),
            cpu_ms_per_mail: cpu.map(|cpu| per_mail(cpu.total)),
            stages: cpu.zip(network).zip(rates.clean_and_tokenize_cpu_ms).map(|((cpu, network), read)| {
                // The threads' clocks are finer than the process's, which may lag by a tick.
                let all = cpu.total.max(network).max(1e-9);
                let network = network / all;
                let read = (read / 1e3 * answered as f64 / all).min(1.0 - network);
                Stages { clean_and_tokenize: read, network, rest: 1.0 - network - read }
            }),
            gflops,
            share_of_sgemm: gflops.zip(rates.sgemm_gflops).map(|(rate, peak)| rate / peak),
            rss_mb: warm.zip(end).map(|(warm, end)| [megabytes(warm.now), megabytes(end.now)]),
            by_length: done().map(|(work, answer)| (work.tokens(), f64::from(answer.micros) / 1e3)).collect(),
            sorted_ms,
        }
    }
}

impl Latency {
    fn of(sorted_ms: &[f64]) -> Self {
        if sorted_ms.is_empty() {
            return Self::default();
        }
        Self {
            mean: sorted_ms.iter().sum::<f64>() / sorted_ms.len() as f64,
            p50: quantile(sorted_ms, 0.5),
            p90: quantile(sorted_ms, 0.9),
            p99: quantile(sorted_ms, 0.99),
            max: quantile(sorted_ms, 1.0),
        }
    }
}

/// The smallest value that at least `share` of the values do not exceed; 0 where there are none.
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::drive::Answered;
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let sorted: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.99, 1.0].map(|share| quantile(&sorted, share)), [1.0, 50.0, 99.0, 100.0]);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn shares_of_the_stages_sum_to_one_and_rates_count_what_was_answered() {
        let work = [MailWork { windows: vec![10, 20], operations: 6e8 }];
        let outcome = Outcome { answered: vec![Answered { mail: 0, micros: 2000 }; 4], refused: 1, seconds: 2.0 };
        let cpu = CpuTime { total: 0.1, network: 0.08 };
        let rates = Rates { sgemm_gflops: Some(60.0), clean_and_tokenize_cpu_ms: Some(1.0), ..Rates::default() };
        let level = Level::new(2, &outcome, Some(&cpu), &work, &rates, (None, None));
        assert_eq!((level.mails_per_s, level.tokens_per_s, level.refused), (2.0, Some(60.0), 1));
        assert!((level.share_of_sgemm.unwrap() - 0.5).abs() < 1e-9 && level.latency_ms.p99 == 2.0);
        let Stages { clean_and_tokenize, network, rest } = level.stages.unwrap();
        assert!((clean_and_tokenize - 0.04).abs() < 1e-9 && (network - 0.8).abs() < 1e-9);
        assert!((clean_and_tokenize + network + rest - 1.0).abs() < 1e-9);
    }
}
