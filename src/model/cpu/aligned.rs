//! A growable buffer of f32 that starts on a cache line, so that no vector load of a weight panel straddles two lines.

/// f32 values in a cache line.
pub(super) const LINE: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

/// Zeroed f32 values, 64-byte aligned.
#[derive(Default)]
pub(super) struct AlignedBuffer {
    lines: Vec<Line>,
}

impl AlignedBuffer {
    /// `len` zeros, rounded up to whole cache lines.
    pub(super) fn zeroed(len: usize) -> Self {
        Self { lines: vec![Line([0.0; LINE]); len.div_ceil(LINE)] }
    }

    /// The first `len` values, whatever they hold from earlier use; allocates only when it has to grow, and then no more than is
    /// asked for: a vector's own growth may take twice that.
    pub(super) fn at_least(&mut self, len: usize) -> &mut [f32] {
        if self.lines.len() * LINE < len {
            // The old lines go first, so that both are never held at once.
            self.lines = Vec::new();
            *self = Self::zeroed(len);
        }
        &mut self.as_mut_slice()[..len]
    }

    pub(super) fn as_slice(&self) -> &[f32] {
        // SAFETY: `Line` is `repr(C)` around `[f32; LINE]` and exactly as large, so `n` lines are `n * LINE` adjacent f32.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * LINE) }
    }

    /// The same memory as bytes.
    pub(super) fn as_bytes(&self) -> &[u8] {
        let values = self.as_slice();
        // SAFETY: every byte of an f32 is a byte.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
    }

    /// The same memory as bytes; any four of them are an f32.
    pub(super) fn as_bytes_mut(&mut self) -> &mut [u8] {
        let values = self.as_mut_slice();
        // SAFETY: as in `as_bytes`; the borrow is exclusive, and every pattern of bits is an f32.
        unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: as in `as_slice`; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.lines.len() * LINE) }
    }
}
