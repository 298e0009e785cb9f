//! One array, several threads.

use std::ops::Range;

/// An array that threads write through, each at places of its own.
pub(super) struct SharedOut<T>(pub(super) *mut T);
// SAFETY: every use writes disjoint places (see there).
unsafe impl<T: Send> Sync for SharedOut<T> {}

impl<T> SharedOut<T> {
    /// # Safety
    /// The range must be inside the array and overlap no other one in use.
    #[allow(clippy::mut_from_ref, reason = "the caller promises disjoint ranges")]
    #[inline]
    pub unsafe fn range(&self, range: Range<usize>) -> &mut [T] {
        // SAFETY: by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(range.start), range.len()) }
    }
}
