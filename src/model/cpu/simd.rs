//! One vector interface over the instruction sets, so that every kernel is written once.
//!
//! A kernel implements [`Kernel`] generically over [`Simd`]; [`Isa::run`] calls it inside a function compiled for the instruction
//! set that [`Isa::detect`] found. The types that implement [`Simd`] are tokens: one exists only where its instructions do, which
//! is what makes the arithmetic methods safe to call.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

#[cfg(target_arch = "x86_64")]
pub(super) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(super) use avx512::Avx512;

/// A vector of [`Simd::LANES`] f32 and the operations that the kernels need.
pub(super) trait Simd: Copy + Send + Sync {
    /// The vector register.
    type V: Copy;
    /// f32 values in a vector.
    const LANES: usize;
    /// Vectors in one row of a weight panel; a panel is `PANEL_VECTORS * LANES` columns wide.
    const PANEL_VECTORS: usize;
    /// Rows of a matrix tile, chosen so that `MAX_ROWS * PANEL_VECTORS` accumulators fit the registers.
    const MAX_ROWS: usize;

    /// Calls `kernel` in a function compiled for this instruction set.
    fn run<K: Kernel>(self, kernel: K) -> K::Output;

    /// All lanes `value`.
    fn splat(self, value: f32) -> Self::V;
    /// The first `LANES` values at `source`.
    ///
    /// # Safety
    /// `source` must be valid for reading `LANES` values; it need not be aligned to the vector.
    unsafe fn load(self, source: *const f32) -> Self::V;
    /// Writes the lanes to the first `LANES` values at `target`.
    ///
    /// # Safety
    /// `target` must be valid for writing `LANES` values; it need not be aligned to the vector.
    unsafe fn store(self, target: *mut f32, value: Self::V);
    /// `a + b`
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b`
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b`
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a / b`
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`, rounded once where the machine has fused multiply-add.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger of each pair of lanes.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// Each lane rounded to the nearest integer.
    fn round(self, a: Self::V) -> Self::V;
    /// 2 to the power of each lane; the lanes hold integers from -126 to 127.
    fn power_of_two(self, exponent: Self::V) -> Self::V;
    /// The sum of the lanes, in a fixed order.
    fn sum(self, a: Self::V) -> f32;
    /// The largest lane.
    fn largest(self, a: Self::V) -> f32;
    /// Writes each lane, rounded to the nearest integer, as a byte; lanes above 255 become 255, and none may be below 0.
    ///
    /// # Safety
    /// `target` must be valid for writing `LANES` bytes.
    unsafe fn store_bytes(self, target: *mut u8, value: Self::V);
    /// Asks for the cache line at `address`, which may be any address at all.
    fn prefetch(self, address: *const f32);

    /// Columns of a weight panel.
    fn panel_width() -> usize {
        Self::PANEL_VECTORS * Self::LANES
    }
    /// The first `LANES` values of `source`.
    #[inline(always)]
    fn read(self, source: &[f32]) -> Self::V {
        assert!(source.len() >= Self::LANES);
        // SAFETY: the slice holds at least `LANES` values.
        unsafe { self.load(source.as_ptr()) }
    }
    /// Writes the lanes to the first `LANES` values of `target`.
    #[inline(always)]
    fn write(self, target: &mut [f32], value: Self::V) {
        assert!(target.len() >= Self::LANES);
        // SAFETY: the slice holds at least `LANES` values.
        unsafe { self.store(target.as_mut_ptr(), value) }
    }
    /// [`Self::store_bytes`] to the first `LANES` bytes of `target`.
    #[inline(always)]
    fn write_bytes(self, target: &mut [u8], value: Self::V) {
        assert!(target.len() >= Self::LANES);
        // SAFETY: the slice holds at least `LANES` bytes.
        unsafe { self.store_bytes(target.as_mut_ptr(), value) }
    }
}

/// Work that is compiled once for each instruction set.
pub(super) trait Kernel {
    /// What the work returns.
    type Output;
    /// Does the work. Implementations, and the generic functions they call, must be `#[inline(always)]`: only what is inlined
    /// into [`Simd::run`] is compiled for its instruction set.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// The instruction sets that kernels are compiled for; a value is the proof that this machine has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Isa {
    /// Arrays that the compiler vectorises for the target's baseline.
    Portable(portable::Portable),
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// 512-bit vectors, 32 registers.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
    /// 128-bit vectors, 32 registers.
    #[cfg(target_arch = "aarch64")]
    Neon(neon::Neon),
}

impl Isa {
    /// The fastest instruction set of this machine: the widest one, unless it is run in two halves there, which is slower than
    /// the narrower one (docs/performance.md).
    pub(super) fn detect() -> Self {
        let mut found = Self::available();
        #[cfg(target_arch = "x86_64")]
        if avx512::runs_in_halves() {
            found.retain(|isa| !matches!(isa, Self::Avx512(_)));
        }
        found.pop().unwrap_or(Self::Portable(portable::Portable))
    }

    /// All instruction sets that this machine can run, slowest first.
    pub(super) fn available() -> Vec<Self> {
        let mut found = vec![Self::Portable(portable::Portable)];
        #[cfg(target_arch = "x86_64")]
        {
            found.extend(avx2::Avx2::detect().map(Self::Avx2));
            found.extend(avx512::Avx512::detect().map(Self::Avx512));
        }
        #[cfg(target_arch = "aarch64")]
        found.extend(neon::Neon::detect().map(Self::Neon));
        found
    }

    /// Runs `kernel` compiled for this instruction set.
    pub(super) fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Self::Portable(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.run(kernel),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.run(kernel),
            #[cfg(target_arch = "aarch64")]
            Self::Neon(simd) => simd.run(kernel),
        }
    }

    /// Columns of a weight panel.
    pub(super) fn panel_width(self) -> usize {
        self.run(TileShape).0
    }

    /// Rows of a full register tile.
    pub(super) fn tile_rows(self) -> usize {
        self.run(TileShape).1
    }

    /// The name that `--version` and logs print.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Portable(_) => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => "avx2+fma",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(_) => "avx512f",
            #[cfg(target_arch = "aarch64")]
            Self::Neon(_) => "neon",
        }
    }
}

/// Panel width and rows of the register tile.
struct TileShape;

impl Kernel for TileShape {
    type Output = (usize, usize);

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> (usize, usize) {
        (S::panel_width(), S::MAX_ROWS)
    }
}
