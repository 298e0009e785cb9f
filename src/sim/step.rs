//! One substep.

use std::sync::atomic::AtomicBool;

use crate::geometry::label_cells;
use crate::grid::{
    self, Blocks, CHUNKS, FaceMask, Field, SIDE, for_each_block, for_each_block_collecting, masks,
};
use crate::linear::SolverParams;
use crate::liquid::{self, Bounds, Layout, Reseeded};
use crate::math::{Real, Vector, compiled_here};
use crate::pressure::{self, Problem, Solved};
use crate::tiles::{Division, TileDomain, TileRules, TileSize};

use super::affine_cells::{affine_cells_at_midpoint, affine_cells_in_tiles};
use super::air::{Air, AirInput};
use super::clock::StageClock;
use super::narrow_band::find_core;
use super::{Model, Params, Scratch, SimError, Stage, StageTimes, State};

/// Layers of faces around the liquid that get a velocity: as far as a particle may go in a substep, and the
/// interpolation at its end.
const LAYERS: usize = 4;

/// What a substep did.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// Seconds simulated.
    pub dt: Real,
    /// The pressure solve.
    pub solve: Solved,
    /// Particles added and removed to keep cells evenly filled.
    pub reseeded: Reseeded,
}

/// How long a substep is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepLength {
    /// Seconds to simulate.
    pub dt: Real,
    /// Seconds that it might last if everything were slow, at least `dt`: the frame and gravity ask for no less.
    pub longest: Real,
}

compiled_here! {
    /// Moves the liquid forward by one substep.
    pub fn substep<D>(
        state: &mut State<D>,
        params: &Params,
        scratch: &mut Scratch<D>,
        times: &mut StageTimes,
        length: StepLength,
        stop: &AtomicBool,
    ) -> Result<StepReport, SimError> = run_substep;
}

fn run_substep<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    times: &mut StageTimes,
    length: StepLength,
    stop: &AtomicBool,
) -> Result<StepReport, SimError> {
    let dt = length.dt;
    let mut clock = StageClock::start(times);
    advect(state, params, scratch, dt);
    collide(state, scratch);
    run_sources_and_drains(state, params, scratch, dt);
    clock.lap(Stage::Advect);

    let pass = GridPass { length, air_dt: dt, gravity: params.gravity, stop };
    let solve = solve_on_grid(state, params, scratch, &mut clock, &pass)?;

    let reseeded = transfer_to_particles(state, params, scratch);
    note_particles(state, params, scratch, reseeded);
    state.steps += 1;
    clock.lap(Stage::Return);
    Ok(StepReport { dt, solve, reseeded })
}

compiled_here! {
    /// Brings a freshly seeded state to where a substep starts: sorted, with a velocity field that is divergence-free.
    pub fn prepare<D>(
        state: &mut State<D>,
        params: &Params,
        scratch: &mut Scratch<D>,
    ) -> Result<(), SimError> = run_prepare;
}

fn run_prepare<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
) -> Result<(), SimError> {
    let (mut times, stop) = (StageTimes::default(), AtomicBool::new(false));
    let length = StepLength { dt: 1.0, longest: 1.0 };
    let pass = GridPass { length, air_dt: 0.0, gravity: 0.0, stop: &stop };
    solve_on_grid(state, params, scratch, &mut StageClock::start(&mut times), &pass)?;
    // That pressure belongs to no step: the first real solve starts from none.
    state.pressure.forget();
    state.tracker.forget_pressures();
    state.component_roles.forget_pressures();
    grid_to_particles(state, params, scratch);
    Ok(())
}

/// What the stages on the grid are to do.
struct GridPass<'a> {
    /// What the projection is for.
    length: StepLength,
    /// Seconds that air moves by itself.
    air_dt: Real,
    /// Downward acceleration, m/s².
    gravity: Real,
    stop: &'a AtomicBool,
}

