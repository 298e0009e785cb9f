//! Conjugate gradients for a network with bodies.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rayon::prelude::*;

use crate::grid::{Field, Scatter, block_cells};

use super::super::hierarchy::Hierarchy;
use super::super::params::{Outcome, PreconditionerKind, SolveInfo, SolverParams};
use super::super::system::System;
use super::body::{Bodies, Body};
use super::cycle::Composite;
use super::list::GRAIN;

/// A solver for systems with bodies, with all its working memory.
#[derive(Clone, Debug, Default)]
pub struct CompositeSolver<const D: usize> {
    full: Hierarchy<D>,
    composite: Composite,
    x: Vec<f64>,
    r: Vec<f64>,
    /// Rounded: `x` and `r` move along exactly the same direction.
    p: Vec<f32>,
    product: Vec<f64>,
    velocities: super::surfaces::Velocities<f64>,
    components: super::components::Components,
}

/// Iterations after which the V-cycle counts as unfit for a system.
const BUDGET_MULTIGRID: usize = 100;
/// The diagonal is given so many times the iterations that were asked for.
const FALLBACK_SHARE: usize = 10;
/// The true residual may miss the tolerance by this much.
const SLACK: f64 = 1.01;

/// What has to be reached.
#[derive(Clone, Copy)]
struct Goal {
    norm: f64,
    tolerance: f64,
    floor: f64,
    scale: f64,
}

/// Size of a residual.
#[derive(Clone, Copy, Default)]
struct Size {
    square: f64,
    max: f64,
}

impl Goal {
    fn met(&self, size: Size, slack: f64) -> bool {
        size.square.sqrt() <= self.tolerance * self.norm * slack || size.max <= self.floor
    }
}

