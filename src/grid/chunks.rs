//! Sweeps over blocks with something to collect into, always cut at the same places.

use super::{Blockwise, DisjointMut, Slots, share};

/// Into how many chunks such sweeps are cut, whatever the number of threads.
pub const CHUNKS: usize = 32;

/// Calls `body(slot, blocks, local)` for every slot: chunk after chunk in parallel, the slots of a chunk in order. Each
/// chunk has one of the `locals` to itself, and they depend on the chunks alone: adding them up in order gives the same
/// result for any thread count.
pub fn for_each_block_collecting<F: Blockwise, L: Send>(
    slots: &Slots,
    fields: F,
    locals: &mut [L; CHUNKS],
    body: impl Fn(usize, F::Block, &mut L) + Sync + Send,
) {
    let length = slots.len().div_ceil(CHUNKS).max(1);
    let (slots, locals) = (slots.as_slice(), DisjointMut::new(locals));
    share(slots.len().div_ceil(length), 1, &|range| {
        for at in range {
            // SAFETY: ranges are disjoint.
            let local = unsafe { locals.at(at) };
            for &slot in &slots[at * length..slots.len().min((at + 1) * length)] {
                // SAFETY: the slots of a list are distinct, so every block is lent once.
                body(slot as usize, unsafe { fields.take(slot as usize) }, local);
            }
        }
    });
}
