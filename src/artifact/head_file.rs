//! `head.safetensors`: the head of a router.

use std::path::Path;

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::ArtifactError;
use super::weights::Weights;

const QUERY: &str = "pooling.query";
const WEIGHT: &str = "classifier.weight";
const BIAS: &str = "classifier.bias";

/// The tensors of `head.safetensors`.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadTensors {
    /// Width of a hidden state.
    pub d_model: usize,
    /// `[queues, d_model]`, row-major: what each queue looks for in a token. Empty where the head reads one vector a mail.
    pub query: Vec<f32>,
    /// `[queues, d_model]`, row-major.
    pub weight: Vec<f32>,
    /// `[queues]`.
    pub bias: Vec<f32>,
}

impl HeadTensors {
    /// Reads the file and checks its shapes; without a `d_model` the file's own is taken.
    pub(super) fn read(
        path: &Path,
        sha256: &str,
        d_model: Option<usize>,
        n_queues: usize,
    ) -> Result<Self, ArtifactError> {
        let weights = Weights::open(path, Some(sha256))?;
        let stored = weights.shape(WEIGHT)?;
        let d_model = d_model.or_else(|| stored.last().copied()).unwrap_or_default();
        let matrix = [n_queues, d_model];
        let query = if weights.names()?.contains(QUERY) { weights.values(QUERY, &matrix)? } else { Vec::new() };
        Ok(Self { d_model, query, weight: weights.values(WEIGHT, &matrix)?, bias: weights.values(BIAS, &[n_queues])? })
    }

    pub(super) fn to_safetensors(&self) -> Result<Vec<u8>, SafeTensorError> {
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let (weight, bias) = (bytes(&self.weight), bytes(&self.bias));
        let n_queues = self.bias.len();
        let mut views = vec![
            (WEIGHT, TensorView::new(Dtype::F32, vec![n_queues, self.d_model], &weight)?),
            (BIAS, TensorView::new(Dtype::F32, vec![n_queues], &bias)?),
        ];
        let query = bytes(&self.query);
        if !query.is_empty() {
            views.push((QUERY, TensorView::new(Dtype::F32, vec![n_queues, self.d_model], &query)?));
        }
        serialize(views, None)
    }
}
