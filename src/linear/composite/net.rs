//! A network stored without gaps: its blocks have as many entries as they have nodes, or keep all their cells if most are.

use rayon::prelude::*;

use crate::math::flatten;

use super::super::kernels;
use super::super::layout::{Row, half_rows};
use super::super::stencil::grow;
use super::super::topology::Topology;
use super::coarser::Below;
use super::finest::Key;
use super::gather::{self, Workspace};
use super::pattern::{End, Half, Pattern};
use super::rows;
use super::sight::{self, Near, Plan, Sight};
use super::stock::Known;
use super::surfaces::Surfaces;
use super::ties::Ties;
use super::visit::{
    Block, Form, Nodes, Outlook, PerBlock, PerRow, both, clear_unused, range, visit, visit_by,
};

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
    /// One over the diagonal and what bodies add to it.
    pub inverse: Colours<f32>,
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
    /// Nodes that a thread takes at a time.
    pub grain: usize,
}

/// How a pass over the nodes of a colour goes.
#[derive(Clone, Copy, Default)]
struct Pass<'a> {
    /// Bodies that move as they were last told; otherwise they stay at rest.
    bodies: Option<&'a Surfaces>,
    /// Nodes of one block that are linked to each other take turns in reverse.
    backwards: bool,
    /// The nodes are all 0, whatever is stored.
    from_zero: bool,
}

impl<'a> Pass<'a> {
    /// On the way up.
    fn back(bodies: Option<&'a Surfaces>) -> Pass<'a> {
        Pass { bodies, backwards: true, from_zero: false }
    }
}

/// What the rows of a block's nodes are worked out with.
struct Desk {
    values: Workspace<f32>,
    rhs: Vec<f32>,
    residual: Vec<f32>,
}

impl Desk {
    fn new(room: usize) -> Desk {
        Desk { values: Workspace::new(room), rhs: vec![0.0; room], residual: vec![0.0; room] }
    }
}

impl<const D: usize> Net<D> {
    /// The pattern of a block.
    #[inline]
    pub fn pattern(&self, block: usize) -> &Pattern {
        &self.patterns[self.blocks[block].pattern as usize]
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
            self.blocks.push(Block { pattern, form: this.form(), keeps_links, is_tied, counts, ..next });
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
            }
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

    /// What the rows of a colour of a block see of the `other` one.
    #[inline]
    pub fn sight<'a, T>(&'a self, block: usize, colour: usize, other: &'a [T]) -> Sight<'a, T> {
        let rows = range(&self.blocks, block, colour);
        let near = &self.near[colour][rows.start / 8..rows.end / 8];
        Sight::new(other, range(&self.blocks, block, 1 - colour), near)
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

    /// Where the nodes of a colour of a block lie in the arrays.
    #[inline]
    pub fn range(&self, block: usize, colour: usize) -> std::ops::Range<usize> {
        range(&self.blocks, block, colour)
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

    /// The right-hand side of a colour's nodes in a block, less what shared nodes do, and bodies if they move.
    ///
    /// Ties enter with both ends, `g (x_shared − x)`: patterns know nothing of them.
    #[inline]
    fn rhs_of<'a>(
        &'a self,
        block: usize,
        colour: usize,
        x: &[f32],
        bodies: Option<&Surfaces>,
        room: &'a mut [f32],
    ) -> &'a [f32] {
        let range = self.range(block, colour);
        let rhs = &self.b[colour][range.clone()];
        let bodies = bodies.filter(|_| self.touched[block]);
        if bodies.is_none() && !self.blocks[block].is_tied[colour] {
            return rhs;
        }
        let room = &mut room[..rhs.len()];
        room.copy_from_slice(rhs);
        if let Some(bodies) = bodies {
            bodies.hand_out::<f32>(block, colour, room, -1.0);
        }
        if !self.blocks[block].is_tied[colour] {
            return room;
        }
        for tie in self.ties.of(colour, block) {
            let node = tie.node.1 as usize - range.start;
            room[node] += tie.link * (self.ties.x[tie.shared as usize] - x[node]);
        }
        room
    }

