//! Compact storage of one level: an 8^D block stores its nodes only, or all cells if most are nodes.
//!
//! ```text
//! block with two seams        rows along y        what is stored: four rows of each colour
//! . . . x . . . .             . . . | . . . .     red    x x x x x x x x   (pairs of cells along z share a place)
//! . . . x . . . .             . . . | . . . .     black  x x x x x x x x
//! x x x x x x x x      →      - - - + - - - -     …
//! . . . x . . . .             . . . | . . . .
//! ```
//!
//! Arrays by colour hold the nodes of block after block; behind them lie a row of zeros and the *halo*, copies of what blocks
//! read of each other out of line.

mod coupled;
mod positions;
mod sweeps;
mod transfers;

use std::ops::Range;

pub(super) use coupled::NetworkRows;

use rayon::prelude::*;

use super::super::coupling::CoupledBlock;
use super::super::layout::Row;
use super::super::stencil::grow;
use super::super::topology::Topology;
use super::coarsen::ChildPatterns;
use super::finest::Key;
use super::interner::KeyIndex;
use super::neighbours::{self, NeighbourPlan, NeighbourView, RowNeighbours};
use super::pattern::{End, Half, Pattern};
use super::rows::{self, Values};
use super::shared::SharedRows;
use super::visit::{Block, Form, Nodes, PerHalo, PerNode, PerRow, clear_unused, range, visit};

/// One value per node, by colour.
pub(super) type Colours<T> = [Vec<T>; 2];

/// A network on one level, with `A x = b` on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Network<const D: usize> {
    pub topology: Topology<D>,
    /// All block patterns; the first one is empty.
    pub patterns: Vec<Pattern>,
    /// The index that each pattern had in the step before, or `NEW`.
    pub previous: Vec<u32>,
    /// Patterns of the finest level that other blocks may have too, by their cells.
    pub interned: KeyIndex<Key>,
    /// Patterns of a coarse level, by the patterns below them.
    pub below: KeyIndex<ChildPatterns>,
    /// All blocks, the absent one first, and a marker of the end.
    pub blocks: Vec<Block>,
    /// Length of a workspace that suits every block; no block has as many nodes.
    pub room: usize,
    /// For the rows of each colour: where their neighbours are among the other colour.
    near: Colours<RowNeighbours>,
    /// For each colour: the places of the other one that are copied to its halo.
    halo: Colours<u32>,
    /// Whether no two red nodes are linked to each other.
    reds_are_apart: bool,
    /// The link through a whole face, which patterns need not keep.
    pub whole: f32,
    /// With two materials: the link through a whole face of each.
    pub whole_of: [f32; 2],
    /// On coarse levels, where hardly a block equals another: the links of plain blocks, row after row.
    links: Colours<f32>,
    /// One over the diagonal and its shift by bodies: what the smoother multiplies by.
    pub inverse: Colours<f32>,
    /// The diagonal, rounded. On the finest level only.
    pub diagonal: Colours<f32>,
    /// Rows of the shared nodes.
    pub shared: SharedRows,
    /// Nodes that touch bodies of any weights: sweeps leave them alone, and they are relaxed together.
    pub coupled: CoupledBlock,
    /// Blocks beside bodies.
    pub touched: Vec<bool>,
    /// Blocks whose sweeps are damped because of bodies.
    pub damped: Vec<bool>,
    /// Finer blocks under each block, by octant; 0 where absent. Empty on the finest level.
    pub children: Vec<[u32; 8]>,
    /// The coarser block over each block.
    pub cover: Vec<u32>,
    /// The unknowns `x` of `A x = b`, with their halo.
    pub x: Colours<f32>,
    /// The right-hand side.
    pub b: Colours<f32>,
    /// `b − A x` after pre-smoothing.
    residual: Colours<f32>,
    /// Nodes that a thread takes at a time.
    pub grain: usize,
}

impl<const D: usize> Network<D> {
    /// The pattern of a block.
    #[inline]
    pub fn pattern(&self, block: usize) -> &Pattern {
        &self.patterns[self.blocks[block].pattern as usize]
    }

    /// Whether there is no finer level.
    #[inline]
    fn is_finest(&self) -> bool {
        self.children.is_empty()
    }

    /// The diagonal of nodes in even blocks.
    #[inline]
    pub fn full_diagonal(&self) -> f32 {
        2.0 * D as f32 * self.whole
    }

