//! The product of a group of bytes, in register tiles.

use super::super::simd::Simd;
use super::QUAD;
use super::rows::RowGroup;

/// `result = left * panel`, or `result += left * panel`, over one group of the inner dimension.
pub(super) struct ByteProduct<'a> {
    pub(super) left: RowGroup<'a>,
    pub(super) panel: PanelGroup<'a>,
    /// The inner dimension, whole fours.
    pub(super) depth: usize,
    /// `[rows, panel_width]`
    pub(super) result: &'a mut [f32],
    /// Adds to `result` instead of overwriting it.
    pub(super) accumulate: bool,
}

/// One group of a panel of columns.
#[derive(Clone, Copy)]
pub(super) struct PanelGroup<'a> {
    /// `[depth / 4, panel_width, 4]`
    pub(super) weights: &'a [u8],
    /// `[panel_width]`
    pub(super) scales: &'a [f32],
    /// `[panel_width]`: scale times the sum of the weights.
    pub(super) sums: &'a [f32],
}

/// Vectors of 32-bit sums of products of bytes, beside the vectors of f32 of the same width.
pub(super) trait ByteDot: Copy {
    /// The instruction set that the f32 part is written for.
    type Floats: Simd;
    /// A vector register: bytes, or sums of 32 bits.
    type I: Copy;

    fn floats(self) -> Self::Floats;
    fn zero(self) -> Self::I;
    /// A vector of weights.
    ///
    /// # Safety
    /// `source` must be readable for a whole vector.
    unsafe fn load(self, source: *const u8) -> Self::I;
    /// Four activations, in every lane the same.
    ///
    /// # Safety
    /// `source` must be readable for four bytes.
    unsafe fn splat(self, source: *const u8) -> Self::I;
    /// To each lane of `sums` the four products of unsigned `activations` and signed `weights`.
    fn add_dot(self, sums: Self::I, activations: Self::I, weights: Self::I) -> Self::I;
    /// The sums as f32.
    fn to_floats(self, sums: Self::I) -> <Self::Floats as Simd>::V;
}

impl ByteProduct<'_> {
    /// Multiplies with `machine`'s instructions, which the caller must be compiled for.
    #[inline(always)]
    pub(super) fn run<B: ByteDot>(self, machine: B) {
        let width = B::Floats::panel_width();
        let rows = self.left.scales.len();
        assert!(rows == 0 || (rows - 1) * self.left.stride + self.depth <= self.left.bytes.len());
        assert!(self.depth.is_multiple_of(QUAD) && self.panel.weights.len() == self.depth * width);
        assert!(self.panel.scales.len() == width && self.panel.sums.len() == width);
        assert!(self.result.len() >= rows * width);
        let most = B::Floats::MAX_ROWS;
        // Tiles of nearly equal height, as in the product of floats.
        let n_tiles = rows.div_ceil(most).max(1);
        let (height, higher) = (rows / n_tiles, rows % n_tiles);
        let mut first = 0;
        for i in 0..n_tiles {
            let rows = height + usize::from(i < higher);
            let tile = Tile {
                left: self.left.bytes[first * self.left.stride..].as_ptr(),
                left_stride: self.left.stride,
                left_scales: self.left.scales[first..first + rows].as_ptr(),
                panel: self.panel,
                depth: self.depth,
                result: self.result[first * width..].as_mut_ptr(),
                accumulate: self.accumulate,
            };
            // SAFETY: the assertions above cover every row of every tile.
            unsafe { tile.run_rows(machine, rows) }
            first += rows;
        }
    }
}

/// One register tile of a [`ByteProduct`].
struct Tile<'a> {
    left: *const u8,
    left_stride: usize,
    left_scales: *const [f32; 2],
    panel: PanelGroup<'a>,
    depth: usize,
    result: *mut f32,
    accumulate: bool,
}

impl Tile<'_> {
    /// Calls [`Self::run`] with the number of rows as a constant.
    ///
    /// # Safety
    /// See [`Self::run`].
    #[inline(always)]
    unsafe fn run_rows<B: ByteDot>(self, machine: B, rows: usize) {
        // SAFETY: passed on to the caller.
        unsafe {
            match rows {
                0 => {}
                1 => self.run::<B, 1>(machine),
                2 => self.run::<B, 2>(machine),
                3 => self.run::<B, 3>(machine),
                4 => self.run::<B, 4>(machine),
                5 => self.run::<B, 5>(machine),
                6 => self.run::<B, 6>(machine),
                7 if B::Floats::MAX_ROWS >= 7 => self.run::<B, 7>(machine),
                8 if B::Floats::MAX_ROWS >= 8 => self.run::<B, 8>(machine),
                9 if B::Floats::MAX_ROWS >= 9 => self.run::<B, 9>(machine),
                10 if B::Floats::MAX_ROWS >= 10 => self.run::<B, 10>(machine),
                11 if B::Floats::MAX_ROWS >= 11 => self.run::<B, 11>(machine),
                12 if B::Floats::MAX_ROWS >= 12 => self.run::<B, 12>(machine),
                _ => unreachable!("a tile has at most MAX_ROWS rows"),
            }
        }
    }

    /// Multiplies with `ROWS * VECTORS` sums in registers.
    ///
    /// # Safety
    /// `left` must be readable for `ROWS` rows of `depth` bytes and `result` writable for `ROWS` rows of a panel.
    #[inline(always)]
    unsafe fn run<B: ByteDot, const ROWS: usize>(self, machine: B) {
        let simd = machine.floats();
        let lanes = B::Floats::LANES;
        // SAFETY: every access stays within what the caller promises; the panel was checked to be whole.
        unsafe {
            let mut sums = [[machine.zero(); VECTORS]; ROWS];
            let mut weights = self.panel.weights.as_ptr();
            let mut left = self.left;
            for _ in 0..self.depth / QUAD {
                let mut vectors = [machine.zero(); VECTORS];
                for (v, vector) in vectors.iter_mut().enumerate() {
                    *vector = machine.load(weights.add(v * lanes * QUAD));
                }
                for (r, row) in sums.iter_mut().enumerate() {
                    let activations = machine.splat(left.add(r * self.left_stride));
                    for (sum, &vector) in row.iter_mut().zip(&vectors) {
                        *sum = machine.add_dot(*sum, activations, vector);
                    }
                }
                weights = weights.add(VECTORS * lanes * QUAD);
                left = left.add(QUAD);
            }
            let (scales, weight_sums) = (self.panel.scales.as_ptr(), self.panel.sums.as_ptr());
            for (r, row) in sums.iter().enumerate() {
                let [scale, scaled_zero] = *self.left_scales.add(r);
                let (scale, shift) = (simd.splat(scale), simd.splat(-scaled_zero));
                for (v, &sum) in row.iter().enumerate() {
                    let target = self.result.add((r * VECTORS + v) * lanes);
                    let before = if self.accumulate { simd.load(target) } else { simd.splat(0.0) };
                    // scale * (sum - zero * sum of the weights) * scale of the weights
                    let product = simd.mul(machine.to_floats(sum), simd.load(scales.add(v * lanes)));
                    let shifted = simd.mul_add(shift, simd.load(weight_sums.add(v * lanes)), before);
                    simd.store(target, simd.mul_add(scale, product, shifted));
                }
            }
        }
    }
}

/// Vectors in one row of a panel: two on every machine that multiplies bytes.
const VECTORS: usize = 2;