/// Everything between moving the particles and handing them their new velocities.
fn solve_on_grid<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    clock: &mut StageClock<'_>,
    pass: &GridPass<'_>,
) -> Result<Solved, SimError> {
    sort(state, params, scratch);
    clock.lap(Stage::Sort);
    scratch.boundary.update(&state.blocks, &state.walls, state.time);
    clock.lap(Stage::Boundary);
    advect_gas(state, params, scratch, pass.air_dt);
    clock.lap(Stage::Advect);
    transfer_to_grid(state, scratch);
    clock.lap(Stage::Transfer);
    grid::lead(|| {
        rebuild_surface(state, params, scratch);
        clock.lap(Stage::Surface);
        label(state, scratch);
        clock.lap(Stage::Label);
        fill_components(state, scratch);
        clock.lap(Stage::Fill);
        measure_components(state, scratch);
    });
    track(state, params, scratch, pass.length);
    clock.lap(Stage::Track);
    find_unknowns(state, scratch);
    lay_tiles(state, params, scratch);
    find_core(state, params, scratch);
    clock.lap(Stage::Tiles);

    let has_tiles = scratch.projection.tiling.is_some();
    let mut finish = || {
        let solve = project(state, params, scratch, pass);
        clock.laps([
            (Stage::Assemble, solve.seconds_assemble),
            (Stage::Solve, solve.seconds_solve),
            (Stage::Extrapolate, solve.seconds_update),
        ]);
        extrapolate(state, scratch)?;
        clock.lap(Stage::Extrapolate);
        Ok(solve)
    };
    // Tiles are worked on side by side in their own way.
    if has_tiles { finish() } else { grid::lead(finish) }
}

compiled_here! {
    /// Finds what follows from a state between two substeps, as the last one left it behind.
    pub(super) fn derive<D>(state: &State<D>, scratch: &mut Scratch<D>) -> () = run_derive;
}

fn run_derive<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    scratch.resize(state.blocks.slot_count());
    scratch.boundary.update(&state.blocks, &state.walls, state.time);
    scratch.air.wall_blocks.update(&state.blocks, &state.walls, state.time);
    label(state, scratch);
    fill_components(state, scratch);
    measure_components(state, scratch);
    find_unknowns(state, scratch);
    lay_tiles_by(&state.tiles.rules, state, scratch, false);
    if let Some(tiling) = &mut scratch.projection.tiling {
        tiling.recall(&state.blocks, &state.tiles);
    }
}

/// Drops dead particles, stores the blocks that liquid, walls and air need, and sorts particles by cell.
fn sort<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>) {
    let State { blocks, walls, particles, ranges, core, time, .. } = state;
    let wall_blocks = &mut scratch.air.wall_blocks;
    wall_blocks.update(blocks, walls, *time);
    scratch.core.list_needed(blocks, wall_blocks.needed(params.model.has_gas()));
    scratch.sorter.sort(particles, ranges, blocks, walls, &scratch.core.needed, *time);
    core.note_sorted();
}

/// Keeps particles out of the walls.
fn collide<const D: usize>(state: &mut State<D>, scratch: &Scratch<D>) {
    let State { particles, ranges, blocks, walls, time, .. } = state;
    liquid::collide(particles, ranges, blocks, &scratch.boundary, walls, *time);
}

/// Moves the particles with the velocity of the substep's middle. Afterwards `velocity` is free for the new one.
fn advect<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>, dt: Real) {
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
    scratch.core.advect(core, blocks, &scratch.boundary, velocity, earlier, dt);
    std::mem::swap(velocity, earlier);
    state.last_dt = dt;
    state.time += dt;
}

/// Carries the air's velocity through the substep, if air has mass; `velocity` is free before and afterwards.
fn advect_gas<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>, dt: Real) {
    let State { gas, blocks, velocity, earlier, .. } = state;
    if !params.model.has_gas() {
        return gas.clear();
    }
    for field in velocity.iter_mut().chain(&mut *earlier) {
        field.resize(blocks.slot_count());
        blocks.fresh().iter().for_each(|&slot| field.block_mut(slot as usize).fill(0.0));
    }
    scratch.resize(blocks.slot_count());
    if gas.resize(blocks, earlier) {
        gas.advect(blocks, &mut scratch.before, velocity, dt);
    }
}

fn transfer_to_grid<const D: usize>(state: &mut State<D>, scratch: &mut Scratch<D>) {
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

fn rebuild_surface<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>) {
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
}

fn label<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    let pressure::Projection { label, live, settled, .. } = &mut scratch.projection;
    label_cells(&state.blocks, &scratch.boundary, &state.surface, label, live, settled);
}

/// What the components of air and liquid are found from, and those.
fn around<'a, const D: usize>(
    state: &'a State<D>,
    scratch: &'a mut Scratch<D>,
) -> (AirInput<'a, D>, &'a mut Air<D>) {
    let State { blocks, walls, surface, time, .. } = state;
    let Scratch { boundary, projection, air, .. } = scratch;
    (AirInput::new(blocks, boundary, walls, projection, surface, *time), air)
}

/// Finds the connected components of air and liquid.
fn fill_components<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    let (around, air) = around(state, scratch);
    air.fill(&around);
}

