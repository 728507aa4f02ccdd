//! Numbered tasks over the workers' buffers, on rayon's threads or on the caller's.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::scratch::WorkerScratch;

/// Calls `run(task, worker)` for each task in `0..n_tasks`. Each worker takes the next task when it is free, so that tasks of
/// unequal length even out; with one worker, or one task, no other thread is involved.
pub(super) fn for_each_task(
    workers: &mut [WorkerScratch],
    n_tasks: usize,
    run: impl Fn(usize, &mut WorkerScratch) + Sync,
) {
    let n_workers = workers.len().min(n_tasks);
    let workers = &mut workers[..n_workers];
    if let [worker] = workers {
        (0..n_tasks).for_each(|task| run(task, worker));
        return;
    }
    let next = AtomicUsize::new(0);
    workers.par_iter_mut().with_max_len(1).for_each(|worker| {
        loop {
            let task = next.fetch_add(1, Ordering::Relaxed);
            if task >= n_tasks {
                break;
            }
            run(task, worker);
        }
    });
}
