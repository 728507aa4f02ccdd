//! A linear layer, with or without an adapter, and its backward pass.

use super::matmul::{Matrix, Target, matmul};
use super::{Gradients, Slot, Tensors};
use crate::model::cpu::MovingWeights;

/// Where a layer's tensors are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Linear {
    pub weight: Slot,
    pub bias: Slot,
    /// `A` `[rank, inputs]` and `B` `[outputs, rank]`.
    pub adapter: Option<Adapter>,
    pub inputs: usize,
    pub outputs: usize,
}

/// The low-rank part of a layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Adapter {
    pub down: Slot,
    pub up: Slot,
    pub rank: usize,
    pub scale: f32,
}

impl Linear {
    /// The layer's weights as the kernels read them, the adapter added: `W + scale B A`.
    pub(super) fn packed(&self, tensors: &Tensors<'_>) -> MovingWeights {
        let (weight, bias) = (tensors.get(self.weight), tensors.get(self.bias));
        let Some(adapter) = self.adapter else { return MovingWeights::pack(weight, bias, self.inputs) };
        let mut sum = weight.to_vec();
        let target = Target { values: &mut sum, row_stride: self.inputs, add: true };
        matmul(target, self.up(adapter, tensors), self.down(adapter, tensors), adapter.scale, 1);
        MovingWeights::pack(&sum, bias, self.inputs)
    }

    /// Adds the gradients of the layer's trained tensors; `packed` knows that of `x`.
    pub(super) fn backward(&self, tensors: &Tensors<'_>, x: &[f32], upstream: &[f32], gradients: &mut Gradients) {
        let rows = x.len() / self.inputs;
        let (x, upstream) = (Matrix::new(x, rows, self.inputs), Matrix::new(upstream, rows, self.outputs));
        if let Some(weight) = gradients.of(self.weight) {
            multiply(weight, self.inputs, true, upstream.transposed(), x, 1.0);
        }
        if let Some(bias) = gradients.of(self.bias) {
            let ones = vec![1.0; rows];
            multiply(bias, self.outputs, true, Matrix::new(&ones, 1, rows), upstream, 1.0);
        }
        if let Some(adapter) = self.adapter {
            let Adapter { rank, scale, .. } = adapter;
            let mut through = vec![0.0; rows * rank]; //                        g B, [T, rank]
            multiply(&mut through, rank, false, upstream, self.up(adapter, tensors), 1.0);
            let mut narrow = vec![0.0; rows * rank]; //                         x A^T, [T, rank]
            multiply(&mut narrow, rank, false, x, self.down(adapter, tensors).transposed(), 1.0);
            if let Some(up) = gradients.of(adapter.up) {
                multiply(up, rank, true, upstream.transposed(), Matrix::new(&narrow, rows, rank), scale);
            }
            if let Some(down) = gradients.of(adapter.down) {
                multiply(down, self.inputs, true, Matrix::new(&through, rows, rank).transposed(), x, scale);
            }
        }
    }

    fn up<'a>(&self, adapter: Adapter, tensors: &'a Tensors<'_>) -> Matrix<'a> {
        Matrix::new(tensors.get(adapter.up), self.outputs, adapter.rank)
    }

    fn down<'a>(&self, adapter: Adapter, tensors: &'a Tensors<'_>) -> Matrix<'a> {
        Matrix::new(tensors.get(adapter.down), adapter.rank, self.inputs)
    }
}

fn multiply(out: &mut [f32], row_stride: usize, add: bool, left: Matrix<'_>, right: Matrix<'_>, scale: f32) {
    matmul(Target { values: out, row_stride, add }, left, right, scale, rayon::current_num_threads());
}
