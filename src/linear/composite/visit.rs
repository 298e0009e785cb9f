//! Parallel walk over the blocks of a network, with arrays cut between blocks of different lengths.

use std::ops::Range;

use rayon::prelude::*;

/// How a block keeps its nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Form {
    /// One by one.
    #[default]
    Listed,
    /// In rows, those that have nodes.
    SomeRows,
    /// In rows along x, all of them.
    AllRows,
}

/// Where the nodes of a block start in arrays by colour, and where its halo does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Block {
    /// Its pattern, and of that what most passes ask for.
    pub pattern: u32,
    pub form: Form,
    pub keeps_links: bool,
    /// Whether nodes of each colour are linked to shared ones.
    pub has_shared: [bool; 2],
    /// Whether its nodes are kept in rows, and passes over one colour need nothing of its pattern: see [`visit_batches`].
    pub is_plain: bool,
    /// Whether, on top of that, all its cells are nodes, and have all their links: these have the same diagonal in all such
    /// blocks. On the finest level only.
    pub is_even: bool,
    /// First place of each colour, where a row can start, and how many there are.
    pub nodes: [u32; 2],
    pub counts: [u32; 2],
    /// Where the halo of each colour's nodes starts: see `neighbours`.
    pub halo: [u32; 2],
}

impl Block {
    fn total(&self) -> usize {
        (self.nodes[0] + self.nodes[1]) as usize
    }
}

/// Where the nodes of a colour of a block lie in arrays by node.
#[inline]
pub(super) fn range(blocks: &[Block], block: usize, colour: usize) -> Range<usize> {
    let first = blocks[block].nodes[colour] as usize;
    first..first + blocks[block].counts[colour] as usize
}

/// Where the nodes of a colour of a block lie, filled up to whole rows.
#[inline]
pub(super) fn whole_rows(blocks: &[Block], block: usize, colour: usize) -> Range<usize> {
    let range = range(blocks, block, colour);
    range.start..range.start + range.len().next_multiple_of(8)
}

/// Sets to 0 what the blocks leave unused in an array by node of a colour, and the row behind them if it has one. Copies come
/// after that, and are made before they are read.
pub(super) fn clear_unused<T: Default + Copy>(blocks: &[Block], values: &mut [T], colour: usize) {
    for block in 0..blocks.len().saturating_sub(1) {
        values[range(blocks, block, colour).end..whole_rows(blocks, block, colour).end].fill(T::default());
    }
    let end = blocks.last().map_or(0, |end| end.nodes[colour] as usize);
    let behind = values.len().min(end + 8);
    values[end..behind].fill(T::default());
}

/// Places that a thread takes at a time where it does not matter which block they belong to.
pub(super) const PIECE: usize = 8 * 1024;

/// Pieces of the arrays of both colours, of which the first `counts` entries are nodes or unused places between blocks.
pub(super) fn pieces<T: Sync>(
    values: &[Vec<T>; 2],
    counts: [usize; 2],
) -> impl IndexedParallelIterator<Item = &[T]> {
    let [red, black] = values;
    red[..counts[0]].par_chunks(PIECE).chain(black[..counts[1]].par_chunks(PIECE))
}

/// Mutable pieces of the arrays of both colours.
pub(super) fn pieces_mut<T: Send>(
    values: &mut [Vec<T>; 2],
    counts: [usize; 2],
) -> impl IndexedParallelIterator<Item = &mut [T]> {
    let [red, black] = values;
    red[..counts[0]].par_chunks_mut(PIECE).chain(black[..counts[1]].par_chunks_mut(PIECE))
}

/// Number of blocks, and of node slots per colour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    blocks: usize,
    nodes: [usize; 2],
    /// How many of the places are used: all, but for a single block, which leaves some so that the next one starts a row.
    used: [usize; 2],
    halo: [usize; 2],
}

impl Extent {
    fn new(from: &Block, to: &Block, blocks: usize) -> Extent {
        let nodes = [0, 1].map(|colour| (to.nodes[colour] - from.nodes[colour]) as usize);
        let halo = [0, 1].map(|colour| (to.halo[colour] - from.halo[colour]) as usize);
        Extent { blocks, nodes, used: nodes, halo }
    }
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
        (Nodes(&mut low[..at.used[self.1]], self.1), Nodes(high, self.1))
    }
}

/// An array with a fixed number of entries for each node of a colour.
pub(super) struct PerNode<'a, T>(pub &'a mut [T], pub usize, pub usize);

