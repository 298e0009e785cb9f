//! The parts of a substep that are about smoke.

use crate::grid::Blocks;
use crate::math::{Real, Vector};
use crate::sim::{Params, Scratch, SmokeSource, State};
use crate::smoke::{Around, Feed, Lift};

use super::GridPass;

/// Lets smoke pull the air down, and heat lift it.
pub(super) fn lift_air<const D: usize>(state: &mut State<D>, params: &Params, pass: &GridPass<'_>) {
    let State { blocks, smoke, gas, .. } = state;
    if !smoke.is_present() {
        return;
    }
    smoke.resize(blocks);
    if gas.is_present() {
        let fall = pass.gravity * pass.air_dt;
        let per_density = -fall * params.smoke_weight / params.air_density;
        smoke.lift(blocks, &Lift { per_density, per_heat: fall * params.heat_lift }, &mut gas.velocity);
    }
}

/// Carries smoke along with the air, and lets it in and fade. Comes right after the projection, as long as the velocity of
/// the air is just what that found. Where air has no mass it does not move, and smoke stays where it is.
pub(super) fn carry_smoke<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    pass: &GridPass<'_>,
) {
    let (dt, steps) = (pass.air_dt, state.steps);
    let State { blocks, walls, smoke, smoke_sources, gas, time, .. } = state;
    if !smoke.is_present() || !gas.is_present() || dt == 0.0 {
        return;
    }
    let Scratch { boundary, projection, smoke: work, .. } = scratch;
    let around = Around { blocks, boundary, label: &projection.label, voxels: walls.voxels };
    smoke.advance(&around, &gas.velocity, work, dt, steps);
    smoke.fade(blocks, params.smoke_fading, params.cooling, dt);
    for source in smoke_sources.iter().filter(|source| (source.from..source.until).contains(time)) {
        // As much as in many small steps.
        let share = 1.0 - (-source.rate * dt).exp();
        for slot in blocks_near(blocks, source) {
            smoke.feed(blocks, slot, |cell| Feed {
                share: (share * covered_share(&source.shape, blocks, cell)) as f32,
                density: source.density as f32,
                heat: source.heat.map(|heat| heat as f32),
            });
        }
    }
}

/// The blocks that a source may reach.
fn blocks_near<const D: usize>(blocks: &Blocks<D>, source: &SmokeSource<D>) -> Vec<usize> {
    let (half, dx) = (0.5 * crate::grid::SIDE as Real, blocks.grid().dx);
    let slots = blocks.slots().as_slice().iter().map(|&slot| slot as usize);
    let is_near = |slot: &usize| {
        let first = blocks.first_cell(*slot);
        let centre = Vector::from_fn(|k, _| (Real::from(first[k]) + half) * dx);
        source.shape.distance(&centre) <= (half + 1.0) * (D as Real).sqrt() * dx
    };
    slots.filter(is_near).collect()
}

/// About how much of a cell a shape covers.
pub(in crate::sim) fn covered_share<const D: usize>(
    shape: &crate::geometry::Shape<D>,
    blocks: &Blocks<D>,
    cell: [i32; D],
) -> Real {
    let dx = blocks.grid().dx;
    let centre = Vector::from_fn(|k, _| (Real::from(cell[k]) + 0.5) * dx);
    (0.5 - shape.distance(&centre) / dx).clamp(0.0, 1.0)
}
