//! Preconditioned conjugate gradients.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::grid::{Field, block_cells};

use super::assemble::assemble;
use super::closed::{Means, Remove};
use super::composite::{Bodies, Composite, minimal_residuals};
use super::explicit::paired_index;
use super::hierarchy::Hierarchy;
use super::incomplete::IncompleteCholesky;
use super::kernels::Size;
use super::layout::Node;
use super::operator::{Vectors, scatter};
use super::palindrome::Palindrome;
use super::params::{Outcome, PreconditionerKind, SolveInfo, SolverParams};
use super::system::System;

/// A solver with all its working memory, to be kept from one solve to the next.
#[derive(Clone, Debug, Default)]
pub struct Solver<const D: usize> {
    hierarchy: Hierarchy<D>,
    vectors: Vectors,
    means: Means,
    incomplete: IncompleteCholesky,
    palindrome: Palindrome<D>,
    /// The bodies of the system at hand, if it has any.
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

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.hierarchy.bytes()
            + self.vectors.bytes()
            + self.incomplete.bytes()
            + self.palindrome.bytes()
            + self.composite.as_ref().map_or(0, |composite| composite.bytes())
    }

    /// Solves `A x = b` for the cells (`rhs`, `x`) and the shared nodes (`shared_rhs`, `shared_x`), with the response of
    /// `bodies` as part of `A` if there are any. With bodies, references other than the diagonal count as the diagonal.
    ///
    /// `rhs` must be zero in cells that are no unknowns; components without ground get their mean subtracted from it.
    /// `x` carries the first guess in and the answer out; it becomes zero in cells that are no unknowns. `stop` ends the
    /// solve after the iteration at hand.
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
        self.prepare(system, bodies, params);
        match self.composite.as_ref() {
            None => self.hierarchy.describe(&mut info),
            Some(composite) => composite.describe(&self.hierarchy, &mut info),
        }
        info.seconds_setup = clock.elapsed().as_secs_f64();

        let clock = Instant::now();
        let mut size = self.vectors.load_r(rhs, system.live, shared_rhs, self.hierarchy.finest());
        if info.closed_components > 0 {
            self.remove(Remove::Sum, system, info.closed_components);
            let hierarchy = &self.hierarchy;
            scatter(&self.vectors.r, system.live, hierarchy.block_of(), hierarchy.finest(), rhs);
            for (node, (rhs, &r)) in shared_rhs.iter_mut().zip(&self.vectors.shared_r).enumerate() {
                *rhs = if self.hierarchy.finest().explicit.diagonal[node] > 0.0 { r } else { *rhs };
            }
            size = self.vectors.load_r(rhs, system.live, shared_rhs, self.hierarchy.finest());
        }
        let task = Task { system, bodies, rhs, shared_rhs, params, stop };
        self.run(&task, size, x, shared_x, &mut info);
        self.vectors.settle_x();
        if info.closed_components > 0 {
            self.remove(Remove::Mean, system, info.closed_components);
        }
        let hierarchy = &self.hierarchy;
        scatter(&self.vectors.x, system.blocks.slots(), hierarchy.block_of(), hierarchy.finest(), x);
        shared_x.copy_from_slice(&self.vectors.shared_x);
        info.seconds_solve = clock.elapsed().as_secs_f64();
        info
    }

    /// One application of the preconditioner, `z = M r`, for tests of its symmetry. Rounds to f32.
    pub fn precondition(
        &mut self,
        system: &System<'_, D>,
        r: (&Field<f64>, &[f64]),
        z: (&mut Field<f64>, &mut [f64]),
        params: &SolverParams,
    ) {
        self.prepare(system, None, params);
        self.vectors.load_r(r.0, system.live, r.1, self.hierarchy.finest());
        self.vectors.round_residual(self.hierarchy.finest_mut(), 1.0);
        self.apply_preconditioner(params.preconditioner, params.sweeps);
        self.vectors.clear_x();
        self.vectors.redirect(self.hierarchy.finest(), 0.0);
        let hierarchy = &self.hierarchy;
        self.vectors.advance_x(hierarchy.finest(), 1.0);
        scatter(&self.vectors.x, system.blocks.slots(), hierarchy.block_of(), hierarchy.finest(), z.0);
        z.1.copy_from_slice(&self.vectors.shared_x);
    }

    fn prepare(&mut self, system: &System<'_, D>, bodies: Option<&Bodies<'_>>, params: &SolverParams) {
        if let Some(bodies) = bodies.filter(|bodies| !bodies.list.is_empty()) {
            let multigrid = params.preconditioner == PreconditionerKind::Multigrid;
            self.composite.get_or_insert_default().build(system, bodies, &mut self.hierarchy, multigrid);
            self.vectors.reset(self.hierarchy.finest());
            return;
        }
        self.composite = None;
        self.hierarchy.build(system);
        match params.preconditioner {
            PreconditionerKind::Multigrid
            | PreconditionerKind::Jacobi
            | PreconditionerKind::MinimalResiduals => {}
            PreconditionerKind::IncompleteCholesky => {
                self.incomplete.build::<D>(&assemble(system), self.hierarchy.block_of());
            }
            PreconditionerKind::BubblePalindrome => {
                self.palindrome.build(system, assemble(system), self.hierarchy.block_of());
            }
        }
        self.vectors.reset(self.hierarchy.finest());
    }

    /// Makes sums of `r`, or means of `x`, vanish over the components without ground.
    fn remove(&mut self, what: Remove, system: &System<'_, D>, components: usize) {
        let found = match self.composite.as_mut() {
            None => self.hierarchy.label_components(),
            Some(composite) => composite.label_components(&mut self.hierarchy),
        };
        debug_assert_eq!(found, components);
        let vectors = &mut self.vectors;
        let (cells, shared) = match what {
            Remove::Sum => (&mut vectors.r, &mut vectors.shared_r),
            Remove::Mean => (&mut vectors.x, &mut vectors.shared_x),
        };
        let weight = |node| system.shared.weight(node);
        self.means.remove(what, self.hierarchy.finest(), components, cells, shared, weight);
    }

    /// From a right-hand side of size `b` in `r` to the answer in the vectors' `x`.
    fn run(&mut self, task: &Task<'_, D>, b: Size, x: &Field<f64>, shared_x: &[f64], info: &mut SolveInfo) {
        let norm = b.square.sqrt();
        self.vectors.clear_x();
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
            self.vectors.load_x::<D>(x, task.system.live, shared_x);
            self.vectors.clear_outside(self.hierarchy.finest());
            size = self.subtract_product(scale);
            // A guess worse than none, or not a number, is dropped.
            size.square < b.square
        };
        if !warm {
            if task.params.warm_start {
                size =
                    self.vectors.load_r(task.rhs, task.system.live, task.shared_rhs, self.hierarchy.finest());
            }
            self.vectors.clear_x();
            self.vectors.round_residual(self.hierarchy.finest_mut(), scale);
        }
        if goal.met(size, 1.0) {
            info.relative_residual = size.square.sqrt() / norm;
            return;
        }
        info.converged = false;
        let max = task.params.max_iterations;
        if task.params.preconditioner == PreconditionerKind::MinimalResiduals {
            return self.minimize_residuals(task, &goal, info);
        }
        let kind = match task.params.preconditioner {
            kind if self.composite.is_none() || kind == PreconditionerKind::Multigrid => kind,
            _ => PreconditionerKind::Jacobi,
        };
        if kind != PreconditionerKind::Multigrid {
            self.iterate(task, &goal, kind, max, info);
        } else if self.iterate(task, &goal, kind, max.min(BUDGET_MULTIGRID), info)
            && (info.outcome != Outcome::IterationLimit || info.iterations < max)
        {
            self.fall_back(task, &goal, info);
        }
    }

    /// Solves the indefinite form, from zero. Its iterations are as cheap as those of the diagonal, and as many are
    /// allowed.
    fn minimize_residuals(&mut self, task: &Task<'_, D>, goal: &Goal, info: &mut SolveInfo) {
        let network = assemble(task.system);
        let mut b: Vec<f64> = network.cells.iter().map(|&cell| task.rhs[cell as usize]).collect();
        b.extend_from_slice(task.shared_rhs);
        let bodies = task.bodies.filter(|_| self.composite.is_some());
        let limit = FALLBACK_SHARE * task.params.max_iterations;
        let found = minimal_residuals::<D>(&network, bodies, &b, task.params, limit);
        info.iterations = found.iterations;
        self.vectors.clear_x();
        self.vectors.settle_x();
        let (cells, block_of) = (block_cells(D), self.hierarchy.block_of());
        let (x, shared) = found.x.split_at(network.cells.len());
        for (&cell, &x) in network.cells.iter().zip(x) {
            let (slot, local) = (cell as usize / cells, cell as usize % cells);
            let node = Node::cell::<D>(block_of[slot] as usize, local);
            self.vectors.x.as_flattened_mut()[paired_index::<D>(node)] = x;
        }
        self.vectors.shared_x.copy_from_slice(shared);
        let left = self.true_residual(task, goal.scale);
        info.relative_residual = left.square.sqrt() / goal.norm;
        info.converged = goal.met(left, SLACK);
        info.outcome = match info.converged {
            true => Outcome::Converged,
            false if !left.square.is_finite() => Outcome::NonFinite,
            false => Outcome::IterationLimit,
        };
        if info.outcome == Outcome::NonFinite {
            self.vectors.clear_x();
        }
    }

    /// Goes on with the diagonal, from where another preconditioner failed.
    fn fall_back(&mut self, task: &Task<'_, D>, goal: &Goal, info: &mut SolveInfo) {
        info.fallback = true;
        let at_hand = info.relative_residual;
        if !at_hand.is_finite() || at_hand >= 1.0 {
            // No better than nothing.
            self.vectors.clear_x();
            self.vectors.load_r(task.rhs, task.system.live, task.shared_rhs, self.hierarchy.finest());
            self.vectors.round_residual(self.hierarchy.finest_mut(), goal.scale);
        }
        let limit = info.iterations + FALLBACK_SHARE * task.params.max_iterations;
        self.iterate(task, goal, PreconditionerKind::Jacobi, limit, info);
    }

    /// Iterates until `info` counts `limit` iterations, from `x` and its residual `r`; ends with the true residual in
    /// `r`. Returns whether another preconditioner may do better.
    fn iterate(
        &mut self,
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
            let rho = self.apply_preconditioner(kind, task.params.sweeps) / scale;
            let beta = if previous == 0.0 { 0.0 } else { rho / previous };
            previous = rho;
            self.vectors.redirect(self.hierarchy.finest(), beta);
            let energy = self.energy();
            if !(rho.is_finite() && energy.is_finite()) {
                info.outcome = Outcome::NonFinite;
                break;
            }
            if rho <= 0.0 || energy <= 0.0 {
                info.outcome = Outcome::Stalled;
                break;
            }
            let size = self.step(rho / energy, scale);
            info.iterations += 1;
            if !size.square.is_finite() {
                info.outcome = Outcome::NonFinite;
                break;
            }
            if goal.met(size, 1.0) {
                let found = self.true_residual(task, scale);
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
                    let found = if begins_anew { self.true_residual(task, scale).square.sqrt() } else { 0.0 };
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
        let found = self.true_residual(task, scale);
        info.relative_residual = found.square.sqrt() / goal.norm;
        info.converged = goal.met(found, SLACK);
        if !found.square.is_finite() {
            info.outcome = Outcome::NonFinite;
            self.vectors.clear_x();
        }
        !info.converged && info.outcome != Outcome::Stopped
    }

    /// Sets `r` to `b − A x`.
    fn true_residual(&mut self, task: &Task<'_, D>, scale: f64) -> Size {
        self.vectors.load_r(task.rhs, task.system.live, task.shared_rhs, self.hierarchy.finest());
        self.subtract_product(scale)
    }

    /// `p·A p`.
    fn energy(&mut self) -> f64 {
        let network = self.vectors.energy(self.hierarchy.finest());
        match self.composite.as_mut() {
            None => network,
            Some(composite) => network + composite.respond(&self.vectors.p),
        }
    }

    /// `x += α p`, `r −= α A p`, after [`Self::energy`]; measures `r`.
    fn step(&mut self, alpha: f64, scale: f64) -> Size {
        let (vectors, level) = (&mut self.vectors, self.hierarchy.finest_mut());
        match self.composite.as_ref() {
            None => vectors.step(level, alpha, scale, |_, _| {}),
            Some(bodies) => vectors.step(level, alpha, scale, |block, r| bodies.subtract(block, alpha, r)),
        }
    }

    /// `r −= A x`; measures it.
    fn subtract_product(&mut self, scale: f64) -> Size {
        let (vectors, level) = (&mut self.vectors, self.hierarchy.finest_mut());
        match self.composite.as_mut() {
            None => vectors.subtract_product(level, scale, |_, _| {}),
            Some(bodies) => {
                vectors.settle_x();
                bodies.respond(&vectors.x);
                vectors.subtract_product(level, scale, |block, r| bodies.subtract(block, 1.0, r))
            }
        }
    }

    /// Sets the finest `x` from the finest `b`; returns their product.
    fn apply_preconditioner(&mut self, kind: PreconditionerKind, sweeps: usize) -> f64 {
        match kind {
            PreconditionerKind::Multigrid => match self.composite.as_mut() {
                None => self.hierarchy.cycle(sweeps.max(1)),
                Some(composite) => composite.cycle(&mut self.hierarchy, sweeps.max(1)),
            },
            PreconditionerKind::Jacobi | PreconditionerKind::MinimalResiduals => {
                self.hierarchy.finest_mut().divide_by_diagonal();
            }
            PreconditionerKind::IncompleteCholesky => self.incomplete.apply(self.hierarchy.finest_mut()),
            PreconditionerKind::BubblePalindrome => {
                self.palindrome.apply(self.hierarchy.finest_mut(), sweeps.max(1));
            }
        }
        self.vectors.alignment(self.hierarchy.finest())
    }
}
