//! A linear layer over a block of rows, with what follows it applied to each panel of columns while it is in the cache.

use super::disjoint::DisjointSlice;
use super::gelu::gelu;
use super::gemm::PackedMatrix;
use super::simd::Simd;

/// Columns of the widest panel.
const WIDEST_PANEL: usize = 32;

/// `output = gelu(input * W + b)`; `input` is `[rows, inputs]`, `output` `[rows, outputs]`.
#[inline(always)]
pub(super) fn linear_gelu<S: Simd>(
    simd: S,
    matrix: &PackedMatrix,
    input: &[f32],
    output: &mut [f32],
    strip: &mut [f32],
) {
    linear(
        simd,
        matrix,
        input,
        output,
        strip,
        #[inline(always)]
        |sum, _| gelu(simd, sum),
    );
}

/// `residual += input * W + b`; `input` is `[rows, inputs]`, `residual` `[rows, outputs]`.
#[inline(always)]
pub(super) fn linear_add<S: Simd>(
    simd: S,
    matrix: &PackedMatrix,
    input: &[f32],
    residual: &mut [f32],
    strip: &mut [f32],
) {
    linear(
        simd,
        matrix,
        input,
        residual,
        strip,
        #[inline(always)]
        |sum, old| simd.add(sum, old),
    );
}

/// Where [`linear_to_heads`] puts a block's rows.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<'a> {
    /// `[heads, tokens, width]`; `width` is a multiple of the panel width.
    pub(super) heads: DisjointSlice<'a>,
    pub(super) width: usize,
    /// Tokens of the whole batch.
    pub(super) tokens: usize,
    /// The block's first token.
    pub(super) first: usize,
}

/// `input * W + b`, each `width` columns to a matrix of their own. No other task may use these rows of `target`.
#[inline(always)]
pub(super) fn linear_to_heads<S: Simd>(
    simd: S,
    matrix: &PackedMatrix,
    input: &[f32],
    target: HeadRows<'_>,
    strip: &mut [f32],
) {
    let panel_width = matrix.panel_width();
    for panel in 0..matrix.n_panels() {
        matrix.multiply_panel(simd, input, panel, strip);
        let column = panel * panel_width;
        let (head, offset) = (column / target.width, column % target.width);
        let rows = strip.len() / panel_width;
        let start = (head * target.tokens + target.first) * target.width;
        // SAFETY: blocks have rows of their own, and only this panel's columns are written by this call.
        let rows_of_head = unsafe { target.heads.range(start, rows * target.width) };
        let bias = matrix.panel_bias(panel);
        let rows = rows_of_head.chunks_exact_mut(target.width).zip(strip.chunks_exact(panel_width));
        for (row, sums) in rows {
            finish_row(simd, sums, bias, &mut row[offset..][..panel_width], |sum, _| sum);
        }
    }
}

/// Each value of `output` becomes `finish(input * W + b, its old value)`.
#[inline(always)]
fn linear<S: Simd>(
    simd: S,
    matrix: &PackedMatrix,
    input: &[f32],
    output: &mut [f32],
    strip: &mut [f32],
    finish: impl Fn(S::V, S::V) -> S::V,
) {
    let panel_width = matrix.panel_width();
    let rows = strip.len() / panel_width;
    let outputs = output.len() / rows;
    for panel in 0..matrix.n_panels() {
        matrix.multiply_panel(simd, input, panel, strip);
        let column = panel * panel_width;
        let columns = panel_width.min(outputs - column);
        let bias = matrix.panel_bias(panel);
        for (row, sums) in output.chunks_exact_mut(outputs).zip(strip.chunks_exact(panel_width)) {
            let row = &mut row[column..][..columns];
            if columns == panel_width {
                finish_row(simd, sums, bias, row, &finish);
            } else {
                let mut padded = [0.0; WIDEST_PANEL];
                padded[..columns].copy_from_slice(row);
                finish_row(simd, sums, bias, &mut padded[..panel_width], &finish);
                row.copy_from_slice(&padded[..columns]);
            }
        }
    }
}

/// `row = finish(sums + bias, row)`
#[inline(always)]
fn finish_row<S: Simd>(simd: S, sums: &[f32], bias: &[f32], row: &mut [f32], finish: impl Fn(S::V, S::V) -> S::V) {
    let sums = sums.chunks_exact(S::LANES).zip(bias.chunks_exact(S::LANES));
    for (target, (sum, bias)) in row.chunks_exact_mut(S::LANES).zip(sums) {
        let sum = simd.add(simd.read(sum), simd.read(bias));
        simd.write(target, finish(sum, simd.read(target)));
    }
}
