//! A simulation as its users see it: start it from a scene's content, advance it frame by frame.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::bubbles::Tracker;
use crate::geometry::{Boundary, motions};
use crate::grid::{Blocks, Field};
use crate::linear::{PreconditionerKind, SolveInfo};
use crate::liquid::{self, MOST_CELLS};
use crate::math::{Real, compiled_here};
use crate::pressure::{Projection, Roles};
use crate::smoke::Around;

use super::bodies::survey_bodies;
use super::step::{StepLength, StepReport, covered_share, layout, prepare, solver_params, substep};
use super::survey::survey;
use super::{
    BodyReport, Edit, EditError, FrameReport, FrameTimes, Params, Scratch, Setup, SolveReport, Stage,
    StageTimes, State, TileCounts, UnknownCounts,
};

/// Why a simulation cannot go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// A velocity became infinite or not a number.
    #[error("velocities became non-finite in stage `{stage}` at {time:.4} s; a smaller `cfl` may help")]
    NonFinite {
        /// Where it was noticed.
        stage: Stage,
        /// Simulated seconds.
        time: Real,
    },
    /// Nothing to simulate.
    #[error(
        "the scene holds neither liquid nor smoke: no particle fits into its liquid bodies, and it has no source"
    )]
    NoLiquid,
}

/// A running simulation.
///
/// ```no_run
/// use std::sync::atomic::AtomicBool;
///
/// use glug::scene::{AnyScene, Overrides, load};
/// use glug::sim::Simulation;
///
/// let AnyScene::TwoD(scene) = load("water_cooler_2d", &Overrides::default())? else { panic!("a scene in 2D") };
/// let mut simulation = Simulation::new(&scene.setup)?;
/// let stop = AtomicBool::new(false);
/// while let Some(report) = simulation.advance_frame(1.0 / scene.fps, &stop)? {
///     println!("{} bubbles after {:.2} s", report.bubbles.len(), report.time);
///     simulation.params.gravity *= 0.99;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Simulation<const D: usize> {
    /// Live parameters: change them between two calls.
    pub params: Params,
    state: State<D>,
    scratch: Scratch<D>,
}

/// Bytes held, by what they grow with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryReport {
    /// On the grid, solver included.
    pub grid_bytes: usize,
    /// Per particle, sorting included.
    pub particle_bytes: usize,
    /// Particles.
    pub particles: usize,
    /// Cells that are liquid or within the extrapolated layers around it.
    pub near_cells: usize,
    /// Cells of the active blocks.
    pub stored_cells: usize,
}

compiled_here! {
    fn start<D>(setup: &Setup<D>) -> Result<Simulation<D>, SimError> = run_start;
}

fn run_start<const D: usize>(setup: &Setup<D>) -> Result<Simulation<D>, SimError> {
    let mut simulation =
        Simulation { params: setup.params.clone(), state: State::new(setup), scratch: Scratch::new() };
    let layout = layout(&setup.params, 0);
    for (index, body) in setup.liquids.iter().enumerate() {
        let earlier = &setup.liquids[..index];
        let state = &mut simulation.state;
        liquid::seed(
            &mut state.particles,
            &setup.grid,
            &body.shape,
            &state.walls,
            &layout,
            |x| body.flow.at(x),
            |x| earlier.iter().any(|other| other.shape.distance(x) < 0.0),
        );
    }
    if simulation.state.particles.is_empty() && setup.sources.is_empty() && !setup.has_smoke() {
        return Err(SimError::NoLiquid);
    }
    prepare(&mut simulation.state, &simulation.params, &mut simulation.scratch)?;
    fill_with_smoke(setup, &mut simulation.state, &mut simulation.scratch);
    Ok(simulation)
}

/// Lets smoke and heat into the air, if there are to be any.
fn fill_with_smoke<const D: usize>(setup: &Setup<D>, state: &mut State<D>, scratch: &mut Scratch<D>) {
    let State { blocks, walls, smoke, .. } = state;
    if !smoke.is_present() {
        return;
    }
    let Scratch { boundary, projection, smoke: work, .. } = scratch;
    let around = Around { blocks, boundary, label: &projection.label, voxels: walls.voxels };
    smoke.fill(&around, work, |cell| {
        setup.smoke.iter().fold([0.0; 2], |[density, heat], body| {
            let share = covered_share(&body.shape, blocks, cell);
            [density + share * (body.density - density), heat + share * (body.heat - heat)]
        })
    });
}

impl<const D: usize> Simulation<D> {
    /// Seeds the liquid and makes its velocity divergence-free.
    pub fn new(setup: &Setup<D>) -> Result<Self, SimError> {
        start(setup)
    }

    /// A copy at this moment, to go its own way.
    pub fn branch(&self) -> Self {
        Simulation {
            params: self.params.clone(),
            state: self.state.clone(),
            scratch: Scratch::of(&self.state),
        }
    }

    pub(super) fn from_parts(params: Params, state: State<D>, scratch: Scratch<D>) -> Self {
        Simulation { params, state, scratch }
    }

