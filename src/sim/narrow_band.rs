//! Which cells of a simulation's liquid are to be without particles.

use crate::geometry::Shape;
use crate::grid::{Blocks, SIDE};
use crate::liquid::{self, Band};
use crate::math::{Real, Vector};

use super::step::layout;
use super::{Params, Scratch, State};

/// Substeps after which liquid without a core is looked at again.
const STEPS_TO_LOOK: u64 = 4;

/// Finds the next core: what tiles have given already, and what lies beyond the band.
pub(super) fn find_core<const D: usize>(state: &State<D>, params: &Params, scratch: &mut Scratch<D>) {
    let State { blocks, ranges, core, sources, drains, air_sources, .. } = state;
    let Scratch { core: work, boundary, surface, .. } = scratch;
    let is_far = |slot: usize| {
        let sources = sources.iter().map(|source| &source.shape);
        let drains = drains.iter().map(|drain| &drain.shape);
        // Where liquid comes or goes it needs its particles.
        let mut shapes = sources.chain(drains).chain(air_sources.iter().map(|source| &source.shape));
        shapes.all(|shape| is_far_from(blocks, slot, shape))
    };
    if !work.target.is_empty() {
        work.target.retain(blocks, is_far);
    }
    // Where there was nothing to leave out, it is enough to look now and then.
    let is_due = !core.cells.is_empty() || state.steps.is_multiple_of(STEPS_TO_LOOK);
    if params.narrow_band > 0 && is_due {
        let (width, per_cell) = (params.narrow_band as usize, layout(params, 0).per_cell(D));
        let band = Band { boundary, deep: &surface.deep, ranges, per_cell, width };
        work.find_target(core, blocks, &band, is_far);
    }
}

/// Whether nothing of a block can get into a shape in a substep.
fn is_far_from<const D: usize>(blocks: &Blocks<D>, slot: usize, shape: &Shape<D>) -> bool {
    let (half, dx) = (0.5 * SIDE as Real, blocks.grid().dx);
    let first = blocks.first_cell(slot);
    let centre = Vector::from_fn(|k, _| (first[k] as Real + half) * dx);
    let near = (half + liquid::CORE_DEPTH as Real) * (D as Real).sqrt() * dx;
    shape.distance(&centre) > near
}
