//! The parts of a substep that move particles, and take velocities to the grid and back.

use crate::grid::{self, Field, for_each_block};
use crate::liquid::{self, Bounds, Layout, Reseeded};
use crate::math::{Real, Vector};

use super::faces::spread;
use super::projection::downward;
use super::viscosity::flip_share;
use crate::sim::affine_cells::{affine_cells_at_midpoint, affine_cells_in_tiles};
use crate::sim::air::Air;
use crate::sim::bodies::advance_bodies;
use crate::sim::{Params, Scratch, State};

/// Drops dead particles, stores the blocks that liquid, walls and air need, and sorts particles by cell.
pub(super) fn sort<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>) {
    let State { blocks, walls, particles, ranges, core, smoke, time, .. } = state;
    let wall_blocks = &mut scratch.air.wall_blocks;
    wall_blocks.update(blocks, walls, *time);
    let has_air = params.model.has_gas() || smoke.is_present();
    scratch.core.list_needed(blocks, wall_blocks.needed(has_air));
    smoke.list_held(blocks, &mut scratch.core.needed);
    scratch.sorter.sort(particles, ranges, blocks, walls, &scratch.core.needed, *time);
    core.note_sorted();
}

/// Takes the liquid away where bodies were put in since the time `before`.
pub(super) fn make_way<const D: usize>(state: &mut State<D>, before: Real) {
    let State { hands, walls, particles, blocks, time, .. } = state;
    hands.make_way(walls, particles, blocks.grid(), [before, *time]);
}

/// Keeps particles out of the walls.
pub(super) fn collide<const D: usize>(state: &mut State<D>, scratch: &Scratch<D>) {
    let State { particles, ranges, blocks, walls, time, .. } = state;
    liquid::collide(particles, ranges, blocks, &scratch.boundary, walls, *time);
    if walls.has_bodies() {
        liquid::leave_bodies(particles, ranges, blocks, walls, *time);
    }
}

/// Moves the particles with the velocity of the substep's middle. Afterwards `velocity` is free for the new one.
pub(super) fn advect<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    dt: Real,
) {
    let State { particles, ranges, blocks, velocity, earlier, core, .. } = state;
    let share = if state.last_dt > 0.0 { 0.5 * dt / state.last_dt } else { 0.0 };
    // Twice what gravity does in half a substep, and never further than velocities are known.
    let room = liquid::MARGIN_CELLS as Real * blocks.grid().dx / dt - state.max_component;
    let most = (params.gravity * dt).min(room).max(0.0);
    liquid::extrapolate_to_midpoint(blocks, velocity, earlier, share as f32, most as f32);
    let affine =
        affine_cells_at_midpoint(blocks, &scratch.projection, earlier, share, dt, &mut scratch.affine);
    liquid::advect(particles, ranges, blocks, earlier, dt, affine);
    liquid::advect_seeded(particles, core, blocks, earlier, dt);
    grid::lead(|| scratch.core.advect(core, blocks, &scratch.boundary, velocity, earlier, dt));
    std::mem::swap(velocity, earlier);
    state.last_dt = dt;
    state.time += dt;
    if state.walls.has_bodies() {
        advance_bodies(&mut state.walls, state.time, dt, share, most);
    }
}

pub(super) fn transfer_to_grid<const D: usize>(state: &mut State<D>, scratch: &mut Scratch<D>) {
    let slots = state.blocks.slot_count();
    state.velocity.iter_mut().for_each(|field| field.resize(slots));
    for field in &mut state.earlier {
        field.resize(slots);
        state.blocks.fresh().iter().for_each(|&slot| field.block_mut(slot as usize).fill(0.0));
    }
    scratch.resize(slots);
    grid::lead(|| {
        liquid::particles_to_grid(
            &state.particles,
            &state.ranges,
            &state.blocks,
            &mut state.velocity,
            &mut scratch.before,
            &mut scratch.valid,
            &mut scratch.slots,
        );
    });
    scratch.core.write_velocity(&mut state.velocity, &mut scratch.valid);
    // The surface may reach past the last particle's faces: give those their neighbours' velocity.
    spread(&state.blocks, &mut state.velocity, scratch, 2);
    let (before, velocity) = (scratch.before.each_mut().map(Field::parts), &state.velocity);
    for_each_block(state.blocks.slots(), before, |slot, before| {
        before.into_iter().zip(velocity).for_each(|(before, now)| before.copy_from_slice(now.block(slot)));
    });
}

