//! Trains several networks at a time. The steps of so small a network do not fill many threads, so each gets some of them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use super::run::{Finished, Run};
use crate::training::{Progress, TrainingError};

enum News {
    Tokens(usize),
    Note(String),
    Failed(TrainingError),
}

/// Tells how a run goes. Once another run has failed there is nobody to tell, and this one ends too.
pub(super) struct Teller(mpsc::Sender<News>);

impl Teller {
    pub(super) fn add(&self, tokens: usize) -> Result<(), TrainingError> {
        self.0.send(News::Tokens(tokens)).map_err(|_| TrainingError::Stopped)
    }

    pub(super) fn note(&self, line: String) -> Result<(), TrainingError> {
        self.0.send(News::Note(line)).map_err(|_| TrainingError::Stopped)
    }
}

/// Does all runs and gives their results in the same order. How many go on at a time changes no result.
pub(super) fn side_by_side(runs: &[Run<'_>], progress: &mut dyn Progress) -> Result<Vec<Finished>, TrainingError> {
    let on_cpu = runs.iter().all(|run| run.material.weights.device().is_cpu());
    let shares = shares(if on_cpu { runs.len() } else { 1 }, rayon::current_num_threads());
    let at_a_time = if shares.len() > 1 { format!(", {} at a time", shares.len()) } else { String::new() };
    progress.stage(&format!("fine-tuning {} networks{at_a_time}", runs.len()));
    let (next, tokens) = (AtomicUsize::new(0), runs.iter().map(Run::tokens).sum());
    let (to, news) = mpsc::channel();
    std::thread::scope(|scope| {
        let workers: Vec<_> = shares
            .into_iter()
            .map(|threads| {
                let (next, teller) = (&next, Teller(to.clone()));
                scope.spawn(move || {
                    work(runs, next, threads, &teller).unwrap_or_else(|error| {
                        // Where this fails, another error was told before.
                        let _ = teller.0.send(News::Failed(error));
                        Vec::new()
                    })
                })
            })
            .collect();
        drop(to);
        let mut done = 0;
        for news in news {
            match news {
                News::Tokens(more) => {
                    done += more;
                    progress.tell(done.min(tokens), tokens);
                }
                News::Note(line) => progress.note(&line),
                // The other workers find the channel closed and end.
                News::Failed(error) => return Err(error),
            }
        }
        let mut finished: Vec<(usize, Finished)> = Vec::new();
        for worker in workers {
            finished.extend(worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        finished.sort_by_key(|&(place, _)| place);
        Ok(finished.into_iter().map(|(_, finished)| finished).collect())
    })
}

/// Does the runs that nobody has begun, one after the other, on so many threads.
fn work(
    runs: &[Run<'_>],
    next: &AtomicUsize,
    threads: usize,
    teller: &Teller,
) -> Result<Vec<(usize, Finished)>, TrainingError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut finished = Vec::new();
    loop {
        let place = next.fetch_add(1, Ordering::Relaxed);
        let Some(run) = runs.get(place) else { return Ok(finished) };
        finished.push((place, pool.install(|| run.go(teller))?));
    }
}

/// The threads of each worker: as many workers as can be kept busy to the end. On another device than the CPU there is one, for one
/// run at a time, and it has them all: the optimizer and the start's linear model are on the CPU everywhere.
fn shares(runs: usize, threads: usize) -> Vec<usize> {
    let workers = (1..=threads.min(runs)).rev().find(|&workers| runs.is_multiple_of(workers)).unwrap_or(1);
    (0..workers).map(|worker| threads / workers + usize::from(worker < threads % workers)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_is_used_and_all_workers_end_together() {
        assert_eq!(shares(4, 1), [1]);
        assert_eq!(shares(4, 2), [1, 1]);
        assert_eq!(shares(4, 3), [2, 1]);
        assert_eq!(shares(4, 4), [1, 1, 1, 1]);
        assert_eq!(shares(4, 10), [3, 3, 2, 2]);
        assert_eq!(shares(2, 16), [8, 8]);
        assert_eq!(shares(5, 4), [4]);
        // On a GPU.
        assert_eq!(shares(1, 16), [16]);
    }
}
