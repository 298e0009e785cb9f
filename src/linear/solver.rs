//! Preconditioned conjugate gradients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::grid::Field;

use super::bodies::Bodies;
use super::closed::Remove;
use super::composite::Composite;
use super::kernels::Size;
use super::params::{Outcome, PreconditionerKind, SolveInfo, SolverParams};
use super::plain::Plain;
use super::reference::{assemble, minimal_residuals};
use super::space::Space;
use super::system::System;

/// A solver with all its working memory, to be kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct Solver<const D: usize> {
    plain: Plain<D>,
    /// The system at hand, if it has bodies.
    composite: Option<Box<Composite<D>>>,
}

/// Iterations without a new smallest residual after which a solve counts as stalled.
const PATIENCE_MULTIGRID: usize = 30;
const PATIENCE_REFERENCE: usize = 1000;
/// The same between two materials, where a stall is no failure yet. Directions are kept in single precision, and the
/// small differences in the strongly linked material vanish beside the large ones in the other. Directions begun anew
/// from a smaller residual are smaller altogether.
const PATIENCE_MATERIALS: usize = 4;
/// Iterations after which the V-cycle counts as unfit for a system.
const BUDGET_MULTIGRID: usize = 100;

/// The diagonal is given so many times the iterations that were asked for: each is cheap, but many are needed.
const FALLBACK_SHARE: usize = 10;

/// The true residual may miss the tolerance by this much: rounding, not worth another iteration.
const SLACK: f64 = 1.01;

/// What a solve is given and does not change.
struct Task<'a, const D: usize> {
    system: &'a System<'a, D>,
    bodies: Option<&'a Bodies<'a>>,
    rhs: &'a Field<f64>,
    shared_rhs: &'a [f64],
    params: &'a SolverParams,
    stop: Option<&'a AtomicBool>,
}

/// What has to be reached.
struct Goal {
    norm: f64,
    residual: f64,
    floor: f64,
    /// A power of two, so that rounding to f32 neither overflows nor loses small right-hand sides.
    scale: f64,
}

impl Goal {
    fn met(&self, size: Size, slack: f64) -> bool {
        size.square.sqrt() <= self.residual * slack || size.max <= self.floor
    }
}

