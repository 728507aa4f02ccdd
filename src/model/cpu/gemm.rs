//! Matrix products: a small register tile, and on top of it a matrix whose columns are packed for that tile.
//!
//! The left operand is read in place, row by row, one broadcast value at a time; the right one is read `panel_width` columns at a
//! time. Each value of the result is one accumulator that adds its products in the order of the inner dimension, however the work
//! is cut into tiles, blocks and threads: a row's result depends on nothing but that row.

use super::aligned::{AlignedBuffer, LINE};
use super::simd::{Isa, Kernel, Simd};

/// Inner dimension walked at a time, so that this part of a panel stays in the first-level cache while all rows pass over it.
const DEPTH_BLOCK: usize = 384;

/// The weights and bias of a linear layer, the weights in panels of adjacent output columns, each `[inputs, panel_width]`.
pub(super) struct PackedMatrix {
    panels: AlignedBuffer,
    bias: Vec<f32>,
    inputs: usize,
    panel_width: usize,
}

impl PackedMatrix {
    /// Room for `outputs` columns, rounded up to whole panels of zeros.
    pub(super) fn new(isa: Isa, inputs: usize, outputs: usize) -> Self {
        let panel_width = isa.panel_width();
        let padded_outputs = outputs.next_multiple_of(panel_width);
        Self {
            panels: AlignedBuffer::zeroed(padded_outputs * inputs),
            bias: vec![0.0; padded_outputs],
            inputs,
            panel_width,
        }
    }

    /// Puts `weight` (`[n, inputs]` row-major, as checkpoints store it) and `bias` (`[n]`), both times `scale`, at columns
    /// `first_column..first_column + n`.
    pub(super) fn set_columns(&mut self, first_column: usize, weight: &[f32], bias: &[f32], scale: f32) {
        assert_eq!(weight.len(), bias.len() * self.inputs, "a weight row for each bias");
        for (i, (row, &bias)) in weight.chunks_exact(self.inputs).zip(bias).enumerate() {
            let column = first_column + i;
            self.bias[column] = bias * scale;
            let panel = column / self.panel_width * self.panel_width * self.inputs;
            let targets = self.panels.as_mut_slice()[panel..].iter_mut().skip(column % self.panel_width);
            for (target, &value) in targets.step_by(self.panel_width).zip(row) {
                *target = value * scale;
            }
        }
    }

    /// Takes all values from `rows` (`[inputs, outputs]`, row-major), with no bias.
    pub(super) fn set_rows(&mut self, rows: &[f32]) {
        let outputs = rows.len() / self.inputs;
        for (input, row) in rows.chunks_exact(outputs).enumerate() {
            for (panel, values) in row.chunks(self.panel_width).enumerate() {
                let start = (panel * self.inputs + input) * self.panel_width;
                self.panels.as_mut_slice()[start..][..values.len()].copy_from_slice(values);
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

    /// `strip` (`[rows, panel_width]`) = `input` (`[rows, inputs]`) times panel `index`, without the bias. `S` is the instruction set
    /// that the matrix was packed for.
    #[inline(always)]
    pub(super) fn multiply_panel<S: Simd>(&self, simd: S, input: &[f32], index: usize, strip: &mut [f32]) {
        let width = self.panel_width;
        let panel_len = self.inputs * width;
        let from_here = &self.panels.as_slice()[index * panel_len..];
        let rows = input.len() / self.inputs;
        for start in (0..self.inputs).step_by(DEPTH_BLOCK) {
            let depth = DEPTH_BLOCK.min(self.inputs - start);
            let following = &from_here[(start + depth) * width..];
            simd.run(Product {
                left: &input[start..],
                left_stride: self.inputs,
                right: &from_here[start * width..panel_len],
                right_stride: width,
                depth,
                result: strip,
                result_stride: width,
                rows,
                accumulate: start > 0,
                // What follows in memory is what is multiplied next.
                next: &following[..following.len().min(depth * width)],
            });
        }
    }
}

/// `result = left * right`, or `result += left * right`, for one panel of columns.
pub(super) struct Product<'a> {
    /// `[rows, depth]`, rows `left_stride` apart.
    pub(super) left: &'a [f32],
    pub(super) left_stride: usize,
    /// `[depth, panel_width]`, rows `right_stride` apart.
    pub(super) right: &'a [f32],
    pub(super) right_stride: usize,
    /// The inner dimension.
    pub(super) depth: usize,
    /// `[rows, panel_width]`, rows `result_stride` apart.
    pub(super) result: &'a mut [f32],
    pub(super) result_stride: usize,
    pub(super) rows: usize,
    /// Adds to `result` instead of overwriting it.
    pub(super) accumulate: bool,
    /// What to bring near meanwhile: the right operand of the product after this one.
    pub(super) next: &'a [f32],
}

impl Kernel for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        if self.rows == 0 {
            return;
        }
        let width = S::panel_width();
        let reaches =
            |len: usize, count: usize, stride: usize, last: usize| count == 0 || (count - 1) * stride + last <= len;
        assert!(reaches(self.left.len(), self.rows, self.left_stride, self.depth));
        assert!(reaches(self.right.len(), self.depth, self.right_stride, width));
        assert!(reaches(self.result.len(), self.rows, self.result_stride, width));

        // Tiles of nearly equal height: a last tile of one or two rows would wait on the latency of its few accumulators.
        let n_tiles = self.rows.div_ceil(S::MAX_ROWS);
        let (height, higher) = (self.rows / n_tiles, self.rows % n_tiles);
        // A prefetch of an unmapped page is no fault but a slow walk of the page tables: without a next product, ask for what is there.
        let next = if self.next.is_empty() { self.right } else { self.next };
        let prefetch_step = (self.next.len() / (n_tiles * self.depth.div_ceil(UNROLL))).min(PREFETCHES * LINE);
        let mut first_row = 0;
        for i in 0..n_tiles {
            let rows = height + usize::from(i < higher);
            let tile = Tile {
                left: self.left[first_row * self.left_stride..].as_ptr(),
                left_stride: self.left_stride,
                right: self.right.as_ptr(),
                right_stride: self.right_stride,
                depth: self.depth,
                result: self.result[first_row * self.result_stride..].as_mut_ptr(),
                result_stride: self.result_stride,
                accumulate: self.accumulate,
                prefetch: next.as_ptr().wrapping_add(i * (self.depth / UNROLL) * prefetch_step),
                prefetch_step,
            };
            // SAFETY: the three assertions above cover every row of every tile.
            unsafe { tile.run_rows(simd, rows) }
            first_row += rows;
        }
    }
}

