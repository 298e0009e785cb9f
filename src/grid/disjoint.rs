//! Writing from several threads at once.

/// Values that several threads write, each at places of its own.
pub struct Scatter<'a, T>(*mut T, usize, std::marker::PhantomData<&'a mut [T]>);
// SAFETY: whoever writes sees to it that no two threads use the same place.
unsafe impl<T: Send> Sync for Scatter<'_, T> {}

impl<'a, T> Scatter<'a, T> {
    /// The places of a slice.
    pub fn new(values: &'a mut [T]) -> Self {
        Scatter(values.as_mut_ptr(), values.len(), std::marker::PhantomData)
    }

    /// A place.
    #[inline]
    pub fn at(&self, at: usize) -> *mut T {
        assert!(at < self.1);
        // SAFETY: inside the slice.
        unsafe { self.0.add(at) }
    }

    /// Writes to a place.
    ///
    /// # Safety
    /// No other thread writes to or reads from it meanwhile.
    #[inline]
    pub unsafe fn put(&self, at: usize, value: T)
    where
        T: Copy,
    {
        // SAFETY: ours alone by the caller's promise.
        unsafe { *self.at(at) = value };
    }
}
