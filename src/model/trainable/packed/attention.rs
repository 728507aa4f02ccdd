//! Self-attention over packed windows and its backward pass. All matrices are `[T, D]` with the heads side by side.

use rayon::prelude::*;

use super::matmul::{Matrix, Target, matmul};
use crate::model::cpu::training::{softmax_backward_rows, softmax_rows};

/// Queries, keys and values of all tokens.
#[derive(Clone, Copy)]
pub(super) struct Inputs<'a> {
    pub queries: &'a [f32],
    pub keys: &'a [f32],
    pub values: &'a [f32],
}

/// How the tokens are cut into windows, and the width into heads.
#[derive(Clone, Copy)]
pub(super) struct Windows<'a> {
    /// Cumulative token offsets, one more than there are windows.
    pub offsets: &'a [usize],
    pub n_heads: usize,
    /// D.
    pub width: usize,
}

impl Windows<'_> {
    fn d_k(&self) -> usize {
        self.width / self.n_heads
    }

    /// One head's `[n, d_k]` block of a window.
    fn block<'a>(&self, all: &'a [f32], window: usize, head: usize) -> Matrix<'a> {
        let rows = &all[self.offsets[window] * self.width..self.offsets[window + 1] * self.width];
        Matrix::strided(&rows[head * self.d_k()..], rows.len() / self.width, self.d_k(), self.width)
    }

    /// One piece of a `[T, D]` matrix for each window.
    fn pieces<'a>(&self, mut rows: &'a mut [f32]) -> Vec<&'a mut [f32]> {
        let mut pieces = Vec::with_capacity(self.offsets.len());
        for pair in self.offsets.windows(2) {
            let (piece, rest) = rows.split_at_mut((pair[1] - pair[0]) * self.width);
            pieces.push(piece);
            rows = rest;
        }
        pieces
    }

    fn place<'a>(&self, rows: &'a mut [f32], head: usize) -> Target<'a> {
        Target { values: &mut rows[head * self.d_k()..], row_stride: self.width, add: false }
    }

    /// `softmax(Q K^T / sqrt(d_k))` of one head over one window, `[n, n]`.
    fn weights(&self, inputs: Inputs<'_>, window: usize, head: usize, out: &mut Vec<f32>) {
        let (queries, keys) = (self.block(inputs.queries, window, head), self.block(inputs.keys, window, head));
        let n = queries.rows;
        out.resize(n * n, 0.0);
        let scale = 1.0 / (self.d_k() as f32).sqrt();
        matmul(Target { values: out, row_stride: n, add: false }, queries, keys.transposed(), scale, 1);
        softmax_rows(out, n);
    }
}

/// `context = softmax(Q K^T / sqrt(d_k)) V`, for each head and window.
pub(super) fn forward(inputs: Inputs<'_>, windows: Windows<'_>, context: &mut [f32]) {
    windows.pieces(context).into_par_iter().enumerate().for_each_init(Vec::new, |map, (window, context)| {
        for head in 0..windows.n_heads {
            windows.weights(inputs, window, head, map);
            let values = windows.block(inputs.values, window, head);
            let weights = Matrix::new(map, values.rows, values.rows);
            matmul(windows.place(context, head), weights, values, 1.0, 1);
        }
    });
}

/// Where the gradients of [`Inputs`] go.
pub(super) struct Gradients<'a> {
    pub queries: &'a mut [f32],
    pub keys: &'a mut [f32],
    pub values: &'a mut [f32],
}

/// The gradients of the inputs from that of the context. The weights are computed anew: that is cheaper than keeping them.
pub(super) fn backward(inputs: Inputs<'_>, windows: Windows<'_>, upstream: &[f32], gradients: Gradients<'_>) {
    let Gradients { queries, keys, values } = gradients;
    let keys_values = windows.pieces(keys).into_par_iter().zip(windows.pieces(values));
    let pieces = windows.pieces(queries).into_par_iter().zip(keys_values).enumerate();
    pieces.for_each_init(Default::default, |(map, slope): &mut (Vec<f32>, Vec<f32>), (window, (dq, (dk, dv)))| {
        for head in 0..windows.n_heads {
            let block = |all| windows.block(all, window, head);
            let (q, k, v, up) = (block(inputs.queries), block(inputs.keys), block(inputs.values), block(upstream));
            let n = q.rows;
            windows.weights(inputs, window, head, map);
            matmul(windows.place(dv, head), Matrix::new(map, n, n).transposed(), up, 1.0, 1);
            slope.resize(n * n, 0.0);
            matmul(Target { values: slope, row_stride: n, add: false }, up, v.transposed(), 1.0, 1);
            softmax_backward_rows(&map[..n * n], slope, n, 1.0 / (windows.d_k() as f32).sqrt());
            let slope = Matrix::new(slope, n, n);
            matmul(windows.place(dq, head), slope, k, 1.0, 1);
            matmul(windows.place(dk, head), slope.transposed(), q, 1.0, 1);
        }
    });
}
