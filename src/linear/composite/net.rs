//! A network stored without gaps: its blocks have as many entries as they have nodes, or keep all their cells if most are.

use rayon::prelude::*;

use crate::math::flatten;

use super::super::kernels;
use super::super::layout::half_rows;
use super::super::stencil::grow;
use super::super::topology::Topology;
use super::gather::{self, Workspace};
use super::pattern::{End, Half, Pattern};
use super::rows::{self, Halo, Surroundings};
use super::surfaces::Surfaces;
use super::ties::Ties;
use super::visit::{Block, Nodes, Outlook, PerBlock, both, range, visit};

/// One value per node, by colour.
pub(super) type Colours<T> = [Vec<T>; 2];

/// A network on one level, with `A x = b` on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Net<const D: usize> {
    pub topology: Topology<D>,
    /// All patterns; the first one is empty.
    pub patterns: Vec<Pattern>,
    /// All blocks, the absent one first, and a marker of the end.
    pub blocks: Vec<Block>,
    /// Places that a workspace for any of the blocks needs; no block has as many nodes.
    pub room: usize,
    /// For the nodes of each colour: those of the other one beyond their block.
    pub beyond: Colours<u32>,
    /// The link that patterns need not keep, and with two materials that of each.
    pub whole: f32,
    pub whole_of: [f32; 2],
    /// One over the diagonal and what bodies add to it.
    pub inverse: Colours<f32>,
    /// Shared nodes.
    pub ties: Ties,
    /// Blocks beside bodies.
    pub touched: Vec<bool>,
    /// Finer blocks under each block, by octant; 0 where absent. Empty on the finest level.
    pub children: Vec<[u32; 8]>,
    /// The coarser block over each block.
    pub cover: Vec<u32>,
    pub x: Colours<f32>,
    pub b: Colours<f32>,
    /// In blocks beside bodies: `b` less what bodies do, as they were last asked.
    heeded: Colours<f32>,
}

/// What the rows of a block's nodes are worked out with.
struct Desk {
    values: Workspace<f32>,
    halo: Halo<f32>,
    rhs: Vec<f32>,
    residual: Vec<f32>,
}

impl Desk {
    fn new<const D: usize>(room: usize) -> Desk {
        Desk {
            values: Workspace::new(room),
            halo: Halo::new(D),
            rhs: vec![0.0; room],
            residual: vec![0.0; room],
        }
    }
}

