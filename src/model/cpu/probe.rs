//! The matrix product alone, for measuring how close the encoder comes to it.

use super::aligned::AlignedBuffer;
use super::gemm::PackedMatrix;
use super::simd::{Isa, Kernel, Simd};

/// A product `[rows, inputs] x [inputs, outputs]` of the kind that the encoder is made of, on one thread.
pub struct GemmProbe {
    isa: Isa,
    matrix: PackedMatrix,
    input: AlignedBuffer,
    strip: AlignedBuffer,
    rows: usize,
    inputs: usize,
    outputs: usize,
}

impl GemmProbe {
    /// Allocates the operands.
    pub fn new(rows: usize, inputs: usize, outputs: usize) -> Self {
        let isa = Isa::detect();
        Self {
            isa,
            matrix: PackedMatrix::new(isa, inputs, outputs),
            input: AlignedBuffer::zeroed(rows * inputs),
            strip: AlignedBuffer::zeroed(rows * isa.panel_width()),
            rows,
            inputs,
            outputs,
        }
    }

    /// Multiplies once.
    pub fn run(&mut self) {
        self.isa.run(AllPanels {
            matrix: &self.matrix,
            input: &self.input.as_slice()[..self.rows * self.inputs],
            strip: self.strip.as_mut_slice(),
        });
    }

    /// Floating-point operations of one [`Self::run`].
    pub fn operations(&self) -> f64 {
        2.0 * self.rows as f64 * self.inputs as f64 * self.outputs as f64
    }
}

struct AllPanels<'a> {
    matrix: &'a PackedMatrix,
    input: &'a [f32],
    strip: &'a mut [f32],
}

impl Kernel for AllPanels<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for panel in 0..self.matrix.n_panels() {
            self.matrix.multiply_panel(simd, self.input, panel, self.strip);
        }
    }
}
