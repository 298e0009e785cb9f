//! The smoother: red–black Gauss–Seidel sweeps over the nodes of a network, and Jacobi.

use std::ops::Range;

use rayon::prelude::*;

use super::super::super::blas;
use super::super::super::layout::Row;
use super::super::super::scalar::Scalar;
use super::super::list_kernels::{self, Workspace};
use super::super::rows::{self, Values};
use super::super::surfaces::Surfaces;
use super::super::visit::{BATCH, Block, Form, Nodes, PIECE, PerBlock, pieces, pieces_mut, visit_batches};
use super::Network;

/// How a half-sweep over the nodes of a colour goes.
#[derive(Clone, Copy, Default)]
struct Pass<'a> {
    /// Bodies whose `Jᵀ v` enters the right-hand side; none are at rest.
    bodies: Option<&'a Surfaces>,
    /// Nodes of one colour that are linked to each other are relaxed in reverse order.
    backwards: bool,
    /// The nodes are all 0, whatever is stored.
    from_zero: bool,
}

impl<'a> Pass<'a> {
    /// A half-sweep of post-smoothing.
    fn back(bodies: Option<&'a Surfaces>) -> Pass<'a> {
        Pass { bodies, backwards: true, from_zero: false }
    }
}

/// Scratch memory of a sweep.
pub(super) struct SweepScratch {
    pub values: Workspace<f32>,
    pub rhs: Vec<f32>,
}

impl SweepScratch {
    pub fn new(room: usize) -> SweepScratch {
        let most = room.max(BATCH);
        SweepScratch { values: Workspace::new(room), rhs: vec![0.0; most] }
    }
}

impl<const D: usize> Network<D> {
    /// The right-hand side of a colour's nodes in a block, with the links to shared nodes, and less `Jᵀ v` if bodies move.
    ///
    /// Links to shared nodes enter with both ends, `g (x_shared − x)`: patterns know nothing of them.
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
        if bodies.is_none() && !self.blocks[block].has_shared[colour] {
            return rhs;
        }
        let room = &mut room[..rhs.len()];
        room.copy_from_slice(rhs);
        if let Some(bodies) = bodies {
            bodies.scatter_velocity::<f32>(block, colour, room, -1.0);
        }
        if !self.blocks[block].has_shared[colour] {
            return room;
        }
        for entry in self.shared.of(colour, block) {
            let node = entry.node.1 as usize - range.start;
            room[node] += entry.link * (self.shared.x[entry.shared as usize] - x[node]);
        }
        room
    }

    /// The links that a colour of a block keeps in rows, if any.
    #[inline]
    fn own_links(&self, block: usize, colour: usize) -> Option<&[Row<f32>]> {
        self.blocks[block].keeps_links.then(|| rows::rows(&self.pattern(block).half[colour].links))
    }

    /// One half-sweep of Gauss–Seidel over the nodes of a colour.
    fn relax(&mut self, colour: usize, pass: Pass<'_>) {
        let mut own = self.take_colour(colour);
        let this = &*self;
        let parts = Nodes(&mut own, colour);
        visit_batches(
            this.grain,
            &this.blocks,
            parts,
            &|| SweepScratch::new(this.room),
            &|scratch, blocks, x| {
                this.relax_blocks(scratch, blocks, colour, x.0, pass);
            },
        );
        self.x[colour] = own;
    }

    /// A half-sweep over the red nodes that also finds `x·b`, block by block.
    fn relax_and_dot(&mut self, pass: Pass<'_>, partial: &mut Vec<f64>) {
        partial.clear();
        partial.resize(self.blocks.len() - 1, 0.0);
        let mut own = self.take_colour(0);
        let this = &*self;
        let parts = (Nodes(&mut own, 0), PerBlock(partial));
        let scratch = || SweepScratch::new(this.room);
        visit_batches(this.grain, &this.blocks, parts, &scratch, &|scratch, blocks, (x, sums)| {
            this.relax_blocks(scratch, blocks.clone(), 0, x.0, pass);
            let black = this.range_of(blocks.clone(), 1);
            sums.0[0] = blas::dot(x.0, &this.b[0][this.range_of(blocks, 0)])
                + blas::dot(&this.x[1][black.clone()], &this.b[1][black]);
        });
        self.x[0] = own;
    }

