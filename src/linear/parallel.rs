//! Sweeps over the blocks of a level that give the same bits for any number of threads.

use rayon::prelude::*;

use crate::grid::block_cells;

/// Below this many cells a sweep stays on the calling thread: waking another costs more than it helps.
const WORTH_SHARING: usize = 24 * 1024;
/// Cells a thread takes at a time.
const GRAIN: usize = 4 * 1024;

/// Calls `body(block, parts)` for every block but the absent one. `parts` are arrays cut into blocks.
pub(super) fn each_block<const D: usize, T: Chunked>(parts: T, body: impl Fn(usize, T::Chunk) + Sync + Send) {
    parts.sweep(WORTH_SHARING / block_cells(D), GRAIN / block_cells(D), body);
}

/// Arrays that can be cut into blocks together.
pub(super) trait Chunked {
    /// One block of each.
    type Chunk;
    /// Visits all blocks but the first; on several threads, `grain` blocks at a time, if there are `enough`.
    fn sweep(self, enough: usize, grain: usize, body: impl Fn(usize, Self::Chunk) + Sync + Send);
}

/// A mutable array and the length of its blocks.
pub(super) struct Cut<'a, T>(pub &'a mut [T], pub usize);

impl<'a, T: Send> Cut<'a, T> {
    fn tail(self) -> (&'a mut [T], usize) {
        let Cut(values, block) = self;
        assert!(values.len() >= block && values.len().is_multiple_of(block), "arrays hold whole blocks");
        (&mut values[block..], block)
    }
}

macro_rules! chunked {
    ($first:ident $first_index:tt $(, $name:ident $index:tt)*) => {
        impl<'a, $first: Send $(, $name: Send)*> Chunked for (Cut<'a, $first>, $(Cut<'a, $name>,)*) {
            type Chunk = (&'a mut [$first], $(&'a mut [$name],)*);
            #[allow(non_snake_case)]
            fn sweep(self, enough: usize, grain: usize, body: impl Fn(usize, Self::Chunk) + Sync + Send) {
                let ($first, block) = self.$first_index.tail();
                let count = $first.len() / block;
                if count < enough {
                    let mut $first = $first.chunks_exact_mut(block);
                    $(let ($name, block) = self.$index.tail();
                      assert_eq!($name.len(), count * block, "arrays have the same number of blocks");
                      let mut $name = $name.chunks_exact_mut(block);)*
                    for i in 1..=count {
                        body(i, ($first.next().expect("counted"), $($name.next().expect("counted"),)*));
                    }
                } else {
                    let chunks = $first.par_chunks_exact_mut(block).enumerate();
                    $(let ($name, block) = self.$index.tail();
                      assert_eq!($name.len(), count * block, "arrays have the same number of blocks");
                      let chunks = chunks.zip($name.par_chunks_exact_mut(block));)*
                    chunks.with_min_len(grain).for_each(|chunked!(@pattern (i, $first) $($name)*)| {
                        body(i + 1, ($first, $($name,)*))
                    });
                }
            }
        }
    };
    (@pattern $inner:tt) => { $inner };
    (@pattern $inner:tt $name:ident $($rest:ident)*) => { chunked!(@pattern ($inner, $name) $($rest)*) };
}
chunked!(A 0);
chunked!(A 0, B 1);
chunked!(A 0, B 1, C 2);
chunked!(A 0, B 1, C 2, E 3);
chunked!(A 0, B 1, C 2, E 3, F 4);
