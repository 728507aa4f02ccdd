//! What the attention looked at: maps chosen, reduced and aligned to the words of the mail.
//!
//! A map is a clue, not a proof: attention has no sign and knows no queue.

mod maps;
mod select;
mod units;

pub use maps::{AttentionMap, MapError, Reduce, Special};
pub use select::{Heads, Layers, Rows, SelectError};
pub use units::{Unit, word_units};
