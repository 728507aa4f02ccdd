//! Self-attention of one head over one window, a few queries at a time: `softmax(Q K^T) V` without a `[T, T]` matrix.
//!
//! The queries come multiplied by `log2(e) / sqrt(d_k)` (the weights are packed so), which makes the softmax a matter of powers of
//! two. T = tokens of the window; `width` = `d_k` rounded up to whole weight panels, the rest zeros.

use super::aligned::AlignedBuffer;
use super::disjoint::DisjointSlice;
use super::exp2::exp2_nonpositive;
use super::gemm::Product;
use super::simd::{Kernel, Simd};

/// Queries whose scores are held at once; their scores against 128 keys fill half of a first-level cache.
const QUERIES: usize = 24;
/// Keys whose values are added up at once: a panel of values that the first-level cache holds beside the weights.
const KEYS: usize = 256;

/// One head of one window.
pub(super) struct HeadAttention<'a> {
    /// `[T, width]`, scaled.
    pub(super) queries: &'a [f32],
    /// `[T, width]`
    pub(super) keys: &'a [f32],
    /// `[T, panel_width]` for each panel of the head's columns, their starts `values_stride` apart.
    pub(super) values: &'a [f32],
    pub(super) values_stride: usize,
    pub(super) width: usize,
    /// Columns of the context; the `width - d_k` others are padding.
    pub(super) d_k: usize,
    pub(super) context: ContextColumns<'a>,
    /// `[T, T]`, rows = queries: where the weights go if somebody asked for them.
    pub(super) weights: Option<&'a mut [f32]>,
    pub(super) scratch: &'a mut AttentionScratch,
}

/// Where a head's context goes: `d_k` columns of the rows of its window.
#[derive(Clone, Copy)]
pub(super) struct ContextColumns<'a> {
    /// `[tokens, d_model]` of the whole batch.
    pub(super) rows: DisjointSlice<'a>,
    /// Of the window's first row and the head's first column.
    pub(super) start: usize,
    /// `d_model`
    pub(super) stride: usize,
}

/// One worker's buffers, grown to the longest window it has seen.
#[derive(Default)]
pub(super) struct AttentionScratch {
    /// `[panels, width, panel_width]`: the keys transposed into panels.
    key_panels: AlignedBuffer,
    /// `[QUERIES, T rounded up to panels]`
    scores: AlignedBuffer,
    /// `[QUERIES, panel_width]`
    strip: AlignedBuffer,
}

impl Kernel for HeadAttention<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let panel_width = S::panel_width();
        let n_tokens = self.queries.len() / self.width;
        let padded_tokens = n_tokens.next_multiple_of(panel_width);
        let key_panels = self.scratch.key_panels.at_least(padded_tokens * self.width);
        transpose_into_panels(self.keys, self.width, panel_width, key_panels);

        let scores = self.scratch.scores.at_least(QUERIES * padded_tokens);
        let strip = self.scratch.strip.at_least(QUERIES * panel_width);
        for first in (0..n_tokens).step_by(QUERIES) {
            let rows = QUERIES.min(n_tokens - first);
            for (i, panel) in key_panels.chunks_exact(self.width * panel_width).enumerate() {
                simd.run(Product {
                    left: &self.queries[first * self.width..],
                    left_stride: self.width,
                    right: panel,
                    right_stride: panel_width,
                    depth: self.width,
                    result: &mut scores[i * panel_width..],
                    result_stride: padded_tokens,
                    rows,
                    accumulate: false,
                    next: &[],
                });
            }
            let mut scales = [0.0; QUERIES];
            for (row, scale) in scores.chunks_exact_mut(padded_tokens).zip(&mut scales[..rows]) {
                *scale = 1.0 / exponentiate(simd, row, n_tokens);
            }
            if let Some(weights) = self.weights.as_deref_mut() {
                let weights = weights[first * n_tokens..].chunks_exact_mut(n_tokens);
                for ((weights, row), scale) in weights.zip(scores.chunks_exact(padded_tokens)).zip(&scales[..rows]) {
                    for (weight, value) in weights.iter_mut().zip(row) {
                        *weight = value * scale;
                    }
                }
            }
            for column in (0..self.width).step_by(panel_width) {
                let values = &self.values[column / panel_width * self.values_stride..];
                for start in (0..n_tokens).step_by(KEYS) {
                    let n_keys = KEYS.min(n_tokens - start);
                    simd.run(Product {
                        left: &scores[start..],
                        left_stride: padded_tokens,
                        right: &values[start * panel_width..][..n_keys * panel_width],
                        right_stride: panel_width,
                        depth: n_keys,
                        result: strip,
                        result_stride: panel_width,
                        rows,
                        accumulate: start > 0,
                        next: &[],
                    });
                }
                let columns = panel_width.min(self.d_k.saturating_sub(column));
                let strip_rows = strip.chunks_exact(panel_width).zip(&scales[..rows]);
                for (r, (row, scale)) in strip_rows.enumerate() {
                    let start = self.context.start + (first + r) * self.context.stride + column;
                    // SAFETY: no other task has this window and head, and so none these rows and columns.
                    let context = unsafe { self.context.rows.range(start, columns) };
                    for (context, value) in context.iter_mut().zip(row) {
                        *context = value * scale;
                    }
                }
            }
        }
    }
}

/// `keys` (`[T, width]`) as panels of `panel_width` keys, each `[width, panel_width]`; keys beyond T are zeros.
#[inline(always)]
fn transpose_into_panels(keys: &[f32], width: usize, panel_width: usize, panels: &mut [f32]) {
    for (panel, keys) in panels.chunks_exact_mut(width * panel_width).zip(keys.chunks(width * panel_width)) {
        let n_keys = keys.len() / width;
        for (k, row) in panel.chunks_exact_mut(panel_width).enumerate() {
            for (j, value) in row.iter_mut().enumerate() {
                *value = if j < n_keys { keys[j * width + k] } else { 0.0 };
            }
        }
    }
}

/// Replaces the first `n_tokens` scores of `row` by `2^(score - largest score)` and returns their sum, at least 1 - or NaN where one of
/// them is no finite number: the maximum would pass over it, and nonsense must not become a map. What follows them in the row, up to
/// whole vectors, is overwritten.
#[inline(always)]
fn exponentiate<S: Simd>(simd: S, row: &mut [f32], n_tokens: usize) -> f32 {
    // The last vectors are padding keys: as small as can be, they win no maximum and vanish in the sum.
    row[n_tokens..].fill(f32::MIN);
    let mut largest = simd.splat(f32::MIN);
    let zero = simd.splat(0.0);
    let mut nonsense = zero;
    for scores in row.chunks_exact(S::LANES) {
        let scores = simd.read(scores);
        largest = simd.max(largest, scores);
        nonsense = simd.mul_add(scores, zero, nonsense);
    }
    let largest = simd.splat(simd.largest(largest));
    let mut sum = nonsense;
    for scores in row.chunks_exact_mut(S::LANES) {
        let power = exp2_nonpositive(simd, simd.sub(simd.read(scores), largest));
        sum = simd.add(sum, power);
        simd.write(scores, power);
    }
    simd.sum(sum)
}