impl<const D: usize> Solver<D> {
    /// A solver that has not seen a system yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the next set-up as long as if no system like that one had been seen before.
    pub fn forget(&mut self) {
        if let Some(composite) = &mut self.composite {
            composite.forget();
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.plain.bytes() + self.composite.as_ref().map_or(0, |composite| composite.bytes())
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
        run(space, &task, size, x, shared_x, &mut info);
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
        space.round_residual(1.0);
        space.precondition(params.preconditioner, params.sweeps);
        space.clear_x();
        space.redirect(0.0);
        space.take_direction();
        space.store_x(system, z.0, z.1);
    }

    fn prepare(
        &mut self,
        system: &System<'_, D>,
        bodies: Option<&Bodies<'_>>,
        params: &SolverParams,
        info: &mut SolveInfo,
    ) -> &mut dyn Space<D> {
        let Some(bodies) = bodies else {
            self.composite = None;
            self.plain.build(system, params.preconditioner);
            self.plain.describe(info);
            return &mut self.plain;
        };
        let composite = self.composite.get_or_insert_default();
        composite.build(system, bodies, params.preconditioner == PreconditionerKind::Multigrid);
        composite.describe(info);
        composite.as_mut()
    }
}

/// From a right-hand side of size `b` in `r` to the answer in the space's `x`, with a first guess in `x`.
fn run<const D: usize>(
    space: &mut dyn Space<D>,
    task: &Task<'_, D>,
    b: Size,
    x: &mut Field<f64>,
    shared_x: &mut [f64],
    info: &mut SolveInfo,
) {
    let norm = b.square.sqrt();
    space.clear_x();
    if norm == 0.0 {
        return;
    }
    if !norm.is_finite() {
        info.outcome = Outcome::NonFinite;
        info.converged = false;
        info.relative_residual = f64::NAN;
        return;
    }
    let scale = (-norm.log2().round()).exp2();
    let goal = Goal { norm, residual: task.params.tolerance * norm, floor: task.params.floor, scale };
    let mut size = b;
    let warm = task.params.warm_start && {
        space.load_x(task.system, x, shared_x);
        size = space.subtract_product(scale);
        // A guess worse than none, or not a number, is dropped.
        size.square < b.square
    };
    if !warm {
        if task.params.warm_start {
            space.reload_r(task.system, task.rhs, task.shared_rhs);
            size = b;
        }
        space.clear_x();
        space.round_residual(scale);
    }
    if goal.met(size, 1.0) {
        info.relative_residual = size.square.sqrt() / norm;
        return;
    }
    info.converged = false;
    let max = task.params.max_iterations;
    match task.params.preconditioner {
        PreconditionerKind::MinimalResiduals => minimize_residuals(space, task, &goal, x, shared_x, info),
        PreconditionerKind::Multigrid => {
            let limit = max.min(BUDGET_MULTIGRID);
            if iterate(space, task, &goal, PreconditionerKind::Multigrid, limit, info)
                && (info.outcome != Outcome::IterationLimit || info.iterations < max)
            {
                fall_back(space, task, &goal, info);
            }
        }
        kind => {
            iterate(space, task, &goal, kind, max, info);
        }
    }
}

/// Solves the indefinite form, from zero. Its iterations are as cheap as those of the diagonal, and as many are
/// allowed. `x` is overwritten.
fn minimize_residuals<const D: usize>(
    space: &mut dyn Space<D>,
    task: &Task<'_, D>,
    goal: &Goal,
    x: &mut Field<f64>,
    shared_x: &mut [f64],
    info: &mut SolveInfo,
) {
    let network = assemble(task.system);
    let mut b: Vec<f64> = network.cells.iter().map(|&cell| task.rhs[cell as usize]).collect();
    b.extend_from_slice(task.shared_rhs);
    let limit = FALLBACK_SHARE * task.params.max_iterations;
    let found = minimal_residuals::<D>(&network, task.bodies, &b, task.params, limit);
    info.iterations = found.iterations;
    let (values, shared) = found.x.split_at(network.cells.len());
    for (&cell, &value) in network.cells.iter().zip(values) {
        x[cell as usize] = value;
    }
    shared_x.copy_from_slice(shared);
    space.load_x(task.system, x, shared_x);
    let left = true_residual(space, task, goal.scale);
    info.relative_residual = left.square.sqrt() / goal.norm;
    info.converged = goal.met(left, SLACK);
    info.outcome = match info.converged {
        true => Outcome::Converged,
        false if !left.square.is_finite() => Outcome::NonFinite,
        false => Outcome::IterationLimit,
    };
    if info.outcome == Outcome::NonFinite {
        space.clear_x();
    }
}

/// Goes on with the diagonal, from where another preconditioner failed.
fn fall_back<const D: usize>(
    space: &mut dyn Space<D>,
    task: &Task<'_, D>,
    goal: &Goal,
    info: &mut SolveInfo,
) {
    info.fallback = true;
    let at_hand = info.relative_residual;
    if !at_hand.is_finite() || at_hand >= 1.0 {
        // No better than nothing.
        space.clear_x();
        space.reload_r(task.system, task.rhs, task.shared_rhs);
        space.round_residual(goal.scale);
    }
    let limit = info.iterations + FALLBACK_SHARE * task.params.max_iterations;
    iterate(space, task, goal, PreconditionerKind::Jacobi, limit, info);
}

/// Iterates until `info` counts `limit` iterations, from `x` and its residual `r`; ends with the true residual in
/// `r`. Returns whether another preconditioner may do better.
fn iterate<const D: usize>(
    space: &mut dyn Space<D>,
    task: &Task<'_, D>,
    goal: &Goal,
    kind: PreconditionerKind,
    limit: usize,
    info: &mut SolveInfo,
) -> bool {
    let scale = goal.scale;
    let (patience, begins_anew) = match kind {
        PreconditionerKind::Multigrid if task.system.materials.is_some() => (PATIENCE_MATERIALS, true),
        PreconditionerKind::Multigrid => (PATIENCE_MULTIGRID, false),
        _ => (PATIENCE_REFERENCE, false),
    };
    let (mut previous, mut best, mut since_best) = (0.0, f64::INFINITY, 0);
    let mut true_before = f64::INFINITY;
    info.outcome = Outcome::IterationLimit;
    while info.iterations < limit {
        if task.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            info.outcome = Outcome::Stopped;
            break;
        }
        let rho = space.precondition(kind, task.params.sweeps) / scale;
        let beta = if previous == 0.0 { 0.0 } else { rho / previous };
        previous = rho;
        space.redirect(beta);
        let energy = space.energy();
        if !(rho.is_finite() && energy.is_finite()) {
            info.outcome = Outcome::NonFinite;
            break;
        }
        if rho <= 0.0 || energy <= 0.0 {
            info.outcome = Outcome::Stalled;
            break;
        }
        let size = space.step(rho / energy, scale);
        info.iterations += 1;
        if !size.square.is_finite() {
            info.outcome = Outcome::NonFinite;
            break;
        }
        if goal.met(size, 1.0) {
            let found = true_residual(space, task, scale);
            info.relative_residual = found.square.sqrt() / goal.norm;
            if goal.met(found, SLACK) {
                info.outcome = Outcome::Converged;
                info.converged = true;
                return false;
            }
            if found.square.sqrt() > 0.5 * true_before {
                // The limit of f64, whatever the preconditioner.
                info.outcome = Outcome::Stalled;
                return false;
            }
            // Rounding made the running residual drift: go on from the true one.
            true_before = found.square.sqrt();
            (previous, best, since_best) = (0.0, f64::INFINITY, 0);
            continue;
        }
        if size.square < best {
            (best, since_best) = (size.square, 0);
        } else {
            since_best += 1;
            if since_best > patience {
                let found = if begins_anew { true_residual(space, task, scale).square.sqrt() } else { 0.0 };
                if begins_anew && found < 0.5 * true_before {
                    true_before = found;
                    (previous, best, since_best) = (0.0, f64::INFINITY, 0);
                    continue;
                }
                info.outcome = Outcome::Stalled;
                break;
            }
        }
    }
    let found = true_residual(space, task, scale);
    info.relative_residual = found.square.sqrt() / goal.norm;
    info.converged = goal.met(found, SLACK);
    if !found.square.is_finite() {
        info.outcome = Outcome::NonFinite;
        space.clear_x();
    }
    !info.converged && info.outcome != Outcome::Stopped
}

/// Sets `r` to `b − A x`.
fn true_residual<const D: usize>(space: &mut dyn Space<D>, task: &Task<'_, D>, scale: f64) -> Size {
    space.reload_r(task.system, task.rhs, task.shared_rhs);
    space.subtract_product(scale)
}