    /// The links that a colour of a block keeps in rows, if any.
    #[inline]
    fn links(&self, block: usize, colour: usize) -> Option<&[Row<f32>]> {
        self.blocks[block].keeps_links.then(|| rows::rows(&self.pattern(block).half[colour].links))
    }

    /// One pass over the nodes of a colour.
    fn relax(&mut self, colour: usize, pass: Pass<'_>) {
        let mut own = self.part_with(colour);
        let this = &*self;
        visit_by(
            this.grain,
            &this.blocks,
            Nodes(&mut own, colour),
            &|| Desk::new(this.room),
            &|desk, block, x| {
                this.relax_block(desk, block, colour, x.0, pass);
            },
        );
        self.x[colour] = own;
    }

    /// The same for red nodes; then finds `x·b` block by block.
    fn relax_and_align(&mut self, pass: Pass<'_>, partial: &mut Vec<f64>) {
        partial.clear();
        partial.resize(self.blocks.len() - 1, 0.0);
        let mut own = self.part_with(0);
        let this = &*self;
        let parts = (Nodes(&mut own, 0), PerBlock(partial));
        visit_by(this.grain, &this.blocks, parts, &|| Desk::new(this.room), &|desk, block, (x, sum)| {
            this.relax_block(desk, block, 0, x.0, pass);
            sum.0[0] = this.align_block(block, [x.0, &this.x[1][this.range(block, 1)]]);
        });
        self.x[0] = own;
    }

    /// Takes the nodes of a colour away, to be changed, once those of the other one are ready to be looked at.
    fn part_with(&mut self, colour: usize) -> Vec<f32> {
        let mut other = std::mem::take(&mut self.x[1 - colour]);
        self.copy_seen(colour, &mut other);
        self.x[1 - colour] = other;
        std::mem::take(&mut self.x[colour])
    }

    #[inline]
    fn relax_block(&self, desk: &mut Desk, block: usize, colour: usize, x: &mut [f32], pass: Pass<'_>) {
        let Pass { bodies, backwards, from_zero } = pass;
        if from_zero && !self.starts_by_itself(block, colour) {
            x.fill(0.0);
        }
        let rhs = self.rhs_of(block, colour, x, bodies, &mut desk.rhs);
        let inverse = &self.inverse[colour][self.range(block, colour)];
        let other = self.x[1 - colour].as_slice();
        let Block { form, is_tied, .. } = &self.blocks[block];
        let half = &self.pattern(block).half[colour];
        if *form != Form::Listed {
            let sight = self.sight(block, colour, other);
            if is_tied[colour] || self.damped[block] && !from_zero {
                rows::relax::<D>(x, rhs, inverse, half, &sight, self.whole);
            } else {
                let links = self.links(block, colour);
                rows::relax_alone::<D>(x, rhs, inverse, links, &sight, self.whole);
            }
            return;
        }
        desk.values.load(&other[self.range(block, 1 - colour)], self.seen(block, colour, other));
        gather::relax(x, rhs, inverse, half, &mut desk.values, self.whole, backwards);
    }

    /// Whether the first pass from zero over a colour of a block does not look at its own values.
    #[inline]
    fn starts_by_itself(&self, block: usize, colour: usize) -> bool {
        self.blocks[block].form != Form::Listed && !self.blocks[block].is_tied[colour]
    }

    /// The first sweep, from zero: shared nodes, red, black. Bodies are at rest.
    ///
    /// Shared nodes come first, so that on the way up they come last: cells glued to one by strong links then follow its
    /// new value after a coarse correction, and do not drag it back to theirs.
    pub fn sweep_from_zero(&mut self) {
        self.ties.start_from_zero();
        let is_plain = self.ties.is_empty() && self.reds_are_apart;
        let mut x = std::mem::take(&mut self.x);
        let this = &*self;
        visit(&this.blocks, both(&mut x), &|| (), &|(), block, (red, black)| {
            if is_plain {
                let range = this.range(block, 0);
                gather::divide(red.0, &this.b[0][range.clone()], &this.inverse[0][range]);
            } else {
                red.0.fill(0.0);
                black.0.fill(0.0);
            }
        });
        self.x = x;
        if !is_plain {
            self.relax(0, Pass::default());
        }
        self.relax(1, Pass { from_zero: true, ..Pass::default() });
    }

