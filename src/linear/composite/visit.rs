//! Going through the blocks of a network on several threads, with arrays that hold a number of entries per block.

/// Where the nodes of a block start in arrays by colour, and where its neighbours beyond the block are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Block {
    /// Its pattern, and whether that is in rows.
    pub pattern: u32,
    pub in_rows: bool,
    /// First node of each colour.
    pub nodes: [u32; 2],
    /// First entry of each colour's list of nodes beyond the block.
    pub beyond: [u32; 2],
}

impl Block {
    fn total(&self) -> usize {
        (self.nodes[0] + self.nodes[1]) as usize
    }
}

/// Where the nodes of a colour of a block lie in arrays by node.
#[inline]
pub(super) fn range(blocks: &[Block], block: usize, colour: usize) -> std::ops::Range<usize> {
    blocks[block].nodes[colour] as usize..blocks[block + 1].nodes[colour] as usize
}

/// So many blocks, with so many nodes of each colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    blocks: usize,
    nodes: [usize; 2],
    beyond: [usize; 2],
}

/// Arrays that can be cut between two blocks.
pub(super) trait Parts: Send + Sized {
    /// The part of the first blocks, and the rest.
    fn split(self, at: Extent) -> (Self, Self);
}

/// An array with an entry for each node of a colour.
pub(super) struct Nodes<'a, T>(pub &'a mut [T], pub usize);

impl<T: Send> Parts for Nodes<'_, T> {
    fn split(self, at: Extent) -> (Self, Self) {
        let (low, high) = self.0.split_at_mut(at.nodes[self.1]);
        (Nodes(low, self.1), Nodes(high, self.1))
    }
}

/// An array with an entry for each node beyond the blocks, for the nodes of a colour.
pub(super) struct Outlook<'a, T>(pub &'a mut [T], pub usize);

impl<T: Send> Parts for Outlook<'_, T> {
    fn split(self, at: Extent) -> (Self, Self) {
        let (low, high) = self.0.split_at_mut(at.beyond[self.1]);
        (Outlook(low, self.1), Outlook(high, self.1))
    }
}

/// Arrays by node, of both colours.
pub(super) fn both<T>(values: &mut [Vec<T>; 2]) -> (Nodes<'_, T>, Nodes<'_, T>) {
    let [red, black] = values;
    (Nodes(red, 0), Nodes(black, 1))
}

/// An array with an entry for each block.
pub(super) struct PerBlock<'a, T>(pub &'a mut [T]);

impl<T: Send> Parts for PerBlock<'_, T> {
    fn split(self, at: Extent) -> (Self, Self) {
        let (low, high) = self.0.split_at_mut(at.blocks);
        (PerBlock(low), PerBlock(high))
    }
}

impl Parts for () {
    fn split(self, _: Extent) -> ((), ()) {
        ((), ())
    }
}

macro_rules! parts {
    ($($name:ident $index:tt),+) => {
        impl<$($name: Parts),+> Parts for ($($name,)+) {
            #[allow(non_snake_case)]
            fn split(self, at: Extent) -> (Self, Self) {
                $(let $name = self.$index.split(at);)+
                (($($name.0,)+), ($($name.1,)+))
            }
        }
    };
}
parts!(A 0);
parts!(A 0, B 1);
parts!(A 0, B 1, C 2);
parts!(A 0, B 1, C 2, E 3);
parts!(A 0, B 1, C 2, E 3, F 4);

/// Nodes that a thread takes at a time.
const GRAIN: usize = 8 * 1024;

/// Calls `body(state, block, parts)` for every block that has nodes, with a `state` made anew for some blocks at a time.
/// `blocks` ends with a marker of the end.
pub(super) fn visit<P: Parts, W>(
    blocks: &[Block],
    parts: P,
    state: &(impl Fn() -> W + Sync),
    body: &(impl Fn(&mut W, usize, P) + Sync),
) {
    visit_some(0, blocks, parts, state, body);
}

fn visit_some<P: Parts, W>(
    first: usize,
    blocks: &[Block],
    mut parts: P,
    state: &(impl Fn() -> W + Sync),
    body: &(impl Fn(&mut W, usize, P) + Sync),
) {
    let [Some(start), Some(end)] = [blocks.first(), blocks.last()] else { return };
    let count = blocks.len() - 1;
    let extent = |from: usize, to: usize| Extent {
        blocks: to - from,
        nodes: [0, 1].map(|colour| (blocks[to].nodes[colour] - blocks[from].nodes[colour]) as usize),
        beyond: [0, 1].map(|colour| (blocks[to].beyond[colour] - blocks[from].beyond[colour]) as usize),
    };
    if end.total() - start.total() > GRAIN && count > 1 {
        let half = (start.total() + end.total()) / 2;
        let middle = blocks.partition_point(|block| block.total() < half).clamp(1, count - 1);
        let (low, high) = parts.split(extent(0, middle));
        rayon::join(
            || visit_some(first, &blocks[..=middle], low, state, body),
            || visit_some(first + middle, &blocks[middle..], high, state, body),
        );
        return;
    }
    let mut own = state();
    for index in 0..count {
        let (part, rest) = parts.split(extent(index, index + 1));
        parts = rest;
        if blocks[index + 1].total() > blocks[index].total() {
            body(&mut own, first + index, part);
        }
    }
}
