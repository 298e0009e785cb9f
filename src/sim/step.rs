//! One substep.

use std::sync::atomic::AtomicBool;

use crate::geometry::{Shape, label_cells};
use crate::grid::{Blocks, Field, SIDE, Slots, for_each_block, sum_over_blocks};
use crate::linear::{PreconditionerKind, SolverParams};
use crate::liquid::{self, Bounds, FaceMask, Layout, Reseeded};
use crate::math::{Real, Vector};
use crate::pressure::{self, Problem, Solved};
use crate::regions::{Division, Ground, TileRules, TileSize};

use super::air::Surroundings;
use super::clock::StageClock;
use super::even::{even_in_middle, even_in_tiles};
use super::gas::advect_gas;
use super::{
    AirSource, Drain, Model, Params, Preconditioner, Scratch, SimError, Source, Stage, StageTimes, State,
};

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

/// Moves the liquid forward by one substep of `dt` seconds.
pub fn substep<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    times: &mut StageTimes,
    dt: Real,
    stop: &AtomicBool,
) -> Result<StepReport, SimError> {
    let mut clock = StageClock::start(times);
    advect(state, params, scratch, dt);
    let ranges = &state.sorter.ranges;
    liquid::collide(&mut state.particles, ranges, &state.blocks, &state.boundary, &state.walls, state.time);
    run_sources_and_drains(state, params, dt);
    clock.lap(Stage::Advect);

    let pass = GridPass { dt, air_dt: dt, gravity: params.gravity, stop };
    let solve = solve_on_grid(state, params, scratch, &mut clock, &pass)?;

    let reseeded = transfer_to_particles(state, params, scratch);
    let State { air, particles, hollow, .. } = state;
    air.tracker.note_reseeded(particles, reseeded.added, reseeded.removed);
    air.note_hollow(hollow, layout(params, 0).per_cell(D));
    state.steps += 1;
    clock.lap(Stage::Return);
    Ok(StepReport { dt, solve, reseeded })
}

/// Brings a freshly seeded state to where a substep starts: sorted, with a velocity field that is divergence-free.
pub fn prepare<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
) -> Result<(), SimError> {
    let (mut times, stop) = (StageTimes::default(), AtomicBool::new(false));
    let pass = GridPass { dt: 1.0, air_dt: 0.0, gravity: 0.0, stop: &stop };
    solve_on_grid(state, params, scratch, &mut StageClock::start(&mut times), &pass)?;
    // That pressure belongs to no step: the first real solve starts from none.
    state.projection.forget_pressure();
    state.air.forget_pressures();
    grid_to_particles(state, params, scratch);
    Ok(())
}

/// What the stages on the grid are to do.
struct GridPass<'a> {
    /// Seconds that the projection is for.
    dt: Real,
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
    state.boundary.update(&state.blocks, &state.walls, state.time);
    clock.lap(Stage::Boundary);
    advect_gas(state, params, scratch, pass.air_dt);
    clock.lap(Stage::Advect);
    transfer_to_grid(state, scratch);
    clock.lap(Stage::Transfer);
    rebuild_surface(state, params, scratch);
    clock.lap(Stage::Surface);
    label(state);
    clock.lap(Stage::Label);
    fill_regions(state);
    clock.lap(Stage::Fill);
    track(state, params, pass.dt);
    clock.lap(Stage::Track);
    find_unknowns(state);
    lay_tiles(state, params, scratch);
    clock.lap(Stage::Tiles);

    let solve = project(state, params, scratch, pass);
    clock.laps([
        (Stage::Assemble, solve.seconds_assemble),
        (Stage::Solve, solve.seconds_solve),
        (Stage::Extrapolate, solve.seconds_update),
    ]);
    extrapolate(state, scratch)?;
    clock.lap(Stage::Extrapolate);
    Ok(solve)
}

/// Drops dead particles, stores the blocks that liquid, walls and air need, and sorts particles by cell.
fn sort<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>) {
    let State { air, blocks, walls, sorter, particles, hollow, time, .. } = state;
    air.wall_blocks.update(blocks, walls, *time);
    scratch.hollow.list_needed(blocks, air.wall_blocks.needed(params.model.has_gas()));
    sorter.sort(particles, blocks, walls, &scratch.hollow.needed, *time);
    hollow.note_sorted();
}

