//! The solver of pressure systems: their fields in and out, around conjugate gradients.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::grid::{Field, alone, block_cells, lead};
use crate::math::compiled_here;

use super::bodies::Bodies;
use super::bridges::Bridges;
use super::closed::Remove;
use super::composite::Composite;
use super::krylov::{CgInfo, ConjugateGradients, FALLBACK_SHARE, Precondition, ResidualNorm, StoppingRule};
use super::params::{Outcome, PreconditionerKind, SolveInfo, SolverParams};
use super::reference::{LevelNetwork, assemble, minimal_residuals};
use super::space::PressureSpace;
use super::system::System;
use super::uniform::Uniform;

/// Systems with fewer cells than this are solved on one thread, unless there is a team.
const WORTH_A_TEAM: usize = 24 * 1024;

/// A solver with all its working memory, to be kept from one solve to the next.
///
/// ```
/// use glug::grid::{Blocks, Field, Grid, block_cells};
/// use glug::linear::{SharedNodes, Solver, SolverParams, System};
///
/// // A square of 8 × 8 cells, linked to their neighbours; the cell in the corner is held at zero, another one is fed.
/// let blocks = Blocks::all(Grid { cells: [8, 8], dx: 1.0 });
/// let at = |cell| {
///     let (slot, local) = blocks.locate(cell);
///     slot as usize * block_cells(2) + local
/// };
/// let mut zero = Field::new(block_cells(2), 0f32);
/// zero.resize(blocks.slot_count());
/// let (mut link, mut ground) = ([zero.clone(), zero.clone()], zero.clone());
/// for (x, y) in (0..8).flat_map(|x| (0..8).map(move |y| (x, y))) {
///     link[0][at([x, y])] = if x > 0 { 1.0 } else { 0.0 };
///     link[1][at([x, y])] = if y > 0 { 1.0 } else { 0.0 };
/// }
/// ground[at([0, 0])] = 1.0;
/// let (live, shared, ground_area) = (blocks.slots(), &SharedNodes::default(), &ground.clone());
/// let (link, ground) = (&link, &ground);
/// let (materials, couplings) = (None, None);
/// let system = System { blocks: &blocks, live, link, ground, ground_area, shared, materials, couplings };
///
/// let mut rhs = Field::new(block_cells(2), 0f64);
/// rhs.resize(blocks.slot_count());
/// let mut x = rhs.clone();
/// rhs[at([7, 7])] = 1.0;
/// let params = SolverParams { tolerance: 1e-10, ..SolverParams::default() };
/// let info = Solver::new().solve(&system, None, &mut rhs, &mut x, &mut [], &mut [], &params, None);
/// // All that is fed leaves through the ground.
/// assert!(info.converged && (x[at([0, 0])] - 1.0).abs() < 1e-8, "{info:?}");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Solver<const D: usize> {
    uniform: Uniform<D>,
    /// The system at hand, if it has bodies.
    composite: Option<Box<Composite<D>>>,
    /// Of that system.
    bridges: Bridges<D>,
}

/// Iterations without a new smallest residual after which the V-cycle counts as unfit for a system.
const PATIENCE_MULTIGRID: usize = 30;
/// Iterations without a new smallest residual after which a solve between two materials restarts: a stall is no failure there. Directions are kept in single precision, and the
/// small differences in the strongly linked material vanish beside the large ones in the other. Directions begun anew
/// from a smaller residual are smaller altogether.
const PATIENCE_MATERIALS: usize = 4;
/// Iterations after which the V-cycle counts as unfit for a system in any case.
const BUDGET_MULTIGRID: usize = 100;

/// What a solve is given and does not change.
struct Task<'a, const D: usize> {
    system: &'a System<'a, D>,
    bodies: Option<&'a Bodies<'a>>,
    rhs: &'a Field<f64>,
    shared_rhs: &'a [f64],
    params: &'a SolverParams,
    stop: Option<&'a AtomicBool>,
}

/// The stopping rule of a system's solve.
fn stopping_rule<const D: usize>(system: &System<'_, D>, params: &SolverParams) -> StoppingRule {
    let &SolverParams { tolerance, floor, max_iterations, .. } = params;
    let rule = StoppingRule { tolerance, floor, max_iterations, ..StoppingRule::default() };
    let has_materials = system.materials.is_some();
    match params.preconditioner {
        PreconditionerKind::Multigrid => StoppingRule {
            patience: if has_materials { PATIENCE_MATERIALS } else { PATIENCE_MULTIGRID },
            restarts: has_materials,
            fallback_after: Some(BUDGET_MULTIGRID),
            ..rule
        },
        _ => rule,
    }
}

