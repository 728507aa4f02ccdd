//! The handle to the model's thread: mails are let in or refused here, and answers come back.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::job::{Job, job};
use super::line::{Entry, Waits};
use super::room::Room;
use super::worker::{self, Network};
use super::{Caller, Dropped, Event, InferenceConfig, InferenceError, Lane, Observer, Refused};
use crate::collate::WindowedEmail;
use crate::model::{Classifier, KeepMaps, ModelError, WindowMaps};

/// What the network said of one mail.
#[derive(Debug, Clone)]
pub struct Inference {
    /// One logit per queue.
    pub logits: Vec<f32>,
    /// For each window its maps; empty unless asked for.
    pub maps: Vec<WindowMaps>,
    /// How much each token counts for each logit, `[T, C]` over all windows; empty unless maps were asked for.
    pub token_weights: Vec<f32>,
    /// How long the mail waited.
    pub waited: Duration,
    /// How long its batch ran.
    pub ran: Duration,
}

/// What waits now.
#[derive(Debug, Clone, PartialEq)]
pub struct Depth {
    /// Mails waiting in each lane, and how many may.
    pub lanes: Vec<(Lane, usize, usize)>,
    /// Tokens waiting in all lanes.
    pub tokens: usize,
    /// Tokens that may wait.
    pub tokens_limit: usize,
    /// The measured rate; 0 until the first batch.
    pub tokens_per_second: f64,
}

type Answer = Result<Inference, InferenceError>;

/// A mail and the way back to its caller.
pub(super) struct Request {
    pub mail: WindowedEmail,
    pub keep: KeepMaps,
    pub reply: oneshot::Sender<Answer>,
}

/// What may wait.
pub(super) enum Work {
    Mail(Request),
    Job(Box<dyn Job>),
}

impl Waits for Work {
    fn abandoned(&self) -> bool {
        match self {
            Self::Mail(request) => request.reply.is_closed(),
            Self::Job(job) => job.abandoned(),
        }
    }
}

impl Work {
    fn refuse(self, why: InferenceError) {
        match self {
            // An error here means that the caller has gone.
            Self::Mail(request) => drop(request.reply.send(Err(why))),
            Self::Job(job) => job.refuse(why),
        }
    }
}

pub(super) struct State {
    pub room: Room<Work>,
    pub closed: bool,
}