    /// One over the diagonal of nodes of a colour in plain blocks that follow each other.
    #[inline]
    fn inverse_of(&self, blocks: Range<usize>, colour: usize) -> Values<'_> {
        match self.blocks[blocks.start].is_even {
            true => Values::Same(1.0 / self.full_diagonal()),
            false => Values::Each(rows::rows(&self.inverse[colour][self.range_of(blocks, colour)])),
        }
    }

    /// The diagonal of nodes of a colour in plain blocks that follow each other.
    #[inline]
    pub fn diagonal_of(&self, blocks: Range<usize>, colour: usize) -> Values<'_> {
        match self.blocks[blocks.start].is_even {
            true => Values::Same(self.full_diagonal()),
            false => Values::Each(rows::rows(&self.diagonal[colour][self.range_of(blocks, colour)])),
        }
    }

    /// Empties the caches of patterns.
    pub fn forget(&mut self) {
        self.interned.clear();
        self.below.clear();
    }

    /// How many nodes there are.
    pub fn size(&self) -> usize {
        self.blocks.iter().rev().skip(1).map(|block| self.patterns[block.pattern as usize].nodes()).sum()
    }

    /// Calls `each(colour, node, other colour, other node, link)` for the links of all nodes, from both ends.
    pub fn each_link(&self, mut each: impl FnMut(usize, usize, usize, usize, f32)) {
        for block in 1..self.blocks.len() - 1 {
            let this = &self.blocks[block];
            for colour in 0..2 {
                self.pattern(block).each_link(colour, self.whole, |node, end, link| {
                    let (other, index) = match end {
                        End::Local(other, index) => (other, this.nodes[other] as usize + index),
                        End::Halo(halo) => (1 - colour, self.find_halo(block, colour, halo)),
                    };
                    each(colour, this.nodes[colour] as usize + node, other, index, link);
                });
            }
        }
    }

    /// The place in the arrays of a halo node, given by its place in [`Half::halo`].
    pub fn find_halo(&self, block: usize, colour: usize, halo: usize) -> usize {
        let halo = self.pattern(block).half[colour].halo[halo];
        let other = self.topology.beside(block)[halo.side as usize / 2][halo.side as usize % 2] as usize;
        let node = self.pattern(other).find(halo.cell as usize, halo.ordinal);
        self.blocks[other].nodes[1 - colour] as usize + node.expect("links have two ends")
    }

    /// Whether each node is linked to any other.
    pub fn is_linked(&self) -> Colours<bool> {
        let mut linked = self.counts().map(|count| vec![false; count]);
        for block in 1..self.blocks.len() - 1 {
            for (colour, linked) in linked.iter_mut().enumerate() {
                linked[self.range(block, colour)].copy_from_slice(&self.pattern(block).linked(colour));
            }
        }
        for entry in self.shared.list() {
            linked[entry.node.0 as usize][entry.node.1 as usize] = true;
        }
        linked
    }

    /// How many nodes are linked to another one, shared nodes included.
    pub fn linked(&self) -> usize {
        let counts: Vec<usize> =
            self.patterns.par_iter().with_min_len(64).map(Pattern::linked_nodes).collect();
        let blocks = &self.blocks[..self.blocks.len().saturating_sub(1)];
        let cells: usize = blocks.iter().map(|block| counts[block.pattern as usize]).sum();
        cells + self.shared.x.len()
    }

    /// How many places for nodes of each colour.
    pub fn counts(&self) -> [usize; 2] {
        self.blocks.last().map_or([0; 2], |end| end.nodes.map(|count| count as usize))
    }

    /// Length of an array of each colour with its row of zeros and its halo: see `neighbours`.
    pub fn reach(&self) -> [usize; 2] {
        let counts = self.counts();
        [0, 1].map(|colour| counts[colour] + 8 + self.halo[1 - colour].len())
    }

    /// Gives every block its pattern and its place in the arrays, and finds the neighbours of its rows.
    pub fn lay_out(&mut self, patterns: &[u32]) {
        self.blocks.clear();
        let mut next = Block::default();
        for &pattern in patterns {
            let this = &self.patterns[pattern as usize];
            let counts = [0, 1].map(|colour| this.count(colour) as u32);
            let has_shared = this.half.each_ref().map(|half| half.has_shared);
            let keeps_links = this.half.iter().any(|half| !half.links.is_empty());
            let form = this.form();
            let is_round = this.half.iter().all(|half| half.is_round);
            let is_known = !self.is_finest() || !keeps_links && is_round;
            let is_plain = form != Form::Listed && has_shared == [false; 2] && is_known;
            let is_full = |half: &Half| half.is_even && half.rounded.first() == Some(&self.full_diagonal());
            let is_even =
                is_plain && self.is_finest() && form == Form::AllRows && this.half.iter().all(is_full);
            self.blocks.push(Block {
                pattern,
                form,
                keeps_links,
                has_shared,
                is_plain,
                is_even,
                counts,
                ..next
            });
            for (first, count) in next.nodes.iter_mut().zip(counts) {
                *first += count.next_multiple_of(8);
            }
        }
        self.blocks.push(next);
        self.reds_are_apart = self.patterns.iter().all(|pattern| pattern.half[0].extra_links.is_empty());
        self.room = self.patterns.iter().flat_map(|pattern| &pattern.half).map(Half::room).max().unwrap_or(1);
        let plan = NeighbourPlan {
            topology: &self.topology,
            patterns: &self.patterns,
            blocks: &self.blocks,
            zeros: next.nodes,
        };
        let copies: Vec<[usize; 2]> =
            (0..patterns.len()).into_par_iter().with_min_len(256).map(|block| plan.copies(block)).collect();
        for (block, copies) in copies.iter().enumerate() {
            self.blocks[block].halo = next.halo;
            for (first, &count) in next.halo.iter_mut().zip(copies) {
                *first += count.next_multiple_of(8) as u32;
            }
        }
        self.blocks[patterns.len()].halo = next.halo;
        for colour in 0..2 {
            let nodes = next.nodes[colour] as usize;
            grow(&mut self.near[colour], nodes / 8);
            grow(&mut self.halo[colour], next.halo[colour] as usize);
            for values in [&mut self.inverse, &mut self.b] {
                grow(&mut values[colour], nodes);
                clear_unused(&self.blocks, &mut values[colour], colour);
            }
            grow(&mut self.residual[colour], nodes);
        }
        let reach = self.reach();
        for colour in 0..2 {
            grow(&mut self.x[colour], reach[colour]);
            clear_unused(&self.blocks, &mut self.x[colour], colour);
        }
        for marks in [&mut self.touched, &mut self.damped] {
            marks.clear();
            marks.resize(patterns.len(), false);
        }
        let Network { topology, patterns, blocks, near, halo, .. } = self;
        let plan = NeighbourPlan { topology, patterns, blocks, zeros: next.nodes };
        let ([near_red, near_black], [red, black]) = (near, halo);
        let parts = (PerRow(near_red, 0), PerRow(near_black, 1), PerHalo(red, 0), PerHalo(black, 1));
        visit(blocks, parts, &|| (), &|(), block, (near_red, near_black, red, black)| {
            plan.look(block, 0, near_red.0, red.0);
            plan.look(block, 1, near_black.0, black.0);
        });
    }

    /// Fills the halo of a colour's nodes from the array of the `other` one.
    fn fill_halo<T: Copy + Send + Sync>(&self, colour: usize, other: &mut [T]) {
        let (nodes, copies) = other.split_at_mut(self.counts()[1 - colour] + 8);
        neighbours::copy(nodes, &self.halo[colour], copies);
    }

    /// Fills the halos of both colours.
    pub fn fill_halos<T: Copy + Send + Sync>(&self, values: &mut Colours<T>) {
        (0..2).for_each(|colour| self.fill_halo(colour, &mut values[1 - colour]));
    }

    /// The neighbours, in the array of the `other` colour, of a colour's rows in some blocks.
    #[inline]
    pub fn view<'a, T>(
        &'a self,
        blocks: Range<usize>,
        colour: usize,
        other: &'a [T],
    ) -> NeighbourView<'a, T> {
        let rows = self.range_of(blocks.clone(), colour);
        let near = &self.near[colour][rows.start / 8..rows.end / 8];
        NeighbourView::new(other, self.range_of(blocks, 1 - colour), near)
    }

    /// The halo of a colour's nodes in a block that lists them.
    #[inline]
    pub fn halo_of<'a, T>(&self, block: usize, colour: usize, other: &'a [T]) -> &'a [T] {
        let first = self.counts()[1 - colour] + 8 + self.blocks[block].halo[colour] as usize;
        &other[first..first + self.pattern(block).half[colour].halo.len()]
    }

    /// A node of a block that a pattern's [`Pattern::parents`] name: its colour, and its place in the arrays.
    #[inline]
    pub fn node(&self, block: usize, parent: u16) -> Option<(usize, usize)> {
        let Block { nodes: this, counts, .. } = &self.blocks[block];
        let parent = u32::from(parent);
        if parent < counts[0] {
            Some((0, (this[0] + parent) as usize))
        } else if parent < counts[0] + counts[1] {
            Some((1, (this[1] + parent - counts[0]) as usize))
        } else {
            None
        }
    }

    /// Where the nodes of a colour of blocks that follow each other lie in the arrays.
    #[inline]
    pub fn range_of(&self, blocks: Range<usize>, colour: usize) -> Range<usize> {
        self.range(blocks.start, colour).start..self.range(blocks.end - 1, colour).end
    }

    /// Where the nodes of a colour of a block lie in the arrays.
    #[inline]
    pub fn range(&self, block: usize, colour: usize) -> Range<usize> {
        range(&self.blocks, block, colour)
    }

    /// Finds the diagonal as products with plain blocks need it: where it is not the same for all.
    pub fn find_diagonal(&mut self) {
        let Network { patterns, blocks, diagonal, .. } = self;
        for colour in 0..2 {
            grow(&mut diagonal[colour], blocks.last().map_or(0, |end| end.nodes[colour] as usize));
            visit(blocks, Nodes(&mut diagonal[colour], colour), &|| (), &|(), block, diagonal| {
                if blocks[block].is_plain && !blocks[block].is_even {
                    let pattern = &patterns[blocks[block].pattern as usize];
                    diagonal.0.copy_from_slice(&pattern.half[colour].rounded);
                }
            });
        }
    }

    /// Copies the links of plain blocks into one array, for coarse levels. On the finest level these are whole.
    pub fn find_links(&mut self) {
        let Network { patterns, blocks, links, whole, .. } = self;
        for (colour, links) in links.iter_mut().enumerate() {
            grow(links, 2 * D * blocks.last().map_or(0, |end| end.nodes[colour] as usize));
            visit(blocks, PerNode(links, colour, 2 * D), &|| (), &|(), block, PerNode(links, ..)| {
                let half = &patterns[blocks[block].pattern as usize].half[colour];
                if !blocks[block].is_plain {
                    return;
                }
                match half.links.is_empty() {
                    true => links.fill(*whole),
                    false => links.copy_from_slice(&half.links),
                }
            });
        }
    }

    /// The links of plain blocks that follow each other, unless they are whole.
    #[inline]
    fn links_of(&self, blocks: Range<usize>, colour: usize) -> Option<&[Row<f32>]> {
        let range = self.range_of(blocks, colour);
        (!self.is_finest()).then(|| rows::rows(&self.links[colour][2 * D * range.start..2 * D * range.end]))
    }

    /// Finds one over the diagonal, once the links to shared nodes are set.
    pub fn find_inverse(&mut self) {
        let Network { patterns, blocks, inverse, shared, .. } = self;
        for colour in 0..2 {
            visit(blocks, Nodes(&mut inverse[colour], colour), &|| (), &|(), block, inverse| {
                inverse.0.copy_from_slice(&patterns[blocks[block].pattern as usize].half[colour].inverse);
            });
        }
        shared.each_sum(|colour, node, sum| {
            let block = blocks.partition_point(|block| block.nodes[colour] as usize <= node) - 1;
            let pattern = &patterns[blocks[block].pattern as usize];
            let own = pattern.half[colour].diagonal[node - blocks[block].nodes[colour] as usize];
            inverse[colour][node] = (1.0 / (own + sum)) as f32;
        });
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let values = [&self.links, &self.inverse, &self.diagonal, &self.x, &self.b, &self.residual];
        self.topology.bytes()
            + self.patterns.iter().map(Pattern::bytes).sum::<usize>()
            + self.previous.capacity() * 4
            + self.interned.capacity() * size_of::<(Key, u32)>()
            + self.below.capacity() * size_of::<(ChildPatterns, u32)>()
            + self.blocks.capacity() * size_of::<Block>()
            + self.near.iter().map(|list| list.capacity() * size_of::<RowNeighbours>()).sum::<usize>()
            + self.halo.iter().map(|list| list.capacity() * 4).sum::<usize>()
            + values.into_iter().flatten().map(|list| list.capacity() * 4).sum::<usize>()
            + self.shared.bytes()
            + self.coupled.bytes()
            + self.children.capacity() * 32
            + self.cover.capacity() * 4
    }
}
