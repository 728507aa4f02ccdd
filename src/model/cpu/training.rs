//! What training needs beside the fast forward: GELU, LayerNorm and softmax over many rows, each with its backward pass.
//!
//! The work is cut into blocks of a fixed size, and sums over blocks are added in their order, so results depend on neither the
//! number of threads nor who finishes first.

use rayon::prelude::*;

use super::exp2::exp2_nonpositive;
use super::gelu::{gelu, gelu_tail};
use super::simd::{Isa, Kernel, Simd};

/// Values that one task takes of an elementwise kernel.
const BLOCK: usize = 1 << 14;
/// Rows that one task takes of a kernel by rows.
const ROWS: usize = 64;
/// Independent partial sums of a reduction: what the widest vectors hold.
const SUMS: usize = 16;

/// `y = gelu(x)`, elementwise.
pub(in crate::model) fn gelu_forward(x: &[f32], y: &mut [f32]) {
    let isa = Isa::detect();
    y.par_chunks_mut(BLOCK).zip(x.par_chunks(BLOCK)).for_each(|(y, x)| isa.run(Gelu { x, y }));
}

struct Gelu<'a> {
    x: &'a [f32],
    y: &'a mut [f32],
}

impl Kernel for Gelu<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let whole = self.x.len() / S::LANES * S::LANES;
        for (x, y) in self.x.chunks_exact(S::LANES).zip(self.y.chunks_exact_mut(S::LANES)) {
            simd.write(y, gelu(simd, simd.read(x)));
        }
        let mut rest = [0.0; SUMS];
        let tail = &self.x[whole..];
        rest[..tail.len()].copy_from_slice(tail);
        let mut out = [0.0; SUMS];
        simd.write(&mut out, gelu(simd, simd.read(&rest)));
        self.y[whole..].copy_from_slice(&out[..tail.len()]);
    }
}

/// `out = gelu'(x) * upstream`, elementwise: `gelu'(x) = N(x) + x n(x)` with the normal distribution and its density.
pub(in crate::model) fn gelu_backward(x: &[f32], upstream: &[f32], out: &mut [f32]) {
    let isa = Isa::detect();
    let inputs = x.par_chunks(BLOCK).zip(upstream.par_chunks(BLOCK));
    out.par_chunks_mut(BLOCK).zip(inputs).for_each(|(out, (x, upstream))| isa.run(GeluBackward { x, upstream, out }));
}

struct GeluBackward<'a> {
    x: &'a [f32],
    upstream: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for GeluBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let whole = self.x.len() / S::LANES * S::LANES;
        let inputs = self.x.chunks_exact(S::LANES).zip(self.upstream.chunks_exact(S::LANES));
        for (out, (x, upstream)) in self.out.chunks_exact_mut(S::LANES).zip(inputs) {
            simd.write(out, simd.mul(gelu_slope(simd, simd.read(x)), simd.read(upstream)));
        }
        let mut rest = [0.0; SUMS];
        let tail = &self.x[whole..];
        rest[..tail.len()].copy_from_slice(tail);
        let mut slope = [0.0; SUMS];
        simd.write(&mut slope, gelu_slope(simd, simd.read(&rest)));
        let factors = slope.iter().zip(&self.upstream[whole..]);
        self.out[whole..].iter_mut().zip(factors).for_each(|(out, (slope, upstream))| *out = slope * upstream);
    }
}

#[inline(always)]
fn gelu_slope<S: Simd>(simd: S, x: S::V) -> S::V {
    const HALF_LOG2_E: f32 = std::f32::consts::LOG2_E / 2.0;
    const DENSITY_AT_ZERO: f32 = 0.398_942_3;
    let half = simd.splat(0.5);
    // The sign of x as -1..=1; between the tiniest numbers it does not matter, since the tail is one half there.
    let sign = clamped(simd, simd.mul(clamped(simd, x, 1e4), simd.splat(1e30)), 1.0);
    let above_half = simd.sub(half, gelu_tail(simd, x)); //             N(|x|) - 1/2
    let distribution = simd.mul_add(sign, above_half, half); //         N(x)
    let exponent = simd.mul(simd.mul(x, x), simd.splat(-HALF_LOG2_E));
    let density = simd.mul(exp2_nonpositive(simd, exponent), simd.splat(DENSITY_AT_ZERO));
    // Beyond 12 the density is 0 in f32, however large x: the product must not become infinity times nearly nothing.
    simd.mul_add(clamped(simd, x, 12.0), density, distribution)
}

