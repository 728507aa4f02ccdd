//! A closed loop: each client sends a mail, waits for the answer and sends the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::target::{Answer, Client, Target};

/// When a measurement ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stop {
    /// After this many requests.
    Requests(usize),
    /// After this time; what is under way then is still waited for.
    After(Duration),
}

/// One measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drive {
    /// Clients at once.
    pub(super) clients: usize,
    pub(super) stop: Stop,
    /// The mail to begin with.
    pub(super) first: usize,
}

/// One answered request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answered {
    /// Index of the mail.
    pub(super) mail: u32,
    pub(super) micros: u32,
}

/// What a measurement saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) answered: Vec<Answered>,
    pub(super) refused: usize,
    pub(super) seconds: f64,
}

/// A refused client comes back after this; a busy loop would only keep the target from its work.
const AFTER_REFUSAL: Duration = Duration::from_millis(20);

/// How often progress is told.
const TICK: Duration = Duration::from_millis(200);

struct Shared {
    next: AtomicUsize,
    done: AtomicUsize,
    /// The first request that is not sent.
    end: usize,
    deadline: Option<Instant>,
    n_mails: usize,
}

/// Runs one measurement. `tell(done, all)` hears of requests, or of tenths of seconds.
///
/// # Errors
/// The first that a client met; the others are stopped.
pub(super) async fn drive(
    target: &Target,
    settings: Drive,
    tell: &mut (dyn FnMut(usize, usize) + Send),
) -> anyhow::Result<Outcome> {
    let start = Instant::now();
    let (end, deadline) = match settings.stop {
        Stop::Requests(requests) => (settings.first + requests, None),
        Stop::After(time) => (usize::MAX, Some(start + time)),
    };
    let shared = Arc::new(Shared {
        next: AtomicUsize::new(settings.first),
        done: AtomicUsize::new(0),
        end,
        deadline,
        n_mails: target.n_mails().max(1),
    });
    let mut clients = JoinSet::new();
    for _ in 0..settings.clients {
        clients.spawn(run_client(target.client().await?, Arc::clone(&shared)));
    }
    let mut outcome = Outcome::default();
    let mut ticks = tokio::time::interval(TICK);
    while !clients.is_empty() {
        tokio::select! {
            Some(ended) = clients.join_next() => {
                let mut one = ended??;
                outcome.answered.append(&mut one.answered);
                outcome.refused += one.refused;
            }
            _ = ticks.tick() => match settings.stop {
                Stop::Requests(all) => tell(shared.done.load(Ordering::Relaxed).min(all.saturating_sub(1)), all),
                Stop::After(time) => {
                    tell(tenths(start.elapsed()).min(tenths(time).saturating_sub(1)), tenths(time));
                }
            },
        }
    }
    outcome.seconds = start.elapsed().as_secs_f64();
    let all = match settings.stop {
        Stop::Requests(all) => all,
        Stop::After(time) => tenths(time),
    };
    tell(all, all);
    Ok(outcome)
}

fn tenths(time: Duration) -> usize {
    (time.as_millis() / 100) as usize
}

async fn run_client(mut client: Client, shared: Arc<Shared>) -> anyhow::Result<Outcome> {
    let mut outcome = Outcome::default();
    loop {
        let request = shared.next.fetch_add(1, Ordering::Relaxed);
        let start = Instant::now();
        if request >= shared.end || shared.deadline.is_some_and(|deadline| start >= deadline) {
            return Ok(outcome);
        }
        let mail = request % shared.n_mails;
        match client.send(mail).await? {
            Answer::Decided => outcome.answered.push(Answered {
                mail: mail as u32,
                micros: u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX),
            }),
            Answer::Refused => {
                outcome.refused += 1;
                tokio::time::sleep(AFTER_REFUSAL).await;
            }
        }
        shared.done.fetch_add(1, Ordering::Relaxed);
    }
}