/// Moves the particles with the velocity of the substep's middle. Afterwards `velocity` is free for the new one.
fn advect<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>, dt: Real) {
    let State { particles, sorter, blocks, velocity, earlier, hollow, projection, .. } = state;
    let share = if state.last_dt > 0.0 { 0.5 * dt / state.last_dt } else { 0.0 };
    // Twice what gravity does in half a substep, and never further than velocities are known.
    let room = liquid::MARGIN_CELLS as Real * blocks.grid().dx / dt - state.max_component;
    let most = (params.gravity * dt).min(room).max(0.0);
    liquid::look_ahead(blocks, velocity, earlier, share as f32, most as f32);
    let even = even_in_middle(blocks, projection, earlier, share, dt, &mut scratch.even);
    liquid::advect(particles, &sorter.ranges, blocks, earlier, dt, even);
    liquid::advect_born(particles, hollow, blocks, earlier, dt);
    scratch.hollow.carry(hollow, blocks, velocity, earlier, dt);
    std::mem::swap(velocity, earlier);
    state.last_dt = dt;
    state.time += dt;
}

fn transfer_to_grid<const D: usize>(state: &mut State<D>, scratch: &mut Scratch<D>) {
    let slots = state.blocks.slot_count();
    state.velocity.iter_mut().for_each(|field| field.resize(slots));
    for field in &mut state.earlier {
        field.resize(slots);
        state.blocks.fresh().iter().for_each(|&slot| field.block_mut(slot as usize).fill(0.0));
    }
    scratch.resize(slots);
    liquid::particles_to_grid(
        &state.particles,
        &state.sorter.ranges,
        &state.blocks,
        &mut state.velocity,
        &mut scratch.before,
        &mut scratch.valid,
        &mut scratch.slots,
    );
    scratch.hollow.give(&mut state.velocity, &mut scratch.valid);
    // The surface may reach past the last particle's faces: give those their neighbours' velocity.
    spread(&state.blocks, &mut state.velocity, scratch, 2);
    let (before, velocity) = (scratch.before.each_mut().map(Field::parts), &state.velocity);
    for_each_block(state.blocks.slots(), before, |slot, before| {
        before.into_iter().zip(velocity).for_each(|(before, now)| before.copy_from_slice(now.block(slot)));
    });
}

fn rebuild_surface<const D: usize>(state: &mut State<D>, params: &Params, scratch: &Scratch<D>) {
    liquid::rebuild_surface(
        &state.particles,
        &state.sorter.ranges,
        &state.blocks,
        &state.boundary,
        &mut state.surface,
        &mut state.surface_scratch,
        layout(params, 0).per_cell(D),
        &scratch.hollow.moved,
    );
}

fn label<const D: usize>(state: &mut State<D>) {
    let State { blocks, boundary, projection, surface, .. } = state;
    let pressure::Projection { label, live, settled, .. } = projection;
    label_cells(blocks, boundary, surface, label, live, settled);
}

/// Finds the connected regions of air and liquid.
fn fill_regions<const D: usize>(state: &mut State<D>) {
    let State { air, blocks, boundary, walls, projection, surface, time, .. } = state;
    air.fill(&Surroundings::new(blocks, boundary, walls, projection, surface, *time));
}

/// Knows the regions again, and decides which volumes to correct.
fn track<const D: usize>(state: &mut State<D>, params: &Params, dt: Real) {
    let State { air, blocks, boundary, walls, projection, surface, sorter, air_sources, time, .. } = state;
    let around = Surroundings::new(blocks, boundary, walls, projection, surface, *time);
    air.track(&around, &sorter.ranges, sorter.origin(), air_sources, params, dt);
}

/// Finds the cells that have a pressure.
fn find_unknowns<const D: usize>(state: &mut State<D>) {
    let State { blocks, projection, air, .. } = state;
    pressure::find_unknowns(blocks, &air.roles(), projection);
}

