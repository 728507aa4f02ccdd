//! A safetensors file, read whole and checked before anything is made of it.
//!
//! It is not mapped: a service loads routers while it answers, and a mapped file that somebody truncates meanwhile ends the
//! process (SIGBUS), one that somebody writes to changes after its checksum was taken. The price is memory of the file's size
//! while it is loaded, 45 MB for the shipped encoder; afterwards nothing of the file is held either way.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::{ArtifactError, checksum};

/// An open safetensors file.
pub struct Weights {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Weights {
    /// Reads the file and checks its header, and its checksum where one is expected.
    ///
    /// # Errors
    /// [`ArtifactError::Read`], [`ArtifactError::Damaged`], [`ArtifactError::Checksum`].
    pub fn open(path: &Path, sha256: Option<&str>) -> Result<Self, ArtifactError> {
        let bytes = std::fs::read(path).map_err(ArtifactError::read(path))?;
        let weights = Self { path: path.to_owned(), bytes };
        // The checksum first: it says "this file changed", the header could only say "this file is odd".
        if let Some(expected) = sha256 {
            checksum::verify(path, &weights.bytes, expected)?;
        }
        weights.tensors()?;
        Ok(weights)
    }

    fn tensors(&self) -> Result<SafeTensors<'_>, ArtifactError> {
        SafeTensors::deserialize(&self.bytes).map_err(|source| ArtifactError::damaged(&self.path, source))
    }

    /// Names of all tensors.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`].
    pub fn names(&self) -> Result<BTreeSet<String>, ArtifactError> {
        Ok(self.tensors()?.names().into_iter().map(str::to_owned).collect())
    }

    /// The shape of a tensor.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`] where it is missing.
    pub fn shape(&self, stored: &str) -> Result<Vec<usize>, ArtifactError> {
        let missing = |_| ArtifactError::damaged(&self.path, format_args!("tensor `{stored}` is missing"));
        Ok(self.tensors()?.tensor(stored).map_err(missing)?.shape().to_vec())
    }

    /// Reads the expected tensors, each of the expected shape and of a floating type, cast to `dtype`.
    ///
    /// `prefix` is put before each expected name to find it in the file; the builder knows it without the prefix.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`] that names the first tensor that is missing or has another shape or type.
    pub fn read(
        &self,
        prefix: &str,
        expected: &[(String, Vec<usize>)],
        dtype: DType,
        device: &Device,
    ) -> Result<VarBuilder<'static>, ArtifactError> {
        let mut read = HashMap::with_capacity(expected.len());
        for (name, shape) in expected {
            read.insert(name.clone(), self.tensor(&format!("{prefix}{name}"), shape, dtype, device)?);
        }
        Ok(VarBuilder::from_tensors(read, dtype, device))
    }

    /// The values of one tensor of the expected shape, row-major, as f32: made from the file's bytes without a copy between.
    ///
    /// # Errors
    /// As [`Weights::read`].
    pub fn values(&self, stored: &str, shape: &[usize]) -> Result<Vec<f32>, ArtifactError> {
        let tensors = self.tensors()?;
        floats(&self.view(&tensors, stored, shape)?).map_err(|reason| self.bad_tensor(stored, reason))
    }

    /// The values of one list of unsigned 32-bit integers.
    ///
    /// # Errors
    /// [`ArtifactError::Damaged`] where it is missing or of another type.
    pub fn unsigned(&self, stored: &str) -> Result<Vec<u32>, ArtifactError> {
        let tensors = self.tensors()?;
        match tensors.tensor(stored) {
            Ok(view) if view.dtype() == Dtype::U32 && view.shape().len() == 1 => {
                let (words, _) = view.data().as_chunks::<4>();
                Ok(words.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect())
            }
            _ => Err(ArtifactError::damaged(&self.path, format_args!("tensor `{stored}` is no list of U32"))),
        }
    }

    fn tensor(&self, stored: &str, shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor, ArtifactError> {
        let tensors = self.tensors()?;
        load_tensor(&self.view(&tensors, stored, shape)?, dtype, device)
            .map_err(|reason| self.bad_tensor(stored, reason))
    }

    /// The stored tensor of the expected shape.
    fn view<'data>(
        &self,
        tensors: &SafeTensors<'data>,
        stored: &str,
        shape: &[usize],
    ) -> Result<TensorView<'data>, ArtifactError> {
        let view = tensors
            .tensor(stored)
            .map_err(|_| ArtifactError::damaged(&self.path, format_args!("tensor `{stored}` is missing")))?;
        if view.shape() != shape {
            return Err(ArtifactError::damaged(
                &self.path,
                format_args!("tensor `{stored}` has shape {:?}, not {shape:?}", view.shape()),
            ));
        }
        Ok(view)
    }

    fn bad_tensor(&self, stored: &str, reason: impl std::fmt::Display) -> ArtifactError {
        ArtifactError::damaged(&self.path, format_args!("tensor `{stored}`: {reason}"))
    }
}

