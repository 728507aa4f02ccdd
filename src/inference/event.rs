//! What happens in the queue and on the model's thread, for whoever counts it.

use std::time::Duration;

use super::Lane;

/// One event. None holds anything of a mail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// A batch ran.
    Batch {
        /// Which lane it came from.
        lane: Lane,
        /// Mails in it.
        mails: usize,
        /// Tokens in it, overlaps included.
        tokens: usize,
        /// How long it ran.
        ran: Duration,
    },
    /// A mail was refused at once, or displaced by one of a client that holds less.
    Refused {
        /// Which lane it was for.
        lane: Lane,
        /// Why.
        why: Refused,
    },
    /// A mail that waited was not run, since nobody waits for its answer any more.
    Dropped {
        /// Which lane it waited in.
        lane: Lane,
        /// Why.
        why: Dropped,
    },
    /// The network failed on a mail.
    Failed,
    /// The model's thread panicked and went on.
    Panicked,
}

/// Why a mail was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// Too much waits.
    QueueFull,
    /// Too much waits, and most of it is this client's.
    OverShare,
    /// It could not be done before its deadline.
    TooLate,
    /// The service is shutting down.
    Closed,
}

/// Why a mail was not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// Its deadline passed.
    Expired,
    /// Its caller left.
    Cancelled,
}

/// Told of every event, on the thread where it happens: must be quick.
pub type Observer = dyn Fn(&Event) + Send + Sync;
