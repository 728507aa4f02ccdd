//! The loop of the model's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::batch_former::{Waiting, choose};
use super::{Entry, Inference, InferenceError, Lanes, Shared};
use crate::collate::pack;
use crate::model::{Classifier, ClassifierOutput, KeepMaps};

/// Runs batches until the engine is closed and nothing waits.
pub(super) fn run(classifier: &Classifier, shared: &Shared) {
    let mut maps_are_next = false;
    while let Some(batch) = next_batch(shared, &mut maps_are_next) {
        let tokens: usize = batch.iter().map(|entry| entry.mail.cost()).sum();
        let start = Instant::now();
        answer(classifier, batch);
        let rate = tokens as f64 / start.elapsed().as_secs_f64().max(1e-6);
        let mut lanes = shared.lanes();
        // A moving average over about ten batches.
        lanes.rate = if lanes.rate == 0.0 { rate } else { 0.9 * lanes.rate + 0.1 * rate };
    }
}

/// Waits for work; `None` when closed and empty.
fn next_batch(shared: &Shared, maps_are_next: &mut bool) -> Option<Vec<Entry>> {
    let mut lanes = shared.lanes();
    loop {
        lanes.sweep();
        let batch = take(&mut lanes, shared.config.max_batch_tokens, maps_are_next);
        if !batch.is_empty() {
            return Some(batch);
        }
        if lanes.closed {
            return None;
        }
        lanes = shared.wake.wait(lanes).unwrap_or_else(PoisonError::into_inner);
    }
}

fn take(lanes: &mut Lanes, max_batch_tokens: usize, maps_are_next: &mut bool) -> Vec<Entry> {
    if !lanes.maps.is_empty() && (*maps_are_next || lanes.route.is_empty()) {
        *maps_are_next = false;
        return lanes.maps.pop_front().into_iter().collect();
    }
    *maps_are_next = true;
    let chosen = choose(lanes.route.iter().map(|entry| Waiting { cost: entry.mail.cost() }), max_batch_tokens);
    // From the back, so that earlier positions stay valid.
    let mut batch: Vec<Entry> = chosen.iter().rev().filter_map(|&position| lanes.route.remove(position)).collect();
    batch.reverse();
    batch
}

fn answer(classifier: &Classifier, batch: Vec<Entry>) {
    let start = Instant::now();
    match forward(classifier, &batch) {
        Ok(output) => {
            let ran = start.elapsed();
            let mut maps = output.maps;
            for (entry, logits) in batch.into_iter().zip(output.logits) {
                let waited = start.duration_since(entry.arrived);
                // Maps are only ever asked for by a batch of one.
                let maps = std::mem::take(&mut maps);
                // An error here means that the caller has gone.
                let _ = entry.reply.send(Ok(Inference { logits, maps, waited, ran }));
            }
        }
        // One bad mail must not fail its batch mates, and too large a batch may still fit in parts.
        Err(_) if batch.len() > 1 => batch.into_iter().for_each(|entry| answer(classifier, vec![entry])),
        Err(error) => {
            for entry in batch {
                let _ = entry.reply.send(Err(error.clone()));
            }
        }
    }
}

fn forward(classifier: &Classifier, batch: &[Entry]) -> Result<ClassifierOutput, InferenceError> {
    let keep = batch.first().map_or(&KeepMaps::None, |entry| &entry.keep);
    let packed = pack(batch.iter().map(|entry| &entry.mail));
    // The classifier holds no state that a panic could leave half changed.
    catch_unwind(AssertUnwindSafe(|| classifier.forward(&packed, keep)))
        .map_err(|_| InferenceError::Panicked)?
        .map_err(|source| InferenceError::Model(Arc::new(source)))
}