impl<const D: usize> Net<D> {
    /// The pattern of a block.
    #[inline]
    pub fn pattern(&self, block: usize) -> &Pattern {
        &self.patterns[self.blocks[block].pattern as usize]
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
                        End::There(beyond) => {
                            let at = this.beyond[colour] as usize + beyond;
                            (1 - colour, self.beyond[colour][at] as usize)
                        }
                    };
                    each(colour, this.nodes[colour] as usize + node, other, index, link);
                });
            }
        }
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

    /// Gives every block its pattern and its place in the arrays, and finds the nodes beyond it.
    pub fn lay_out(&mut self, patterns: &[u32]) {
        self.blocks.clear();
        let mut next = Block::default();
        for &pattern in patterns {
            let this = &self.patterns[pattern as usize];
            self.blocks.push(Block { pattern, in_rows: this.rows.is_some(), ..next });
            for (colour, half) in this.half.iter().enumerate() {
                next.nodes[colour] += half.cells.len() as u32;
                next.beyond[colour] += half.beyond.len() as u32;
            }
        }
        self.blocks.push(next);
        self.room = self.patterns.iter().flat_map(|pattern| &pattern.half).map(Half::room).max().unwrap_or(1);
        for colour in 0..2 {
            grow(&mut self.beyond[colour], next.beyond[colour] as usize);
            let nodes = next.nodes[colour] as usize;
            for values in [&mut self.inverse, &mut self.x, &mut self.b, &mut self.heeded] {
                grow(&mut values[colour], nodes);
            }
        }
        self.touched.clear();
        self.touched.resize(patterns.len(), false);
        let Net { topology, patterns, blocks, beyond, .. } = self;
        let [red, black] = beyond;
        let parts = (Outlook(red, 0), Outlook(black, 1));
        visit(blocks, parts, &|| (), &|(), block, (red, black)| {
            let beside = topology.beside(block);
            let half = &patterns[blocks[block].pattern as usize].half;
            for (colour, out) in [red.0, black.0].into_iter().enumerate() {
                for (out, beyond) in out.iter_mut().zip(half[colour].beyond.iter()) {
                    let other = beside[beyond.side as usize / 2][beyond.side as usize % 2] as usize;
                    let there = &patterns[blocks[other].pattern as usize];
                    // Only blocks in rows look where there is nothing.
                    let node = there.find(beyond.cell as usize, beyond.ordinal);
                    *out = node.map_or(u32::MAX, |node| blocks[other].nodes[1 - colour] + node as u32);
                }
            }
        });
    }

    /// A node of a block that a pattern's [`Pattern::parents`] name: its colour, and its place in the arrays.
    #[inline]
    pub fn node(&self, block: usize, parent: u16) -> Option<(usize, usize)> {
        let (this, next, parent) =
            (&self.blocks[block].nodes, &self.blocks[block + 1].nodes, u32::from(parent));
        let counts = [next[0] - this[0], next[1] - this[1]];
        if parent < counts[0] {
            Some((0, (this[0] + parent) as usize))
        } else if parent < counts[0] + counts[1] {
            Some((1, (this[1] + parent - counts[0]) as usize))
        } else {
            None
        }
    }

    /// Where the nodes of a colour of a block lie in the arrays.
    #[inline]
    pub fn range(&self, block: usize, colour: usize) -> std::ops::Range<usize> {
        range(&self.blocks, block, colour)
    }

    /// What the nodes of a colour see.
    pub fn surroundings(&self, colour: usize) -> Surroundings<'_, D> {
        Surroundings { topology: &self.topology, blocks: &self.blocks, beyond: &self.beyond[colour] }
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

    /// From now on bodies move as `surfaces` last found.
    pub fn heed(&mut self, surfaces: &Surfaces) {
        let Net { blocks, touched, b, heeded, .. } = self;
        visit(blocks, both(heeded), &|| (), &|(), block, (red, black)| {
            if touched[block] {
                red.0.copy_from_slice(&b[0][range(blocks, block, 0)]);
                black.0.copy_from_slice(&b[1][range(blocks, block, 1)]);
                surfaces.hand_out::<f32>(block, [red.0, black.0], -1.0);
            }
        });
    }

    /// The right-hand side of a colour's nodes in a block, less what shared nodes do, and bodies if they are heeded.
    ///
    /// Ties enter with both ends, `g (x_shared − x)`: patterns know nothing of them.
    #[inline]
    fn rhs_of<'a>(
        &'a self,
        block: usize,
        colour: usize,
        x: &[f32],
        bodies: bool,
        room: &'a mut [f32],
    ) -> &'a [f32] {
        let range = self.range(block, colour);
        let rhs = if bodies && self.touched[block] { &self.heeded } else { &self.b };
        let rhs = &rhs[colour][range.clone()];
        if !self.pattern(block).half[colour].is_tied {
            return rhs;
        }
        let room = &mut room[..rhs.len()];
        room.copy_from_slice(rhs);
        for tie in self.ties.of(colour, block) {
            let node = tie.node.1 as usize - range.start;
            room[node] += tie.link * (self.ties.x[tie.shared as usize] - x[node]);
        }
        room
    }

    /// One pass over the nodes of a colour; bodies stay at rest unless they are heeded.
    fn relax(&mut self, colour: usize, bodies: bool, backwards: bool) {
        let mut own = std::mem::take(&mut self.x[colour]);
        let (this, surroundings) = (&*self, self.surroundings(colour));
        visit(&this.blocks, Nodes(&mut own, colour), &|| Desk::new::<D>(this.room), &|desk, block, x| {
            let half = &this.pattern(block).half[colour];
            let rhs = this.rhs_of(block, colour, x.0, bodies, &mut desk.rhs);
            let inverse = &this.inverse[colour][this.range(block, colour)];
            let other = this.x[1 - colour].as_slice();
            if this.blocks[block].in_rows {
                let around = desk.halo.look_around(&surroundings, other, block, colour);
                if this.touched[block] || half.is_tied {
                    rows::relax(x.0, rhs, inverse, half, &around, this.whole, colour);
                } else {
                    rows::relax_alone(x.0, rhs, inverse, half, &around, this.whole, colour);
                }
                return;
            }
            desk.values.load(other, &this.blocks, block, colour, &this.beyond[colour]);
            gather::relax(x.0, rhs, inverse, half, &mut desk.values, this.whole, backwards);
        });
        self.x[colour] = own;
    }

    /// The first sweep, from zero: shared nodes, red, black. Bodies are at rest.
    ///
    /// Shared nodes come first, so that on the way up they come last: cells glued to one by strong links then follow its
    /// new value after a coarse correction, and do not drag it back to theirs.
    pub fn sweep_from_zero(&mut self) {
        self.ties.start_from_zero();
        let is_plain =
            self.ties.is_empty() && self.patterns.iter().all(|pattern| pattern.half[0].further.is_empty());
        let mut x = std::mem::take(&mut self.x);
        let this = &*self;
        visit(&this.blocks, both(&mut x), &|| (), &|(), block, (red, black)| {
            black.0.fill(0.0);
            if is_plain {
                let range = this.range(block, 0);
                gather::divide(red.0, &this.b[0][range.clone()], &this.inverse[0][range]);
            } else {
                red.0.fill(0.0);
            }
        });
        self.x = x;
        if !is_plain {
            self.relax(0, false, false);
        }
        self.relax(1, false, false);
    }

    /// A further sweep: shared nodes, red, black.
    pub fn sweep(&mut self, bodies: bool) {
        self.ties.relax([&self.x[0], &self.x[1]]);
        self.relax(0, bodies, false);
        self.relax(1, bodies, false);
    }

    /// [`Self::sweep`] in reverse.
    pub fn sweep_back(&mut self) {
        self.relax(1, true, true);
        self.relax(0, true, true);
        self.ties.relax([&self.x[0], &self.x[1]]);
    }

    /// Residual of the nodes of a colour of a block; bodies are heeded.
    #[inline]
    fn residual<'a>(&self, desk: &'a mut Desk, block: usize, colour: usize) -> &'a [f32] {
        let half = &self.pattern(block).half[colour];
        let (x, other) = (&self.x[colour][self.range(block, colour)], self.x[1 - colour].as_slice());
        let rhs = self.rhs_of(block, colour, x, true, &mut desk.rhs);
        let out = &mut desk.residual[..x.len()];
        if self.blocks[block].in_rows {
            let around = desk.halo.look_around(&self.surroundings(colour), other, block, colour);
            let inverse = &self.inverse[colour][self.range(block, colour)];
            rows::residual(out, x, rhs, inverse, half, &around, self.whole, colour);
            return out;
        }
        desk.values.load(other, &self.blocks, block, colour, &self.beyond[colour]);
        gather::residual(out, x, rhs, half, &mut desk.values, self.whole);
        out
    }

    /// Whether black nodes of a block have no residual after a downward sweep, and so need no correction.
    #[inline]
    fn is_settled(&self, block: usize) -> bool {
        !self.touched[block] && self.pattern(block).half[1].further.is_empty()
    }

    /// Whether the nodes of a block follow their coarse cells, in rows on both levels.
    #[inline]
    fn is_regular(&self, block: usize, cover: &Block) -> bool {
        self.blocks[block].in_rows && cover.in_rows && self.pattern(block).joined.follows_rule
    }

    /// Sets the right-hand side of the coarser level to the sums of residuals.
    pub fn restrict(&self, coarse: &mut Net<D>) {
        let most = 2 * coarse.room;
        let Net { patterns, blocks, children, b, .. } = coarse;
        let desk = || (Desk::new::<D>(self.room), vec![0.0f32; most], vec![[0.0f32; 8]; 2 * half_rows(D)]);
        visit(blocks, both(b), &desk, &|(desk, sums, natural), cover, (red, black)| {
            let counts = [red.0.len(), black.0.len()];
            let sums = &mut sums[..counts[0] + counts[1] + 1];
            sums.fill(0.0);
            natural.fill([0.0; 8]);
            let parents = &patterns[blocks[cover].pattern as usize].parents;
            for (octant, &block) in children[cover].iter().enumerate().filter(|(_, block)| **block != 0) {
                let block = block as usize;
                for colour in 0..if self.is_settled(block) { 1 } else { 2 } {
                    let residual = self.residual(desk, block, colour);
                    if self.is_regular(block, &blocks[cover]) {
                        rows::fold(natural, &self.topology.octant(block), residual);
                    } else {
                        gather::add_to_parents(sums, residual, parents.of(octant, colour));
                    }
                }
            }
            let (reds, blacks) = sums[..counts[0] + counts[1]].split_at(counts[0]);
            for (colour, (out, sums)) in [(red.0, reds), (black.0, blacks)].into_iter().enumerate() {
                out.copy_from_slice(sums);
                if blocks[cover].in_rows {
                    rows::add_natural::<D>(out, natural, colour);
                }
            }
        });
        self.ties.restrict([&self.x[0], &self.x[1]], &mut coarse.ties);
    }

    /// Adds the values of the coarser level.
    pub fn prolong(&mut self, coarse: &Net<D>) {
        let mut x = std::mem::take(&mut self.x);
        let this = &*self;
        visit(
            &this.blocks,
            both(&mut x),
            &|| vec![0.0f32; 2 * coarse.room],
            &|above, block, (red, black)| {
                let cover = this.cover[block] as usize;
                let [reds, blacks] = [0, 1].map(|colour| &coarse.x[colour][coarse.range(cover, colour)]);
                // Settled black nodes are relaxed before they are read.
                let colours = if this.is_settled(block) { 1 } else { 2 };
                let octant = this.topology.octant(block);
                if this.is_regular(block, &coarse.blocks[cover]) {
                    for (colour, x) in [red.0, black.0].into_iter().enumerate().take(colours) {
                        let inverse = rows::rows(&this.inverse[colour][this.range(block, colour)]);
                        let (reds, blacks) = (rows::rows(reds), rows::rows(blacks));
                        kernels::prolong(rows::rows_mut(x), &octant, reds, blacks, Some(inverse), None);
                    }
                    return;
                }
                let total = reds.len() + blacks.len();
                above[..reds.len()].copy_from_slice(reds);
                above[reds.len()..total].copy_from_slice(blacks);
                above[total] = 0.0;
                let (parents, octant) = (&coarse.pattern(cover).parents, flatten(octant, 2));
                for (colour, x) in [red.0, black.0].into_iter().enumerate().take(colours) {
                    gather::add_from_parents(x, above, parents.of(octant, colour));
                }
            },
        );
        self.x = x;
        self.ties.prolong(&coarse.ties);
    }

    /// Sets `x` to `b` over the diagonal.
    pub fn divide_by_diagonal(&mut self) {
        let Net { blocks, inverse, x, b, ties, .. } = self;
        for colour in 0..2 {
            let (b, inverse) = (&b[colour], &inverse[colour]);
            visit(blocks, Nodes(&mut x[colour], colour), &|| (), &|(), block, x| {
                let range = range(blocks, block, colour);
                gather::divide(x.0, &b[range.clone()], &inverse[range]);
            });
        }
        ties.start_from_zero();
    }

    /// `x·b`.
    pub fn alignment(&self, partial: &mut Vec<f64>) -> f64 {
        partial.clear();
        partial.resize(self.blocks.len() - 1, 0.0);
        visit(&self.blocks, PerBlock(partial), &|| (), &|(), block, sum| {
            for colour in 0..2 {
                let range = self.range(block, colour);
                sum.0[0] += gather::dot(&self.x[colour][range.clone()], &self.b[colour][range]);
            }
        });
        partial.iter().sum::<f64>() + self.ties.alignment()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let values = [&self.inverse, &self.x, &self.b, &self.heeded];
        self.topology.bytes()
            + self.patterns.iter().map(Pattern::bytes).sum::<usize>()
            + self.blocks.capacity() * size_of::<Block>()
            + self.beyond.iter().map(|list| list.capacity() * 4).sum::<usize>()
            + values.into_iter().flatten().map(|list| list.capacity() * 4).sum::<usize>()
            + self.ties.bytes()
            + self.children.capacity() * 32
            + self.cover.capacity() * 4
    }
}
