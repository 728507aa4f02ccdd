//! A linear layer whose weights move while training: packed for the product of the forward pass and for that of the backward one.

use rayon::prelude::*;

use super::gemm::PackedMatrix;
use super::linear::{AddTo, Finish, LinearScratch, LinearWeights, Replace, Rows, linear};
use super::simd::{Isa, Kernel, Simd};

/// Rows that one task takes: enough to pay for reading a panel of weights.
const ROWS: usize = 128;

/// `W` (`[outputs, inputs]`) and `b`, in the layout that the kernels read.
pub(in crate::model) struct MovingWeights {
    isa: Isa,
    /// `x W^T + b`
    outward: LinearWeights,
    /// `g W`
    inward: LinearWeights,
    inputs: usize,
    outputs: usize,
}

impl MovingWeights {
    /// Packs `weight` (`[outputs, inputs]`, row-major) and `bias` (`[outputs]`).
    pub(in crate::model) fn pack(weight: &[f32], bias: &[f32], inputs: usize) -> Self {
        Self::pack_for(Isa::detect(), weight, bias, inputs)
    }

    fn pack_for(isa: Isa, weight: &[f32], bias: &[f32], inputs: usize) -> Self {
        let outputs = bias.len();
        let mut outward = PackedMatrix::new(isa, inputs, outputs);
        outward.set_columns(0, weight, bias, 1.0);
        let mut inward = PackedMatrix::new(isa, outputs, inputs);
        inward.set_rows(weight);
        let (outward, inward) = (LinearWeights::Floats(outward), LinearWeights::Floats(inward));
        Self { isa, outward, inward, inputs, outputs }
    }

    /// `y = x W^T + b`; `x` `[T, inputs]`, `y` `[T, outputs]`.
    pub(in crate::model) fn forward(&self, x: &[f32], y: &mut [f32]) {
        self.multiply(&self.outward, (x, self.inputs), (y, self.outputs), Replace);
    }

    /// `grad_x += upstream W`; `upstream` `[T, outputs]`, `grad_x` `[T, inputs]`.
    pub(in crate::model) fn backward(&self, upstream: &[f32], grad_x: &mut [f32]) {
        self.multiply(&self.inward, (upstream, self.outputs), (grad_x, self.inputs), AddTo);
    }

    fn multiply<F: Finish + Send + Sync>(
        &self,
        weights: &LinearWeights,
        (input, inputs): (&[f32], usize),
        (output, outputs): (&mut [f32], usize),
        finish: F,
    ) {
        let blocks = output.par_chunks_mut(ROWS * outputs).zip(input.par_chunks(ROWS * inputs));
        blocks.for_each_init(LinearScratch::default, |scratch, (output, input)| {
            let input = Rows { values: input, rows: output.len() / outputs };
            self.isa.run(Block { weights, input, scratch, output, finish });
        });
    }
}

struct Block<'a, F> {
    weights: &'a LinearWeights,
    input: Rows<'a>,
    scratch: &'a mut LinearScratch,
    output: &'a mut [f32],
    finish: F,
}

impl<F: Finish> Kernel for Block<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        linear(simd, self.weights, self.input, self.scratch, self.output, self.finish);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Numbers, largest_difference};
    use super::*;

    #[test]
    fn both_products_are_those_of_plain_loops() {
        let mut numbers = Numbers::seeded(7);
        let sizes = [(1, 3, 2), (5, 40, 17), (ROWS + 9, 33, 70)];
        for (isa, (rows, inputs, outputs)) in Isa::available().into_iter().flat_map(|isa| sizes.map(|size| (isa, size)))
        {
            let (weight, bias) = (numbers.take(inputs * outputs, 1.0), numbers.take(outputs, 1.0));
            let (x, upstream) = (numbers.take(rows * inputs, 1.0), numbers.take(rows * outputs, 1.0));
            let start = numbers.take(rows * inputs, 1.0);
            let weights = MovingWeights::pack_for(isa, &weight, &bias, inputs);

            let mut y = vec![f32::NAN; rows * outputs];
            weights.forward(&x, &mut y);
            let product = |a: f32, b: f32| f64::from(a) * f64::from(b);
            let want = |place: usize| {
                let (row, column) = (place / outputs, place % outputs);
                let products = (0..inputs).map(|i| product(x[row * inputs + i], weight[column * inputs + i]));
                f64::from(bias[column]) + products.sum::<f64>()
            };
            assert!(largest_difference(&y, &(0..y.len()).map(want).collect::<Vec<f64>>()) < 1e-4);

            let mut grad_x = start.clone();
            weights.backward(&upstream, &mut grad_x);
            let want = |place: usize| {
                let (row, column) = (place / inputs, place % inputs);
                let products = (0..outputs).map(|o| product(upstream[row * outputs + o], weight[o * inputs + column]));
                f64::from(start[place]) + products.sum::<f64>()
            };
            assert!(largest_difference(&grad_x, &(0..grad_x.len()).map(want).collect::<Vec<f64>>()) < 1e-4);
        }
    }
}