    /// Drops all working memory, and finds anew what follows from the state. That takes time and changes nothing.
    pub fn renew_scratch(&mut self) {
        self.scratch = Scratch::of(&self.state);
    }

    /// Takes hold of a body, pulls or releases it, puts one in or takes one out, from the next substep on. What is refused changes
    /// nothing, but for the number that a body without room takes along.
    pub fn edit(&mut self, edit: &Edit) -> Result<(), EditError> {
        let State { hands, walls, blocks, time, .. } = &mut self.state;
        hands.take(edit, walls, blocks.grid(), *time)
    }

    /// The bodies of this moment.
    pub fn bodies(&self) -> Vec<BodyReport> {
        survey_bodies(&self.state.walls, &self.state.hands)
    }

    /// Advances by one frame, in as many substeps as the CFL number asks for. `None` when `stop` was set; the
    /// state is then that of the last whole substep.
    pub fn advance_frame(
        &mut self,
        frame_seconds: Real,
        stop: &AtomicBool,
    ) -> Result<Option<FrameReport>, SimError> {
        self.advance_frame_with(frame_seconds, stop, &mut |_| ())
    }

    /// Advances by one frame; before every substep `between` may change the parameters, or take its time. `None` when
    /// `stop` was set, as for [`Self::advance_frame`].
    pub fn advance_frame_with(
        &mut self,
        frame_seconds: Real,
        stop: &AtomicBool,
        between: &mut dyn FnMut(&mut Params),
    ) -> Result<Option<FrameReport>, SimError> {
        let start = Instant::now();
        let mut times = StageTimes::default();
        let mut steps: Vec<StepReport> = Vec::new();
        let mut left = frame_seconds;
        while left > 1e-9 * frame_seconds {
            between(&mut self.params);
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let longest = self.longest_dt(frame_seconds);
            let wanted = (left / longest.min(self.dt_by_speed()).min(self.dt_of_bodies())).ceil().max(1.0);
            let dt = left / wanted;
            let length = StepLength { dt, longest };
            let step = substep(&mut self.state, &self.params, &mut self.scratch, &mut times, length, stop)?;
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            steps.push(step);
            left -= dt;
        }
        self.state.frame += 1;
        Ok(Some(self.report(&steps, times, start)))
    }

    /// The longest substep that the CFL number allows with the velocities of now.
    fn dt_by_speed(&self) -> Real {
        let cells = self.params.cfl.min(MOST_CELLS);
        let speed = self.state.max_component.max(self.state.walls.max_speed(self.state.time));
        cells * self.state.blocks.grid().dx / speed.max(1e-12)
    }

    /// The longest substep, whatever the velocities of the liquid.
    fn longest_dt(&self, frame_seconds: Real) -> Real {
        let cells = self.params.cfl.min(MOST_CELLS);
        // From rest, gravity alone must not carry the liquid further than the CFL number allows either.
        let by_gravity = (2.0 * cells * self.state.blocks.grid().dx / self.params.gravity.max(1e-12)).sqrt();
        by_gravity.min(frame_seconds / self.params.min_substeps as Real)
    }

    /// The longest substep in which no body moves further than a cell: liquid could end up on its other side.
    fn dt_of_bodies(&self) -> Real {
        let State { walls, blocks, time, .. } = &self.state;
        if !walls.has_bodies() {
            return Real::INFINITY;
        }
        // It may fall faster and faster: v t + g t²/2 is a cell.
        let (dx, speed, gravity) = (blocks.grid().dx, walls.max_body_speed(*time), self.params.gravity);
        2.0 * dx / (speed + (speed * speed + 2.0 * gravity * dx).sqrt()).max(1e-12)
    }