    /// Takes the array of a colour out, to be changed, after filling its halo.
    fn take_colour(&mut self, colour: usize) -> Vec<f32> {
        self.fill_halo_for(colour);
        std::mem::take(&mut self.x[colour])
    }

    /// Fills the halo of a colour's nodes.
    pub(super) fn fill_halo_for(&mut self, colour: usize) {
        let mut other = std::mem::take(&mut self.x[1 - colour]);
        self.fill_halo(colour, &mut other);
        self.x[1 - colour] = other;
    }

    /// A half-sweep over several plain blocks at once, or over one block of any kind.
    #[inline]
    fn relax_blocks(
        &self,
        scratch: &mut SweepScratch,
        blocks: Range<usize>,
        colour: usize,
        x: &mut [f32],
        pass: Pass<'_>,
    ) {
        if !self.blocks[blocks.start].is_plain {
            return self.relax_block(scratch, blocks.start, colour, x, pass);
        }
        let range = self.range_of(blocks.clone(), colour);
        let mut rhs = &self.b[colour][range.clone()];
        if let Some(bodies) = pass.bodies {
            let room = &mut scratch.rhs[..range.len()];
            room.copy_from_slice(rhs);
            self.scatter_velocity(bodies, blocks.clone(), colour, room, -1.0);
            rhs = room;
        }
        let links = self.links_of(blocks.clone(), colour);
        let inverse = self.inverse_of(blocks.clone(), colour);
        let view = self.view(blocks, colour, &self.x[1 - colour]);
        rows::relax_alone::<D>(x, rhs, inverse, links, &view, self.whole);
    }