/// Decides which parts of the fluids move as a whole.
fn lay_tiles<const D: usize>(state: &mut State<D>, params: &Params, scratch: &mut Scratch<D>) {
    let target = &mut scratch.hollow.target;
    target.clear();
    let State { blocks, boundary, projection, air, .. } = state;
    let (liquid, gas) = (tiles_in_liquid(params), tiles_in_gas(params));
    if liquid.is_none() && gas.is_none() {
        projection.tiling = None;
        return;
    }
    let pressure::Projection { label, live, gas: gas_cells, tiling, .. } = projection;
    let (tiling, ground) = (tiling.get_or_insert_default(), Ground { blocks, boundary, live });
    tiling.clear(blocks);
    if let Some(rules) = liquid {
        tiling.add_liquid(&ground, label, &rules);
        if params.reduced_advection {
            tiling.find_core(blocks, liquid::HOLLOW_DEPTH, target);
            let shapes = shapes_with_traffic(&state.sources, &state.drains, &state.air_sources);
            target.retain(blocks, |slot| is_far_from(blocks, slot, &shapes));
        }
    }
    if let Some(rules) = gas.filter(|_| air.roles().has_gas()) {
        tiling.add_gas(&ground, label, gas_cells, &rules);
    }
    air.ask_outside(tiling);
}

/// The shapes in which liquid comes or goes: there it needs its particles.
fn shapes_with_traffic<'a, const D: usize>(
    sources: &'a [Source<D>],
    drains: &'a [Drain<D>],
    air_sources: &'a [AirSource<D>],
) -> Vec<&'a Shape<D>> {
    let sources = sources.iter().map(|source| &source.shape);
    let drains = drains.iter().map(|drain| &drain.shape);
    sources.chain(drains).chain(air_sources.iter().map(|source| &source.shape)).collect()
}

/// Whether nothing of a block can get into one of the shapes in a substep.
fn is_far_from<const D: usize>(blocks: &Blocks<D>, slot: usize, shapes: &[&Shape<D>]) -> bool {
    let (half, dx) = (0.5 * SIDE as Real, blocks.grid().dx);
    let first = blocks.first_cell(slot);
    let centre = Vector::from_fn(|k, _| (first[k] as Real + half) * dx);
    let near = (half + liquid::HOLLOW_DEPTH as Real) * (D as Real).sqrt() * dx;
    shapes.iter().all(|shape| shape.distance(&centre) > near)
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
    let &GridPass { dt, gravity, stop, .. } = pass;
    let solver = solver_params(params, state.blocks.grid().dx, dt);
    let State { blocks, boundary, walls, surface, velocity, projection, air, gas, time, .. } = state;
    let problem = Problem {
        blocks,
        boundary,
        walls,
        surface,
        impulse: downward(gravity * dt),
        roles: air.roles(),
        time: *time,
    };
    let (has_gas, valid) = (problem.roles.has_gas(), &mut scratch.valid);
    if has_gas {
        pressure::mix_velocities(&problem, projection, &gas.velocity, velocity);
    }
    let solved = pressure::project(velocity, valid, &problem, &solver, projection, dt, Some(stop));
    if has_gas {
        pressure::separate_velocities(&problem, projection, velocity, valid, &mut gas.velocity);
    }
    air.note_pressures(blocks, projection);
    solved
}

