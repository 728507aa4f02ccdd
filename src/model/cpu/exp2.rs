//! Powers of two, vectorised: relative error at most 2e-7.

use super::simd::Simd;

/// `2^x` for `x <= 0`; arguments below -126 give `2^-126`, about 1e-38.
///
/// The fraction in [-1/2, 1/2] goes through a polynomial of the smallest largest relative error (7.5e-8), the integer part into
/// the exponent.
#[inline(always)]
pub(super) fn exp2_nonpositive<S: Simd>(simd: S, x: S::V) -> S::V {
    const P: [f32; 6] = [1.0000001, 0.69314698, 0.2402212, 0.055507135, 0.0096755413, 0.0013276471];
    let x = simd.max(x, simd.splat(-126.0));
    let integer = simd.round(x);
    let fraction = simd.sub(x, integer);
    let mut p = simd.splat(P[5]);
    for &coefficient in P[..5].iter().rev() {
        p = simd.mul_add(p, fraction, simd.splat(coefficient));
    }
    simd.mul(p, simd.power_of_two(integer))
}