    /// `out += scale · Jᵀ v` for the nodes of a colour of consecutive blocks.
    pub fn scatter_velocity<A: Scalar>(
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
            bodies.scatter_velocity(block, colour, &mut out[own.start - first..own.end - first], scale);
        }
    }

    #[inline]
    fn relax_block(
        &self,
        scratch: &mut SweepScratch,
        block: usize,
        colour: usize,
        x: &mut [f32],
        pass: Pass<'_>,
    ) {
        let Pass { bodies, backwards, from_zero } = pass;
        if from_zero && !self.starts_by_itself(block, colour) {
            x.fill(0.0);
        }
        let rhs = self.rhs_of(block, colour, x, bodies, &mut scratch.rhs);
        let inverse = &self.inverse[colour][self.range(block, colour)];
        let other = self.x[1 - colour].as_slice();
        let Block { form, has_shared, .. } = &self.blocks[block];
        let half = &self.pattern(block).half[colour];
        if *form != Form::Listed {
            let view = self.view(block..block + 1, colour, other);
            if has_shared[colour] || self.damped[block] && !from_zero {
                rows::relax::<D>(x, rhs, inverse, half, &view, self.whole);
            } else {
                let (links, inverse) = (self.own_links(block, colour), Values::Each(rows::rows(inverse)));
                rows::relax_alone::<D>(x, rhs, inverse, links, &view, self.whole);
            }
            return;
        }
        scratch.values.load(&other[self.range(block, 1 - colour)], self.halo_of(block, colour, other));
        list_kernels::relax(x, rhs, inverse, half, &mut scratch.values, self.whole, backwards);
    }

    /// Whether the first half-sweep from zero over a colour of a block does not read its own values.
    #[inline]
    fn starts_by_itself(&self, block: usize, colour: usize) -> bool {
        self.blocks[block].form != Form::Listed && !self.blocks[block].has_shared[colour]
    }

    /// The first sweep of pre-smoothing, from zero: shared nodes, red, black, what touches bodies of any weights. Tiles are at rest.
    ///
    /// Shared nodes come first, so that on the way up they come last: cells glued to one by strong links then follow its
    /// new value after a coarse correction, and do not drag it back to theirs.
    pub fn sweep_from_zero(&mut self) {
        self.start_coupled();
        self.shared.start_from_zero();
        let is_plain = self.shared.is_empty() && self.reds_are_apart;
        if is_plain {
            let (count, [x, _]) = (self.counts()[0], &mut self.x);
            let (x, b, inverse) = (&mut x[..count], &self.b[0], &self.inverse[0]);
            x.par_chunks_mut(PIECE)
                .zip(b.par_chunks(PIECE).zip(inverse.par_chunks(PIECE)))
                .for_each(|(x, (b, inverse))| blas::multiply_entries(x, b, inverse));
        } else {
            let counts = self.counts();
            pieces_mut(&mut self.x, counts).for_each(|x| x.fill(0.0));
            self.relax(0, Pass::default());
        }
        self.relax(1, Pass { from_zero: true, ..Pass::default() });
        self.relax_coupled(None);
    }

    /// A further sweep of pre-smoothing: shared nodes, red, black, what touches bodies of any weights.
    pub fn sweep(&mut self, bodies: Option<&Surfaces>) {
        self.shared.relax([&self.x[0], &self.x[1]]);
        let pass = Pass { bodies, ..Pass::default() };
        self.relax(0, pass);
        self.relax(1, pass);
        self.relax_coupled(bodies);
    }

    /// A sweep of post-smoothing, the reverse of [`Self::sweep`].
    pub fn sweep_back(&mut self, bodies: Option<&Surfaces>) {
        self.relax_coupled(bodies);
        self.relax(1, Pass::back(bodies));
        self.relax(0, Pass::back(bodies));
        self.shared.relax([&self.x[0], &self.x[1]]);
    }

    /// The last sweep of post-smoothing on the finest level; returns `x·b`.
    pub fn sweep_back_and_dot(&mut self, bodies: &Surfaces, partial: &mut Vec<f64>) -> f64 {
        self.relax_coupled(Some(bodies));
        self.relax(1, Pass::back(Some(bodies)));
        self.relax_and_dot(Pass::back(Some(bodies)), partial);
        self.shared.relax([&self.x[0], &self.x[1]]);
        partial.iter().sum::<f64>() + self.shared.dot_xb()
    }

    /// Jacobi: sets `x` to `b` over the diagonal, and returns `x·b`.
    pub fn divide_by_diagonal(&mut self, partial: &mut Vec<f64>) -> f64 {
        let counts = self.counts();
        let Network { inverse, x, b, shared, .. } = self;
        let rows = pieces_mut(x, counts).zip(pieces(b, counts)).zip(pieces(inverse, counts));
        rows.map(|((x, b), inverse)| {
            blas::multiply_entries(x, b, inverse);
            blas::dot(x, b)
        })
        .collect_into_vec(partial);
        shared.start_from_zero();
        if self.coupled.is_empty() {
            return partial.iter().sum::<f64>() + self.shared.dot_xb();
        }
        self.start_coupled();
        let mut coupled = std::mem::take(&mut self.coupled);
        coupled.relax(|_| 0.0, |_| 0.0);
        coupled.values().for_each(|(node, value)| self.set_value(node, value));
        self.coupled = coupled;
        self.dot_xb(partial)
    }

    /// `x·b`.
    pub fn dot_xb(&self, partial: &mut Vec<f64>) -> f64 {
        let counts = self.counts();
        let products = pieces(&self.x, counts).zip(pieces(&self.b, counts));
        products.map(|(x, b)| blas::dot(x, b)).collect_into_vec(partial);
        partial.iter().sum::<f64>() + self.shared.dot_xb()
    }
}
