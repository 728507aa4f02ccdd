//! Eight-lane arrays for machines without a vector type of their own here; the compiler vectorises the loops for its baseline.

use super::{Kernel, Simd};

/// Runs anywhere.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Portable;

type V = [f32; 8];

#[inline(always)]
fn zip(a: V, b: V, f: impl Fn(f32, f32) -> f32) -> V {
    std::array::from_fn(|i| f(a[i], b[i]))
}

impl Simd for Portable {
    type V = V;
    const LANES: usize = 8;
    const PANEL_VECTORS: usize = 2;
    /// 3 x 16 values are 12 of the 16 baseline x86-64 registers.
    const MAX_ROWS: usize = 3;

    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }
    #[inline(always)]
    fn splat(self, value: f32) -> V {
        [value; 8]
    }
    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> V {
        // SAFETY: the caller promises 8 readable values; the read is unaligned.
        unsafe { source.cast::<V>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: V) {
        // SAFETY: the caller promises 8 writable values; the write is unaligned.
        unsafe { target.cast::<V>().write_unaligned(value) }
    }
    #[inline(always)]
    fn add(self, a: V, b: V) -> V {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: V, b: V) -> V {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: V, b: V) -> V {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: V, b: V) -> V {
        zip(a, b, |a, b| a / b)
    }
    /// Two roundings: without the instruction `f32::mul_add` is a slow library call.
    #[inline(always)]
    fn mul_add(self, a: V, b: V, c: V) -> V {
        self.add(self.mul(a, b), c)
    }
    #[inline(always)]
    fn max(self, a: V, b: V) -> V {
        zip(a, b, |a, b| if a > b { a } else { b })
    }
    /// Adding and taking away 1.5 * 2^23 leaves no fraction bits; holds for |a| < 2^22, far beyond any exponent.
    #[inline(always)]
    fn round(self, a: V) -> V {
        const NO_FRACTION: f32 = 12_582_912.0;
        a.map(|a| (a + NO_FRACTION) - NO_FRACTION)
    }
    #[inline(always)]
    fn power_of_two(self, exponent: V) -> V {
        exponent.map(|e| f32::from_bits(((e as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    fn sum(self, a: V) -> f32 {
        ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]))
    }
    #[inline(always)]
    fn largest(self, a: V) -> f32 {
        a.into_iter().fold(f32::NEG_INFINITY, f32::max)
    }
    #[inline(always)]
    unsafe fn store_bytes(self, target: *mut u8, value: V) {
        // SAFETY: the caller promises 8 writable bytes.
        unsafe { target.cast::<[u8; 8]>().write_unaligned(self.round(value).map(|value| value as u8)) }
    }
    #[inline(always)]
    fn prefetch(self, _address: *const f32) {}
}
