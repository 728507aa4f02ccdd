//! The model's thread: mails wait in a bounded queue, one thread owns the network and runs them in batches.
//!
//! What waits when the thread is free is the next batch; there is no timer. A caller that stops waiting (drops the
//! future) takes its mail out of the queue. Requests for maps have a short lane of their own and never run two in a row
//! while mail waits to be routed.

mod batch_former;
mod device;
mod worker;

pub use device::{DeviceChoice, DeviceError, device_name};

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::collate::WindowedEmail;
use crate::model::{Classifier, KeepMaps, ModelError, WindowMaps};

/// Bounds of the queue and the batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InferenceConfig {
    /// Mails that may wait; one more is refused.
    pub max_waiting_mails: usize,
    /// Tokens that may wait over all mails; a mail that would exceed this is refused, unless nothing else waits.
    pub max_waiting_tokens: usize,
    /// Tokens of one batch, overlaps and special tokens included.
    pub max_batch_tokens: usize,
    /// Requests for attention maps that may wait; one more is refused.
    pub max_waiting_maps: usize,
}

impl Default for InferenceConfig {
    fn default() -> Self {
        Self { max_waiting_mails: 1024, max_waiting_tokens: 262_144, max_batch_tokens: 4096, max_waiting_maps: 4 }
    }
}

/// Why a mail got no logits.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InferenceError {
    /// Too much waits already.
    #[error("{waiting} mails wait already, the limit is {limit}")]
    Full {
        /// How many wait in this lane.
        waiting: usize,
        /// How many may.
        limit: usize,
        /// When there should be room again.
        retry_after: Duration,
    },
    /// The service is shutting down.
    #[error("the model's thread has stopped taking mail")]
    Closed,
    /// The network failed on this mail.
    #[error("the network failed on this mail")]
    Model(#[source] Arc<ModelError>),
    /// The thread panicked on this mail and went on.
    #[error("the model's thread panicked on this mail")]
    Panicked,
}

/// What the network said of one mail.
#[derive(Debug, Clone)]
pub struct Inference {
    /// One logit per queue.
    pub logits: Vec<f32>,
    /// For each window its maps; empty unless asked for.
    pub maps: Vec<WindowMaps>,
    /// How long the mail waited.
    pub waited: Duration,
    /// How long its batch ran.
    pub ran: Duration,
}

/// One mail in the queue.
struct Entry {
    mail: WindowedEmail,
    keep: KeepMaps,
    arrived: Instant,
    reply: oneshot::Sender<Result<Inference, InferenceError>>,
}

#[derive(Default)]
struct Lanes {
    route: VecDeque<Entry>,
    maps: VecDeque<Entry>,
    closed: bool,
    /// Tokens per second of late, for `Retry-After`; 0 until the first batch.
    rate: f64,
}

impl Lanes {
    fn waiting_tokens(&self) -> usize {
        self.route.iter().chain(&self.maps).map(|entry| entry.mail.cost()).sum()
    }

    /// Drops mails whose caller has gone.
    fn sweep(&mut self) {
        self.route.retain(|entry| !entry.reply.is_closed());
        self.maps.retain(|entry| !entry.reply.is_closed());
    }
}

struct Shared {
    config: InferenceConfig,
    lanes: Mutex<Lanes>,
    wake: Condvar,
}

impl Shared {
    fn lanes(&self) -> MutexGuard<'_, Lanes> {
        // A panic while the lock is held can only come from an allocation; the queues stay sound.
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running engine. Dropping it, or [`Engine::close`], lets the thread finish what waits and stop.
pub struct Engine {
    shared: Arc<Shared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Engine {
    /// Starts the model's thread.
    ///
    /// # Errors
    /// Where the system gives no thread.
    pub fn start(classifier: Classifier, config: InferenceConfig) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { config, lanes: Mutex::default(), wake: Condvar::new() });
        let for_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("model".to_owned())
            .spawn(move || worker::run(&classifier, &for_thread))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Waits for the logits of a mail, and for the maps of some layers where `keep` asks for them.
    ///
    /// # Errors
    /// [`InferenceError::Full`] at once where too much waits, [`InferenceError::Closed`] after [`Engine::close`],
    /// otherwise what went wrong with this mail.
    pub async fn run(&self, mail: WindowedEmail, keep: KeepMaps) -> Result<Inference, InferenceError> {
        let answer = self.enqueue(mail, keep)?;
        answer.await.unwrap_or(Err(InferenceError::Closed))
    }

    fn enqueue(
        &self,
        mail: WindowedEmail,
        keep: KeepMaps,
    ) -> Result<oneshot::Receiver<Result<Inference, InferenceError>>, InferenceError> {
        let (reply, answer) = oneshot::channel();
        let mut lanes = self.shared.lanes();
        if lanes.closed {
            return Err(InferenceError::Closed);
        }
        let wants_maps = keep != KeepMaps::None;
        if self.full(&lanes, &mail, wants_maps).is_some() {
            lanes.sweep();
        }
        if let Some(full) = self.full(&lanes, &mail, wants_maps) {
            return Err(full);
        }
        let lane = if wants_maps { &mut lanes.maps } else { &mut lanes.route };
        lane.push_back(Entry { mail, keep, arrived: Instant::now(), reply });
        drop(lanes);
        self.shared.wake.notify_one();
        Ok(answer)
    }

    fn full(&self, lanes: &Lanes, mail: &WindowedEmail, wants_maps: bool) -> Option<InferenceError> {
        let config = &self.shared.config;
        let (waiting, limit) = if wants_maps {
            (lanes.maps.len(), config.max_waiting_maps)
        } else {
            (lanes.route.len(), config.max_waiting_mails)
        };
        let tokens = lanes.waiting_tokens();
        let over_tokens = tokens > 0 && tokens + mail.cost() > config.max_waiting_tokens;
        (waiting >= limit || over_tokens).then(|| InferenceError::Full {
            waiting,
            limit,
            retry_after: retry_after(tokens, lanes.rate),
        })
    }

    /// Mails waiting in both lanes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let lanes = self.shared.lanes();
        lanes.route.len() + lanes.maps.len()
    }

    /// Takes no more mail; what waits is still answered.
    pub fn close(&self) {
        self.shared.lanes().closed = true;
        self.shared.wake.notify_all();
    }

    /// Closes and waits until the thread has answered everything.
    pub fn join(&self) {
        self.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The worker catches panics of the network; one of its own is already in the log.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

/// Half the time that the waiting tokens need at the rate of late, at least a second, at most a minute.
fn retry_after(tokens: usize, rate: f64) -> Duration {
    let seconds = if rate > 0.0 { tokens as f64 / rate / 2.0 } else { 1.0 };
    Duration::from_secs_f64(seconds.clamp(1.0, 60.0).ceil())
}
