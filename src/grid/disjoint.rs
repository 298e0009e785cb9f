//! One array written by several threads at once, each at places of its own.

use std::marker::PhantomData;
use std::ops::Range;
#[cfg(debug_assertions)]
use std::sync::atomic::{AtomicU64, Ordering};

/// A mutably borrowed slice whose elements are handed out to threads, every element once at most.
///
/// Bounds are checked always. With debug assertions on, a map of the elements handed out finds the ones that are handed
/// out twice. A pass that is to touch elements again takes a new writer.
pub struct DisjointMut<'a, T> {
    start: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
    /// A bit per element: whether it was handed out.
    #[cfg(debug_assertions)]
    taken: Box<[AtomicU64]>,
}

// SAFETY: elements go to one thread each by the callers' promise, and may travel there when T may.
unsafe impl<T: Send> Sync for DisjointMut<'_, T> {}

#[allow(clippy::mut_from_ref, reason = "callers promise disjoint places")]
impl<'a, T> DisjointMut<'a, T> {
    /// The elements of a slice.
    pub fn new(values: &'a mut [T]) -> Self {
        DisjointMut {
            start: values.as_mut_ptr(),
            len: values.len(),
            slice: PhantomData,
            #[cfg(debug_assertions)]
            taken: (0..values.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// An element to write to.
    ///
    /// # Safety
    /// No element is asked for twice, or read by [`Self::read`] as well.
    #[inline]
    pub unsafe fn at(&self, at: usize) -> &'a mut T {
        assert!(at < self.len, "element {at} of {}", self.len);
        self.take(at..at + 1);
        // SAFETY: inside the slice, and ours alone by the caller's promise.
        unsafe { &mut *self.start.add(at) }
    }

    /// Neighbouring elements to write to.
    ///
    /// # Safety
    /// No element is asked for twice, or read by [`Self::read`] as well.
    #[inline]
    pub unsafe fn range(&self, range: Range<usize>) -> &'a mut [T] {
        assert!(range.start <= range.end && range.end <= self.len, "elements {range:?} of {}", self.len);
        self.take(range.clone());
        // SAFETY: inside the slice, and ours alone by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }

    /// The value of an element that nobody writes to.
    ///
    /// # Safety
    /// The element is asked for by neither [`Self::at`] nor [`Self::range`].
    #[inline]
    pub unsafe fn read(&self, at: usize) -> T
    where
        T: Copy,
    {
        assert!(at < self.len, "element {at} of {}", self.len);
        // SAFETY: inside the slice, and not written to by the caller's promise.
        unsafe { *self.start.add(at) }
    }

    /// Marks elements as handed out.
    #[inline]
    fn take(&self, _range: Range<usize>) {
        #[cfg(debug_assertions)]
        for at in _range {
            let bit = 1 << (at % 64);
            let before = self.taken[at / 64].fetch_or(bit, Ordering::Relaxed);
            assert!(before & bit == 0, "element {at} was handed out twice");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_written_where_they_lie() {
        let mut values = [0; 6];
        let out = DisjointMut::new(&mut values);
        // SAFETY: the places differ.
        unsafe {
            *out.at(1) = 10;
            out.range(2..5).copy_from_slice(&[20, 30, 40]);
            assert_eq!(out.read(5), 0);
        }
        assert_eq!(values, [0, 10, 20, 30, 40, 0]);
    }

    #[test]
    #[should_panic(expected = "elements 4..7 of 6")]
    fn what_lies_outside_is_refused() {
        let mut values = [0; 6];
        // SAFETY: asked for once.
        unsafe { DisjointMut::new(&mut values).range(4..7) };
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "element 2 was handed out twice")]
    fn debug_builds_notice_an_element_handed_out_twice() {
        let mut values = [0; 6];
        let out = DisjointMut::new(&mut values);
        // SAFETY: the two borrows end before the next begins; the check is what is tested.
        unsafe {
            *out.at(2) = 1;
            out.range(0..3);
        }
    }
}
