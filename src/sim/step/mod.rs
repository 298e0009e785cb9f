//! One substep, and what prepares for the first: each is a list of stages.

mod components;
mod faces;
mod particles;
mod projection;
mod smoke;
mod tiles;
mod viscosity;

use std::sync::atomic::AtomicBool;

use crate::grid;
use crate::liquid::Reseeded;
use crate::math::{Real, compiled_here};
use crate::pressure::Solved;
use crate::viscosity::Solved as Diffused;

use super::clock::StageClock;
use super::narrow_band::find_core;
use super::{Params, Scratch, SimError, Stage, StageTimes, State};
use components::{fill_components, label, measure_components, track};
use faces::extrapolate;
use particles::{
    advect, collide, grid_to_particles, make_way, note_particles, rebuild_surface, run_sources_and_drains,
    sort, transfer_to_grid, transfer_to_particles,
};
use projection::{advect_gas, find_unknowns, project};
use smoke::{carry_smoke, lift_air};
use tiles::{lay_tiles, lay_tiles_by};
use viscosity::apply_viscosity;

pub(super) use particles::layout;
pub(super) use projection::solver_params;
pub(super) use smoke::covered_share;

/// What a substep did.
#[derive(Clone, Debug)]
pub struct StepReport {
    /// Seconds simulated.
    pub dt: Real,
    /// The pressure solve.
    pub solve: Solved,
    /// The viscous step, if the liquid is viscous.
    pub viscosity: Option<Diffused>,
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
    let (dt, before) = (length.dt, state.time);
    let mut clock = StageClock::start(times);
    advect(state, params, scratch, dt);
    if state.walls.has_bodies() {
        make_way(state, before);
        // Particles meet bodies where these are now.
        scratch.boundary.update(&state.blocks, &state.walls, state.time);
    }
    collide(state, scratch);
    run_sources_and_drains(state, params, scratch, dt);
    clock.lap(Stage::Advect);

    let pass = GridPass { length, air_dt: dt, gravity: params.gravity, stop };
    let (solve, viscosity) = solve_on_grid(state, params, scratch, &mut clock, &pass)?;

    let reseeded = transfer_to_particles(state, params, scratch);
    note_particles(state, params, scratch, reseeded);
    state.steps += 1;
    clock.lap(Stage::Return);
    Ok(StepReport { dt, solve, viscosity, reseeded })
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
) -> Result<(Solved, Option<Diffused>), SimError> {
    sort(state, params, scratch);
    clock.lap(Stage::Sort);
    scratch.boundary.update(&state.blocks, &state.walls, state.time);
    clock.lap(Stage::Boundary);
    advect_gas(state, params, scratch, pass.air_dt);
    lift_air(state, params, pass);
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
    grid::lead(|| find_core(state, params, scratch));
    clock.lap(Stage::Tiles);

    let viscosity = apply_viscosity(state, params, scratch, pass);
    clock.lap(Stage::Viscosity);

    let has_tiles = scratch.projection.tiling.is_some();
    let mut finish = || {
        let solve = project(state, params, scratch, pass);
        clock.laps([
            (Stage::Assemble, solve.seconds_assemble),
            (Stage::Solve, solve.seconds_solve),
            (Stage::Extrapolate, solve.seconds_update),
        ]);
        carry_smoke(state, params, scratch, pass);
        clock.lap(Stage::Advect);
        extrapolate(state, scratch)?;
        clock.lap(Stage::Extrapolate);
        Ok(solve)
    };
    // Tiles are worked on side by side in their own way.
    let solve = if has_tiles { finish() } else { grid::lead(finish) }?;
    Ok((solve, viscosity))
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
