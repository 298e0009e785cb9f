//! The ways between a network and the next coarser one.

use std::ops::Range;

use crate::math::flatten;

use super::super::super::kernels;
use super::super::super::layout::half_rows;
use super::super::gather;
use super::super::rows;
use super::super::surfaces::Surfaces;
use super::super::visit::{Block, Form, both, visit, visit_by, visit_stretches};
use super::Net;
use super::sweeps::Desk;

impl<const D: usize> Net<D> {
    /// Finds what is left of the rows of red nodes after downward sweeps in which bodies were `at_rest` or not, and of black ones
    /// where there is anything left: they were relaxed last. Bodies are at rest now.
    fn find_residual(&mut self, at_rest: bool) {
        // What black nodes see was copied for them, and what is seen of them was not.
        self.show_to(0);
        let mut residual = std::mem::take(&mut self.residual);
        let (this, parts) = (&*self, both(&mut residual));
        let desk = || Desk::new(this.room);
        visit_stretches(this.grain, &this.blocks, parts, &desk, &|desk, blocks, (red, black)| {
            this.residual_of(desk, blocks.clone(), 0, red.0);
            if blocks.clone().any(|block| this.leaves_black(block, at_rest)) {
                this.residual_of(desk, blocks, 1, black.0);
            }
        });
        self.residual = residual;
    }

    /// That of the nodes of a colour of several plain blocks, or of one block.
    #[inline]
    fn residual_of(&self, desk: &mut Desk, blocks: Range<usize>, colour: usize, out: &mut [f32]) {
        let (range, block) = (self.range_of(blocks.clone(), colour), blocks.start);
        let (x, other) = (&self.x[colour][range.clone()], self.x[1 - colour].as_slice());
        let (inverse, half) = (&self.inverse[colour][range.clone()], &self.pattern(block).half[colour]);
        let sight = || self.sight(blocks.clone(), colour, other);
        if self.blocks[block].is_plain {
            let links = self.links_of(blocks.clone(), colour);
            let inverse = self.inverse_of(blocks.clone(), colour);
            rows::residual_alone::<D>(out, x, &self.b[colour][range], inverse, links, &sight(), self.whole);
            return;
        }
        let rhs = self.rhs_of(block, colour, x, None, &mut desk.rhs);
        if self.blocks[block].form != Form::Listed {
            rows::residual::<D>(out, x, rhs, inverse, half, &sight(), self.whole);
            return;
        }
        desk.values.load(&other[self.range(block, 1 - colour)], self.seen(block, colour, other));
        gather::residual(out, x, rhs, half, &mut desk.values, self.whole);
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
        self.find_residual(at_rest);
        let this = &*self;
        let most = 2 * coarse.room;
        let Net { patterns, blocks, children, b, grain, touched, .. } = coarse;
        let desk = || (vec![0.0f32; most], vec![[0.0f32; 8]; 2 * half_rows(D)]);
        visit_by(*grain, blocks, both(b), &desk, &|(sums, natural), cover, (red, black)| {
            let counts = [red.0.len(), black.0.len()];
            let sums = &mut sums[..counts[0] + counts[1] + 1];
            sums.fill(0.0);
            let is_full = blocks[cover].form == Form::AllRows;
            if is_full {
                natural.fill([0.0; 8]);
            }
            let parents = &patterns[blocks[cover].pattern as usize].parents;
            for (octant, &block) in children[cover].iter().enumerate().filter(|(_, block)| **block != 0) {
                let block = block as usize;
                let colours = if this.leaves_black(block, at_rest) { 2 } else { 1 };
                for colour in 0..colours {
                    let residual = &this.residual[colour][this.range(block, colour)];
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
                if is_full {
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
                        let inverse = || rows::rows(&this.inverse[colour][this.range(block, colour)]);
                        let inverse = (!this.blocks[block].is_even).then(inverse);
                        let (reds, blacks) = (rows::rows(reds), rows::rows(blacks));
                        kernels::prolong(rows::rows_mut(x), &octant, reds, blacks, inverse, None);
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
}
