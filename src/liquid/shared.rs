//! One array, several threads.

/// An array that threads write through, each at places of its own.
pub(super) struct SharedOut<T>(pub(super) *mut T);
// SAFETY: every use writes disjoint places (see there).
unsafe impl<T: Send> Sync for SharedOut<T> {}
