//! Sweeps over the blocks of a level that give the same bits for any number of threads.

use crate::grid::{Blockwise, Parts, block_cells, share};

/// Cells that are worth a thread's while.
const GRAIN: usize = 4 * 1024;

/// Calls `body(block, parts)` for every block but the absent one. `parts` are arrays cut into blocks.
pub(super) fn each_block<const D: usize, T: Cuts>(parts: T, body: impl Fn(usize, T::Block) + Sync + Send) {
    share(parts.count() - 1, GRAIN / block_cells(D), &|range| {
        for block in range.start + 1..range.end + 1 {
            // SAFETY: ranges are disjoint, and the absent block is in none.
            body(block, unsafe { parts.take(block) });
        }
    });
}

/// Cuts an array into blocks of that many values.
pub(super) fn cut<T>(values: &mut [T], block: usize) -> Parts<'_, T> {
    assert!(values.len() >= block && values.len().is_multiple_of(block), "arrays hold whole blocks");
    Parts::new(values, block)
}

/// Arrays that are cut into the same number of blocks.
pub(super) trait Cuts: Blockwise {
    /// How many blocks there are, the absent one included.
    fn count(&self) -> usize;
}

macro_rules! cuts {
    ($first:ident $($name:ident $index:tt)*) => {
        impl<'a, $first: Send $(, $name: Send)*> Cuts for (Parts<'a, $first>, $(Parts<'a, $name>,)*) {
            fn count(&self) -> usize {
                let count = self.0.count();
                $(assert_eq!(self.$index.count(), count, "arrays have the same number of blocks");)*
                count
            }
        }
    };
}
cuts!(A);
cuts!(A B 1);
cuts!(A B 1 C 2);
cuts!(A B 1 C 2 E 3);
