//! x86-64 with AVX2 and FMA: eight lanes, sixteen registers.

use std::arch::x86_64::*;

use super::{Kernel, Simd};

/// Exists only on machines with AVX2 and FMA.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")).then_some(Self(()))
    }
}

impl Simd for Avx2 {
    type V = __m256;
    const LANES: usize = 8;
    const PANEL_VECTORS: usize = 2;
    /// 6 x 2 accumulators, two weight vectors and a broadcast are 15 of the 16 registers.
    const MAX_ROWS: usize = 6;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,fma")]
        fn compiled<K: Kernel>(simd: Avx2, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the machine has the features.
        unsafe { compiled(self, kernel) }
    }
    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> __m256 {
        // SAFETY: the features as above; the caller promises 8 readable values.
        unsafe { _mm256_loadu_ps(source) }
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: __m256) {
        // SAFETY: the features as above; the caller promises 8 writable values.
        unsafe { _mm256_storeu_ps(target, value) }
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    fn round(self, a: __m256) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn power_of_two(self, exponent: __m256) -> __m256 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(exponent), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        }
    }
    #[inline(always)]
    fn sum(self, a: __m256) -> f32 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe {
            let four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
    #[inline(always)]
    fn largest(self, a: __m256) -> f32 {
        // SAFETY: `self` proves that the machine has the features.
        unsafe {
            let four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
            let two = _mm_max_ps(four, _mm_movehl_ps(four, four));
            _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps::<1>(two, two)))
        }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, target: *mut u8, value: __m256) {
        // SAFETY: the features as above; the caller promises 8 writable bytes.
        unsafe {
            let words = _mm256_cvtps_epi32(value);
            let halves = _mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storel_epi64(target.cast(), _mm_packus_epi16(halves, halves));
        }
    }
    #[inline(always)]
    fn prefetch(self, address: *const f32) {
        // SAFETY: a prefetch never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
