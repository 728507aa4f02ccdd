//! A slice that several threads write at once, each its own ranges.

use std::marker::PhantomData;

/// Shared access to a mutable slice for tasks that write ranges of which no two overlap, though the ranges of one task may be
/// strided (the columns of one head) and so no `split_at_mut` describes them.
#[derive(Clone, Copy)]
pub(super) struct DisjointSlice<'a> {
    start: *mut f32,
    len: usize,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: this is a `&mut [f32]` whose users promise, at each access, to keep apart.
unsafe impl Send for DisjointSlice<'_> {}
// SAFETY: as above.
unsafe impl Sync for DisjointSlice<'_> {}

impl<'a> DisjointSlice<'a> {
    pub(super) fn new(slice: &'a mut [f32]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The values `start..start + len`.
    ///
    /// # Safety
    /// While the result is in use, no other access may overlap this range.
    pub(super) unsafe fn range(&self, start: usize, len: usize) -> &'a mut [f32] {
        assert!(start <= self.len && len <= self.len - start);
        // SAFETY: the range lies in the borrowed slice (asserted); the caller promises that nothing else uses it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }
}
