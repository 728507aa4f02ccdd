//! The figures for people.

use std::fmt::Write;

use super::figures::{Figures, Level};

pub(super) fn render(figures: &Figures) -> String {
    let mut out = String::new();
    let rates = &figures.rates;
    let _ = writeln!(out, "{} mails of {}, answered by {}", figures.mails, figures.source, figures.target);
    if let (Some(router), Some(engine), Some(threads)) = (&rates.router, &rates.engine, rates.threads) {
        let _ = writeln!(out, "router {router}, {engine}, {threads} threads");
    }
    if let Some(peak) = rates.sgemm_gflops {
        let _ = writeln!(out, "matrix product alone {peak:.1} GFLOP/s on one thread");
    }
    if let Some(tokens) = &figures.tokens {
        let waste = 100.0 * (tokens.padded as f64 / tokens.packed.max(1) as f64 - 1.0);
        let _ = writeln!(
            out,
            "{} tokens packed, the longest mail {}; no padding (batches of {} padded to their longest: {} tokens, {waste:.0}% more)",
            tokens.packed, tokens.longest, tokens.padded_batch, tokens.padded
        );
    }
    let _ = writeln!(
        out,
        "\n{:>7}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>8}  {:>15}  {:>13}",
        "clients", "answered", "mails/s", "tokens/s", "p50 ms", "p99 ms", "CPU ms", "GFLOP/s (share)", "RSS MB"
    );
    figures.levels.iter().for_each(|level| row(&mut out, level));
    for level in &figures.levels {
        if let Some(stages) = &level.stages {
            let _ = writeln!(
                out,
                "\nCPU time with {} clients: network {:.1}%, cleaning and tokenizing {:.1}%, rest {:.1}%",
                level.clients,
                100.0 * stages.network,
                100.0 * stages.clean_and_tokenize,
                100.0 * stages.rest
            );
        }
        if level.refused > 0 {
            let _ = writeln!(out, "{} requests of {} clients were refused: too busy", level.refused, level.clients);
        }
    }
    if let Some(memory) = &figures.memory {
        let part = |name: &str, value: Option<f64>| value.map_or_else(String::new, |mb| format!("{mb:.0} {name}, "));
        let _ = writeln!(
            out,
            "\nresident memory in MB: {}{}{:.0} now, {:.0} at most",
            part("before loading", memory.before_load_mb),
            part("after loading", memory.after_load_mb),
            memory.now_mb,
            memory.peak_mb
        );
    }
    out
}

fn row(out: &mut String, level: &Level) {
    let number = |value: Option<f64>, decimals: usize| value.map_or("-".to_owned(), |v| format!("{v:.decimals$}"));
    let rate = match (level.gflops, level.share_of_sgemm) {
        (Some(rate), Some(share)) => format!("{rate:.1} ({:.0}%)", 100.0 * share),
        (rate, _) => number(rate, 1),
    };
    let memory = level.rss_mb.map_or("-".to_owned(), |[warm, end]| format!("{warm:.0} > {end:.0}"));
    let _ = writeln!(
        out,
        "{:>7}  {:>8}  {:>8.1}  {:>8}  {:>8.2}  {:>8.2}  {:>8}  {rate:>15}  {memory:>13}",
        level.clients,
        level.answered,
        level.mails_per_s,
        number(level.tokens_per_s, 0),
        level.latency_ms.p50,
        level.latency_ms.p99,
        number(level.cpu_ms_per_mail, 2),
    );
}
