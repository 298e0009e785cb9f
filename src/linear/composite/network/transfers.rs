//! Restriction to and prolongation from the next coarser network. Prolongation copies a coarse value to all nodes of its
//! aggregate; restriction, its transpose, sums residuals.

use std::ops::Range;

use crate::math::flatten;

use super::super::super::kernels;
use super::super::super::layout::half_rows;
use super::super::list_kernels;
use super::super::rows;
use super::super::surfaces::Surfaces;
use super::super::visit::{Block, Form, both, visit, visit_batches, visit_by};
use super::Network;
use super::sweeps::SweepScratch;

impl<const D: usize> Network<D> {
    /// Residuals after pre-smoothing in which bodies were `at_rest` or not: of red nodes, and of black ones where any is left,
    /// as these were relaxed last. The body term is left out.
    fn find_residual(&mut self, at_rest: bool) {
        // Pre-smoothing filled the halo of black nodes last; what touches bodies of any weights was relaxed after that.
        if !self.coupled.is_empty() {
            self.fill_halo_for(1);
        }
        self.fill_halo_for(0);
        let mut residual = std::mem::take(&mut self.residual);
        let (this, parts) = (&*self, both(&mut residual));
        let scratch = || SweepScratch::new(this.room);
        visit_batches(this.grain, &this.blocks, parts, &scratch, &|scratch, blocks, (red, black)| {
            this.residual_of(scratch, blocks.clone(), 0, red.0);
            if blocks.clone().any(|block| this.leaves_black(block, at_rest)) {
                this.residual_of(scratch, blocks, 1, black.0);
            }
        });
        self.residual = residual;
    }

    /// Residuals of the nodes of a colour in several plain blocks, or in one block of any kind.
    #[inline]
    fn residual_of(&self, scratch: &mut SweepScratch, blocks: Range<usize>, colour: usize, out: &mut [f32]) {
        let (range, block) = (self.range_of(blocks.clone(), colour), blocks.start);
        let (x, other) = (&self.x[colour][range.clone()], self.x[1 - colour].as_slice());
        let (inverse, half) = (&self.inverse[colour][range.clone()], &self.pattern(block).half[colour]);
        let view = || self.view(blocks.clone(), colour, other);
        if self.blocks[block].is_plain {
            let links = self.links_of(blocks.clone(), colour);
            let inverse = self.inverse_of(blocks.clone(), colour);
            rows::residual_alone::<D>(out, x, &self.b[colour][range], inverse, links, &view(), self.whole);
            return;
        }
        let rhs = self.rhs_of(block, colour, x, None, &mut scratch.rhs);
        if self.blocks[block].form != Form::Listed {
            rows::residual::<D>(out, x, rhs, inverse, half, &view(), self.whole);
            return;
        }
        scratch.values.load(&other[self.range(block, 1 - colour)], self.halo_of(block, colour, other));
        list_kernels::residual(out, x, rhs, half, &mut scratch.values, self.whole);
    }

    /// Whether a half-sweep over the black nodes of a block solves their rows: what they were before does not matter then.
    #[inline]
    fn settles(&self, block: usize) -> bool {
        let is_in_rows = self.blocks[block].form != Form::Listed;
        !self.damped[block] && (is_in_rows || self.pattern(block).half[1].extra_links.is_empty())
    }

    /// Whether black nodes have a residual, apart from the body term, after pre-smoothing in which bodies were `at_rest` or not.
    #[inline]
    fn leaves_black(&self, block: usize, at_rest: bool) -> bool {
        !self.settles(block) || self.touched[block] && !at_rest
    }

    /// Whether every node's parent is the coarse cell over it, with all rows kept on both levels: SIMD transfers will do.
    #[inline]
    fn is_regular(&self, block: usize, cover: &Block) -> bool {
        let is_full = |block: &Block| block.form == Form::AllRows;
        is_full(&self.blocks[block]) && is_full(cover) && self.pattern(block).aggregation.follows_rule
    }

    /// Restriction: sets the coarse right-hand side to sums of residuals, after pre-smoothing in which bodies were `at_rest`
    /// or not. `bodies` are the coarse surfaces with the velocities of now: `Jᵀ v` restricted is the coarse `Jᵀ v`, and there
    /// are fewer nodes to scatter to.
    pub fn restrict(&mut self, bodies: &Surfaces, at_rest: bool, coarse: &mut Network<D>) {
        self.find_residual(at_rest);
        let mut coupled = std::mem::take(&mut coarse.coupled);
        let of_shared = self.restrict_coupled(&mut coupled);
        coarse.coupled = coupled;
        let this = &*self;
        let most = 2 * coarse.room;
        let Network { patterns, blocks, children, b, grain, touched, .. } = coarse;
        let scratch = || (vec![0.0f32; most], vec![[0.0f32; 8]; 2 * half_rows(D)]);
        visit_by(*grain, blocks, both(b), &scratch, &|(sums, natural), cover, (red, black)| {
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
                        list_kernels::add_to_parents(sums, residual, parents.of(octant, colour));
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
                    bodies.scatter_velocity::<f32>(cover, colour, out, -1.0);
                }
            }
        });
        this.shared.restrict([&this.x[0], &this.x[1]], &mut coarse.shared);
        of_shared.iter().for_each(|&(shared, term)| coarse.shared.b[shared] -= term);
    }

    /// Prolongation: adds the values of the coarser level.
    pub fn prolong(&mut self, coarse: &Network<D>) {
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
                    list_kernels::add_from_parents(x, inverse, above, parents.of(octant, colour));
                }
            },
        );
        self.x = x;
        self.shared.prolong(&coarse.shared);
        self.prolong_coupled(coarse);
    }
}
