//! A network stored without gaps: its blocks have as many entries as they have nodes, or keep all their cells if most are.

mod sweeps;
mod transfers;

use std::ops::Range;

use rayon::prelude::*;

use super::super::layout::Row;
use super::super::stencil::grow;
use super::super::topology::Topology;
use super::coarser::Below;
use super::finest::Key;
use super::pattern::{End, Half, Pattern};
use super::rows::{self, Values};
use super::sight::{self, Near, Plan, Sight};
use super::stock::Known;
use super::ties::Ties;
use super::visit::{Block, Form, Nodes, Outlook, PerNode, PerRow, clear_unused, range, visit};

/// One value per node, by colour.
pub(super) type Colours<T> = [Vec<T>; 2];

/// A network on one level, with `A x = b` on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Net<const D: usize> {
    pub topology: Topology<D>,
    /// All patterns; the first one is empty. Where each was in the step before, and what those are made of that may be wanted
    /// again: on the finest level of cells, on others of patterns below.
    pub patterns: Vec<Pattern>,
    pub origin: Vec<u32>,
    pub usual: Known<Key>,
    pub below: Known<Below>,
    /// All blocks, the absent one first, and a marker of the end.
    pub blocks: Vec<Block>,
    /// Places that a workspace for any of the blocks needs; no block has as many nodes.
    pub room: usize,
    /// For the rows of each colour: what they see of the other one, and which places of it are copied for them.
    near: Colours<Near>,
    beyond: Colours<u32>,
    /// Whether no two red nodes are linked to each other.
    reds_are_apart: bool,
    /// The link that patterns need not keep, and with two materials that of each.
    pub whole: f32,
    pub whole_of: [f32; 2],
    /// On coarse levels, where hardly a block is like another: the links of plain blocks, row after row.
    links: Colours<f32>,
    /// One over the diagonal and what bodies add to it.
    pub inverse: Colours<f32>,
    /// The diagonal, rounded. On the finest level only.
    pub diagonal: Colours<f32>,
    /// Shared nodes.
    pub ties: Ties,
    /// Blocks beside bodies, and those of them where sweeps are damped for it.
    pub touched: Vec<bool>,
    pub damped: Vec<bool>,
    /// Finer blocks under each block, by octant; 0 where absent. Empty on the finest level.
    pub children: Vec<[u32; 8]>,
    /// The coarser block over each block.
    pub cover: Vec<u32>,
    pub x: Colours<f32>,
    pub b: Colours<f32>,
    /// What is left of the rows after downward sweeps.
    residual: Colours<f32>,
    /// Nodes that a thread takes at a time.
    pub grain: usize,
}

impl<const D: usize> Net<D> {
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