impl<const D: usize> CompositeSolver<D> {
    /// A solver that has not seen a system yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.full.bytes()
            + self.composite.bytes()
            + (self.x.capacity() + self.r.capacity() + self.product.capacity()) * 8
            + self.p.capacity() * 4
    }

    /// Solves `(L + Σ JᵀKJ) x = b` for the cells outside of bodies and the shared nodes, as [`super::super::Solver::solve`]
    /// does without bodies: same arguments, same account. Inside bodies `rhs` is ignored and `x` becomes zero.
    #[allow(clippy::too_many_arguments)]
    pub fn solve(
        &mut self,
        system: &System<'_, D>,
        bodies: &Bodies<'_>,
        rhs: &mut Field<f64>,
        x: &mut Field<f64>,
        shared_rhs: &mut [f64],
        shared_x: &mut [f64],
        params: &SolverParams,
        stop: Option<&AtomicBool>,
    ) -> SolveInfo {
        let clock = Instant::now();
        let mut info = SolveInfo::default();
        self.prepare(system, bodies, params);
        self.full.describe(&mut info);
        self.describe(&mut info);
        info.seconds_setup = clock.elapsed().as_secs_f64();

        let clock = Instant::now();
        self.load_rhs(system, rhs, shared_rhs, &mut info);
        let b = self.measure();
        self.gather(system, x, false);
        self.run(bodies.list, b, params, stop, &mut info);
        self.components.center(&mut self.x);
        self.scatter(system, x);
        for (shared, value) in shared_x.iter_mut().enumerate() {
            let terms = &self.composite.shared;
            let sum: f64 =
                terms.of(shared).iter().map(|&(node, link)| f64::from(link) * self.x[node as usize]).sum();
            *value = (shared_rhs[shared] + sum) * terms.inverse[shared];
        }
        info.seconds_solve = clock.elapsed().as_secs_f64();
        info
    }

    /// Builds everything a solve needs.
    fn prepare(&mut self, system: &System<'_, D>, bodies: &Bodies<'_>, params: &SolverParams) {
        self.full.build(system);
        self.composite.build(
            system,
            bodies,
            &self.full,
            params.preconditioner == PreconditionerKind::Multigrid,
        );
        let len = self.composite.finest.len();
        for values in [&mut self.x, &mut self.r, &mut self.product] {
            values.clear();
            values.resize(len, 0.0);
        }
        self.p.clear();
        self.p.resize(len, 0.0);
    }

    fn describe(&self, info: &mut SolveInfo) {
        for (nodes, count) in info.levels.iter_mut().zip(self.composite.nodes()) {
            *nodes = count;
        }
    }

    /// Takes `b` into `r`, made compatible where a component has no ground, and without the shared nodes.
    fn load_rhs(
        &mut self,
        system: &System<'_, D>,
        rhs: &mut Field<f64>,
        shared_rhs: &mut [f64],
        info: &mut SolveInfo,
    ) {
        self.gather(system, rhs, true);
        let shared = &self.composite.shared;
        for (rhs, &inverse) in shared_rhs.iter_mut().zip(&shared.inverse) {
            *rhs = if inverse > 0.0 { *rhs } else { 0.0 };
        }
        if info.closed_components > 0 {
            let weight = |node| system.shared.weight(node);
            self.components.find::<D>(&self.composite.finest, shared);
            self.components.balance(&mut self.r, shared_rhs, weight);
            let values = std::mem::take(&mut self.r);
            self.store(system, &values, rhs);
            self.r = values;
        } else {
            self.components.clear();
        }
        info.closed_components = self.components.count();
        for (index, &b) in shared_rhs.iter().enumerate() {
            let value = b * shared.inverse[index];
            for &(node, link) in shared.of(index) {
                self.r[node as usize] += f64::from(link) * value;
            }
        }
    }

    /// Reads the listed cells of a field into `r` (`residual`) or `x`.
    fn gather(&mut self, system: &System<'_, D>, field: &Field<f64>, residual: bool) {
        let cells = block_cells(D);
        let numbering = &self.composite.numbering;
        let out = Scatter::new(if residual { &mut self.r } else { &mut self.x });
        system.live.as_slice().par_iter().with_min_len(16).enumerate().for_each(|(index, &slot)| {
            for (local, node) in numbering.cells(index + 1) {
                // SAFETY: every listed cell has a place of its own.
                unsafe { out.put(node, field[slot as usize * cells + local]) };
            }
        });
    }

    fn scatter(&mut self, system: &System<'_, D>, field: &mut Field<f64>) {
        let values = std::mem::take(&mut self.x);
        self.store(system, &values, field);
        self.x = values;
    }

    /// Writes the listed cells of a field; all others become zero.
    fn store(&self, system: &System<'_, D>, values: &[f64], field: &mut Field<f64>) {
        let (numbering, block_of) = (&self.composite.numbering, self.full.block_of());
        crate::grid::for_each_block(system.blocks.slots(), field.parts(), |slot, out| {
            out.fill(0.0);
            let block = block_of[slot] as usize;
            if block != 0 {
                numbering.cells(block).for_each(|(local, node)| out[local] = values[node]);
            }
        });
    }

    /// From a right-hand side of size `b` in `r`, and a guess in `x`, to the answer in `x`.
    fn run(
        &mut self,
        bodies: &[Body],
        b: Size,
        params: &SolverParams,
        stop: Option<&AtomicBool>,
        info: &mut SolveInfo,
    ) {
        let norm = b.square.sqrt();
        if norm == 0.0 {
            self.x.fill(0.0);
            return;
        }
        if !norm.is_finite() {
            self.x.fill(0.0);
            (info.outcome, info.converged, info.relative_residual) = (Outcome::NonFinite, false, f64::NAN);
            return;
        }
        let scale = (-norm.log2().round()).exp2();
        let goal = Goal { norm, tolerance: params.tolerance, floor: params.floor, scale };
        let rhs = self.r.clone();
        let mut size = b;
        if params.warm_start {
            size = self.subtract_product(bodies, &rhs);
        }
        // A guess worse than none, or not a number, is dropped.
        let helps = params.warm_start && size.square < b.square;
        if !helps {
            self.x.fill(0.0);
            self.r.copy_from_slice(&rhs);
            size = b;
        }
        if goal.met(size, 1.0) {
            info.relative_residual = size.square.sqrt() / norm;
            return;
        }
        info.converged = false;
        let kind = match params.preconditioner {
            PreconditionerKind::Multigrid => PreconditionerKind::Multigrid,
            _ => PreconditionerKind::Jacobi,
        };
        let limit = match kind {
            PreconditionerKind::Multigrid => params.max_iterations.min(BUDGET_MULTIGRID),
            _ => params.max_iterations,
        };
        self.iterate(bodies, &rhs, goal, kind, limit, params, stop, info);
        let unfit = kind == PreconditionerKind::Multigrid && !info.converged;
        if unfit && info.outcome != Outcome::Stopped {
            info.fallback = true;
            let helped = info.relative_residual < 1.0;
            if !helped {
                self.x.fill(0.0);
                self.r.copy_from_slice(&rhs);
            }
            let limit = info.iterations + FALLBACK_SHARE * params.max_iterations;
            self.iterate(bodies, &rhs, goal, PreconditionerKind::Jacobi, limit, params, stop, info);
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn iterate(
        &mut self,
        bodies: &[Body],
        rhs: &[f64],
        goal: Goal,
        kind: PreconditionerKind,
        limit: usize,
        params: &SolverParams,
        stop: Option<&AtomicBool>,
        info: &mut SolveInfo,
    ) {
        let mut previous = 0.0;
        let mut true_before = f64::INFINITY;
        info.outcome = Outcome::IterationLimit;
        while info.iterations < limit {
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                info.outcome = Outcome::Stopped;
                break;
            }
            let rho = self.precondition(bodies, kind, params.sweeps.max(1), goal.scale);
            let beta = if previous == 0.0 { 0.0 } else { rho / previous };
            previous = rho;
            self.redirect(beta);
            let energy = self.energy(bodies);
            if !(rho.is_finite() && energy.is_finite()) {
                info.outcome = Outcome::NonFinite;
                break;
            }
            if rho <= 0.0 || energy <= 0.0 {
                info.outcome = Outcome::Stalled;
                break;
            }
            let size = self.step(rho / energy);
            info.iterations += 1;
            if goal.met(size, 1.0) {
                let found = self.subtract_product(bodies, rhs);
                if goal.met(found, SLACK) {
                    info.outcome = Outcome::Converged;
                    break;
                }
                if found.square.sqrt() > 0.5 * true_before {
                    info.outcome = Outcome::Stalled;
                    break;
                }
                // Rounding made the running residual drift: go on from the true one.
                true_before = found.square.sqrt();
                previous = 0.0;
            }
        }
        let found = self.subtract_product(bodies, rhs);
        info.relative_residual = found.square.sqrt() / goal.norm;
        info.converged = goal.met(found, SLACK);
        if !found.square.is_finite() {
            info.outcome = Outcome::NonFinite;
            self.x.fill(0.0);
        }
    }

    /// Sets the finest `x` of the lists to `M r`; returns `r` times that.
    fn precondition(&mut self, bodies: &[Body], kind: PreconditionerKind, sweeps: usize, scale: f64) -> f64 {
        let finest = &mut self.composite.finest;
        finest.b.par_chunks_mut(GRAIN).zip(self.r.par_chunks(GRAIN)).for_each(|(b, r)| {
            b.iter_mut().zip(r).for_each(|(b, &r)| *b = (r * scale) as f32);
        });
        match kind {
            PreconditionerKind::Multigrid => self.composite.cycle(bodies, &mut self.full, sweeps),
            _ => {
                let super::list::List { x, b, diagonal, .. } = finest;
                x.par_chunks_mut(GRAIN).zip(b.par_chunks(GRAIN)).zip(diagonal.par_chunks(GRAIN)).for_each(
                    |((x, b), diagonal)| {
                        for ((x, b), &diagonal) in x.iter_mut().zip(b).zip(diagonal) {
                            *x = if diagonal > 0.0 { b / diagonal } else { 0.0 };
                        }
                    },
                );
            }
        }
        let finest = &self.composite.finest;
        let product = sum_chunks(&finest.x, &finest.b, |x, b| f64::from(x) * f64::from(b));
        // Both carry the scale, but the direction made of `x` keeps it.
        product / scale
    }

    /// `p = z + β p`.
    fn redirect(&mut self, beta: f64) {
        let z = &self.composite.finest.x;
        let beta = beta as f32;
        self.p.par_chunks_mut(GRAIN).zip(z.par_chunks(GRAIN)).for_each(|(p, z)| {
            p.iter_mut().zip(z).for_each(|(p, &z)| *p = if beta == 0.0 { z } else { z + beta * *p });
        });
    }

    /// Sets `product = A p`; returns `p·A p`.
    fn energy(&mut self, bodies: &[Body]) -> f64 {
        let Composite { finest, faces, shared, .. } = &self.composite;
        finest.product::<D, f32>(&self.p, &mut self.product);
        faces.add::<D, f32>(bodies, &self.p, &mut self.velocities, &mut self.product);
        shared.subtract(&self.p, &mut self.product);
        sum_chunks(&self.p, &self.product, |p, product| f64::from(p) * product)
    }

    /// `x += α p`, `r −= α A p`; measures `r`.
    fn step(&mut self, alpha: f64) -> Size {
        let vectors = self.x.par_chunks_mut(GRAIN).zip(self.r.par_chunks_mut(GRAIN));
        let directions = self.p.par_chunks(GRAIN).zip(self.product.par_chunks(GRAIN));
        let parts: Vec<Size> = vectors
            .zip(directions)
            .map(|((x, r), (p, product))| {
                let mut size = Size::default();
                for (((x, r), &p), product) in x.iter_mut().zip(r).zip(p).zip(product) {
                    *x += alpha * f64::from(p);
                    *r -= alpha * product;
                    size.square += *r * *r;
                    size.max = size.max.max(r.abs());
                }
                size
            })
            .collect();
        total(&parts)
    }

    /// `r = b − A x`; measures it.
    fn subtract_product(&mut self, bodies: &[Body], rhs: &[f64]) -> Size {
        let Composite { finest, faces, shared, .. } = &self.composite;
        finest.product::<D, f64>(&self.x, &mut self.product);
        faces.add::<D, f64>(bodies, &self.x, &mut self.velocities, &mut self.product);
        shared.subtract(&self.x, &mut self.product);
        let left = rhs.par_chunks(GRAIN).zip(self.product.par_chunks(GRAIN));
        self.r.par_chunks_mut(GRAIN).zip(left).for_each(|(r, (b, product))| {
            r.iter_mut().zip(b).zip(product).for_each(|((r, b), product)| *r = b - product);
        });
        self.measure()
    }

    fn measure(&self) -> Size {
        let parts: Vec<Size> = self
            .r
            .par_chunks(GRAIN)
            .map(|r| Size {
                square: r.iter().map(|r| r * r).sum(),
                max: r.iter().fold(0.0, |max: f64, r| max.max(r.abs())),
            })
            .collect();
        total(&parts)
    }
}

fn total(parts: &[Size]) -> Size {
    parts.iter().fold(Size::default(), |sum, part| Size {
        square: sum.square + part.square,
        max: if part.max > sum.max { part.max } else { sum.max },
    })
}

/// Sums over pairs of numbers, chunk by chunk and then in order.
fn sum_chunks<A: Copy + Sync, B: Copy + Sync>(a: &[A], b: &[B], term: impl Fn(A, B) -> f64 + Sync) -> f64 {
    let parts: Vec<f64> = a
        .par_chunks(GRAIN)
        .zip(b.par_chunks(GRAIN))
        .map(|(a, b)| a.iter().zip(b).map(|(&a, &b)| term(a, b)).sum())
        .collect();
    parts.iter().sum()
}