    /// A further sweep: shared nodes, red, black.
    pub fn sweep(&mut self, bodies: Option<&Surfaces>) {
        self.ties.relax([&self.x[0], &self.x[1]]);
        let pass = Pass { bodies, ..Pass::default() };
        self.relax(0, pass);
        self.relax(1, pass);
    }

    /// [`Self::sweep`] in reverse.
    pub fn sweep_back(&mut self, bodies: Option<&Surfaces>) {
        self.relax(1, Pass::back(bodies));
        self.relax(0, Pass::back(bodies));
        self.ties.relax([&self.x[0], &self.x[1]]);
    }

    /// The same; returns `x·b`.
    pub fn sweep_back_and_align(&mut self, bodies: &Surfaces, partial: &mut Vec<f64>) -> f64 {
        self.relax(1, Pass::back(Some(bodies)));
        self.relax_and_align(Pass::back(Some(bodies)), partial);
        self.ties.relax([&self.x[0], &self.x[1]]);
        partial.iter().sum::<f64>() + self.ties.alignment()
    }

    /// Residual of the nodes of a colour of a block, with bodies at rest.
    #[inline]
    fn residual<'a>(&self, desk: &'a mut Desk, block: usize, colour: usize) -> &'a [f32] {
        let half = &self.pattern(block).half[colour];
        let (x, other) = (&self.x[colour][self.range(block, colour)], self.x[1 - colour].as_slice());
        let rhs = self.rhs_of(block, colour, x, None, &mut desk.rhs);
        let out = &mut desk.residual[..x.len()];
        if self.blocks[block].form != Form::Listed {
            let inverse = &self.inverse[colour][self.range(block, colour)];
            rows::residual::<D>(out, x, rhs, inverse, half, &self.sight(block, colour, other), self.whole);
            return out;
        }
        desk.values.load(&other[self.range(block, 1 - colour)], self.seen(block, colour, other));
        gather::residual(out, x, rhs, half, &mut desk.values, self.whole);
        out
    }

    /// Whether a pass over the black nodes of a block solves their rows: what they were before does not matter then.
    #[inline]
    fn settles(&self, block: usize) -> bool {
        let is_in_rows = self.blocks[block].form != Form::Listed;
        !self.damped[block] && (is_in_rows || self.pattern(block).half[1].further.is_empty())
    }

    /// Whether something is left of the rows of black nodes, apart from bodies, after a downward sweep in which bodies were
    /// `at_rest` or not.
    #[inline]
    fn leaves_black(&self, block: usize, at_rest: bool) -> bool {
        !self.settles(block) || self.touched[block] && !at_rest
    }

    /// Whether the nodes of a block follow their coarse cells, in all rows on both levels.
    #[inline]
    fn is_regular(&self, block: usize, cover: &Block) -> bool {
        let is_full = |block: &Block| block.form == Form::AllRows;
        is_full(&self.blocks[block]) && is_full(cover) && self.pattern(block).joined.follows_rule
    }

    /// Sets the right-hand side of the coarser level to the sums of residuals, after downward sweeps in which bodies were
    /// `at_rest` or not. `bodies` are those of the coarser level, told how they move now: what they do to nodes sums up to what
    /// they do there, and there are fewer nodes to tell.
    pub fn restrict(&mut self, bodies: &Surfaces, at_rest: bool, coarse: &mut Net<D>) {
        // Black nodes were relaxed last: what they see was copied for them, and what is seen of them was not.
        let mut black = std::mem::take(&mut self.x[1]);
        self.copy_seen(0, &mut black);
        self.x[1] = black;
        let this = &*self;
        let most = 2 * coarse.room;
        let Net { patterns, blocks, children, b, grain, touched, .. } = coarse;
        let desk = || (Desk::new(this.room), vec![0.0f32; most], vec![[0.0f32; 8]; 2 * half_rows(D)]);
        visit_by(*grain, blocks, both(b), &desk, &|(desk, sums, natural), cover, (red, black)| {
            let counts = [red.0.len(), black.0.len()];
            let sums = &mut sums[..counts[0] + counts[1] + 1];
            sums.fill(0.0);
            natural.fill([0.0; 8]);
            let parents = &patterns[blocks[cover].pattern as usize].parents;
            for (octant, &block) in children[cover].iter().enumerate().filter(|(_, block)| **block != 0) {
                let block = block as usize;
                let colours = if this.leaves_black(block, at_rest) { 2 } else { 1 };
                for colour in 0..colours {
                    let residual = this.residual(desk, block, colour);
                    if this.is_regular(block, &blocks[cover]) {
                        rows::fold(natural, &this.topology.octant(block), residual);
                    } else {
                        gather::add_to_parents(sums, residual, parents.of(octant, colour));
                    }
                }
            }
            let (reds, blacks) = sums[..counts[0] + counts[1]].split_at(counts[0]);
            for (colour, (out, sums)) in [(red.0, reds), (black.0, blacks)].into_iter().enumerate() {
                out.copy_from_slice(sums);
                if blocks[cover].form == Form::AllRows {
                    rows::add_natural::<D>(out, natural, colour);
                }
                if touched[cover] {
                    bodies.hand_out::<f32>(cover, colour, out, -1.0);
                }
            }
        });
        this.ties.restrict([&this.x[0], &this.x[1]], &mut coarse.ties);
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
                // Black nodes come first in the sweep that follows.
                let colours = if this.settles(block) { 1 } else { 2 };
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
                    let inverse = &this.inverse[colour][this.range(block, colour)];
                    gather::add_from_parents(x, inverse, above, parents.of(octant, colour));
                }
            },
        );
        self.x = x;
        self.ties.prolong(&coarse.ties);
    }

    /// Sets `x` to `b` over the diagonal, and returns `x·b`.
    pub fn divide_by_diagonal(&mut self, partial: &mut Vec<f64>) -> f64 {
        partial.clear();
        partial.resize(self.blocks.len() - 1, 0.0);
        let Net { blocks, inverse, x, b, ties, .. } = self;
        let (red, black) = both(x);
        visit(blocks, (red, black, PerBlock(partial)), &|| (), &|(), block, (red, black, sum)| {
            for (colour, x) in [red.0, black.0].into_iter().enumerate() {
                let range = range(blocks, block, colour);
                let b = &b[colour][range.clone()];
                gather::divide(x, b, &inverse[colour][range]);
                sum.0[0] += gather::dot(x, b);
            }
        });
        ties.start_from_zero();
        partial.iter().sum::<f64>() + ties.alignment()
    }

    /// `x·b`.
    pub fn alignment(&self, partial: &mut Vec<f64>) -> f64 {
        partial.clear();
        partial.resize(self.blocks.len() - 1, 0.0);
        visit(&self.blocks, PerBlock(partial), &|| (), &|(), block, sum| {
            let x = [0, 1].map(|colour| &self.x[colour][self.range(block, colour)]);
            sum.0[0] = self.align_block(block, x);
        });
        partial.iter().sum::<f64>() + self.ties.alignment()
    }

    /// The part of a block.
    #[inline]
    fn align_block(&self, block: usize, [red, black]: [&[f32]; 2]) -> f64 {
        gather::dot(red, &self.b[0][self.range(block, 0)])
            + gather::dot(black, &self.b[1][self.range(block, 1)])
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let values = [&self.inverse, &self.x, &self.b];
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
