//! A system of cells and shared nodes without bodies, with all its preconditioners.

use crate::grid::Field;

use super::closed::{Means, Remove};
use super::hierarchy::Hierarchy;
use super::krylov::{KrylovSpace, Precondition, ResidualNorm};
use super::operator::{Vectors, scatter};
use super::params::{PreconditionerKind, SolveInfo, SolverParams};
use super::reference::{IncompleteCholesky, LevelNetwork, Palindrome, assemble};
use super::space::PressureSpace;
use super::system::System;

/// A system without bodies and the vectors of its solve.
#[derive(Clone, Debug, Default)]
pub(super) struct Uniform<const D: usize> {
    hierarchy: Hierarchy<D>,
    vectors: Vectors,
    means: Means,
    incomplete: IncompleteCholesky,
    palindrome: Palindrome<D>,
    /// See [`KrylovSpace::set_scale`].
    scale: f64,
    kind: PreconditionerKind,
    sweeps: usize,
}

impl<const D: usize> Uniform<D> {
    /// Reads a system, and prepares the preconditioner.
    pub fn build(&mut self, system: &System<'_, D>, params: &SolverParams) {
        (self.kind, self.sweeps, self.scale) = (params.preconditioner, params.sweeps, 1.0);
        self.hierarchy.build(system);
        match self.kind {
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

    /// The network of a coarse level.
    pub fn level_network(&self, level: usize) -> Option<LevelNetwork<D>> {
        self.hierarchy.level(level).filter(|_| level > 0).map(LevelNetwork::of_level)
    }

    /// Reports sizes.
    pub fn describe(&self, info: &mut SolveInfo) {
        self.hierarchy.describe(info);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.hierarchy.bytes() + self.vectors.bytes() + self.incomplete.bytes() + self.palindrome.bytes()
    }
}

impl<const D: usize> KrylovSpace for Uniform<D> {
    fn set_scale(&mut self, scale: f64) {
        self.scale = scale;
    }

    fn clear_x(&mut self) {
        self.vectors.clear_x();
    }

    fn round_residual(&mut self) {
        self.vectors.round_residual(self.hierarchy.finest_mut(), self.scale);
    }

    fn subtract_product(&mut self) -> ResidualNorm {
        self.vectors.subtract_product(self.hierarchy.finest_mut(), self.scale)
    }

    fn precondition(&mut self, with: Precondition) -> f64 {
        let (kind, sweeps) = match with {
            Precondition::Primary => (self.kind, self.sweeps.max(1)),
            Precondition::Jacobi => (PreconditionerKind::Jacobi, 0),
        };
        match kind {
            PreconditionerKind::Multigrid => self.hierarchy.cycle(sweeps),
            PreconditionerKind::Jacobi | PreconditionerKind::MinimalResiduals => {
                self.hierarchy.finest_mut().divide_by_diagonal();
            }
            PreconditionerKind::IncompleteCholesky => self.incomplete.apply(self.hierarchy.finest_mut()),
            PreconditionerKind::BubblePalindrome => {
                self.palindrome.apply(self.hierarchy.finest_mut(), sweeps);
            }
        }
        self.vectors.alignment(self.hierarchy.finest()) / self.scale
    }

    fn update_direction(&mut self, beta: f64) {
        self.vectors.update_direction(self.hierarchy.finest(), beta);
    }

    fn energy(&mut self) -> f64 {
        self.vectors.energy(self.hierarchy.finest())
    }

    fn step(&mut self, alpha: f64) -> ResidualNorm {
        self.vectors.step(self.hierarchy.finest_mut(), alpha, self.scale)
    }
}

impl<const D: usize> PressureSpace<D> for Uniform<D> {
    fn load_r(&mut self, system: &System<'_, D>, rhs: &Field<f64>, shared: &[f64]) -> ResidualNorm {
        self.vectors.load_r(rhs, system.live, shared, self.hierarchy.finest())
    }

    fn store_r(&mut self, system: &System<'_, D>, rhs: &mut Field<f64>, shared: &mut [f64]) {
        let hierarchy = &self.hierarchy;
        scatter::<D>(&self.vectors.r, system.live, hierarchy.block_of(), rhs);
        for (node, (rhs, &r)) in shared.iter_mut().zip(&self.vectors.shared_r).enumerate() {
            *rhs = if hierarchy.finest().explicit.diagonal[node] > 0.0 { r } else { *rhs };
        }
    }

    fn measure_r(&mut self) -> ResidualNorm {
        self.vectors.measure_r::<D>()
    }

    fn load_x(&mut self, system: &System<'_, D>, x: &Field<f64>, shared: &[f64]) {
        self.vectors.load_x::<D>(x, system.live, shared);
        self.vectors.clear_outside(self.hierarchy.finest());
    }

    fn store_x(&mut self, system: &System<'_, D>, x: &mut Field<f64>, shared: &mut [f64]) {
        self.vectors.settle_x();
        scatter::<D>(&self.vectors.x, system.blocks.slots(), self.hierarchy.block_of(), x);
        shared.copy_from_slice(&self.vectors.shared_x);
    }

    fn add_direction(&mut self) {
        self.vectors.axpy_x(1.0);
    }

    fn remove(&mut self, what: Remove, system: &System<'_, D>, components: usize) {
        let found = self.hierarchy.label_components();
        debug_assert_eq!(found, components);
        let vectors = &mut self.vectors;
        vectors.settle_x();
        let (cells, shared) = match what {
            Remove::Sum => (&mut vectors.r, &mut vectors.shared_r),
            Remove::Mean => (&mut vectors.x, &mut vectors.shared_x),
        };
        let weight = |node| system.shared.weight(node);
        self.means.remove(what, self.hierarchy.finest(), components, cells, shared, weight);
    }
}