/// What the parameters mean to the linear solver in a substep of `dt` seconds.
pub(super) fn solver_params(params: &Params, dx: Real, dt: Real) -> SolverParams {
    SolverParams {
        tolerance: params.tolerance,
        // The residual is a net outflow in m/s; over dx and times dt it is the compression in this substep.
        floor: params.tolerance_floor * dx / dt,
        max_iterations: params.max_iterations as usize,
        preconditioner: match params.preconditioner {
            Preconditioner::Multigrid => PreconditionerKind::Multigrid,
            Preconditioner::Jacobi => PreconditionerKind::Jacobi,
            Preconditioner::IncompleteCholesky => PreconditionerKind::IncompleteCholesky,
            Preconditioner::BubblePalindrome => PreconditionerKind::BubblePalindrome,
            Preconditioner::MinimalResiduals => PreconditionerKind::MinimalResiduals,
        },
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
    for (velocity, valid) in velocity.iter_mut().zip(valid) {
        liquid::extrapolate(blocks, velocity, valid, extrapolate, layers);
    }
}

fn extrapolate<const D: usize>(state: &mut State<D>, scratch: &mut Scratch<D>) -> Result<(), SimError> {
    spread(&state.blocks, &mut state.velocity, scratch, LAYERS);
    pressure::stop_at_walls(&state.blocks, &state.boundary, &state.walls, state.time, &mut state.velocity);
    clear_unknown(&state.blocks, &mut state.velocity, &scratch.valid);
    state.max_component = largest(state.blocks.slots(), &state.velocity, &mut scratch.partial);
    if state.gas.is_present() {
        let State { gas, blocks, boundary, walls, time, .. } = state;
        gas.spread(blocks, &mut scratch.known, &mut scratch.extrapolate);
        pressure::stop_at_walls(blocks, boundary, walls, *time, &mut gas.velocity);
    }
    if state.max_component.is_finite() {
        Ok(())
    } else {
        Err(SimError::NonFinite { stage: Stage::Solve, time: state.time })
    }
}

/// Zeroes the faces that no layer reached: what they hold belongs to an earlier step.
fn clear_unknown<const D: usize>(blocks: &Blocks<D>, velocity: &mut [Field<f32>; D], valid: &[FaceMask; D]) {
    for (velocity, valid) in velocity.iter_mut().zip(valid) {
        for_each_block(blocks.slots(), velocity.parts(), |slot, velocity| {
            for (row, &bits) in velocity.chunks_exact_mut(SIDE).zip(valid.bits.block(slot)) {
                if bits != 0xff {
                    row.iter_mut()
                        .enumerate()
                        .filter(|(x, _)| bits & (1 << x) == 0)
                        .for_each(|(_, u)| *u = 0.0);
                }
            }
        });
    }
}

/// Largest magnitude of any face velocity; not finite if any is not.
fn largest<const D: usize>(slots: &Slots, velocity: &[Field<f32>; D], partial: &mut Vec<f64>) -> Real {
    sum_over_blocks(slots, partial, |slot| {
        // Without their signs, numbers are ordered as their bits are, infinity and what is no number last.
        let largest = |most: u32, u: &f32| most.max(u.abs().to_bits());
        let most = velocity.iter().fold(0, |most, field| field.block(slot).iter().fold(most, largest));
        f32::from_bits(most) as f64
    });
    partial.iter().fold(0.0, |most, &block| if block <= most { most } else { block })
}

fn grid_to_particles<const D: usize>(state: &mut State<D>, params: &Params, scratch: &Scratch<D>) {
    let State { particles, sorter, blocks, velocity, projection, .. } = state;
    if let Some(tiling) = &mut projection.tiling {
        tiling.find_interior(blocks);
    }
    liquid::grid_to_particles(
        particles,
        &sorter.ranges,
        blocks,
        velocity,
        &scratch.before,
        params.flip as f32,
        even_in_tiles(blocks, projection),
    );
}

fn transfer_to_particles<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
) -> Reseeded {
    grid_to_particles(state, params, scratch);
    let ranges = &state.sorter.ranges;
    let Scratch { hollow, flags, .. } = scratch;
    let layout = layout(params, state.steps);
    let mut done = Reseeded::default();
    if params.reseed {
        hollow.leave_out(&mut state.surface_scratch.deep);
        done = liquid::reseed(
            &mut state.particles,
            ranges,
            &state.blocks,
            &state.velocity,
            &state.boundary,
            &state.surface_scratch.deep,
            Bounds::around(layout.per_cell(D)),
            state.steps,
            flags,
        );
    }
    let State { hollow: cells, particles, blocks, velocity, .. } = state;
    let settled = hollow.settle(cells, particles, ranges, blocks, velocity, &layout, params.flip as f32);
    Reseeded { added: done.added + settled.added, removed: done.removed + settled.removed }
}

/// How new particles are laid out.
pub(super) fn layout(params: &Params, salt: u64) -> Layout {
    Layout { per_axis: params.seeds_per_axis as usize, jitter: params.jitter as f32, salt }
}

fn run_sources_and_drains<const D: usize>(state: &mut State<D>, params: &Params, dt: Real) {
    let (time, layout) = (state.time, layout(params, state.steps));
    for source in state.air_sources.iter().filter(|source| source.is_due(time, dt)) {
        // The liquid makes way but is not lost: its volume stays on the books and comes back as a slight expansion.
        if liquid::drain(&mut state.particles, state.blocks.grid(), &source.shape) > 0 {
            state.air.tracker.forget_removed(&state.particles);
        }
    }
    // A source holds its liquid's velocity through the substep: what gravity will add is taken away beforehand.
    let fall = Vector::from(downward::<D>(params.gravity * dt));
    for source in state.sources.iter().filter(|source| (source.from..source.until).contains(&time)) {
        liquid::emit(
            &mut state.particles,
            &state.sorter.ranges,
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
