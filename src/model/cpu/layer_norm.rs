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
            rest += if matches!(power, Power::One) { x } else { x * x };
        }
        for (x, sum) in vectors.zip(&mut sums) {
            let x = simd.sub(simd.read(x), centers);
            *sum = if matches!(power, Power::One) { simd.add(x, *sum) } else { simd.mul_add(x, x, *sum) };
        }
    }
    simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))) + rest
}
