//! The exact (erf) GELU, vectorised: within 5e-7 of `x * (1 + erf(x / sqrt 2)) / 2`.

use super::simd::Simd;

/// `gelu(x) = max(x, 0) - a * Q(a)` with `a = |x|` and the normal tail `Q(a) = erfc(a / sqrt 2) / 2`.
///
/// The tail is `1 / p(a)^8`, the form of Abramowitz and Stegun 7.1.28, with `p` fitted here to the smallest largest error of
/// `a * Q(a)` (4e-8). What is subtracted is at most 0.17, so its rounding does not show, and it falls to zero by itself for large
/// `a`: there is nothing to clamp.
#[inline(always)]
pub(super) fn gelu<S: Simd>(simd: S, x: S::V) -> S::V {
    let zero = simd.splat(0.0);
    let a = simd.max(x, simd.sub(zero, x));
    simd.sub(simd.max(x, zero), simd.div(a, one_over_tail(simd, a)))
}

/// The normal tail `Q(|x|)`, one half at 0.
#[inline(always)]
pub(super) fn gelu_tail<S: Simd>(simd: S, x: S::V) -> S::V {
    let a = simd.max(x, simd.sub(simd.splat(0.0), x));
    simd.div(simd.splat(1.0), one_over_tail(simd, a))
}

/// `1 / Q(a)` for `a >= 0`.
#[inline(always)]
fn one_over_tail<S: Simd>(simd: S, a: S::V) -> S::V {
    const P: [f32; 9] = [
        1.0905083,
        0.108752005,
        0.048870396,
        0.009315808,
        0.001125624,
        8.7482804e-5,
        0.000118095915,
        -2.038245e-5,
        3.3545946e-6,
    ];
    let mut p = simd.splat(P[8]);
    for &coefficient in P[..8].iter().rev() {
        p = simd.mul_add(p, a, simd.splat(coefficient));
    }
    let p2 = simd.mul(p, p);
    let p4 = simd.mul(p2, p2);
    simd.mul(p4, p4)
}

#[cfg(test)]
mod tests {
    use super::super::simd::Isa;
    use super::super::testing::{VectorFunction, largest_difference, map_vectors, normal_distribution};
    use super::*;

    #[derive(Clone, Copy)]
    struct Gelu;
    impl VectorFunction for Gelu {
        #[inline(always)]
        fn apply<S: Simd>(self, simd: S, x: S::V) -> S::V {
            gelu(simd, x)
        }
    }

    #[test]
    fn gelu_is_exact_to_a_millionth() {
        let inputs: Vec<f32> = (-12_000..12_000).map(|i| i as f32 / 1000.0).collect();
        let want: Vec<f64> = inputs.iter().map(|&x| f64::from(x) * normal_distribution(f64::from(x))).collect();
        for isa in Isa::available() {
            let mut got = inputs.clone();
            map_vectors(isa, &mut got, Gelu);
            assert!(largest_difference(&got, &want) < 1e-6, "{}", isa.name());
        }
    }

    #[test]
    fn gelu_of_huge_values_is_the_value_or_zero() {
        for isa in Isa::available() {
            let mut got = [1e4, -1e4, 1e30, -1e30].repeat(4);
            map_vectors(isa, &mut got, Gelu);
            assert_eq!(got[..4], [1e4, 0.0, 1e30, 0.0], "{}", isa.name());
        }
    }
}
