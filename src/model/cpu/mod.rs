//! The encoder on the CPU: post-norm BERT on plain slices, over packed batches without padding, in f32 or with linear layers of
//! 8 bits.
//!
//! [`CpuEncoder`] packs the weights once and computes, [`Scratch`] is the memory that it computes in. Every kernel is written once,
//! over the vectors of `simd.rs`, and compiled for each instruction set; the one to use is chosen when the encoder is made. Results
//! depend on neither the other windows of a batch nor the number of threads, to the last bit.
//!
//! ```
//! use postroom::model::cpu::{CpuEncoder, EncoderShape, Precision, Scratch};
//!
//! // No layers, so five tensors are all: a token's state is the normalised sum of its word, position and type.
//! let shape = EncoderShape {
//!     d_model: 2, n_heads: 1, n_layers: 0, d_ff: 8, max_positions: 4, vocab_size: 3, layer_norm_eps: 1e-12,
//! };
//! let encoder = CpuEncoder::new(&shape, Precision::F32, |name| match name {
//!     "embeddings.word_embeddings.weight" => Ok(vec![0.0, 1.0, 5.0, 2.0, -1.0, 7.0]),
//!     "embeddings.position_embeddings.weight" => Ok(vec![0.0; 8]),
//!     "embeddings.token_type_embeddings.weight" => Ok(vec![0.0; 4]),
//!     "embeddings.LayerNorm.weight" => Ok(vec![1.0; 2]),
//!     "embeddings.LayerNorm.bias" => Ok(vec![0.0; 2]),
//!     other => Err(format!("no tensor {other}")),
//! })?;
//!
//! // Two windows, of one and two tokens, one after another.
//! let mut scratch = Scratch::new(1);
//! let hidden_states = encoder.forward(&[1, 0, 2], &[0, 1, 3], &mut scratch);
//! assert_eq!(hidden_states, [1.0, -1.0, -1.0, 1.0, -1.0, 1.0]);
//! # Ok::<(), String>(())
//! ```
#![expect(
    unsafe_code,
    reason = "vector loads and stores through pointers, and slices shared by threads that write disjoint parts"
)]

mod aligned;
mod attention;
mod bytes;
mod disjoint;
mod encoder;
mod exp2;
mod gelu;
mod gemm;
mod layer_norm;
mod linear;
mod moving_weights;
mod probe;
mod scratch;
mod simd;
mod tasks;
#[cfg(test)]
mod testing;
pub(super) mod training;
mod weights;
mod word_table;

pub(super) use moving_weights::MovingWeights;

pub use encoder::{CpuEncoder, Precision, WindowMap};
pub use probe::GemmProbe;
pub use scratch::Scratch;
pub use weights::EncoderShape;
