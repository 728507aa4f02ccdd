//! x86-64 with VNNI: `vpdpbusd`, in its three encodings.

use std::arch::x86_64::*;

use super::super::super::simd::{Avx2, Avx512, Simd};
use super::super::product::{ByteDot, ByteProduct};

/// Implements [`ByteDot`] for a token around the instruction set of its f32 part.
macro_rules! vnni {
    ($(#[$doc:meta])* $name:ident($floats:ty), features $features:literal, detected by [$($detected:tt),+],
     $vector:ty, $zero:ident, $load:ident, $splat:ident, $dot:ident, $convert:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub(in super::super::super) struct $name($floats);

        impl $name {
            pub(super) fn detect(floats: $floats) -> Option<Self> {
                ($(is_x86_feature_detected!($detected))&&+).then_some(Self(floats))
            }

            pub(super) fn multiply(self, product: ByteProduct<'_>) {
                #[target_feature(enable = $features)]
                fn compiled(machine: $name, product: ByteProduct<'_>) {
                    product.run(machine);
                }
                // SAFETY: `self` proves that the machine has the features.
                unsafe { compiled(self, product) }
            }
        }

        impl ByteDot for $name {
            type Floats = $floats;
            type I = $vector;

            #[inline(always)]
            fn floats(self) -> $floats {
                self.0
            }
            #[inline(always)]
            fn zero(self) -> $vector {
                // SAFETY: `self` proves that the machine has the features.
                unsafe { $zero() }
            }
            #[inline(always)]
            unsafe fn load(self, source: *const u8) -> $vector {
                // SAFETY: the features as above; the caller promises a readable vector.
                unsafe { $load(source.cast()) }
            }
            #[inline(always)]
            unsafe fn splat(self, source: *const u8) -> $vector {
                // SAFETY: the features as above; the caller promises four readable bytes.
                unsafe { $splat(source.cast::<i32>().read_unaligned()) }
            }
            #[inline(always)]
            fn add_dot(self, sums: $vector, activations: $vector, weights: $vector) -> $vector {
                // SAFETY: `self` proves that the machine has the features.
                unsafe { $dot(sums, activations, weights) }
            }
            #[inline(always)]
            fn to_floats(self, sums: $vector) -> <$floats as Simd>::V {
                // SAFETY: `self` proves that the machine has the features.
                unsafe { $convert(sums) }
            }
        }
    };
}

vnni! {
    /// Exists only on machines with AVX-512 VNNI that run 512-bit vectors whole.
    Wide(Avx512), features "avx512f,avx512vnni,avx2,fma", detected by ["avx512vnni"],
    __m512i, _mm512_setzero_si512, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_dpbusd_epi32, _mm512_cvtepi32_ps
}
vnni! {
    /// Exists only on machines with AVX-512 VNNI for 256-bit vectors.
    Narrow(Avx2), features "avx512vnni,avx512vl,avx2,fma", detected by ["avx512vnni", "avx512vl"],
    __m256i, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_dpbusd_epi32, _mm256_cvtepi32_ps
}
vnni! {
    /// Exists only on machines with AVX-VNNI.
    Avx(Avx2), features "avxvnni,avx2,fma", detected by ["avxvnni"],
    __m256i, _mm256_setzero_si256, _mm256_loadu_si256, _mm256_set1_epi32, _mm256_dpbusd_avx_epi32, _mm256_cvtepi32_ps
}
