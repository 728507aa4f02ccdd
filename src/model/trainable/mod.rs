//! The encoder and its head as training sees them: packed windows in, logits out, and a gradient for every parameter.
//!
//! [`TrainableEncoder`] and [`TrainableHead`] are the readable network, on candle's gradients and any device; [`PackedNetwork`] is
//! the fast one for the CPU. Tests hold both together, and to [`super::Encoder`]. Embeddings stay as they are: with a support team's few thousand mails most rows of the
//! table would never see a gradient. Axis letters: T packed tokens, D d_model, F d_ff, C queues.

mod adapter;
mod dropout;
mod encoder;
mod head;
mod packed;

pub use adapter::{Adapter, LoraConfig};
pub use dropout::Dropout;
pub use encoder::{Adaptation, TrainableEncoder};
pub use head::TrainableHead;
pub use packed::{Gradients, Objective, PackedNetwork};

use candle_core::Var;

/// One trained tensor, by its name in a checkpoint.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Hugging Face's name, or PEFT's for an adapter.
    pub name: String,
    /// The tensor.
    pub var: Var,
}

#[cfg(test)]
mod tests;