pub(super) struct Shared {
    config: InferenceConfig,
    state: Mutex<State>,
    pub wake: Condvar,
    observer: OnceLock<Arc<Observer>>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held can only come from an allocation; the queues stay sound.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, event: &Event) {
        if let Some(observer) = self.observer.get() {
            observer(event);
        }
    }

    /// Tells the callers of mails that are not run, where they still listen.
    pub(super) fn drop_all(&self, dropped: Vec<(Work, Lane, Dropped)>) {
        for (work, lane, why) in dropped {
            self.tell(&Event::Dropped { lane, why });
            work.refuse(InferenceError::Expired);
        }
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
    pub fn start(network: impl Network, config: InferenceConfig) -> std::io::Result<Self> {
        let state = State { room: Room::new(config.clone()), closed: false };
        let shared =
            Arc::new(Shared { config, state: Mutex::new(state), wake: Condvar::new(), observer: OnceLock::new() });
        let for_thread = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("model".to_owned()).spawn(move || worker::run(&network, &for_thread))?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Has events told to `observer` from now on. Only the first call counts.
    pub fn observe(&self, observer: Arc<Observer>) {
        // A second observer would count everything twice; it is dropped here.
        let _ = self.shared.observer.set(observer);
    }

    /// Waits for the logits of a mail, and for the maps of some layers where `keep` asks for them.
    ///
    /// # Errors
    /// At once where there is no room or no time ([`InferenceError::Full`], [`InferenceError::OverShare`],
    /// [`InferenceError::TooLate`]) and after [`Engine::close`]; [`InferenceError::Expired`] at the caller's deadline;
    /// otherwise what went wrong with this mail.
    pub async fn run(&self, mail: WindowedEmail, keep: KeepMaps, caller: Caller) -> Answer {
        let lane = if keep == KeepMaps::None { Lane::Route } else { Lane::Maps };
        let (reply, answer) = oneshot::channel();
        let cost = mail.cost();
        self.wait_for(lane, cost, Work::Mail(Request { mail, keep, reply }), answer, caller).await
    }

    /// Lets `work` use the network on the model's thread, between batches of mail. Whoever explains asks for one small job at a
    /// time (about a batch of `tokens`; 0 where that is not known), so that mail never waits long behind it.
    ///
    /// # Errors
    /// As [`Engine::run`], and what went wrong in the job.
    pub async fn with_network<T, F>(&self, caller: Caller, tokens: usize, work: F) -> Result<T, InferenceError>
    where
        T: Send + 'static,
        F: FnOnce(&Classifier) -> Result<T, ModelError> + Send + 'static,
    {
        let (job, answer) = job(work);
        self.wait_for(Lane::Explain, tokens, Work::Job(job), answer, caller).await
    }

    async fn wait_for<T>(
        &self,
        lane: Lane,
        cost: usize,
        work: Work,
        answer: oneshot::Receiver<Result<T, InferenceError>>,
        caller: Caller,
    ) -> Result<T, InferenceError> {
        let arrived = Instant::now();
        self.enqueue(lane, Entry { cost, caller, arrived, job: work }).inspect_err(|error| {
            if let Some(why) = error.refused() {
                self.shared.tell(&Event::Refused { lane, why });
            }
        })?;
        // The thread drops an answer only where it panicked.
        let answered = async { answer.await.unwrap_or(Err(InferenceError::Panicked)) };
        match caller.deadline {
            None => answered.await,
            Some(deadline) => {
                tokio::time::timeout_at(deadline.into(), answered).await.unwrap_or(Err(InferenceError::Expired))
            }
        }
    }

    fn enqueue(&self, lane: Lane, entry: Entry<Work>) -> Result<(), InferenceError> {
        let now = entry.arrived;
        let mut state = self.shared.state();
        if state.closed {
            return Err(InferenceError::Closed);
        }
        let dropped = if state.room.crowded(lane, &entry, now) { state.room.sweep(now) } else { Vec::new() };
        let admitted = state.room.admit(lane, entry, now);
        drop(state);
        self.shared.drop_all(dropped);
        for (displaced, why) in admitted? {
            // Only mails of the same lane make room.
            self.shared.tell(&Event::Refused { lane, why: Refused::OverShare });
            displaced.refuse(why);
        }
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Mails and parts of explanations waiting, in all lanes.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let state = self.shared.state();
        Lane::ALL.into_iter().map(|lane| state.room.mails(lane)).sum()
    }

    /// About how long the network needs for so many tokens, by its speed of late; at least a second.
    #[must_use]
    pub fn time_for(&self, tokens: usize) -> Duration {
        self.shared.state().room.rate().retry_after(tokens.saturating_mul(2))
    }

    /// What waits, and the bounds.
    #[must_use]
    pub fn depth(&self) -> Depth {
        let config = &self.shared.config;
        let state = self.shared.state();
        Depth {
            lanes: Lane::ALL.map(|lane| (lane, state.room.mails(lane), config.max_waiting(lane))).into(),
            tokens: state.room.tokens(),
            tokens_limit: config.max_waiting_tokens,
            tokens_per_second: state.room.rate().tokens_per_second(),
        }
    }

    /// Takes no more mail; what waits is still answered.
    pub fn close(&self) {
        self.shared.state().closed = true;
        self.shared.wake.notify_all();
    }

    /// Closes and waits until the thread has answered everything.
    pub fn join(&self) {
        self.close();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // The thread catches its panics; they are in the log and counted.
            let _ = thread.join();
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests;
