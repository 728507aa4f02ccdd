//! Layer normalisation of rows in place: `(x - mean) / sqrt(variance + eps) * weight + bias`, the variance in a second pass.

use super::simd::Simd;

/// The affine part and epsilon of one layer norm.
pub(super) struct LayerNorm {
    /// `[d_model]`
    pub(super) weight: Vec<f32>,
    /// `[d_model]`
    pub(super) bias: Vec<f32>,
    /// Added to the variance.
    pub(super) eps: f32,
}

impl LayerNorm {
    /// Normalises each row of `rows`, `[n, d_model]`.
    #[inline(always)]
    pub(super) fn normalise_rows<S: Simd>(&self, simd: S, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.weight.len()) {
            self.normalise(simd, row);
        }
    }

    #[inline(always)]
    fn normalise<S: Simd>(&self, simd: S, row: &mut [f32]) {
        let d_model = row.len() as f32;
        let mean = deviations(simd, row, 0.0, Power::One) / d_model;
        let variance = deviations(simd, row, mean, Power::Two) / d_model;
        let means = simd.splat(mean);
        let scale = 1.0 / (variance + self.eps).sqrt();

        let scales = simd.splat(scale);
        let whole = row.len() / S::LANES * S::LANES;
        let weights = self.weight.chunks_exact(S::LANES).zip(self.bias.chunks_exact(S::LANES));
        for (x, (weight, bias)) in row.chunks_exact_mut(S::LANES).zip(weights) {
            let normal = simd.mul(simd.sub(simd.read(x), means), scales);
            simd.write(x, simd.mul_add(normal, simd.read(weight), simd.read(bias)));
        }
        let weights = self.weight[whole..].iter().zip(&self.bias[whole..]);
        for (x, (weight, bias)) in row[whole..].iter_mut().zip(weights) {
            *x = (*x - mean) * scale * weight + bias;
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Power {
    One,
    Two,
}

/// The sum of `(x - center)^power` over a row.
#[inline(always)]
fn deviations<S: Simd>(simd: S, row: &[f32], center: f32, power: Power) -> f32 {
    let centers = simd.splat(center);
    // Four independent sums hide the latency of the additions.
    let mut sums = [simd.splat(0.0); 4];
    let mut rest = 0.0;
    for four in row.chunks(4 * S::LANES) {
        let vectors = four.chunks_exact(S::LANES);
        for &x in vectors.remainder() {
            let x = x - center;
            rest += if power == Power::One { x } else { x * x };
        }
        for (x, sum) in vectors.zip(&mut sums) {
            let x = simd.sub(simd.read(x), centers);
            *sum = if power == Power::One { simd.add(x, *sum) } else { simd.mul_add(x, x, *sum) };
        }
    }
    simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))) + rest
}

#[cfg(test)]
mod tests {
    use super::super::simd::{Isa, Kernel};
    use super::super::testing::{self, Numbers, largest_difference};
    use super::*;

    struct Normalise<'a>(&'a LayerNorm, &'a mut [f32]);
    impl Kernel for Normalise<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            self.0.normalise_rows(simd, self.1);
        }
    }

    #[test]
    fn rows_are_normalised_whatever_their_mean_and_width() {
        let mut numbers = Numbers::seeded(1);
        for (d_model, size, mean) in
            [(384, 1.0, 0.0), (384, 1e4, 0.0), (384, 1.0, 100.0), (7, 1.0, 0.0), (100, 3.0, 1.0)]
        {
            let (weight, bias) = (numbers.take(d_model, 1.0), numbers.take(d_model, 1.0));
            let norm = LayerNorm { weight, bias, eps: 1e-12 };
            let rows: Vec<f32> = numbers.take(3 * d_model, size).into_iter().map(|x| x + mean).collect();
            let mut want: Vec<f64> = rows.iter().map(|&x| f64::from(x)).collect();
            want.chunks_exact_mut(d_model).for_each(|row| testing::layer_norm(row, &norm.weight, &norm.bias, 1e-12));
            for isa in Isa::available() {
                let mut got = rows.clone();
                isa.run(Normalise(&norm, &mut got));
                let error = largest_difference(&got, &want);
                assert!(error < 2e-5, "{error} at width {d_model}, size {size}, mean {mean} on {}", isa.name());
            }
        }
    }

    #[test]
    fn a_row_of_equal_values_becomes_the_bias() {
        let norm = LayerNorm { weight: vec![2.0; 32], bias: vec![0.25; 32], eps: 1e-12 };
        for isa in Isa::available() {
            let mut row = vec![3.0; 32];
            isa.run(Normalise(&norm, &mut row));
            assert_eq!(row, norm.bias, "{}", isa.name());
        }
    }
}
