//! The encoder on the CPU, in f32: packed batches without padding, kernels written once and compiled for each instruction set.
//!
//! It computes what `bert_reference.py`-style code computes (post-norm BERT, absolute positions, exact GELU), on plain slices.
#![expect(
    unsafe_code,
    reason = "vector loads and stores through pointers, and slices shared by threads that write disjoint parts"
)]

mod aligned;
mod attention;
mod disjoint;
mod encoder;
mod exp2;
mod gelu;
mod gemm;
mod layer_norm;
mod linear;
mod probe;
mod scratch;
mod simd;
mod tasks;
#[cfg(test)]
mod testing;
mod weights;

pub use encoder::{CpuEncoder, WindowMap};
pub use probe::GemmProbe;
pub use scratch::Scratch;
pub use weights::EncoderShape;
