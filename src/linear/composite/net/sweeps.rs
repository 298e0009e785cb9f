//! Passes over the nodes of a network.

use std::ops::Range;

use rayon::prelude::*;

use super::super::super::layout::Row;
use super::super::gather::{self, Workspace};
use super::super::rows::{self, Values};
use super::super::shape::Lane;
use super::super::surfaces::Surfaces;
use super::super::visit::{
    Block, Form, Nodes, PIECE, PerBlock, STRETCH, pieces, pieces_mut, visit_stretches,
};
use super::Net;

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
pub(super) struct Desk {
    pub values: Workspace<f32>,
    pub rhs: Vec<f32>,
}

impl Desk {
    pub fn new(room: usize) -> Desk {
        let most = room.max(STRETCH);
        Desk { values: Workspace::new(room), rhs: vec![0.0; most] }
    }
}

impl<const D: usize> Net<D> {
    /// The right-hand side of a colour's nodes in a block, less what shared nodes do, and bodies if they move.
    ///
    /// Ties enter with both ends, `g (x_shared − x)`: patterns know nothing of them.
    #[inline]
    pub(super) fn rhs_of<'a>(
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
    fn own_links(&self, block: usize, colour: usize) -> Option<&[Row<f32>]> {
        self.blocks[block].keeps_links.then(|| rows::rows(&self.pattern(block).half[colour].links))
    }

    /// One pass over the nodes of a colour.
    fn relax(&mut self, colour: usize, pass: Pass<'_>) {
        let mut own = self.part_with(colour);
        let this = &*self;
        let parts = Nodes(&mut own, colour);
        visit_stretches(this.grain, &this.blocks, parts, &|| Desk::new(this.room), &|desk, blocks, x| {
            this.relax_blocks(desk, blocks, colour, x.0, pass);
        });
        self.x[colour] = own;
    }

    /// The same for red nodes; then finds `x·b` block by block.
    fn relax_and_align(&mut self, pass: Pass<'_>, partial: &mut Vec<f64>) {
        partial.clear();
        partial.resize(self.blocks.len() - 1, 0.0);
        let mut own = self.part_with(0);
        let this = &*self;
        let parts = (Nodes(&mut own, 0), PerBlock(partial));
        let desk = || Desk::new(this.room);
        visit_stretches(this.grain, &this.blocks, parts, &desk, &|desk, blocks, (x, sums)| {
            this.relax_blocks(desk, blocks.clone(), 0, x.0, pass);
            let black = this.range_of(blocks.clone(), 1);
            sums.0[0] = gather::dot(x.0, &this.b[0][this.range_of(blocks, 0)])
                + gather::dot(&this.x[1][black.clone()], &this.b[1][black]);
        });
        self.x[0] = own;
    }

    /// Takes the nodes of a colour away, to be changed, once those of the other one are ready to be looked at.
    fn part_with(&mut self, colour: usize) -> Vec<f32> {
        self.show_to(colour);
        std::mem::take(&mut self.x[colour])
    }

    /// Copies what the nodes of a colour see of the other one out of line.
    pub(super) fn show_to(&mut self, colour: usize) {
        let mut other = std::mem::take(&mut self.x[1 - colour]);
        self.copy_seen(colour, &mut other);
        self.x[1 - colour] = other;
    }

    /// Several blocks at once if they are plain, or one.
    #[inline]
    fn relax_blocks(
        &self,
        desk: &mut Desk,
        blocks: Range<usize>,
        colour: usize,
        x: &mut [f32],
        pass: Pass<'_>,
    ) {
        if !self.blocks[blocks.start].is_plain {
            return self.relax_block(desk, blocks.start, colour, x, pass);
        }
        let range = self.range_of(blocks.clone(), colour);
        let mut rhs = &self.b[colour][range.clone()];
        if let Some(bodies) = pass.bodies {
            let room = &mut desk.rhs[..range.len()];
            room.copy_from_slice(rhs);
            self.hand_out(bodies, blocks.clone(), colour, room, -1.0);
            rhs = room;
        }
        let links = self.links_of(blocks.clone(), colour);
        let inverse = self.inverse_of(blocks.clone(), colour);
        let sight = self.sight(blocks, colour, &self.x[1 - colour]);
        rows::relax_alone::<D>(x, rhs, inverse, links, &sight, self.whole);
    }

    /// Adds what moving bodies do to the nodes of a colour of blocks that follow each other, so many times.
    pub fn hand_out<A: Lane>(
        &self,
        bodies: &Surfaces,
        blocks: Range<usize>,
        colour: usize,
        out: &mut [A],
        scale: f64,
    ) {
        let first = self.range(blocks.start, colour).start;
        for block in blocks.filter(|&block| self.touched[block]) {
            let own = self.range(block, colour);
            bodies.hand_out(block, colour, &mut out[own.start - first..own.end - first], scale);
        }
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
            let sight = self.sight(block..block + 1, colour, other);
            if is_tied[colour] || self.damped[block] && !from_zero {
                rows::relax::<D>(x, rhs, inverse, half, &sight, self.whole);
            } else {
                let (links, inverse) = (self.own_links(block, colour), Values::Each(rows::rows(inverse)));
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
        if is_plain {
            let (count, [x, _]) = (self.counts()[0], &mut self.x);
            let (x, b, inverse) = (&mut x[..count], &self.b[0], &self.inverse[0]);
            x.par_chunks_mut(PIECE)
                .zip(b.par_chunks(PIECE).zip(inverse.par_chunks(PIECE)))
                .for_each(|(x, (b, inverse))| gather::divide(x, b, inverse));
        } else {
            let counts = self.counts();
            pieces_mut(&mut self.x, counts).for_each(|x| x.fill(0.0));
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

    /// Sets `x` to `b` over the diagonal, and returns `x·b`.
    pub fn divide_by_diagonal(&mut self, partial: &mut Vec<f64>) -> f64 {
        let counts = self.counts();
        let Net { inverse, x, b, ties, .. } = self;
        let rows = pieces_mut(x, counts).zip(pieces(b, counts)).zip(pieces(inverse, counts));
        rows.map(|((x, b), inverse)| {
            gather::divide(x, b, inverse);
            gather::dot(x, b)
        })
        .collect_into_vec(partial);
        ties.start_from_zero();
        partial.iter().sum::<f64>() + ties.alignment()
    }

    /// `x·b`.
    pub fn alignment(&self, partial: &mut Vec<f64>) -> f64 {
        let counts = self.counts();
        let products = pieces(&self.x, counts).zip(pieces(&self.b, counts));
        products.map(|(x, b)| gather::dot(x, b)).collect_into_vec(partial);
        partial.iter().sum::<f64>() + self.ties.alignment()
    }
}