impl<const D: usize> Solver<D> {
    /// A solver without any memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the caches that make the set-up of a system like the last one fast.
    pub fn forget(&mut self) {
        if let Some(composite) = &mut self.composite {
            composite.forget();
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let composite = self.composite.as_ref().map_or(0, |composite| composite.bytes());
        self.uniform.bytes() + composite + self.bridges.bytes()
    }

    /// The network of a coarse level (1 is the first) of the last system that was solved with multigrid, without the bodies'
    /// term: to compare hierarchies with each other.
    pub fn level_network(&self, level: usize) -> Option<LevelNetwork<D>> {
        match &self.composite {
            Some(composite) => composite.level_network(level),
            None => self.uniform.level_network(level),
        }
    }

    /// Solves `A x = b` for the cells (`rhs`, `x`) and the shared nodes (`shared_rhs`, `shared_x`), with the response of
    /// `bodies` as part of `A` if there are any. With bodies, references other than the diagonal count as the diagonal; with
    /// couplings, so do minimal residuals.
    ///
    /// `rhs` must be zero in cells that are no unknowns; components without ground get their mean subtracted from it.
    /// `x` carries the first guess in and the answer out; it becomes zero in cells that are no unknowns. With bodies, blocks
    /// without unknowns keep what they have: most of these are inside of bodies. `stop` ends the solve after the iteration at
    /// hand.
    #[allow(clippy::too_many_arguments)]
    pub fn solve(
        &mut self,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        rhs: &mut Field<f64>,
        x: &mut Field<f64>,
        shared_rhs: &mut [f64],
        shared_x: &mut [f64],
        params: &SolverParams,
        stop: Option<&AtomicBool>,
    ) -> SolveInfo {
        solve(self, system, bodies, rhs, x, shared_rhs, shared_x, params, stop)
    }

    /// Where bodies lie beside two materials, bridges between these are shared nodes.
    #[allow(clippy::too_many_arguments)]
    fn run(
        &mut self,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        rhs: &mut Field<f64>,
        x: &mut Field<f64>,
        shared_rhs: &mut [f64],
        shared_x: &mut [f64],
        params: &SolverParams,
        stop: Option<&AtomicBool>,
    ) -> SolveInfo {
        let bodies = bodies.filter(|bodies| !bodies.list.is_empty());
        let mut bridges = std::mem::take(&mut self.bridges);
        let is_multigrid = params.preconditioner == PreconditionerKind::Multigrid;
        let has_bridges = is_multigrid && bodies.is_some_and(|bodies| bridges.find(system, bodies));
        let info = if has_bridges {
            let mut own = bridges.take(rhs, x);
            let [own_rhs, own_x] = &mut own;
            let info = self.iterate(&bridges.system(system), bodies, rhs, x, own_rhs, own_x, params, stop);
            bridges.put_back(own, rhs, x);
            info
        } else {
            self.iterate(system, bodies, rhs, x, shared_rhs, shared_x, params, stop)
        };
        self.bridges = bridges;
        info
    }

    #[allow(clippy::too_many_arguments)]
    fn iterate(
        &mut self,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        rhs: &mut Field<f64>,
        x: &mut Field<f64>,
        shared_rhs: &mut [f64],
        shared_x: &mut [f64],
        params: &SolverParams,
        stop: Option<&AtomicBool>,
    ) -> SolveInfo {
        assert_eq!(shared_rhs.len(), system.shared.len(), "one right-hand side per shared node");
        assert_eq!(shared_x.len(), system.shared.len(), "one value per shared node");
        let mut iterate = || {
            let mut info = SolveInfo::default();
            let clock = Instant::now();
            let space = self.prepare(system, bodies, params, &mut info);
            info.seconds_setup = clock.elapsed().as_secs_f64();

            let clock = Instant::now();
            let mut size = space.load_r(system, rhs, shared_rhs);
            if info.closed_components > 0 {
                space.remove(Remove::Sum, system, info.closed_components);
                space.store_r(system, rhs, shared_rhs);
                size = space.measure_r();
            }
            let task = Task { system, bodies, rhs, shared_rhs, params, stop };
            info.set_iterations(run(space, &task, size, x, shared_x));
            if info.closed_components > 0 {
                space.remove(Remove::Mean, system, info.closed_components);
            }
            space.store_x(system, x, shared_x);
            info.seconds_solve = clock.elapsed().as_secs_f64();
            info
        };
        let is_small = system.live.len() * block_cells(D) < WORTH_A_TEAM;
        match (bodies, is_small) {
            // With bodies, sweeps are not cut into blocks alone.
            (Some(_), _) => iterate(),
            (None, true) => alone(iterate),
            (None, false) => lead(iterate),
        }
    }

    /// One application of the preconditioner, `z = M r`, for tests of its symmetry. Rounds to f32.
    pub fn precondition(
        &mut self,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        r: (&Field<f64>, &[f64]),
        z: (&mut Field<f64>, &mut [f64]),
        params: &SolverParams,
    ) {
        precondition(self, system, bodies, r, z, params);
    }

    fn run_precondition(
        &mut self,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        r: (&Field<f64>, &[f64]),
        z: (&mut Field<f64>, &mut [f64]),
        params: &SolverParams,
    ) {
        let space = self.prepare(system, bodies, params, &mut SolveInfo::default());
        space.load_r(system, r.0, r.1);
        space.round_residual();
        space.precondition(Precondition::Primary);
        space.clear_x();
        space.update_direction(0.0);
        space.add_direction();
        space.store_x(system, z.0, z.1);
    }

    fn prepare(
        &mut self,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        params: &SolverParams,
        info: &mut SolveInfo,
    ) -> &mut dyn PressureSpace<D> {
        let Some(bodies) = bodies else {
            self.composite = None;
            self.uniform.build(system, params);
            self.uniform.describe(info);
            return &mut self.uniform;
        };
        let composite = self.composite.get_or_insert_default();
        composite.build(system, bodies, params);
        composite.describe(info);
        composite.as_mut()
    }
}

compiled_here! {
    fn solve<D>(
        solver: &mut Solver<D>,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        rhs: &mut Field<f64>,
        x: &mut Field<f64>,
        shared_rhs: &mut [f64],
        shared_x: &mut [f64],
        params: &SolverParams,
        stop: Option<&AtomicBool>,
    ) -> SolveInfo = Solver::run;
}

compiled_here! {
    fn precondition<D>(
        solver: &mut Solver<D>,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        r: (&Field<f64>, &[f64]),
        z: (&mut Field<f64>, &mut [f64]),
        params: &SolverParams,
    ) -> () = Solver::run_precondition;
}

/// From a right-hand side of size `b` in `r` to the answer in the space's `x`, with a first guess in `x`.
fn run<const D: usize, S: PressureSpace<D> + ?Sized>(
    space: &mut S,
    task: &Task<'_, D>,
    b: ResidualNorm,
    x: &mut Field<f64>,
    shared_x: &mut [f64],
) -> CgInfo {
    let rule = stopping_rule(task.system, task.params);
    let has_guess = task.params.warm_start;
    if has_guess {
        space.load_x(task.system, x, shared_x);
    }
    let mut set_rhs = |space: &mut S| space.reload_r(task.system, task.rhs, task.shared_rhs);
    let mut solve = ConjugateGradients::new(space, &mut set_rhs, b, &rule, task.stop);
    let has_couplings = task.system.couplings.is_some_and(|couplings| !couplings.is_empty());
    if task.params.preconditioner != PreconditionerKind::MinimalResiduals || has_couplings {
        return solve.solve(has_guess);
    }
    if solve.start(has_guess) {
        minimize_residuals(&mut solve, task, x, shared_x);
    }
    *solve.info_mut()
}

/// Solves the indefinite form, from zero. Its iterations are as cheap as those of Jacobi, and as many are allowed. `x` is
/// overwritten.
fn minimize_residuals<const D: usize, S: PressureSpace<D> + ?Sized>(
    solve: &mut ConjugateGradients<'_, S>,
    task: &Task<'_, D>,
    x: &mut Field<f64>,
    shared_x: &mut [f64],
) {
    let network = assemble(task.system);
    let mut b: Vec<f64> = network.cells.iter().map(|&cell| task.rhs[cell as usize]).collect();
    b.extend_from_slice(task.shared_rhs);
    let limit = FALLBACK_SHARE * task.params.max_iterations;
    let found = minimal_residuals::<D>(&network, task.bodies, &b, task.params, limit);
    solve.info_mut().iterations = found.iterations;
    let (values, shared) = found.x.split_at(network.cells.len());
    for (&cell, &value) in network.cells.iter().zip(values) {
        x[cell as usize] = value;
    }
    shared_x.copy_from_slice(shared);
    solve.space().load_x(task.system, x, shared_x);
    solve.conclude(Outcome::IterationLimit);
    let info = solve.info_mut();
    if info.converged {
        info.outcome = Outcome::Converged;
    }
}