impl<T: Send> Parts for PerNode<'_, T> {
    fn split(self, at: Extent) -> (Self, Self) {
        let (low, high) = self.0.split_at_mut(at.nodes[self.1] * self.2);
        (PerNode(low, self.1, self.2), PerNode(high, self.1, self.2))
    }
}

/// An array with an entry for each row of a colour.
pub(super) struct PerRow<'a, T>(pub &'a mut [T], pub usize);

impl<T: Send> Parts for PerRow<'_, T> {
    fn split(self, at: Extent) -> (Self, Self) {
        let (low, high) = self.0.split_at_mut(at.nodes[self.1] / 8);
        (PerRow(low, self.1), PerRow(high, self.1))
    }
}

/// An array with an entry for each place of a colour's halo.
pub(super) struct PerHalo<'a, T>(pub &'a mut [T], pub usize);

impl<T: Send> Parts for PerHalo<'_, T> {
    fn split(self, at: Extent) -> (Self, Self) {
        let (low, high) = self.0.split_at_mut(at.halo[self.1]);
        (PerHalo(low, self.1), PerHalo(high, self.1))
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
parts!(A 0, B 1, C 2, E 3, F 4, G 5, H 6);

/// The most places of a colour that blocks of a batch have together.
pub(super) const BATCH: usize = 1024;

/// Nodes that a thread takes at a time.
pub(super) const GRAIN: usize = 8 * 1024;

/// Calls `body(state, block, parts)` for every block that has nodes, with a `state` made anew for some blocks at a time.
/// `blocks` ends with a marker of the end.
pub(super) fn visit<P: Parts, W>(
    blocks: &[Block],
    parts: P,
    state: &(impl Fn() -> W + Sync),
    body: &(impl Fn(&mut W, usize, P) + Sync),
) {
    visit_by(GRAIN, blocks, parts, state, body);
}

/// [`visit`] with `grain` nodes that a thread takes at a time.
pub(super) fn visit_by<P: Parts, W>(
    grain: usize,
    blocks: &[Block],
    parts: P,
    state: &(impl Fn() -> W + Sync),
    body: &(impl Fn(&mut W, usize, P) + Sync),
) {
    let each = |own: &mut W, blocks: Range<usize>, parts: P| body(own, blocks.start, parts);
    visit_some(grain, 0, blocks, parts, state, &|_: &[Block]| 1, &each);
}

/// [`visit`] with batches of consecutive blocks that are plain, all of them even or none, up to [`BATCH`] slots of a colour at a
/// time; other blocks one by one.
pub(super) fn visit_batches<P: Parts, W>(
    grain: usize,
    blocks: &[Block],
    parts: P,
    state: &(impl Fn() -> W + Sync),
    body: &(impl Fn(&mut W, Range<usize>, P) + Sync),
) {
    let batch = |blocks: &[Block]| {
        let end = blocks[0].nodes[0] as usize + BATCH;
        let fits = |block: &&Block| {
            let is_near = (block.nodes[0] + block.counts[0]) as usize <= end;
            block.is_plain && block.is_even == blocks[0].is_even && is_near
        };
        blocks.iter().take_while(fits).count().max(1)
    };
    visit_some(grain, 0, blocks, parts, state, &batch, body);
}

fn visit_some<P: Parts, W>(
    grain: usize,
    first: usize,
    blocks: &[Block],
    mut parts: P,
    state: &(impl Fn() -> W + Sync),
    batch: &(impl Fn(&[Block]) -> usize + Sync),
    body: &(impl Fn(&mut W, Range<usize>, P) + Sync),
) {
    let [Some(start), Some(end)] = [blocks.first(), blocks.last()] else { return };
    let count = blocks.len() - 1;
    if end.total() - start.total() > grain && count > 1 {
        let half = (start.total() + end.total()) / 2;
        let middle = blocks.partition_point(|block| block.total() < half).clamp(1, count - 1);
        let (low, high) = parts.split(Extent::new(start, &blocks[middle], middle));
        rayon::join(
            || visit_some(grain, first, &blocks[..=middle], low, state, batch, body),
            || visit_some(grain, first + middle, &blocks[middle..], high, state, batch, body),
        );
        return;
    }
    let (mut own, mut at) = (state(), 0);
    while at < count {
        let next = at + batch(&blocks[at..count]);
        let mut extent = Extent::new(&blocks[at], &blocks[next], next - at);
        if next == at + 1 {
            extent.used = blocks[at].counts.map(|count| count as usize);
        }
        let (part, rest) = parts.split(extent);
        parts = rest;
        if blocks[next].total() > blocks[at].total() {
            body(&mut own, first + at..first + next, part);
        }
        at = next;
    }
}
