//! The machines that multiply bytes.

use super::super::simd::Isa;
use super::product::ByteProduct;

#[cfg(target_arch = "x86_64")]
mod vnni;

/// What multiplies bytes here; a value is the proof that this machine has the instructions.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum ByteMachine {
    /// AVX-512 VNNI on 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Wide(vnni::Wide),
    /// AVX-512 VNNI on 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Narrow(vnni::Narrow),
    /// AVX-VNNI, where there is no AVX-512.
    #[cfg(target_arch = "x86_64")]
    Avx(vnni::Avx),
}

impl ByteMachine {
    /// What goes with the panels of `isa`; `None` where bytes would be no faster than floats.
    pub(in super::super) fn detect(isa: Isa) -> Option<Self> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(simd) => vnni::Wide::detect(simd).map(Self::Wide),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(simd) => {
                vnni::Narrow::detect(simd).map(Self::Narrow).or_else(|| vnni::Avx::detect(simd).map(Self::Avx))
            }
            _ => None,
        }
    }

    pub(super) fn multiply(self, product: ByteProduct<'_>) {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Wide(machine) => machine.multiply(product),
            #[cfg(target_arch = "x86_64")]
            Self::Narrow(machine) => machine.multiply(product),
            #[cfg(target_arch = "x86_64")]
            Self::Avx(machine) => machine.multiply(product),
        }
    }
}
