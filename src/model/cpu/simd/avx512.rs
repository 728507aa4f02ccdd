//! x86-64 with AVX-512F: sixteen lanes, thirty-two registers.

use std::arch::x86_64::*;

use super::{Kernel, Simd};

/// Exists only on machines with AVX-512F.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Avx512(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx512f").then_some(Self(()))
    }
}

/// Whether this processor splits 512-bit operations into two of 256 bits: AMD's family 19h (Zen 4) does.
pub(super) fn runs_in_halves() -> bool {
    let vendor = __cpuid(0);
    let signature = __cpuid(1).eax;
    let (family, extended) = ((signature >> 8) & 0xF, (signature >> 20) & 0xFF);
    // "AuthenticAMD", in the order in which the registers spell it.
    let amd = [vendor.ebx, vendor.edx, vendor.ecx] == [0x6874_7541, 0x6974_6E65, 0x444D_4163];
    amd && family == 0xF && extended == 0xA
}

impl Simd for Avx512 {
    type V = __m512;
    const LANES: usize = 16;
    const PANEL_VECTORS: usize = 2;
    /// 12 x 2 accumulators; more rows would gain little and each count of rows is compiled separately.
    const MAX_ROWS: usize = 12;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx2,fma")]
        fn compiled<K: Kernel>(simd: Avx512, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the machine has AVX-512F, which implies AVX2 and FMA.
        unsafe { compiled(self, kernel) }
    }
    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> __m512 {
        // SAFETY: the feature as above; the caller promises 16 readable values.
        unsafe { _mm512_loadu_ps(source) }
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: __m512) {
        // SAFETY: the feature as above; the caller promises 16 writable values.
        unsafe { _mm512_storeu_ps(target, value) }
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn round(self, a: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a) }
    }
    #[inline(always)]
    fn power_of_two(self, exponent: __m512) -> __m512 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(exponent), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }
    }
    #[inline(always)]
    fn sum(self, a: __m512) -> f32 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_reduce_add_ps(a) }
    }
    #[inline(always)]
    fn largest(self, a: __m512) -> f32 {
        // SAFETY: `self` proves that the machine has AVX-512F.
        unsafe { _mm512_reduce_max_ps(a) }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, target: *mut u8, value: __m512) {
        // SAFETY: the feature as above; the caller promises 16 writable bytes.
        unsafe { _mm_storeu_si128(target.cast(), _mm512_cvtusepi32_epi8(_mm512_cvtps_epi32(value))) }
    }
    #[inline(always)]
    fn prefetch(self, address: *const f32) {
        // SAFETY: a prefetch never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