pub(super) fn rebuild_surface<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
) {
    liquid::rebuild_surface(
        &state.particles,
        &state.ranges,
        &state.blocks,
        &scratch.boundary,
        &mut state.surface,
        &mut scratch.surface,
        layout(params, 0).per_cell(D),
        &scratch.core.moved,
    );
    state.pressure.loose.follow(&state.blocks);
    state.pressure.loose.exclude_from(&state.blocks, &mut scratch.surface.deep);
}

pub(super) fn grid_to_particles<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
) {
    let flip = flip_share(params, state.blocks.grid().dx, state.last_dt);
    let State { particles, ranges, blocks, velocity, .. } = state;
    let projection = &mut scratch.projection;
    if let Some(tiling) = &mut projection.tiling {
        tiling.find_interior(blocks);
    }
    liquid::grid_to_particles(
        particles,
        ranges,
        blocks,
        velocity,
        &scratch.before,
        flip,
        affine_cells_in_tiles(blocks, projection),
    );
}

pub(super) fn transfer_to_particles<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
) -> Reseeded {
    grid_to_particles(state, params, scratch);
    let Scratch { boundary, core, surface, births, .. } = scratch;
    let layout = layout(params, state.steps);
    let mut done = Reseeded::default();
    if params.reseed {
        core.exclude_from(&mut surface.deep);
        done = liquid::reseed(
            &mut state.particles,
            &state.ranges,
            &state.blocks,
            &state.velocity,
            boundary,
            &surface.deep,
            Bounds::around(layout.per_cell(D)),
            state.steps,
            births,
        );
    }
    let flip = flip_share(params, state.blocks.grid().dx, state.last_dt);
    let State { core: cells, particles, ranges, blocks, velocity, .. } = state;
    let settled = core.update(cells, particles, ranges, blocks, boundary, velocity, &layout, flip);
    if state.walls.has_bodies() {
        let State { particles, ranges, blocks, walls, time, .. } = state;
        liquid::born_leave_bodies(particles, ranges, blocks, walls, *time);
    }
    Reseeded { added: done.added + settled.added, removed: done.removed + settled.removed }
}

/// Tells the tracker which particles came and went without liquid coming or going.
pub(super) fn note_particles<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    reseeded: Reseeded,
) {
    let State { tracker, particles, core, .. } = state;
    let Air { tracker: work, measure, .. } = &mut scratch.air;
    tracker.note_reseeded(particles, reseeded.added, reseeded.removed, work);
    // A cell without particles would have this many.
    let per_cell = layout(params, 0).per_cell(D);
    tracker.note_core(measure, core.shares().map(|(slot, cell, cells)| (slot, cell, cells * per_cell)));
}

/// How new particles are laid out.
pub(in crate::sim) fn layout(params: &Params, salt: u64) -> Layout {
    Layout { per_axis: params.seeds_per_axis as usize, jitter: params.jitter as f32, salt }
}

pub(super) fn run_sources_and_drains<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    dt: Real,
) {
    let (time, layout) = (state.time, layout(params, state.steps));
    for source in state.air_sources.iter().filter(|source| source.is_due(time, dt)) {
        // The liquid makes way but is not lost: its volume stays on the books and comes back as a slight expansion.
        if liquid::drain(&mut state.particles, state.blocks.grid(), &source.shape) > 0 {
            state.tracker.forget_removed(&state.particles, &mut scratch.air.tracker);
        }
    }
    // A source holds its liquid's velocity through the substep: what gravity will add is taken away beforehand.
    let fall = Vector::from(downward::<D>(params.gravity * dt));
    scratch.emitters.resize_with(state.sources.len(), Default::default);
    let sources = state.sources.iter().zip(&mut scratch.emitters);
    for (source, emitter) in sources.filter(|(source, _)| (source.from..source.until).contains(&time)) {
        emitter.emit(
            &mut state.particles,
            &state.ranges,
            &state.blocks,
            &source.shape,
            &(source.velocity - fall),
            &state.walls,
            &layout,
            time,
        );
    }
    for drain in state.drains.iter().filter(|drain| (drain.from..drain.until).contains(&time)) {
        liquid::drain(&mut state.particles, state.blocks.grid(), &drain.shape);
    }
}
