//! The buffers of a forward pass, kept from one call to the next.

use super::aligned::AlignedBuffer;
use super::attention::AttentionScratch;
use super::linear::LinearScratch;

/// Reusable memory for [`CpuEncoder::forward`](super::CpuEncoder::forward). It grows to the largest call it has seen and is never
/// given back, so that a request allocates nothing once the sizes have been met; `BatchEncoder` bounds what one call holds.
pub struct Scratch {
    /// Position of each token in its window.
    pub(super) positions: Vec<u32>,
    /// `[tokens, d_model]`
    pub(super) hidden_states: AlignedBuffer,
    /// `3 * n_heads` matrices of `[tokens, head_width]`: see [`HeadRows`](super::linear::HeadRows).
    pub(super) queries_keys_values: AlignedBuffer,
    /// `[tokens, d_model]`
    pub(super) context: AlignedBuffer,
    /// One per thread that may work at once.
    pub(super) workers: Vec<WorkerScratch>,
}

/// What one thread needs for itself.
#[derive(Default)]
pub(super) struct WorkerScratch {
    pub(super) attention: AttentionScratch,
    pub(super) linear: LinearScratch,
    /// `[block rows, d_ff]`
    pub(super) intermediate: AlignedBuffer,
}

impl Scratch {
    /// Buffers for a forward pass on up to `n_threads` threads of the rayon pool it is called in. With one thread everything runs
    /// on the calling thread and rayon is not touched.
    pub fn new(n_threads: usize) -> Self {
        Self {
            positions: Vec::new(),
            hidden_states: AlignedBuffer::default(),
            queries_keys_values: AlignedBuffer::default(),
            context: AlignedBuffer::default(),
            workers: std::iter::repeat_with(WorkerScratch::default).take(n_threads.max(1)).collect(),
        }
    }
}