/// Steps of the inner dimension per loop iteration.
const UNROLL: usize = 4;
/// Cache lines prefetched per loop iteration.
const PREFETCHES: usize = 2;

/// One register tile of a [`Product`].
struct Tile {
    left: *const f32,
    left_stride: usize,
    right: *const f32,
    right_stride: usize,
    depth: usize,
    result: *mut f32,
    result_stride: usize,
    accumulate: bool,
    prefetch: *const f32,
    /// Values by which `prefetch` moves in each loop iteration.
    prefetch_step: usize,
}

impl Tile {
    /// Calls [`Self::run`] with the number of rows as a constant.
    ///
    /// # Safety
    /// See [`Self::run`]; `rows` is at most `S::MAX_ROWS`.
    #[inline(always)]
    unsafe fn run_rows<S: Simd>(self, simd: S, rows: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            match S::PANEL_VECTORS {
                2 => self.run_rows_of::<S, 2>(simd, rows),
                4 => self.run_rows_of::<S, 4>(simd, rows),
                _ => unreachable!("panels are 2 or 4 vectors wide"),
            }
        }
    }

    /// # Safety
    /// See [`Self::run`].
    #[inline(always)]
    unsafe fn run_rows_of<S: Simd, const VECTORS: usize>(self, simd: S, rows: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            match rows {
                1 => self.run::<S, 1, VECTORS>(simd),
                2 => self.run::<S, 2, VECTORS>(simd),
                3 => self.run::<S, 3, VECTORS>(simd),
                4 if S::MAX_ROWS >= 4 => self.run::<S, 4, VECTORS>(simd),
                5 if S::MAX_ROWS >= 5 => self.run::<S, 5, VECTORS>(simd),
                6 if S::MAX_ROWS >= 6 => self.run::<S, 6, VECTORS>(simd),
                7 if S::MAX_ROWS >= 7 => self.run::<S, 7, VECTORS>(simd),
                8 if S::MAX_ROWS >= 8 => self.run::<S, 8, VECTORS>(simd),
                9 if S::MAX_ROWS >= 9 => self.run::<S, 9, VECTORS>(simd),
                10 if S::MAX_ROWS >= 10 => self.run::<S, 10, VECTORS>(simd),
                11 if S::MAX_ROWS >= 11 => self.run::<S, 11, VECTORS>(simd),
                12 if S::MAX_ROWS >= 12 => self.run::<S, 12, VECTORS>(simd),
                _ => unreachable!("a tile has 1..=MAX_ROWS rows"),
            }
        }
    }

    /// Multiplies with `ROWS * VECTORS` accumulators in registers.
    ///
    /// # Safety
    /// `left` must be readable for `ROWS` rows of `depth` values, `right` for `depth` rows and `result` writable for `ROWS` rows
    /// of `VECTORS * LANES` values, at their strides.
    #[inline(always)]
    unsafe fn run<S: Simd, const ROWS: usize, const VECTORS: usize>(self, simd: S) {
        // SAFETY: every access stays within what the caller promises.
        unsafe {
            let mut sums = [[simd.splat(0.0); VECTORS]; ROWS];
            if self.accumulate {
                for (r, row) in sums.iter_mut().enumerate() {
                    for (v, sum) in row.iter_mut().enumerate() {
                        *sum = simd.load(self.result.add(r * self.result_stride + v * S::LANES));
                    }
                }
            }
            let (mut left, mut right, mut prefetch) = (self.left, self.right, self.prefetch);
            for _ in 0..self.depth / UNROLL {
                for i in 0..UNROLL {
                    left = one_by_one(left);
                    add_products(simd, &mut sums, left.add(i), self.left_stride, right.add(i * self.right_stride));
                }
                for i in 0..PREFETCHES {
                    simd.prefetch(prefetch.wrapping_add(i * self.prefetch_step / PREFETCHES));
                }
                left = left.add(UNROLL);
                right = right.add(UNROLL * self.right_stride);
                prefetch = prefetch.wrapping_add(self.prefetch_step);
            }
            for i in 0..self.depth % UNROLL {
                add_products(simd, &mut sums, left.add(i), self.left_stride, right.add(i * self.right_stride));
            }
            for (r, row) in sums.iter().enumerate() {
                for (v, &sum) in row.iter().enumerate() {
                    simd.store(self.result.add(r * self.result_stride + v * S::LANES), sum);
                }
            }
        }
    }
}