/// Whether all stored numbers are finite. A network with others would give answers that look like any.
fn check_finite(view: &TensorView<'_>) -> Result<(), String> {
    let all = |bits: &[u8], exponent: u16| {
        let (halves, _) = bits.as_chunks::<2>();
        halves.iter().all(|bytes| u16::from_le_bytes(*bytes) & exponent != exponent)
    };
    let finite = match view.dtype() {
        Dtype::F32 => {
            let (words, _) = view.data().as_chunks::<4>();
            words.iter().all(|bytes| f32::from_le_bytes(*bytes).is_finite())
        }
        Dtype::F16 => all(view.data(), 0x7c00),
        Dtype::BF16 => all(view.data(), 0x7f80),
        _ => true,
    };
    if finite { Ok(()) } else { Err("it holds numbers that are not finite".to_owned()) }
}

/// The values of a stored tensor; safetensors stores little-endian numbers.
fn floats(view: &TensorView<'_>) -> Result<Vec<f32>, String> {
    check_finite(view)?;
    let (halves, _) = view.data().as_chunks::<2>();
    let (words, _) = view.data().as_chunks::<4>();
    match view.dtype() {
        Dtype::F32 => Ok(words.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()),
        Dtype::F16 => Ok(halves.iter().map(|bytes| half::f16::from_le_bytes(*bytes).to_f32()).collect()),
        Dtype::BF16 => Ok(halves.iter().map(|bytes| half::bf16::from_le_bytes(*bytes).to_f32()).collect()),
        other => Err(wrong_type(other)),
    }
}

fn wrong_type(stored: Dtype) -> String {
    format!("type {stored:?} is none of F32, F16, BF16")
}

fn load_tensor(view: &TensorView<'_>, dtype: DType, device: &Device) -> Result<Tensor, String> {
    let stored = match view.dtype() {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        other => return Err(wrong_type(other)),
    };
    check_finite(view)?;
    Tensor::from_raw_buffer(view.data(), stored, view.shape(), &Device::Cpu)
        .and_then(|tensor| tensor.to_dtype(dtype))
        .and_then(|tensor| tensor.to_device(device))
        .map_err(|source| source.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_are_refused_by_the_name_of_their_tensor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        let (nan, infinite) = (half::f16::NAN.to_le_bytes(), half::bf16::INFINITY.to_le_bytes());
        for (dtype, bytes) in [
            (Dtype::F32, f32::NAN.to_le_bytes().to_vec()),
            (Dtype::F32, f32::NEG_INFINITY.to_le_bytes().to_vec()),
            (Dtype::F16, nan.to_vec()),
            (Dtype::BF16, infinite.to_vec()),
        ] {
            let view = TensorView::new(dtype, vec![1], &bytes).unwrap();
            let fine = 1f32.to_le_bytes();
            let fine = TensorView::new(Dtype::F32, vec![1], &fine).unwrap();
            let file = safetensors::serialize([("fine", fine), ("odd", view)], None).unwrap();
            std::fs::write(&path, file).unwrap();
            let weights = Weights::open(&path, None).unwrap();
            assert_eq!(weights.values("fine", &[1]).unwrap(), [1.0]);
            let error = weights.values("odd", &[1]).unwrap_err().to_string();
            assert!(error.contains("`odd`") && error.contains("not finite"), "{error}");
            assert!(weights.tensor("odd", &[1], DType::F32, &Device::Cpu).is_err());
        }
    }
}
