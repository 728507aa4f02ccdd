//! The network: tensors in, tensors out. It knows no text, labels, files or threads.
//!
//! [`Encoder`] is the readable forward pass, [`BatchEncoder`] the fast one for packed batches, [`Classifier`] adds the head. Weights come as a
//! [`candle_nn::VarBuilder`] with Hugging Face's names; see [`EncoderConfig::tensors`].

mod attention;
mod attention_pooling;
mod batch;
mod batch_encoder;
mod classifier;
mod config;
pub mod cpu;
mod encoder;
mod gradients;
mod head;
mod layers;
pub mod trainable;

pub use attention::{
    AttentionOutput, MultiHeadSelfAttention, SelfAttentionOutput, causal_bias, merge_heads, padding_bias,
    scaled_dot_product_attention, split_heads,
};
pub use attention_pooling::{AttentionPooling, QueueSum};
pub use batch::PackedBatch;
pub use batch_encoder::{BatchEncoder, Pooled, Projected, SharedWeights, WindowMaps};
pub use classifier::{Classifier, ClassifierOutput, LogitsAndPooled, WindowPart};
pub use config::EncoderConfig;
pub use encoder::{Encoder, EncoderOutput, KeepMaps, Traced};
pub use gradients::{PooledScore, Score, WindowGradients, WindowPass, pool_score, score_value, times_gradient};
pub use head::{Head, PooledHead, TokenLogits, l2_normalize};
pub use layers::{LayerNorm, Linear, gelu};

/// What can go wrong between ids and logits.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// `config.json` is not an encoder's configuration.
    #[error("bad encoder configuration: {reason}")]
    BadConfig {
        /// What is wrong with it.
        reason: String,
    },
    /// The configuration asks for something that this forward pass does not compute.
    #[error("{field} `{value}` is not supported (supported: {allowed})")]
    Unsupported {
        /// Key in `config.json`.
        field: &'static str,
        /// Its value.
        value: String,
        /// What would be accepted.
        allowed: String,
    },
    /// A window has more tokens than the encoder has positions.
    #[error("a window of {tokens} tokens exceeds the encoder's {limit} positions")]
    WindowTooLong {
        /// Tokens of the window.
        tokens: usize,
        /// The encoder's positions.
        limit: usize,
    },
    /// A token id has no row in the embedding table.
    #[error("token id {id} is outside the vocabulary of {vocab_size}")]
    UnknownToken {
        /// The id.
        id: u32,
        /// Rows of the table.
        vocab_size: usize,
    },
    /// The offsets of a batch do not tile its tokens.
    #[error("the offsets of the batch do not tile its tokens")]
    BadBatch,
    /// NaN or infinity came out.
    #[error("the model gave a number that is not finite")]
    NotFinite,
    /// candle's own error, for instance out of memory on a device.
    #[error("tensor operation failed")]
    Tensor(#[from] candle_core::Error),
}