    /// Their diagonal.
    #[inline]
    pub fn diagonal_of(&self, blocks: Range<usize>, colour: usize) -> Values<'_> {
        match self.blocks[blocks.start].is_even {
            true => Values::Same(self.full_diagonal()),
            false => Values::Each(rows::rows(&self.diagonal[colour][self.range_of(blocks, colour)])),
        }
    }

    /// Keeps nothing for the next step.
    pub fn forget(&mut self) {
        self.usual.clear();
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
                        End::Here(other, index) => (other, this.nodes[other] as usize + index),
                        End::There(beyond) => (1 - colour, self.find_beyond(block, colour, beyond)),
                    };
                    each(colour, this.nodes[colour] as usize + node, other, index, link);
                });
            }
        }
    }

    /// The place of a node beyond a block, given by its place in [`Half::beyond`].
    pub fn find_beyond(&self, block: usize, colour: usize, beyond: usize) -> usize {
        let beyond = self.pattern(block).half[colour].beyond[beyond];
        let other = self.topology.beside(block)[beyond.side as usize / 2][beyond.side as usize % 2] as usize;
        let node = self.pattern(other).find(beyond.cell as usize, beyond.ordinal);
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
        for tie in self.ties.list() {
            linked[tie.node.0 as usize][tie.node.1 as usize] = true;
        }
        linked
    }

    /// How many nodes are.
    pub fn linked(&self) -> usize {
        let counts: Vec<usize> =
            self.patterns.par_iter().with_min_len(64).map(Pattern::linked_nodes).collect();
        let blocks = &self.blocks[..self.blocks.len().saturating_sub(1)];
        let cells: usize = blocks.iter().map(|block| counts[block.pattern as usize]).sum();
        cells + self.ties.x.len()
    }

    /// How many places for nodes of each colour.
    pub fn counts(&self) -> [usize; 2] {
        self.blocks.last().map_or([0; 2], |end| end.nodes.map(|count| count as usize))
    }

    /// How long an array of each colour must be that is looked at: see [`sight`].
    pub fn reach(&self) -> [usize; 2] {
        let counts = self.counts();
        [0, 1].map(|colour| counts[colour] + 8 + self.beyond[1 - colour].len())
    }

    /// Gives every block its pattern and its place in the arrays, and finds what it sees of others.
    pub fn lay_out(&mut self, patterns: &[u32]) {
        self.blocks.clear();
        let mut next = Block::default();
        for &pattern in patterns {
            let this = &self.patterns[pattern as usize];
            let counts = [0, 1].map(|colour| this.count(colour) as u32);
            let is_tied = this.half.each_ref().map(|half| half.is_tied);
            let keeps_links = this.half.iter().any(|half| !half.links.is_empty());
            let form = this.form();
            let is_round = this.half.iter().all(|half| half.is_round);
            let is_known = !self.is_finest() || !keeps_links && is_round;
            let is_plain = form != Form::Listed && is_tied == [false; 2] && is_known;
            let is_full = |half: &Half| half.is_even && half.rounded.first() == Some(&self.full_diagonal());
            let is_even =
                is_plain && self.is_finest() && form == Form::AllRows && this.half.iter().all(is_full);
            self.blocks.push(Block {
                pattern,
                form,
                keeps_links,
                is_tied,
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
        self.reds_are_apart = self.patterns.iter().all(|pattern| pattern.half[0].further.is_empty());
        self.room = self.patterns.iter().flat_map(|pattern| &pattern.half).map(Half::room).max().unwrap_or(1);
        let plan = Plan {
            topology: &self.topology,
            patterns: &self.patterns,
            blocks: &self.blocks,
            zeros: next.nodes,
        };
        let copies: Vec<[usize; 2]> =
            (0..patterns.len()).into_par_iter().with_min_len(256).map(|block| plan.copies(block)).collect();
        for (block, copies) in copies.iter().enumerate() {
            self.blocks[block].beyond = next.beyond;
            for (first, &count) in next.beyond.iter_mut().zip(copies) {
                *first += count.next_multiple_of(8) as u32;
            }
        }
        self.blocks[patterns.len()].beyond = next.beyond;
        for colour in 0..2 {
            let nodes = next.nodes[colour] as usize;
            grow(&mut self.near[colour], nodes / 8);
            grow(&mut self.beyond[colour], next.beyond[colour] as usize);
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
        let Net { topology, patterns, blocks, near, beyond, .. } = self;
        let plan = Plan { topology, patterns, blocks, zeros: next.nodes };
        let ([near_red, near_black], [red, black]) = (near, beyond);
        let parts = (PerRow(near_red, 0), PerRow(near_black, 1), Outlook(red, 0), Outlook(black, 1));
        visit(blocks, parts, &|| (), &|(), block, (near_red, near_black, red, black)| {
            plan.look(block, 0, near_red.0, red.0);
            plan.look(block, 1, near_black.0, black.0);
        });
    }

    /// Copies what the nodes of a colour see out of line of the `other` one.
    fn copy_seen<T: Copy + Send + Sync>(&self, colour: usize, other: &mut [T]) {
        let (nodes, copies) = other.split_at_mut(self.counts()[1 - colour] + 8);
        sight::copy(nodes, &self.beyond[colour], copies);
    }

    /// The same for both colours.
    pub fn copy_all_seen<T: Copy + Send + Sync>(&self, values: &mut Colours<T>) {
        (0..2).for_each(|colour| self.copy_seen(colour, &mut values[1 - colour]));
    }

    /// What the rows of a colour of some blocks see of the `other` one.
    #[inline]
    pub fn sight<'a, T>(&'a self, blocks: Range<usize>, colour: usize, other: &'a [T]) -> Sight<'a, T> {
        let rows = self.range_of(blocks.clone(), colour);
        let near = &self.near[colour][rows.start / 8..rows.end / 8];
        Sight::new(other, self.range_of(blocks, 1 - colour), near)
    }

    /// The copies of what the nodes of a colour of a block see beyond it, if they are listed.
    #[inline]
    pub fn seen<'a, T>(&self, block: usize, colour: usize, other: &'a [T]) -> &'a [T] {
        let first = self.counts()[1 - colour] + 8 + self.blocks[block].beyond[colour] as usize;
        &other[first..first + self.pattern(block).half[colour].beyond.len()]
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
        let Net { patterns, blocks, diagonal, .. } = self;
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

    /// Brings the links of plain blocks together. On the finest level these are whole.
    pub fn find_links(&mut self) {
        let Net { patterns, blocks, links, whole, .. } = self;
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

    /// Finds one over the diagonal, once shared nodes are tied.
    pub fn find_inverse(&mut self) {
        let Net { patterns, blocks, inverse, ties, .. } = self;
        for colour in 0..2 {
            visit(blocks, Nodes(&mut inverse[colour], colour), &|| (), &|(), block, inverse| {
                inverse.0.copy_from_slice(&patterns[blocks[block].pattern as usize].half[colour].inverse);
            });
        }
        ties.each_sum(|colour, node, sum| {
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
            + self.origin.capacity() * 4
            + self.usual.capacity() * size_of::<(Key, u32)>()
            + self.below.capacity() * size_of::<(Below, u32)>()
            + self.blocks.capacity() * size_of::<Block>()
            + self.near.iter().map(|list| list.capacity() * size_of::<Near>()).sum::<usize>()
            + self.beyond.iter().map(|list| list.capacity() * 4).sum::<usize>()
            + values.into_iter().flatten().map(|list| list.capacity() * 4).sum::<usize>()
            + self.ties.bytes()
            + self.children.capacity() * 32
            + self.cover.capacity() * 4
    }
}