/// `value` brought into `-limit..=limit`.
#[inline(always)]
fn clamped<S: Simd>(simd: S, value: S::V, limit: f32) -> S::V {
    let (zero, lowest) = (simd.splat(0.0), simd.splat(-limit));
    let below = simd.max(lowest, simd.sub(zero, value));
    simd.max(lowest, simd.sub(zero, below))
}

/// `y = (x - mean) / sqrt(variance + eps) * weight + bias` for each row of `weight.len()` values.
pub(in crate::model) fn layer_norm_forward(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, y: &mut [f32]) {
    let width = weight.len();
    let isa = Isa::detect();
    y.par_chunks_mut(ROWS * width)
        .zip(x.par_chunks(ROWS * width))
        .for_each(|(y, x)| isa.run(LayerNormForward { x, weight, bias, eps, y }));
}

struct LayerNormForward<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    bias: &'a [f32],
    eps: f32,
    y: &'a mut [f32],
}

impl Kernel for LayerNormForward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let width = self.weight.len();
        for (x, y) in self.x.chunks_exact(width).zip(self.y.chunks_exact_mut(width)) {
            let (mean, scale) = moments(x, self.eps);
            for (i, y) in y.iter_mut().enumerate() {
                *y = (x[i] - mean) * scale * self.weight[i] + self.bias[i];
            }
        }
    }
}

/// Mean of a row, and one over its standard deviation.
#[inline(always)]
fn moments(x: &[f32], eps: f32) -> (f32, f32) {
    let mean = total(x, |x| x) / x.len() as f32;
    let variance = total(x, |x| (x - mean) * (x - mean)) / x.len() as f32;
    (mean, 1.0 / (variance + eps).sqrt())
}

