//! Who asks, and until when the answer is of use.

use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::LazyLock;
use std::time::Instant;

/// One of those who share the model: a caller with an API key, or an address. Only equality means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Client(u64);

impl Client {
    /// The client of this name or address. Nobody outside can choose two that collide: the hash is keyed anew in each
    /// process.
    pub fn of<T: Hash + ?Sized>(who: &T) -> Self {
        static KEYED: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        Self(KEYED.hash_one(who))
    }
}

/// What the queue knows of a request beside its mail. The default is this process itself, in no hurry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caller {
    /// Between clients the model's time is shared evenly.
    pub client: Client,
    /// After this nobody waits for the answer: the mail is not run any more.
    pub deadline: Option<Instant>,
}
