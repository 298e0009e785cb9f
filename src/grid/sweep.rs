//! Parallel loops over blocks that give the same bits for any number of threads.

use super::{Blockwise, CHUNKS, DisjointMut, share};

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
    pub fn refill(&mut self, from: &Slots, keep: impl Fn(usize) -> bool + Sync) {
        let (all, chunk_len) = (from.0.len(), from.0.len().div_ceil(CHUNKS).max(64));
        self.0.resize(all, 0);
        let mut kept = [0; CHUNKS];
        let (slots, counts) = (DisjointMut::new(&mut self.0), DisjointMut::new(&mut kept));
        share(all.div_ceil(chunk_len), 4, &|range| {
            for chunk in range {
                let places = chunk * chunk_len..all.min((chunk + 1) * chunk_len);
                // SAFETY: ranges are disjoint, and so are chunks.
                let (own, kept) = unsafe { (slots.range(places.clone()), counts.at(chunk)) };
                for &slot in from.0[places].iter().filter(|&&slot| keep(slot as usize)) {
                    own[*kept] = slot;
                    *kept += 1;
                }
            }
        });
        // The chunks' own lists move together.
        let mut end = 0;
        for (chunk, count) in kept.into_iter().enumerate() {
            let first = (chunk * chunk_len).min(all);
            self.0.copy_within(first..first + count, end);
            end += count;
        }
        self.0.truncate(end);
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
    share(slots.len(), FEW, &|range| {
        for &slot in &slots.0[range] {
            // SAFETY: the slots of a list are distinct, so every block is lent once.
            body(slot as usize, unsafe { fields.take(slot as usize) });
        }
    });
}

/// So many blocks are worth a thread's while.
const FEW: usize = 2;

/// Sums a number per block: each block by itself, then the blocks in order, whoever computed them.
pub fn sum_over_blocks(
    slots: &Slots,
    partial: &mut Vec<f64>,
    body: impl Fn(usize) -> f64 + Sync + Send,
) -> f64 {
    partial.clear();
    partial.resize(slots.len(), 0.0);
    let sums = DisjointMut::new(partial);
    share(slots.len(), FEW, &|range| {
        // SAFETY: ranges are disjoint.
        let sums = unsafe { sums.range(range.clone()) };
        sums.iter_mut().zip(&slots.0[range]).for_each(|(sum, &slot)| *sum = body(slot as usize));
    });
    partial.iter().sum()
}