/// The sum of `term` over a row, in [`SUMS`] interleaved parts that the compiler keeps in vectors.
#[inline(always)]
fn total(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut sums = [0.0; SUMS];
    let chunks = x.chunks_exact(SUMS);
    let rest: f32 = chunks.remainder().iter().map(|&x| term(x)).sum();
    for chunk in chunks {
        for (sum, &x) in sums.iter_mut().zip(chunk) {
            *sum += term(x);
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// The gradients of a layer norm: of its input (written to `grad_x`), of its weight and of its bias (returned).
pub(in crate::model) fn layer_norm_backward(
    x: &[f32],
    weight: &[f32],
    eps: f32,
    upstream: &[f32],
    grad_x: &mut [f32],
) -> (Vec<f32>, Vec<f32>) {
    let width = weight.len();
    let isa = Isa::detect();
    let inputs = x.par_chunks(ROWS * width).zip(upstream.par_chunks(ROWS * width));
    let parts: Vec<(Vec<f32>, Vec<f32>)> = grad_x
        .par_chunks_mut(ROWS * width)
        .zip(inputs)
        .map(|(grad_x, (x, upstream))| isa.run(LayerNormBackward { x, weight, eps, upstream, grad_x }))
        .collect();
    let mut sums = (vec![0.0; width], vec![0.0; width]);
    for (weight, bias) in parts {
        add_to(&mut sums.0, &weight);
        add_to(&mut sums.1, &bias);
    }
    sums
}

fn add_to(sum: &mut [f32], part: &[f32]) {
    sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
}

struct LayerNormBackward<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    upstream: &'a [f32],
    grad_x: &'a mut [f32],
}

impl Kernel for LayerNormBackward<'_> {
    type Output = (Vec<f32>, Vec<f32>);

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Self::Output {
        let width = self.weight.len();
        let (mut grad_weight, mut grad_bias) = (vec![0.0; width], vec![0.0; width]);
        let mut normal = vec![0.0; width];
        let rows = self.x.chunks_exact(width).zip(self.upstream.chunks_exact(width));
        for ((x, upstream), grad_x) in rows.zip(self.grad_x.chunks_exact_mut(width)) {
            let (mean, scale) = moments(x, self.eps);
            for i in 0..width {
                normal[i] = (x[i] - mean) * scale;
                grad_weight[i] += upstream[i] * normal[i];
                grad_bias[i] += upstream[i];
                grad_x[i] = upstream[i] * self.weight[i];
            }
            let along_mean = total(grad_x, |g| g) / width as f32;
            let along_normal = products(grad_x, &normal) / width as f32;
            for i in 0..width {
                grad_x[i] = scale * (grad_x[i] - along_mean - normal[i] * along_normal);
            }
        }
        (grad_weight, grad_bias)
    }
}

/// The sum of the products of two rows, in [`SUMS`] interleaved parts.
#[inline(always)]
fn products(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; SUMS];
    let (a, b) = (a.chunks_exact(SUMS), b.chunks_exact(SUMS));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for i in 0..SUMS {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// Replaces each row of `width` scores by its softmax; a row with a score that is no finite number becomes NaN. Runs on the calling
/// thread: callers are tasks already.
pub(in crate::model) fn softmax_rows(rows: &mut [f32], width: usize) {
    softmax_rows_for(Isa::detect(), rows, width);
}

fn softmax_rows_for(isa: Isa, rows: &mut [f32], width: usize) {
    isa.run(SoftmaxRows { rows, width });
}

struct SoftmaxRows<'a> {
    rows: &'a mut [f32],
    width: usize,
}

impl Kernel for SoftmaxRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let log2_e = simd.splat(std::f32::consts::LOG2_E);
        for row in self.rows.chunks_exact_mut(self.width) {
            let largest = largest(row);
            let nonsense = total(row, |x| x * 0.0);
            let highest = simd.splat(largest);
            let whole = row.len() / S::LANES * S::LANES;
            for values in row.chunks_exact_mut(S::LANES) {
                let value = exponential(simd, simd.read(values), highest, log2_e);
                simd.write(values, value);
            }
            let mut rest = [largest; SUMS];
            let tail = row.len() - whole;
            rest[..tail].copy_from_slice(&row[whole..]);
            let value = exponential(simd, simd.read(&rest), highest, log2_e);
            simd.write(&mut rest, value);
            row[whole..].copy_from_slice(&rest[..tail]);
            let scale = 1.0 / (total(row, |x| x) + nonsense);
            row.iter_mut().for_each(|x| *x *= scale);
        }
    }
}

/// The largest value of a row, in [`SUMS`] interleaved parts.
#[inline(always)]
fn largest(row: &[f32]) -> f32 {
    let mut parts = [f32::NEG_INFINITY; SUMS];
    let chunks = row.chunks_exact(SUMS);
    let rest = chunks.remainder().iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
    for chunk in chunks {
        for (part, &value) in parts.iter_mut().zip(chunk) {
            *part = if value > *part { value } else { *part };
        }
    }
    parts.iter().fold(rest, |a, &b| if b > a { b } else { a })
}

/// `e^(value - highest)`. A function and not a closure: only functions can be made sure to be compiled into the kernel.
#[inline(always)]
fn exponential<S: Simd>(simd: S, value: S::V, highest: S::V, log2_e: S::V) -> S::V {
    exp2_nonpositive(simd, simd.mul(simd.sub(value, highest), log2_e))
}

/// The gradient of the scores under a softmax, in place of that of the weights: `w (g - sum(w g))` for each row, times `scale`.
/// Runs on the calling thread.
pub(in crate::model) fn softmax_backward_rows(weights: &[f32], gradients: &mut [f32], width: usize, scale: f32) {
    Isa::detect().run(SoftmaxBackward { weights, gradients, width, scale });
}