    fn report(&mut self, steps: &[StepReport], times: StageTimes, start: Instant) -> FrameReport {
        let mut partial = std::mem::take(&mut self.scratch.partial);
        let mut report = survey(&self.state, &self.scratch, &self.params, &mut partial);
        self.scratch.partial = partial;
        report.frame = self.state.frame;
        report.substeps = steps.len();
        report.solve = steps
            .iter()
            .map(|step| SolveReport {
                iterations: step.solve.info.iterations,
                relative_residual: step.solve.info.relative_residual,
                method: self.params.preconditioner.method(step.solve.info.fallback),
                seconds: step.solve.seconds_solve,
                rounds: step.solve.rounds,
                loose: step.solve.loose,
                converged: step.solve.info.converged,
            })
            .collect();
        report.viscosity = steps
            .iter()
            .filter_map(|step| step.viscosity)
            .map(|diffused| SolveReport {
                iterations: diffused.info.iterations,
                relative_residual: diffused.info.relative_residual,
                method: PreconditionerKind::Multigrid.method(diffused.info.fallback),
                seconds: diffused.seconds,
                rounds: 1,
                loose: 0,
                converged: diffused.info.converged,
            })
            .collect();
        report.unknowns = UnknownCounts {
            pressure: steps.last().map_or(0, |step| step.solve.unknowns),
            bubble: steps.last().map_or(0, |step| step.solve.bubbles),
            body: steps.last().map_or(0, |step| step.solve.tiles * (D + D * D - 1))
                + self.state.walls.bodies(self.state.time).count() * motions(D),
        };
        report.tiles = steps.last().map_or(TileCounts::default(), |step| TileCounts {
            count: step.solve.tiles,
            cells: step.solve.tile_cells,
        });
        let failed = steps.iter().filter(|step| !step.solve.info.converged).count();
        if failed > 0 {
            report.warnings.push(format!("{failed} of {} pressure solves missed the tolerance", steps.len()));
        }
        let failed = report.viscosity.iter().filter(|solve| !solve.converged).count();
        if failed > 0 {
            report
                .warnings
                .push(format!("{failed} of {} viscosity solves missed the tolerance", steps.len()));
        }
        if report.smoke.is_some() && !self.params.model.has_gas() {
            let model = self.params.model.name();
            report.warnings.push(format!("smoke stands still: air weighs nothing in the model {model}"));
        }
        let history = self.state.tracker.history();
        report.events = history.since(self.state.events_reported).copied().collect();
        self.state.events_reported = history.total();
        let fell_back = steps.iter().filter(|step| step.solve.info.fallback).count();
        if fell_back > 0 {
            report.warnings.push(format!(
                "multigrid failed in {fell_back} of {} pressure solves; the diagonal took over",
                steps.len()
            ));
        }
        report.seconds = FrameTimes { total: start.elapsed().as_secs_f64(), stages: times };
        report
    }

    /// The statistics of this moment, without those of a frame.
    pub fn survey(&mut self) -> FrameReport {
        self.report(&[], StageTimes::default(), Instant::now())
    }

    /// What the projection's scaled pressure is to be multiplied by, Pa; zero before the first substep.
    pub fn pascal_per_q(&self) -> Real {
        let dx = self.state.blocks.grid().dx;
        let dt = self.state.last_dt;
        if dt > 0.0 { self.params.density * dx / dt } else { 0.0 }
    }

    /// The active part of the grid.
    pub fn blocks(&self) -> &Blocks<D> {
        &self.state.blocks
    }

    /// The liquid's signed distance at cell centres, metres, negative inside.
    pub fn surface(&self) -> &Field<f32> {
        &self.state.surface
    }

    /// Particle positions, in cells; a particle about to vanish is not a number.
    pub fn particle_positions(&self) -> &[[f32; D]] {
        &self.state.particles.position
    }

    /// Particle velocities, m/s.
    pub fn particle_velocities(&self) -> &[[f32; D]] {
        &self.state.particles.velocity
    }

    /// Frames so far.
    pub fn frame(&self) -> usize {
        self.state.frame
    }

    /// Simulated seconds.
    pub fn time(&self) -> Real {
        self.state.time
    }

    /// The walls on the grid.
    pub fn boundary(&self) -> &Boundary<D> {
        &self.scratch.boundary
    }

    /// Components of air and liquid.
    pub fn air(&self) -> &super::Air<D> {
        &self.scratch.air
    }

    /// Who the components are, from step to step.
    pub fn tracker(&self) -> &Tracker {
        &self.state.tracker
    }

    /// What they were to the last projection.
    pub fn roles(&self) -> Roles<'_> {
        self.state.component_roles.roles(&self.scratch.air.components)
    }

    /// The last projection: labels, tiles, matrix.
    pub fn projection(&self) -> &Projection<D> {
        &self.scratch.projection
    }

    /// Solves the last projection's system again, from zero, with a preconditioner of choice and to the relative
    /// tolerance alone; the account has the median times of `repeats` solves.
    pub fn solve_again(
        &self,
        preconditioner: PreconditionerKind,
        repeats: usize,
    ) -> (SolveInfo, Field<f64>, Vec<f64>) {
        let params =
            Params { preconditioner, tolerance_floor: 0.0, max_iterations: 100_000, ..self.params.clone() };
        let solver = solver_params(&params, self.state.blocks.grid().dx, self.state.last_dt.max(1e-9));
        self.scratch.projection.solve_afresh(&self.state.blocks, &solver, repeats)
    }

    /// The whole state.
    pub fn state(&self) -> &State<D> {
        &self.state
    }

    /// Memory in use.
    pub fn memory(&self) -> MemoryReport {
        let State { particles, blocks, .. } = &self.state;
        let near_cells = blocks
            .slots()
            .as_slice()
            .iter()
            .flat_map(|&slot| self.scratch.valid[0].bits.block(slot as usize))
            .map(|bits| bits.count_ones() as usize)
            .sum();
        MemoryReport {
            grid_bytes: self.state.grid_bytes() + self.scratch.grid_bytes(),
            particle_bytes: self.state.particle_bytes() + self.scratch.sorter.bytes(),
            particles: particles.len(),
            near_cells,
            stored_cells: blocks.slots().len() * crate::grid::block_cells(D),
        }
    }
}
