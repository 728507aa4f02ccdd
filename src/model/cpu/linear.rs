//! A linear layer over a block of rows, with what follows it applied to each panel of columns while it is in the cache.

use super::aligned::AlignedBuffer;
use super::bytes::{ByteMachine, ByteMatrix, ByteRows};
use super::disjoint::DisjointSlice;
use super::gelu::gelu;
use super::gemm::PackedMatrix;
use super::simd::{Isa, Simd};

/// Columns of the widest panel.
const WIDEST_PANEL: usize = 32;

/// The weights and bias of a linear layer, in the precision that the encoder computes in.
pub(super) enum LinearWeights {
    /// f32
    Floats(PackedMatrix),
    /// 8 bits
    Bytes(ByteMatrix),
}

impl LinearWeights {
    /// Room for `outputs` columns, rounded up to whole panels of zeros; bytes where there is a machine for them.
    pub(super) fn new(isa: Isa, bytes: Option<ByteMachine>, inputs: usize, outputs: usize) -> Self {
        match bytes {
            None => Self::Floats(PackedMatrix::new(isa, inputs, outputs)),
            Some(machine) => Self::Bytes(ByteMatrix::new(isa, machine, inputs, outputs)),
        }
    }

    /// Takes `weight` (`[n, inputs]` row-major, as checkpoints store it) and `bias` (`[n]`), both times `scale`, for columns
    /// `first_column..first_column + n`.
    pub(super) fn set_columns(&mut self, first_column: usize, weight: &[f32], bias: &[f32], scale: f32) {
        match self {
            Self::Floats(matrix) => matrix.set_columns(first_column, weight, bias, scale),
            Self::Bytes(matrix) => matrix.set_columns(first_column, weight, bias, scale),
        }
    }

    fn n_panels(&self) -> usize {
        match self {
            Self::Floats(matrix) => matrix.n_panels(),
            Self::Bytes(matrix) => matrix.n_panels(),
        }
    }

    fn panel_bias(&self, index: usize) -> &[f32] {
        match self {
            Self::Floats(matrix) => matrix.panel_bias(index),
            Self::Bytes(matrix) => matrix.panel_bias(index),
        }
    }

    /// Before the first panel: `input` as bytes, where the weights are bytes.
    #[inline(always)]
    fn prepare<S: Simd>(&self, simd: S, input: Rows<'_>, bytes: &mut ByteRows) {
        if let Self::Bytes(_) = self {
            bytes.quantize(simd, input.values, input.values.len() / input.rows);
        }
    }

    /// `strip` (`[rows, panel_width]`) = the prepared `input` times panel `index`, without the bias.
    #[inline(always)]
    fn multiply_panel<S: Simd>(&self, simd: S, input: Rows<'_>, bytes: &ByteRows, index: usize, strip: &mut [f32]) {
        match self {
            Self::Floats(matrix) => matrix.multiply_panel(simd, input.values, index, strip),
            Self::Bytes(matrix) => matrix.multiply_panel(bytes, index, strip),
        }
    }
}

/// The input of a linear layer.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    /// `[rows, inputs]`
    pub(super) values: &'a [f32],
    /// How many.
    pub(super) rows: usize,
}

/// One worker's buffers for linear layers.
#[derive(Default)]
pub(super) struct LinearScratch {
    /// `[block rows, panel_width]`
    strip: AlignedBuffer,
    /// The block's rows as bytes, where the weights are bytes.
    bytes: ByteRows,
}

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

/// Each value of `output`, `[rows, outputs]`, becomes what `finish` makes of `input * W + b`.
#[inline(always)]
pub(super) fn linear<S: Simd, F: Finish>(
    simd: S,
    weights: &LinearWeights,
    input: Rows<'_>,
    scratch: &mut LinearScratch,
    output: &mut [f32],
    finish: F,
) {
    let panel_width = S::panel_width();
    let outputs = output.len() / input.rows;
    let LinearScratch { strip, bytes } = scratch;
    let strip = strip.at_least(input.rows * panel_width);
    weights.prepare(simd, input, bytes);
    for panel in 0..weights.n_panels() {
        weights.multiply_panel(simd, input, bytes, panel, strip);
        let column = panel * panel_width;
        let columns = panel_width.min(outputs - column);
        let bias = weights.panel_bias(panel);
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
    /// For each head its queries, then for each its keys, each `[tokens, width]`; then the values as panels of columns, each
    /// `[tokens, panel_width]`, for they become a right operand.
    pub(super) heads: DisjointSlice<'a>,
    /// A multiple of the panel width.
    pub(super) width: usize,
    /// Tokens of the whole batch.
    pub(super) tokens: usize,
    /// The block's first token.
    pub(super) first: usize,
}

/// `input * W + b`, cut up as attention wants it. No other task may use these rows of `target`.
#[inline(always)]
pub(super) fn linear_to_heads<S: Simd>(
    simd: S,
    weights: &LinearWeights,
    input: Rows<'_>,
    scratch: &mut LinearScratch,
    target: HeadRows<'_>,
) {
    let (panel_width, rows) = (S::panel_width(), input.rows);
    let first_value_panel = weights.n_panels() / 3 * 2;
    let LinearScratch { strip, bytes } = scratch;
    let strip = strip.at_least(rows * panel_width);
    weights.prepare(simd, input, bytes);
    for panel in 0..weights.n_panels() {
        weights.multiply_panel(simd, input, bytes, panel, strip);
        let width = if panel < first_value_panel { target.width } else { panel_width };
        let column = panel * panel_width;
        let (part, offset) = (column / width, column % width);
        // SAFETY: blocks have rows of their own.
        let part_rows = unsafe { target.heads.range((part * target.tokens + target.first) * width, rows * width) };
        let bias = weights.panel_bias(panel);
        for (row, sums) in part_rows.chunks_exact_mut(width).zip(strip.chunks_exact(panel_width)) {
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