struct SoftmaxBackward<'a> {
    weights: &'a [f32],
    gradients: &'a mut [f32],
    width: usize,
    scale: f32,
}

impl Kernel for SoftmaxBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let rows = self.weights.chunks_exact(self.width);
        for (weights, gradients) in rows.zip(self.gradients.chunks_exact_mut(self.width)) {
            let expected = products(weights, gradients);
            for (gradient, weight) in gradients.iter_mut().zip(weights) {
                *gradient = weight * (*gradient - expected) * self.scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Numbers, largest_difference, normal_distribution};
    use super::*;

    #[test]
    fn the_slope_of_gelu_is_exact_to_three_millionths_at_any_size() {
        let mut x: Vec<f32> = (-13_000..13_003).map(|i| i as f32 / 1000.0).collect();
        x.extend([1e-30, -1e-30, 1e4, -1e4, 1e30, -1e30, 0.0]);
        let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
        let want: Vec<f64> = x.iter().map(|&x| f64::from(x)).map(|x| normal_distribution(x) + x * density(x)).collect();
        let mut got = vec![0.0; x.len()];
        gelu_backward(&x, &vec![1.0; x.len()], &mut got);
        let error = largest_difference(&got, &want);
        assert!(error < 3e-6, "{error}");
    }

    #[test]
    fn gelu_of_any_number_of_values_is_that_of_each() {
        let x = Numbers::seeded(3).take(BLOCK + 13, 2.0);
        let mut y = vec![0.0; x.len()];
        gelu_forward(&x, &mut y);
        let want: Vec<f64> = x.iter().map(|&x| f64::from(x) * normal_distribution(f64::from(x))).collect();
        assert!(largest_difference(&y, &want) < 1e-6);
    }

    #[test]
    fn a_softmax_row_sums_to_one_and_its_gradient_to_nothing() {
        let mut numbers = Numbers::seeded(5);
        for width in [1, 7, 16, 100] {
            let mut rows = numbers.take(3 * width, 30.0);
            softmax_rows(&mut rows, width);
            let mut gradients = numbers.take(3 * width, 1.0);
            softmax_backward_rows(&rows, &mut gradients, width, 0.5);
            for (row, gradient) in rows.chunks(width).zip(gradients.chunks(width)) {
                assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5);
                assert!(gradient.iter().sum::<f32>().abs() < 1e-5);
            }
        }
    }

    #[test]
    fn every_instruction_set_gives_each_score_its_share() {
        for isa in Isa::available() {
            for width in [1, 7, 16, 100, 257] {
                let rows = Numbers::seeded(width as u64).take(2 * width, 8.0);
                let mut got = rows.clone();
                softmax_rows_for(isa, &mut got, width);
                for (row, got) in rows.chunks(width).zip(got.chunks(width)) {
                    let powers: Vec<f64> = row.iter().map(|&score| f64::from(score).exp()).collect();
                    let sum: f64 = powers.iter().sum();
                    let want: Vec<f64> = powers.iter().map(|power| power / sum).collect();
                    let error = largest_difference(got, &want);
                    assert!(error < 1e-6, "{width} scores on {}: {error}", isa.name());
                }
            }
            for nonsense in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let mut row = vec![0.5; 20];
                row[17] = nonsense;
                softmax_rows_for(isa, &mut row, 20);
                assert!(row.iter().all(|weight| weight.is_nan()), "{nonsense} on {}", isa.name());
            }
        }
    }

    #[test]
    fn equal_scores_share_evenly_however_large() {
        for score in [0.0, 1e4, -1e4] {
            let mut row = vec![score; 9];
            softmax_rows(&mut row, 9);
            assert!(row.iter().all(|weight| (weight - 1.0 / 9.0).abs() < 1e-6), "{row:?}");
        }
    }
}
