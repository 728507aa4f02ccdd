//! Linear layers on bytes: weights and activations of 8 bits, sums of 32, on machines that multiply four pairs of bytes in one
//! instruction.
//!
//! The inner dimension is cut into groups of [`GROUP`]. Each group of a weight column and each group of a row of activations has a
//! scale of its own, so that one large value coarsens only its neighbours: with one scale for a whole row, the pooled vector of some
//! mails falls below a cosine of 0.999 to the one in f32. Weights are symmetric about zero; activations have a zero point, because
//! what comes out of GELU is hardly ever negative.

#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(dead_code, unused_variables, reason = "only x86-64 has a machine so far")
)]

mod machine;
mod product;
mod rows;
#[cfg(test)]
mod tests;

use super::aligned::AlignedBuffer;
use super::simd::Isa;
pub(super) use machine::ByteMachine;
use product::{ByteProduct, PanelGroup};
pub(super) use rows::ByteRows;

/// Values of the inner dimension that share a scale.
const GROUP: usize = 64;
/// Bytes of the inner dimension that one instruction multiplies and adds up.
const QUAD: usize = 4;
/// The largest quantized weight: symmetric, so that -128 is not used.
const LARGEST_WEIGHT: f32 = 127.0;

/// The weights and bias of a linear layer, the weights as bytes in panels of adjacent output columns.
pub(super) struct ByteMatrix {
    machine: ByteMachine,
    /// Panels of `[inputs / 4, panel_width, 4]`, the inputs rounded up to whole fours.
    weights: AlignedBuffer,
    /// `[panels, groups, panel_width]`
    scales: AlignedBuffer,
    /// `[panels, groups, panel_width]`: a scale times the sum of the quantized weights that it belongs to.
    sums: AlignedBuffer,
    bias: Vec<f32>,
    inputs: usize,
    panel_width: usize,
}

impl ByteMatrix {
    /// Room for `outputs` columns, rounded up to whole panels of zeros.
    pub(super) fn new(isa: Isa, machine: ByteMachine, inputs: usize, outputs: usize) -> Self {
        let panel_width = isa.panel_width();
        let columns = outputs.next_multiple_of(panel_width);
        let n_scales = columns * inputs.div_ceil(GROUP);
        Self {
            machine,
            weights: AlignedBuffer::zeroed((columns * inputs.next_multiple_of(QUAD)).div_ceil(size_of::<f32>())),
            scales: AlignedBuffer::zeroed(n_scales),
            sums: AlignedBuffer::zeroed(n_scales),
            bias: vec![0.0; columns],
            inputs,
            panel_width,
        }
    }

    /// Quantizes `weight` (`[n, inputs]` row-major, as checkpoints store it) and takes `bias` (`[n]`), both times `scale`, for
    /// columns `first_column..first_column + n`.
    pub(super) fn set_columns(&mut self, first_column: usize, weight: &[f32], bias: &[f32], scale: f32) {
        assert_eq!(weight.len(), bias.len() * self.inputs, "a weight row for each bias");
        let (width, groups) = (self.panel_width, self.inputs.div_ceil(GROUP));
        let panel_bytes = self.inputs.next_multiple_of(QUAD) * width;
        for (i, (row, &bias)) in weight.chunks_exact(self.inputs).zip(bias).enumerate() {
            let (panel, column) = ((first_column + i) / width, (first_column + i) % width);
            self.bias[first_column + i] = bias * scale;
            let bytes = &mut self.weights.as_bytes_mut()[panel * panel_bytes..][..panel_bytes];
            for (group, values) in row.chunks(GROUP).enumerate() {
                let step = largest_size(values) / LARGEST_WEIGHT;
                let mut sum = 0.0;
                for (k, &value) in values.iter().enumerate() {
                    // A group of zeros has no step, and stays zero.
                    let byte = if step > 0.0 { (value / step).round() } else { 0.0 };
                    sum += byte;
                    let k = group * GROUP + k;
                    bytes[(k / QUAD * width + column) * QUAD + k % QUAD] = byte as i8 as u8;
                }
                let at = (panel * groups + group) * width + column;
                self.scales.as_mut_slice()[at] = step * scale;
                self.sums.as_mut_slice()[at] = step * scale * sum;
            }
        }
    }

    /// Number of panels.
    pub(super) fn n_panels(&self) -> usize {
        self.bias.len() / self.panel_width
    }

    /// The bias of panel `index`'s columns.
    pub(super) fn panel_bias(&self, index: usize) -> &[f32] {
        &self.bias[index * self.panel_width..][..self.panel_width]
    }

    /// `strip` (`[rows, panel_width]`) = `input` (`[rows, inputs]`) times panel `index`, without the bias.
    pub(super) fn multiply_panel(&self, input: &ByteRows, index: usize, strip: &mut [f32]) {
        let (width, groups) = (self.panel_width, self.inputs.div_ceil(GROUP));
        let panel_bytes = self.inputs.next_multiple_of(QUAD) * width;
        let weights = &self.weights.as_bytes()[index * panel_bytes..][..panel_bytes];
        for group in 0..groups {
            let at = (index * groups + group) * width;
            let first = group * GROUP;
            let depth = GROUP.min(self.inputs - first).next_multiple_of(QUAD);
            self.machine.multiply(ByteProduct {
                left: input.group(group),
                panel: PanelGroup {
                    weights: &weights[first * width..][..depth * width],
                    scales: &self.scales.as_slice()[at..][..width],
                    sums: &self.sums.as_slice()[at..][..width],
                },
                depth,
                result: strip,
                accumulate: group > 0,
            });
        }
    }
}

/// The largest absolute value; NaN where a value is none or infinite, so that it reaches the results.
fn largest_size(values: &[f32]) -> f32 {
    values.iter().fold(
        0.0,
        |largest: f32, value| {
            if value.is_finite() && !largest.is_nan() { largest.max(value.abs()) } else { f32::NAN }
        },
    )
}