/// The same pointer, of which the compiler knows nothing: so the loads of one step are not moved before those of another, which
/// would take more registers than there are.
#[inline(always)]
fn one_by_one(pointer: *const f32) -> *const f32 {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    {
        let mut pointer = pointer;
        #[expect(clippy::pointers_in_nomem_asm_block, reason = "nothing is read or written through it")]
        // SAFETY: no instruction at all.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) pointer, options(pure, nomem, nostack, preserves_flags));
        }
        pointer
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pointer
}

/// One step of the inner dimension: `sums[r] += left[r] * right`.
///
/// # Safety
/// `left` must be readable at `ROWS` strides and `right` for `VECTORS * LANES` values.
#[inline(always)]
unsafe fn add_products<S: Simd, const ROWS: usize, const VECTORS: usize>(
    simd: S,
    sums: &mut [[S::V; VECTORS]; ROWS],
    left: *const f32,
    left_stride: usize,
    right: *const f32,
) {
    // SAFETY: every access stays within what the caller promises.
    unsafe {
        let mut weights = [simd.splat(0.0); VECTORS];
        for (v, weight) in weights.iter_mut().enumerate() {
            *weight = simd.load(right.add(v * S::LANES));
        }
        for (r, row) in sums.iter_mut().enumerate() {
            let value = simd.splat(*left.add(r * left_stride));
            for (sum, &weight) in row.iter_mut().zip(&weights) {
                *sum = simd.mul_add(value, weight, *sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Numbers, largest_difference};
    use super::*;

    struct Multiply<'a>(&'a PackedMatrix, &'a [f32], usize, &'a mut [f32]);
    impl Kernel for Multiply<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            self.0.multiply_panel(simd, self.1, self.2, self.3);
        }
    }

    #[test]
    fn every_size_multiplies_as_plain_loops_do() {
        let mut numbers = Numbers::seeded(2);
        let sizes = [(1, 1, 1), (2, 3, 5), (5, 4, 16), (7, 33, 17), (13, 400, 40), (26, 17, 32), (31, 1000, 8)];
        for (rows, inputs, outputs) in sizes {
            for size in [1.0, 1e4] {
                let input = numbers.take(rows * inputs, size);
                let (weight, bias) = (numbers.take(inputs * outputs, 1.0), numbers.take(outputs, 1.0));
                for isa in Isa::available() {
                    let mut matrix = PackedMatrix::new(isa, inputs, outputs);
                    matrix.set_columns(0, &weight, &bias, 2.0);
                    let width = isa.panel_width();
                    for panel in 0..matrix.n_panels() {
                        let mut got = vec![f32::NAN; rows * width];
                        isa.run(Multiply(&matrix, &input, panel, &mut got));
                        let dot = |row: usize, column: usize| {
                            let weights = weight.chunks_exact(inputs).nth(column)?;
                            let row = &input[row * inputs..][..inputs];
                            Some(row.iter().zip(weights).map(|(&x, &w)| 2.0 * f64::from(x) * f64::from(w)).sum())
                        };
                        let want: Vec<f64> = (0..rows * width)
                            .map(|i| dot(i / width, panel * width + i % width).unwrap_or(0.0))
                            .collect();
                        let error = largest_difference(&got, &want) / f64::from(size);
                        assert!(error < 1e-4, "{rows}x{inputs}x{outputs} on {}: {error}", isa.name());
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_the_rows_around_it() {
        let mut numbers = Numbers::seeded(3);
        let (inputs, rows) = (37, 29);
        let input = numbers.take(rows * inputs, 1.0);
        for isa in Isa::available() {
            let mut matrix = PackedMatrix::new(isa, inputs, 4);
            matrix.set_columns(0, &numbers.take(4 * inputs, 1.0), &[0.0; 4], 1.0);
            let width = isa.panel_width();
            let mut together = vec![0.0; rows * width];
            isa.run(Multiply(&matrix, &input, 0, &mut together));
            for (row, together) in input.chunks_exact(inputs).zip(together.chunks_exact(width)) {
                let mut alone = vec![0.0; width];
                isa.run(Multiply(&matrix, row, 0, &mut alone));
                assert_eq!(alone, together, "{}", isa.name());
            }
        }
    }
}
