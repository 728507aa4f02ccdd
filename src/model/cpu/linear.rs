//! A linear layer over a block of rows, with what follows it applied to each panel of columns while it is in the cache.

use super::disjoint::DisjointSlice;
use super::gelu::gelu;
use super::gemm::PackedMatrix;
use super::simd::Simd;

/// Columns of the widest panel.
const WIDEST_PANEL: usize = 32;

/// What becomes of a linear layer's result. (Closures would do, but that they are inlined cannot be asked for everywhere, and a
/// kernel that is not inlined is not compiled for its instruction set.)
pub(super) trait Finish: Copy {
    /// The new value where `old` was and `sum` is `input * W + b`.
    fn apply<S: Simd>(self, simd: S, sum: S::V, old: S::V) -> S::V;
}

/// The result itself.
#[derive(Clone, Copy)]
pub(super) struct Replace;

/// `gelu(result)`
#[derive(Clone, Copy)]
pub(super) struct Gelu;

/// The result added to what is there: a residual connection.
#[derive(Clone, Copy)]
pub(super) struct AddTo;

impl Finish for Replace {
    #[inline(always)]
    fn apply<S: Simd>(self, _simd: S, sum: S::V, _old: S::V) -> S::V {
        sum
    }
}

impl Finish for Gelu {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, sum: S::V, _old: S::V) -> S::V {
        gelu(simd, sum)
    }
}

impl Finish for AddTo {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, sum: S::V, old: S::V) -> S::V {
        simd.add(sum, old)
    }
}

/// Each value of `output`, `[rows, outputs]`, becomes what `finish` makes of `input * W + b`; `input` is `[rows, inputs]` and
/// `strip` room for `[rows, panel_width]`.
#[inline(always)]
pub(super) fn linear<S: Simd, F: Finish>(
    simd: S,
    matrix: &PackedMatrix,
    input: &[f32],
    strip: &mut [f32],
    output: &mut [f32],
    finish: F,
) {
    let panel_width = S::panel_width();
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
                finish_row(simd, sums, bias, row, finish);
            } else {
                let mut padded = [0.0; WIDEST_PANEL];
                padded[..columns].copy_from_slice(row);
                finish_row(simd, sums, bias, &mut padded[..panel_width], finish);
                row.copy_from_slice(&padded[..columns]);
            }
        }
    }
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
    strip: &mut [f32],
    target: HeadRows<'_>,
) {
    let panel_width = S::panel_width();
    let rows = strip.len() / panel_width;
    for panel in 0..matrix.n_panels() {
        matrix.multiply_panel(simd, input, panel, strip);
        let column = panel * panel_width;
        let (head, offset) = (column / target.width, column % target.width);
        let start = (head * target.tokens + target.first) * target.width;
        // SAFETY: blocks have rows of their own.
        let head_rows = unsafe { target.heads.range(start, rows * target.width) };
        let bias = matrix.panel_bias(panel);
        for (row, sums) in head_rows.chunks_exact_mut(target.width).zip(strip.chunks_exact(panel_width)) {
            finish_row(simd, sums, bias, &mut row[offset..][..panel_width], Replace);
        }
    }
}

/// `row` becomes what `finish` makes of `sums + bias`.
#[inline(always)]
fn finish_row<S: Simd, F: Finish>(simd: S, sums: &[f32], bias: &[f32], row: &mut [f32], finish: F) {
    let sums = sums.chunks_exact(S::LANES).zip(bias.chunks_exact(S::LANES));
    for (target, (sum, bias)) in row.chunks_exact_mut(S::LANES).zip(sums) {
        let sum = simd.add(simd.read(sum), simd.read(bias));
        simd.write(target, finish.apply(simd, sum, simd.read(target)));
    }
}
