//! The solver of pressure systems: their fields in and out, around conjugate gradients.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::grid::Field;

use super::bodies::Bodies;
use super::closed::Remove;
use super::composite::Composite;
use super::krylov::{CgInfo, ConjugateGradients, FALLBACK_SHARE, Precondition, ResidualNorm, StoppingRule};
use super::params::{Outcome, PreconditionerKind, SolveInfo, SolverParams};
use super::reference::{LevelNetwork, assemble, minimal_residuals};
use super::space::PressureSpace;
use super::system::System;
use super::uniform::Uniform;

/// A solver with all its working memory, to be kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct Solver<const D: usize> {
    uniform: Uniform<D>,
    /// The system at hand, if it has bodies.
    composite: Option<Box<Composite<D>>>,
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
        self.uniform.bytes() + self.composite.as_ref().map_or(0, |composite| composite.bytes())
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
    /// `bodies` as part of `A` if there are any. With bodies, references other than the diagonal count as the diagonal.
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
        assert_eq!(shared_rhs.len(), system.shared.len(), "one right-hand side per shared node");
        assert_eq!(shared_x.len(), system.shared.len(), "one value per shared node");
        let mut info = SolveInfo::default();
        let clock = Instant::now();
        let bodies = bodies.filter(|bodies| !bodies.list.is_empty());
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
    if task.params.preconditioner != PreconditionerKind::MinimalResiduals {
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
