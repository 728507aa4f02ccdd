//! A linear layer, with or without an adapter, and its backward pass.

use rayon::prelude::*;

use super::matmul::{Matrix, Target, matmul};
use super::{Gradients, Slot, Tensors};

/// Rows of a block in which a bias is filled in.
const ROWS: usize = 64;

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
    /// `y = x W^T + b` and the adapter's part; `x` `[T, inputs]`, `y` `[T, outputs]`.
    pub(super) fn forward(&self, tensors: &Tensors<'_>, x: &[f32], y: &mut [f32]) {
        let bias = tensors.get(self.bias);
        y.par_chunks_mut(ROWS * self.outputs)
            .for_each(|rows| rows.chunks_exact_mut(self.outputs).for_each(|row| row.copy_from_slice(bias)));
        let x = Matrix::new(x, x.len() / self.inputs, self.inputs);
        multiply(y, self.outputs, true, x, self.weight(tensors).transposed(), 1.0);
        if let Some(adapter) = self.adapter {
            let narrow = self.narrowed(adapter, tensors, x);
            let narrow = Matrix::new(&narrow, x.rows, adapter.rank);
            multiply(y, self.outputs, true, narrow, self.up(adapter, tensors).transposed(), adapter.scale);
        }
    }

    /// Adds the gradients of the layer's trained tensors, and that of `x` to `grad_x` where it is wanted.
    pub(super) fn backward(
        &self,
        tensors: &Tensors<'_>,
        x: &[f32],
        upstream: &[f32],
        gradients: &mut Gradients,
        grad_x: Option<&mut [f32]>,
    ) {
        let rows = x.len() / self.inputs;
        let (x, upstream) = (Matrix::new(x, rows, self.inputs), Matrix::new(upstream, rows, self.outputs));
        if let Some(weight) = gradients.of(self.weight) {
            multiply(weight, self.inputs, true, upstream.transposed(), x, 1.0);
        }
        if let Some(bias) = gradients.of(self.bias) {
            let ones = vec![1.0; rows];
            multiply(bias, self.outputs, true, Matrix::new(&ones, 1, rows), upstream, 1.0);
        }
        let through = self.adapter.map(|adapter| {
            let Adapter { rank, scale, .. } = adapter;
            let mut through = vec![0.0; rows * rank]; //                        g B, [T, rank]
            multiply(&mut through, rank, false, upstream, self.up(adapter, tensors), 1.0);
            let (narrow, flowing) = (self.narrowed(adapter, tensors, x), Matrix::new(&through, rows, rank));
            if let Some(up) = gradients.of(adapter.up) {
                multiply(up, rank, true, upstream.transposed(), Matrix::new(&narrow, rows, rank), scale);
            }
            if let Some(down) = gradients.of(adapter.down) {
                multiply(down, self.inputs, true, flowing.transposed(), x, scale);
            }
            (adapter, through)
        });
        let Some(grad_x) = grad_x else { return };
        multiply(grad_x, self.inputs, true, upstream, self.weight(tensors), 1.0);
        if let Some((adapter, through)) = through {
            let down = Matrix::new(tensors.get(adapter.down), adapter.rank, self.inputs);
            multiply(grad_x, self.inputs, true, Matrix::new(&through, rows, adapter.rank), down, adapter.scale);
        }
    }

    fn weight<'a>(&self, tensors: &'a Tensors<'_>) -> Matrix<'a> {
        Matrix::new(tensors.get(self.weight), self.outputs, self.inputs)
    }

    fn up<'a>(&self, adapter: Adapter, tensors: &'a Tensors<'_>) -> Matrix<'a> {
        Matrix::new(tensors.get(adapter.up), self.outputs, adapter.rank)
    }

    /// `x A^T`, `[T, rank]`.
    fn narrowed(&self, adapter: Adapter, tensors: &Tensors<'_>, x: Matrix<'_>) -> Vec<f32> {
        let mut narrow = vec![0.0; x.rows * adapter.rank];
        let down = Matrix::new(tensors.get(adapter.down), adapter.rank, self.inputs);
        multiply(&mut narrow, adapter.rank, false, x, down.transposed(), 1.0);
        narrow
    }
}

fn multiply(out: &mut [f32], row_stride: usize, add: bool, left: Matrix<'_>, right: Matrix<'_>, scale: f32) {
    matmul(Target { values: out, row_stride, add }, left, right, scale, rayon::current_num_threads());
}
