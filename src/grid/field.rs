//! Values on the active blocks.

use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

use bytemuck::Pod;

use super::Blocks;
use crate::archive::{ArchiveError, Reader, Writer};

/// One value per cell of every slot of a [`super::Blocks`], block after block, x fastest inside a block.
///
/// Also used for values on low faces and low corners. Block [`super::VOID`] holds the default value.
#[derive(Clone, Debug)]
pub struct Field<T> {
    values: Vec<T>,
    block: usize,
    default: T,
}

impl<T: Copy + Send + Sync> Field<T> {
    /// An empty field for blocks of `block` values, whose inactive blocks read as `default`.
    pub fn new(block: usize, default: T) -> Self {
        Field { values: vec![default; block], block, default }
    }

    /// Makes room for `slots` blocks; new blocks hold the default value.
    pub fn resize(&mut self, slots: usize) {
        let wanted = slots * self.block;
        if wanted > self.values.len() {
            if wanted > self.values.capacity() {
                // Grow by an eighth: liquid spreads slowly, and memory per cell is budgeted.
                let target = wanted + wanted / 8;
                self.values.reserve_exact(target - self.values.len());
            }
            self.values.resize(wanted, self.default);
        }
    }

    /// Values per block.
    pub fn block_len(&self) -> usize {
        self.block
    }

    /// The value inactive blocks read as.
    pub fn default_value(&self) -> T {
        self.default
    }

    /// The values of one block.
    #[inline]
    pub fn block(&self, slot: usize) -> &[T] {
        &self.values[slot * self.block..(slot + 1) * self.block]
    }

    /// The values of one block, to be changed.
    #[inline]
    pub fn block_mut(&mut self, slot: usize) -> &mut [T] {
        &mut self.values[slot * self.block..(slot + 1) * self.block]
    }

    /// All values, block after block.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.values
    }

    /// All values, block after block, to be changed.
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Lends the blocks one by one to a parallel sweep.
    pub fn parts(&mut self) -> Parts<'_, T> {
        Parts::new(&mut self.values, self.block)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>()
    }
}

impl<T: Pod + Send + Sync> Field<T> {
    /// Writes the values on active blocks.
    pub fn save<const D: usize>(
        &self,
        name: &str,
        blocks: &Blocks<D>,
        out: &mut Writer<'_>,
    ) -> Result<(), ArchiveError> {
        let slots = blocks.slots().as_slice();
        let mut values = Vec::with_capacity(slots.len() * self.block);
        slots.iter().for_each(|&slot| values.extend_from_slice(self.block(slot as usize)));
        out.array(name, &values)
    }

    /// Reads the values on active blocks into a field that is empty so far.
    pub fn load<const D: usize>(
        &mut self,
        name: &str,
        blocks: &Blocks<D>,
        from: &mut Reader<'_>,
    ) -> Result<(), ArchiveError> {
        let slots = blocks.slots().as_slice();
        let values = from.array_of(name, slots.len() * self.block)?;
        self.resize(blocks.slot_count());
        for (&slot, values) in slots.iter().zip(values.chunks_exact(self.block)) {
            self.block_mut(slot as usize).copy_from_slice(values);
        }
        Ok(())
    }
}

impl<T> Index<usize> for Field<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.values[index]
    }
}

impl<T> IndexMut<usize> for Field<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.values[index]
    }
}

/// Something that can be handed out block by block to threads that each visit other blocks.
pub trait Blockwise: Sync {
    /// What one visit gets.
    type Block;

    /// The part that belongs to a slot.
    ///
    /// # Safety
    /// Each slot may be taken once at most, and it must not be the void one.
    unsafe fn take(&self, slot: usize) -> Self::Block;
}

/// The blocks of a mutably borrowed [`Field`] or array, to be handed out one by one.
pub struct Parts<'f, T> {
    start: *mut T,
    block: usize,
    len: usize,
    field: PhantomData<&'f mut [T]>,
}

impl<'f, T> Parts<'f, T> {
    /// An array, cut into blocks of that many values.
    pub fn new(values: &'f mut [T], block: usize) -> Self {
        Parts { start: values.as_mut_ptr(), block, len: values.len(), field: PhantomData }
    }

    /// How many blocks there are, the void one included.
    pub fn count(&self) -> usize {
        self.len / self.block
    }
}

// SAFETY: `take` hands out disjoint `&mut [T]`, which may travel between threads when T may.
unsafe impl<T: Send> Sync for Parts<'_, T> {}
unsafe impl<T: Send> Send for Parts<'_, T> {}

impl<'f, T: Send> Blockwise for Parts<'f, T> {
    type Block = &'f mut [T];

    #[inline]
    unsafe fn take(&self, slot: usize) -> &'f mut [T] {
        assert!(slot > 0 && (slot + 1) * self.block <= self.len, "slot {slot} lies outside the field");
        // SAFETY: in bounds by the assertion; disjoint from every other block by the caller's promise; the field
        // stays mutably borrowed for 'f.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(slot * self.block), self.block) }
    }
}

impl Blockwise for () {
    type Block = ();
    unsafe fn take(&self, _: usize) {}
}

macro_rules! blockwise_tuple {
    ($($name:ident . $index:tt),+) => {
        impl<$($name: Blockwise),+> Blockwise for ($($name,)+) {
            type Block = ($($name::Block,)+);
            #[inline]
            unsafe fn take(&self, slot: usize) -> Self::Block {
                // SAFETY: the caller's promise covers every member.
                ($(unsafe { self.$index.take(slot) },)+)
            }
        }
    };
}
blockwise_tuple!(A.0);
blockwise_tuple!(A.0, B.1);
blockwise_tuple!(A.0, B.1, C.2);
blockwise_tuple!(A.0, B.1, C.2, E.3);
blockwise_tuple!(A.0, B.1, C.2, E.3, F.4);

impl<A: Blockwise, const N: usize> Blockwise for [A; N] {
    type Block = [A::Block; N];
    #[inline]
    unsafe fn take(&self, slot: usize) -> Self::Block {
        // SAFETY: the caller's promise covers every member.
        std::array::from_fn(|i| unsafe { self[i].take(slot) })
    }
}
