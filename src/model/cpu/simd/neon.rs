//! AArch64: four lanes, thirty-two registers.

use std::arch::aarch64::*;

use super::{Kernel, Simd};

/// Exists only on machines with NEON.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Neon(());

impl Neon {
    pub(super) fn detect() -> Option<Self> {
        std::arch::is_aarch64_feature_detected!("neon").then_some(Self(()))
    }
}

impl Simd for Neon {
    type V = float32x4_t;
    const LANES: usize = 4;
    const PANEL_VECTORS: usize = 4;
    /// 6 x 4 accumulators, four weight vectors and a broadcast are 29 of the 32 registers.
    const MAX_ROWS: usize = 6;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "neon")]
        fn compiled<K: Kernel>(simd: Neon, kernel: K) -> K::Output {
            kernel.run(simd)
        }
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { compiled(self, kernel) }
    }
    #[inline(always)]
    fn splat(self, value: f32) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vdupq_n_f32(value) }
    }
    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> float32x4_t {
        // SAFETY: the feature as above; the caller promises 4 readable values.
        unsafe { vld1q_f32(source) }
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: float32x4_t) {
        // SAFETY: the feature as above; the caller promises 4 writable values.
        unsafe { vst1q_f32(target, value) }
    }
    #[inline(always)]
    fn add(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vaddq_f32(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vsubq_f32(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vmulq_f32(a, b) }
    }
    #[inline(always)]
    fn div(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vdivq_f32(a, b) }
    }
    #[inline(always)]
    fn mul_add(self, a: float32x4_t, b: float32x4_t, c: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vfmaq_f32(c, a, b) }
    }
    #[inline(always)]
    fn max(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vmaxq_f32(a, b) }
    }
    #[inline(always)]
    fn round(self, a: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vrndnq_f32(a) }
    }
    #[inline(always)]
    fn power_of_two(self, exponent: float32x4_t) -> float32x4_t {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe {
            let biased = vaddq_s32(vcvtnq_s32_f32(exponent), vdupq_n_s32(127));
            vreinterpretq_f32_s32(vshlq_n_s32::<23>(biased))
        }
    }
    #[inline(always)]
    fn sum(self, a: float32x4_t) -> f32 {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vaddvq_f32(a) }
    }
    #[inline(always)]
    fn largest(self, a: float32x4_t) -> f32 {
        // SAFETY: `self` proves that the machine has the feature.
        unsafe { vmaxvq_f32(a) }
    }
    #[inline(always)]
    unsafe fn store_bytes(self, target: *mut u8, value: float32x4_t) {
        // SAFETY: `self` proves that the machine has NEON; the caller promises 4 writable bytes.
        unsafe {
            let halves = vqmovn_u32(vcvtnq_u32_f32(value));
            let bytes = vqmovn_u16(vcombine_u16(halves, halves));
            target.cast::<u32>().write_unaligned(vget_lane_u32::<0>(vreinterpret_u32_u8(bytes)));
        }
    }
    /// The stable library has no prefetch for this architecture; its hardware prefetchers must do.
    #[inline(always)]
    fn prefetch(self, _address: *const f32) {}
}