/// Finds how large they are.
fn measure_components<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    let (around, air) = around(state, scratch);
    air.measure(&around);
}

/// Knows the components again, and decides which volumes to correct.
fn track<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    length: StepLength,
) {
    let State { tracker, component_roles, blocks, walls, surface, ranges, air_sources, time, .. } = state;
    let Scratch { air, boundary, projection, sorter, .. } = scratch;
    let around = AirInput::new(blocks, boundary, walls, projection, surface, *time);
    air.track(tracker, component_roles, &around, ranges, sorter.origin(), air_sources, params, length);
}

/// Finds the cells that have a pressure.
fn find_unknowns<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    let roles = state.component_roles.roles(&scratch.air.components);
    pressure::find_unknowns(&state.blocks, &roles, &mut scratch.projection);
}

/// Decides which parts of the fluids move as a whole.
fn lay_tiles<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>) {
    lay_tiles_by(&tile_rules(params), state, scratch, params.reduced_advection);
    let Some(tiling) = &scratch.projection.tiling else { return };
    let State { tracker, component_roles, .. } = state;
    scratch.air.ask_outside(tracker, component_roles, tiling);
}

/// Lays out tiles of liquid, and of air with mass, as far as there are rules for them. If it `wants_core`, finds the
/// cells between and in tiles of liquid that need no particles.
fn lay_tiles_by<const D: usize>(
    rules: &[Option<TileRules>; 2],
    state: &State<D>,
    scratch: &mut Scratch<D>,
    wants_core: bool,
) {
    let [in_liquid, in_gas] = rules;
    let Scratch { boundary, projection, core, .. } = scratch;
    core.target.clear();
    if in_liquid.is_none() && in_gas.is_none() {
        projection.tiling = None;
        return;
    }
    let pressure::Projection { label, live, gas, tiling, .. } = projection;
    let blocks = &state.blocks;
    let (tiling, domain) = (tiling.get_or_insert_default(), TileDomain { blocks, boundary, live });
    tiling.clear(blocks);
    if let Some(rules) = in_liquid {
        tiling.add_liquid(&domain, label, rules);
        if wants_core {
            tiling.find_core(blocks, liquid::CORE_DEPTH, &mut core.target);
        }
    }
    if let Some(rules) = in_gas.as_ref().filter(|_| state.component_roles.has_gas()) {
        tiling.add_gas(&domain, label, gas, rules);
    }
}

/// Where tiles of liquid and of air with mass may be.
fn tile_rules(params: &Params) -> [Option<TileRules>; 2] {
    [tiles_in_liquid(params), tiles_in_gas(params)]
}

/// Where tiles of liquid may be, if there are any.
fn tiles_in_liquid(params: &Params) -> Option<TileRules> {
    params.tiles_liquid().then_some(TileRules {
        division: division(params.tile_size, params.tile_size_deep),
        surface_band: params.surface_band as usize,
        wall_band: params.wall_band as usize,
        density: 1.0,
    })
}

/// Tiles of that many cells, more far away from the bands; 0 is for one that is not divided.
fn division(size: u32, deep: u32) -> Division {
    match size as usize {
        0 => Division::Whole,
        least => Division::Lattice(TileSize { least, most: least.max(deep as usize) }),
    }
}

/// Where tiles of air with mass may be, if there are any.
fn tiles_in_gas(params: &Params) -> Option<TileRules> {
    (params.model == Model::AffineBubbles).then_some(TileRules {
        division: division(params.bubble_tile_size, params.bubble_tile_size),
        surface_band: params.bubble_band as usize,
        wall_band: params.wall_band as usize,
        density: params.air_density / params.density,
    })
}

fn project<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    pass: &GridPass<'_>,
) -> Solved {
    let &GridPass { length: StepLength { dt, .. }, gravity, stop, .. } = pass;
    let solver = solver_params(params, state.blocks.grid().dx, dt);
    let State {
        blocks, walls, surface, velocity, pressure, tiles, tracker, component_roles, gas, time, ..
    } = state;
    let Scratch { boundary, air, projection, valid, .. } = scratch;
    let problem = Problem {
        blocks,
        boundary,
        walls,
        surface,
        impulse: downward(gravity * dt),
        roles: component_roles.roles(&air.components),
        time: *time,
    };
    let has_gas = problem.roles.has_gas();
    if has_gas {
        pressure::mix_velocities(&problem, projection, &gas.velocity, velocity);
    }
    let solved =
        pressure::project(velocity, valid, &problem, &solver, pressure, projection, &mut [], dt, Some(stop));
    if has_gas {
        pressure::separate_velocities(&problem, projection, velocity, valid, &mut gas.velocity);
    }
    air.note_pressures(tracker, component_roles, blocks, projection, pressure);
    tiles.note(tile_rules(params), projection.tiling.as_deref());
    solved
}

