//! The loop of the model's thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use super::engine::{Request, Shared, Work};
use super::job::{Done, Job};
use super::line::Entry;
use super::room::Batch;
use super::{Event, Inference, InferenceError};
use crate::collate::pack;
use crate::model::{Classifier, ClassifierOutput, KeepMaps, ModelError, PackedBatch};

/// What the thread runs: a classifier, or a stand-in for it.
pub trait Network: Send + 'static {
    /// Logits of every mail of a batch, and the maps asked for.
    ///
    /// # Errors
    /// [`ModelError`] where the batch has no answer.
    fn forward(&self, batch: &PackedBatch, keep: &KeepMaps) -> Result<ClassifierOutput, ModelError>;

    /// The classifier, where it is one: explanations look inside it.
    fn classifier(&self) -> Option<&Classifier> {
        None
    }
}

impl Network for Classifier {
    fn forward(&self, batch: &PackedBatch, keep: &KeepMaps) -> Result<ClassifierOutput, ModelError> {
        Self::forward(self, batch, keep)
    }

    fn classifier(&self) -> Option<&Classifier> {
        Some(self)
    }
}

/// What callers are to be told of a batch. They are told when this is dropped: after the batch has been counted, so that
/// whoever has an answer finds it in the counts, and even where counting panics.
#[derive(Default)]
struct Answers(Vec<Box<dyn FnOnce()>>);

impl Answers {
    fn add(&mut self, tell: impl FnOnce() + 'static) {
        self.0.push(Box::new(tell));
    }

    fn add_reply(&mut self, request: Request, answer: Result<Inference, InferenceError>) {
        // An error here means that the caller has gone.
        self.add(move || drop(request.reply.send(answer)));
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.0.drain(..).for_each(|tell| tell());
    }
}

/// Runs batches until the engine is closed and nothing waits. A panic costs the callers of one batch their answers and
/// nobody else anything: the loop goes on.
pub(super) fn run(network: &impl Network, shared: &Shared) {
    while catch_unwind(AssertUnwindSafe(|| run_batches(network, shared))).is_err() {
        shared.tell(&Event::Panicked);
    }
}

fn run_batches(network: &impl Network, shared: &Shared) {
    while let Some(batch) = next_batch(shared) {
        let Batch { lane, entries, tokens } = batch;
        let (start, mails) = (Instant::now(), entries.len());
        let mut answers = Answers::default();
        let (mut batch, mut jobs) = (Vec::new(), Vec::new());
        for Entry { cost, caller, arrived, job } in entries {
            match job {
                Work::Mail(job) => batch.push(Entry { cost, caller, arrived, job }),
                Work::Job(job) => jobs.push(job),
            }
        }
        if !batch.is_empty() {
            answer(network, shared, batch, &mut answers);
        }
        jobs.into_iter().for_each(|job| run_job(network, shared, job, &mut answers));
        let ran = start.elapsed();
        shared.state().room.ran(tokens, ran);
        shared.tell(&Event::Batch { lane, mails, tokens, ran });
    }
}

fn run_job(network: &impl Network, shared: &Shared, job: Box<dyn Job>, answers: &mut Answers) {
    match network.classifier() {
        Some(classifier) => {
            let Done { failed, tell } = job.run(classifier);
            match failed {
                None => {}
                Some(InferenceError::Panicked) => shared.tell(&Event::Panicked),
                Some(_) => shared.tell(&Event::Failed),
            }
            answers.add(tell);
        }
        None => answers.add(|| job.refuse(InferenceError::Closed)),
    }
}

/// Waits for work; `None` when closed and empty.
fn next_batch(shared: &Shared) -> Option<Batch<Work>> {
    let mut state = shared.state();
    loop {
        let dropped = state.room.sweep(Instant::now());
        if !dropped.is_empty() {
            drop(state);
            shared.drop_all(dropped);
            state = shared.state();
        }
        if let Some(batch) = state.room.next() {
            return Some(batch);
        }
        if state.closed {
            return None;
        }
        state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
    }
}

fn answer(network: &impl Network, shared: &Shared, batch: Vec<Entry<Request>>, answers: &mut Answers) {
    let start = Instant::now();
    match forward(network, shared, &batch) {
        Ok(output) => {
            let ran = start.elapsed();
            let (mut maps, mut token_weights) = (output.maps, output.token_weights);
            for (entry, logits) in batch.into_iter().zip(output.logits) {
                let waited = start.duration_since(entry.arrived);
                // Maps are only ever asked for by a batch of one.
                let (maps, token_weights) = (std::mem::take(&mut maps), std::mem::take(&mut token_weights));
                answers.add_reply(entry.job, Ok(Inference { logits, maps, token_weights, waited, ran }));
            }
        }
        // One bad mail must not fail its batch mates, and too large a batch may still fit in parts. By now some may have gone.
        Err(_) if batch.len() > 1 => batch
            .into_iter()
            .filter(|entry| !entry.job.reply.is_closed())
            .for_each(|entry| answer(network, shared, vec![entry], answers)),
        Err(error) => {
            for entry in batch {
                // A panic has been told already.
                if !matches!(error, InferenceError::Panicked) {
                    shared.tell(&Event::Failed);
                }
                answers.add_reply(entry.job, Err(error.clone()));
            }
        }
    }
}

fn forward(
    network: &impl Network,
    shared: &Shared,
    batch: &[Entry<Request>],
) -> Result<ClassifierOutput, InferenceError> {
    let keep = batch.first().map_or(&KeepMaps::None, |entry| &entry.job.keep);
    let packed = pack(batch.iter().map(|entry| &entry.job.mail));
    // The network holds no state that a panic could leave half changed.
    let output = catch_unwind(AssertUnwindSafe(|| network.forward(&packed, keep))).map_err(|_| {
        shared.tell(&Event::Panicked);
        InferenceError::Panicked
    })?;
    output.map_err(|source| InferenceError::Model(Arc::new(source)))
}
