//! Parallel loops over blocks that give the same bits for any number of threads.

use rayon::prelude::*;

use super::Blockwise;

/// A list of distinct slots in a fixed order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slots(Vec<u32>);

impl Slots {
    /// Forgets all slots, keeps the memory.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Appends a slot. Only [`super::Blocks`] and [`Self::refill`] may: they know that it is new to the list.
    pub(super) fn push(&mut self, slot: u32) {
        self.0.push(slot);
    }

    /// Becomes the slots of `from` that `keep` says yes to, in the same order.
    pub fn refill(&mut self, from: &Slots, keep: impl Fn(usize) -> bool) {
        self.0.clear();
        self.0.extend(from.0.iter().copied().filter(|&slot| keep(slot as usize)));
    }

    /// The slots.
    #[inline]
    pub fn as_slice(&self) -> &[u32] {
        &self.0
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Calls `body(slot, blocks)` for every slot, in parallel; `fields` are lent block by block.
///
/// A block's result may depend on anything but the order of the visits, so it is the same for any thread count.
pub fn for_each_block<F: Blockwise>(slots: &Slots, fields: F, body: impl Fn(usize, F::Block) + Sync + Send) {
    slots.0.par_iter().with_min_len(2).for_each(|&slot| {
        // SAFETY: the slots of a list are distinct, so every block is lent once.
        body(slot as usize, unsafe { fields.take(slot as usize) });
    });
}

/// Sums a number per block: each block by itself, then the blocks in order, whoever computed them.
pub fn sum_over_blocks(
    slots: &Slots,
    partial: &mut Vec<f64>,
    body: impl Fn(usize) -> f64 + Sync + Send,
) -> f64 {
    partial.clear();
    partial.resize(slots.len(), 0.0);
    partial
        .par_iter_mut()
        .with_min_len(2)
        .zip(slots.0.par_iter())
        .for_each(|(sum, &slot)| *sum = body(slot as usize));
    partial.iter().sum()
}