/// What the parameters mean to the linear solver in a substep of `dt` seconds.
pub(super) fn solver_params(params: &Params, dx: Real, dt: Real) -> SolverParams {
    SolverParams {
        tolerance: params.tolerance,
        // The residual is a net outflow in m/s; over dx and times dt it is the compression in this substep.
        floor: params.tolerance_floor * dx / dt,
        max_iterations: params.max_iterations as usize,
        preconditioner: params.preconditioner,
        sweeps: params.sweeps as usize,
        warm_start: params.warm_start,
    }
}

fn downward<const D: usize>(amount: Real) -> [Real; D] {
    std::array::from_fn(|axis| if axis == 1 { -amount } else { 0.0 })
}

/// Fills the faces around the known ones.
fn spread<const D: usize>(
    blocks: &Blocks<D>,
    velocity: &mut [Field<f32>; D],
    scratch: &mut Scratch<D>,
    layers: usize,
) {
    let Scratch { valid, extrapolate, .. } = scratch;
    grid::lead(|| {
        for (velocity, valid) in velocity.iter_mut().zip(valid) {
            grid::extrapolate(blocks, velocity, valid, extrapolate, layers);
        }
    });
}

fn extrapolate<const D: usize>(state: &mut State<D>, scratch: &mut Scratch<D>) -> Result<(), SimError> {
    spread(&state.blocks, &mut state.velocity, scratch, LAYERS);
    let boundary = &scratch.boundary;
    pressure::stop_at_walls(&state.blocks, boundary, &state.walls, state.time, &mut state.velocity);
    state.max_component = clear_unknown(&state.blocks, &mut state.velocity, &scratch.valid);
    if state.gas.is_present() {
        let State { gas, blocks, walls, time, .. } = state;
        gas.extrapolate(blocks, &mut scratch.known, &mut scratch.extrapolate);
        pressure::stop_at_walls(blocks, &scratch.boundary, walls, *time, &mut gas.velocity);
    }
    if state.max_component.is_finite() {
        Ok(())
    } else {
        Err(SimError::NonFinite { stage: Stage::Solve, time: state.time })
    }
}

/// Zeroes the faces that no layer reached: what they hold belongs to an earlier step. Returns the largest magnitude of
/// any face velocity; not finite if any is not.
fn clear_unknown<const D: usize>(
    blocks: &Blocks<D>,
    velocity: &mut [Field<f32>; D],
    valid: &[FaceMask; D],
) -> Real {
    let mut largest = [0u32; CHUNKS];
    let velocity = velocity.each_mut().map(Field::parts);
    for_each_block_collecting(blocks.slots(), velocity, &mut largest, |slot, velocity, largest| {
        for (velocity, valid) in velocity.into_iter().zip(valid) {
            let rows = velocity.as_chunks_mut::<SIDE>().0.iter_mut();
            for (row, &bits) in rows.zip(valid.bits.block(slot)) {
                if bits == 0 {
                    *row = [0.0; SIDE];
                    continue;
                }
                let marks = masks::marks_of(bits);
                for x in 0..SIDE {
                    row[x] = if marks[x] == 0 { 0.0 } else { row[x] };
                    // Without their signs, numbers are ordered as their bits are, infinity and what is no number last.
                    *largest = (*largest).max(row[x].abs().to_bits());
                }
            }
        }
    });
    f32::from_bits(largest.into_iter().fold(0, u32::max)).into()
}

fn grid_to_particles<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>) {
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
        params.flip as f32,
        affine_cells_in_tiles(blocks, projection),
    );
}

fn transfer_to_particles<const D: usize>(
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
    let State { core: cells, particles, ranges, blocks, velocity, .. } = state;
    let settled =
        core.update(cells, particles, ranges, blocks, boundary, velocity, &layout, params.flip as f32);
    Reseeded { added: done.added + settled.added, removed: done.removed + settled.removed }
}

/// Tells the tracker which particles came and went without liquid coming or going.
fn note_particles<const D: usize>(
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
pub(super) fn layout(params: &Params, salt: u64) -> Layout {
    Layout { per_axis: params.seeds_per_axis as usize, jitter: params.jitter as f32, salt }
}

fn run_sources_and_drains<const D: usize>(
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
