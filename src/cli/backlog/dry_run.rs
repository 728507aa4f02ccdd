//! What a backlog would come to, from a sample.

use std::ops::ControlFlow;
use std::time::Instant;

use serde_json::json;

use super::load::Load;
use super::mails::{Backlog, Item};
use super::worker::Worker;
use super::{Batch, Progress};
use crate::cli::output::{print, print_line};

pub(super) fn run(backlog: &Backlog, worker: &Worker, sample: usize, json: bool) -> anyhow::Result<()> {
    let wanted = sample.clamp(1, backlog.mails);
    let mut progress = Progress::new("sampling");
    let mut load = Load::default();
    let mut spent = std::time::Duration::ZERO;
    let (mut batch, mut number, mut failed) = (Batch::default(), 0, None);
    let mut route = |items: Vec<Item>, load: &mut Load| -> anyhow::Result<()> {
        let started = Instant::now();
        let rows = worker.route(items)?;
        spent += started.elapsed();
        rows.iter().for_each(|row| load.count(row));
        progress.tell(load.mails, wanted);
        Ok(())
    };
    backlog.each(&mut |item| {
        let picked = in_sample(number, wanted, backlog.mails);
        number += 1;
        if picked {
            batch.add(item);
        }
        if !batch.full() {
            return ControlFlow::Continue(());
        }
        match route(batch.take(), &mut load) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if !batch.items.is_empty() {
        route(batch.take(), &mut load)?;
    }
    let seconds = spent.as_secs_f64() / load.mails.max(1) as f64 * backlog.mails as f64;
    if json {
        let answer = json!({
            "mails": backlog.mails, "unreadable": backlog.unreadable, "sample": load, "seconds": seconds.ceil(),
        });
        return print_line(serde_json::to_string_pretty(&answer)?);
    }
    let (mails, unreadable, sample) = (backlog.mails, backlog.unreadable, load.mails);
    print_line(format_args!("{mails} mails, {unreadable} of them unreadable; projected from {sample}"))?;
    print_line("(in brackets: what it may be, 95 times in 100)\n")?;
    print(load.table(Some(mails)))?;
    print_line(format_args!("\ntime: about {}", duration(seconds)))
}

/// Whether the mail of this number is one of `wanted` that are spread evenly over `all`.
fn in_sample(number: usize, wanted: usize, all: usize) -> bool {
    let up_to = |number: usize| (number as u128 * wanted as u128 / all as u128) as usize;
    up_to(number + 1) > up_to(number)
}

fn duration(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_spread_evenly_and_has_its_size() {
        for (wanted, all) in [(1, 1), (3, 10), (10, 10), (300, 4213)] {
            let picked: Vec<usize> = (0..all).filter(|&number| in_sample(number, wanted, all)).collect();
            assert_eq!(picked.len(), wanted);
            let widest = picked.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            assert!(widest <= all.div_ceil(wanted), "{widest} of {all}/{wanted}");
        }
    }

    #[test]
    fn times_are_told_in_what_people_count_in() {
        assert_eq!([3.2, 300.0, 9000.0].map(duration), ["4 s", "5 min", "2.5 h"]);
    }
}
