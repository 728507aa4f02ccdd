//! Why a mail was routed so: what the attention looked at, what the decision rests on, and whether that holds.
//!
//! Plain functions of numbers and texts; the network is asked by the floors above. A map of attention is a clue, not a proof:
//! attention has no sign and knows no queue. What was measured by taking parts of the mail away is.

mod agreement;
mod align;
mod export;
mod flow;
mod heads;
mod maps;
mod parts;
mod quantise;
mod select;
mod sentences;
mod units;
mod verdict;

pub use agreement::{kendall_tau_b, top10_overlap, total_variation};
pub use align::aligned;
pub use export::{CLUE, Caption, ExportError, MAX_SIDE, Sheet, html, npy, png, safetensors, svg};
pub use flow::{positive_part, relevance, relevance_row, rollout, rollout_row, through};
pub use heads::{HeadFigures, entropy, head_figures};
pub use maps::{AttentionMap, MapError, Reduce, Special};
pub use parts::{Part, grouped, sentence_parts, word_parts};
pub use quantise::{Dtype, append_floats, quantised, restored};
pub use select::{Heads, Layers, Rows, SelectError};
pub use sentences::sentences;
pub use units::{Unit, word_units};
pub use verdict::{
    FEWEST_WORDS, MARGIN, Measured, RANDOM_RUNS, SHARE, Verdict, count_of, fill, random_choices, top_share,
};
