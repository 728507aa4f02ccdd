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
        let mean = sum_of(
            simd,
            row,
            #[inline(always)]
            |x, sum| simd.add(sum, x),
            |x| x,
        ) / d_model;
        let means = simd.splat(mean);
        let variance = sum_of(
            simd,
            row,
            #[inline(always)]
            |x, sum| {
                let deviation = simd.sub(x, means);
                simd.mul_add(deviation, deviation, sum)
            },
            |x| (x - mean) * (x - mean),
        ) / d_model;
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

/// The sum of each value's term over a row: of whole vectors as `add` adds them, of the rest as `term` gives them.
#[inline(always)]
fn sum_of<S: Simd>(simd: S, row: &[f32], add: impl Fn(S::V, S::V) -> S::V, term: impl Fn(f32) -> f32) -> f32 {
    // Four independent sums hide the latency of the additions.
    let mut sums = [simd.splat(0.0); 4];
    let fours = row.chunks_exact(4 * S::LANES);
    let vectors = fours.remainder().chunks_exact(S::LANES);
    let rest: f32 = vectors.remainder().iter().map(|&x| term(x)).sum();
    for four in fours {
        for (x, sum) in four.chunks_exact(S::LANES).zip(&mut sums) {
            *sum = add(simd.read(x), *sum);
        }
    }
    for (x, sum) in vectors.zip(&mut sums) {
        *sum = add(simd.read(x), *sum);
    }
    simd.sum(simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]))) + rest
}
