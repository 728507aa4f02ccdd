//! `head.safetensors`: the head of a router.

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, TensorView, serialize};

/// The tensors of `head.safetensors`.
#[derive(Debug, Clone, PartialEq)]
pub struct HeadTensors {
    /// Width of the pooled vector.
    pub d_model: usize,
    /// `[queues, d_model]`, row-major.
    pub weight: Vec<f32>,
    /// `[queues]`.
    pub bias: Vec<f32>,
}

impl HeadTensors {
    pub(super) fn expected(d_model: usize, n_queues: usize) -> Vec<(String, Vec<usize>)> {
        vec![("classifier.weight".to_owned(), vec![n_queues, d_model]), ("classifier.bias".to_owned(), vec![n_queues])]
    }

    pub(super) fn to_safetensors(&self) -> Result<Vec<u8>, SafeTensorError> {
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let (weight, bias) = (bytes(&self.weight), bytes(&self.bias));
        let n_queues = self.bias.len();
        let views = [
            ("classifier.weight", TensorView::new(Dtype::F32, vec![n_queues, self.d_model], &weight)?),
            ("classifier.bias", TensorView::new(Dtype::F32, vec![n_queues], &bias)?),
        ];
        serialize(views, None)
    }
}
