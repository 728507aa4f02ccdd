//! Powers of two, vectorised: relative error at most 2e-7.

use super::simd::Simd;

/// `2^x` for `x <= 0`; arguments below -126 give `2^-126`, about 1e-38.
///
/// The fraction in [-1/2, 1/2] goes through a polynomial of the smallest largest relative error (7.5e-8), the integer part into
/// the exponent.
#[inline(always)]
pub(super) fn exp2_nonpositive<S: Simd>(simd: S, x: S::V) -> S::V {
    const P: [f32; 6] = [1.0000001, 0.69314694, 0.2402212, 0.05550713, 0.009675541, 0.0013276471];
    let x = simd.max(x, simd.splat(-126.0));
    let integer = simd.round(x);
    let fraction = simd.sub(x, integer);
    let mut p = simd.splat(P[5]);
    for &coefficient in P[..5].iter().rev() {
        p = simd.mul_add(p, fraction, simd.splat(coefficient));
    }
    simd.mul(p, simd.power_of_two(integer))
}

#[cfg(test)]
mod tests {
    use super::super::simd::Isa;
    use super::super::testing::{VectorFunction, map_vectors};
    use super::*;

    #[derive(Clone, Copy)]
    struct Exp2;
    impl VectorFunction for Exp2 {
        #[inline(always)]
        fn apply<S: Simd>(self, simd: S, x: S::V) -> S::V {
            exp2_nonpositive(simd, x)
        }
    }

    #[test]
    fn powers_of_two_have_a_small_relative_error() {
        let inputs: Vec<f32> = (0..12_800).map(|i| i as f32 / -101.6).collect();
        for isa in Isa::available() {
            let mut got = inputs.clone();
            map_vectors(isa, &mut got, Exp2);
            for (&x, got) in inputs.iter().zip(got) {
                let want = f64::from(x).exp2();
                assert!((f64::from(got) - want).abs() < 2.5e-7 * want, "2^{x} = {got} on {}", isa.name());
            }
        }
    }

    #[test]
    fn what_is_far_below_vanishes() {
        for isa in Isa::available() {
            let mut got = [-127.0, -1e4, -1e30, f32::NEG_INFINITY].repeat(4);
            map_vectors(isa, &mut got, Exp2);
            assert!(got.iter().all(|&x| (0.0..1.2e-38).contains(&x)), "{}", isa.name());
        }
    }
}
