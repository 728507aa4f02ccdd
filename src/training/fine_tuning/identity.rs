//! What tells one encoder from another.

use candle_core::DType;
use candle_nn::VarBuilder;
use sha2::{Digest, Sha256};

use crate::model::{EncoderConfig, ModelError};

/// SHA-256 of the encoder's sizes and of its tensors as they are trained on, in hexadecimal: adapters that one encoder was trained with
/// are of no use to another, though all their shapes fit.
pub(in crate::training) fn encoder_identity(
    config: &EncoderConfig,
    weights: &VarBuilder<'_>,
) -> Result<String, ModelError> {
    let mut hash = Sha256::new();
    hash.update(format!("{config:?}"));
    for (name, shape) in config.tensors() {
        let values: Vec<f32> = weights.get(shape, &name)?.to_dtype(DType::F32)?.flatten_all()?.to_vec1()?;
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        hash.update(&bytes);
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
