//! The vectors of conjugate gradients on a system with bodies, in compact storage, and the product `A p`.

mod fields;

use rayon::prelude::*;

use super::super::blas;
use super::super::bodies::Bodies;
use super::super::krylov::{KrylovSpace, Precondition, ResidualNorm};
use super::super::layout::Place;
use super::super::params::{PreconditionerKind, SolveInfo, SolverParams};
use super::super::reference::LevelNetwork;
use super::super::scalar::Scalar;
use super::super::stencil::grow;
use super::super::system::System;
use super::components::Labels;
use super::cycle::CompositeHierarchy;
use super::list_kernels::{self, Workspace};
use super::network::{Colours, Network};
use super::rows;
use super::visit::{
    Block, Form, GRAIN, PerBlock, both, clear_unused, pieces, pieces_mut, range, visit_batches,
};

/// A system with bodies and the vectors of its solve.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Composite<const D: usize> {
    levels: CompositeHierarchy<D>,
    x: Colours<f64>,
    r: Colours<f64>,
    /// The right-hand side: a field holds it too, but with gaps.
    rhs: Colours<f64>,
    /// `r` is the right-hand side, whatever the memory says.
    r_is_rhs: bool,
    p: Colours<f32>,
    /// `A p`.
    q: Colours<f64>,
    /// `x` is short of `pending_alpha p`, which is added while the next pass has `p` at hand.
    pending_alpha: f64,
    shared: Shared,
    /// The components without ground, once they were needed.
    labels: Option<Labels>,
    /// Of parts of `r`.
    sizes: Vec<ResidualNorm>,
    partial: Vec<f64>,
    /// See [`KrylovSpace::set_scale`].
    scale: f64,
    kind: PreconditionerKind,
}

/// Entries of the vectors for shared nodes.
#[derive(Clone, Debug, Default)]
struct Shared {
    x: Vec<f64>,
    r: Vec<f64>,
    p: Vec<f32>,
    q: Vec<f64>,
}

/// A part of one colour's array that belongs to a block.
#[inline]
fn own<'a, T>(values: &'a [T], blocks: &[Block], block: usize, colour: usize) -> &'a [T] {
    &values[range(blocks, block, colour)]
}

impl<const D: usize> Composite<D> {
    /// Reads a system with bodies, and prepares the preconditioner. All but multigrid count as Jacobi.
    pub fn build(&mut self, system: &System<'_, D>, bodies: &Bodies<'_>, params: &SolverParams) {
        (self.kind, self.scale) = (params.preconditioner, 1.0);
        let sweeps = (self.kind == PreconditionerKind::Multigrid).then_some(params.sweeps);
        self.levels.build(system, bodies, sweeps);
        (self.labels, self.pending_alpha) = (None, 0.0);
        let (counts, reach) = (self.levels.finest().counts(), self.levels.finest().reach());
        let blocks = &self.levels.finest().blocks;
        for colour in 0..2 {
            for values in [&mut self.r, &mut self.rhs, &mut self.q] {
                grow(&mut values[colour], counts[colour]);
                clear_unused(blocks, &mut values[colour], colour);
            }
            grow(&mut self.x[colour], reach[colour]);
            grow(&mut self.p[colour], reach[colour]);
            clear_unused(blocks, &mut self.x[colour], colour);
            clear_unused(blocks, &mut self.p[colour], colour);
        }
        let count = system.shared.len();
        for values in [&mut self.shared.x, &mut self.shared.r, &mut self.shared.q] {
            values.clear();
            values.resize(count, 0.0);
        }
        self.shared.p.clear();
        self.shared.p.resize(count, 0.0);
    }

    /// Keeps nothing but memory for the next system.
    pub fn forget(&mut self) {
        self.levels.forget_from(0);
    }

    /// The network of a coarse level, without the bodies' term.
    pub fn level_network(&self, level: usize) -> Option<LevelNetwork<D>> {
        self.levels.network(level).filter(|_| level > 0).map(Network::by_position)
    }

    /// Reports sizes.
    pub fn describe(&self, info: &mut SolveInfo) {
        self.levels.describe(info);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let wide = [&self.x, &self.r, &self.rhs, &self.q];
        self.levels.bytes()
            + wide.into_iter().flatten().map(|values| values.capacity() * 8).sum::<usize>()
            + self.p.iter().map(|values| values.capacity() * 4).sum::<usize>()
    }

    fn measure(&self) -> ResidualNorm {
        let mut size = ResidualNorm::default();
        self.sizes.iter().for_each(|&part| size.include_all(part));
        self.shared.r.iter().for_each(|&r| size.include(r));
        size
    }

    fn clear_unlinked(&self, shared: &mut [f64]) {
        for (value, &diagonal) in shared.iter_mut().zip(&self.levels.finest().shared.diagonal) {
            *value = if diagonal > 0.0 { *value } else { 0.0 };
        }
    }

    fn round_shared(&mut self) {
        let scale = self.scale;
        for (b, r) in self.levels.finest_mut().shared.b.iter_mut().zip(&self.shared.r) {
            *b = (r * scale) as f32;
        }
    }
}

impl<const D: usize> KrylovSpace for Composite<D> {
    fn set_scale(&mut self, scale: f64) {
        self.scale = scale;
    }

    fn clear_x(&mut self) {
        self.pending_alpha = 0.0;
        let counts = self.levels.finest().counts();
        pieces_mut(&mut self.x, counts).for_each(|x| x.fill(0.0));
        self.shared.x.fill(0.0);
    }

    fn round_residual(&mut self) {
        self.settle_r();
        let scale = self.scale;
        let net = self.levels.finest_mut();
        let counts = net.counts();
        pieces_mut(&mut net.b, counts).zip(pieces(&self.r, counts)).for_each(|(b, r)| {
            blas::round(b, r, scale);
        });
        self.round_shared();
    }

    fn subtract_product(&mut self) -> ResidualNorm {
        self.settle_x();
        let (net, surfaces, bodies) = self.levels.finest_with_surfaces();
        surfaces.apply_response::<D, f64, f64>(bodies, net, [&self.x[0], &self.x[1]]);
        surfaces.update_scatter();
        let Shared { x, q, .. } = &mut self.shared;
        self.levels.finest().fill_halos(&mut self.x);
        multiply(&self.levels, (&self.x, x), (&mut self.q, q), &mut self.partial);
        add_coupled(self.levels.finest(), (&self.x, x), (&mut self.q, q));
        self.update_residual(1.0)
    }

    fn precondition(&mut self, with: Precondition) -> f64 {
        let product = match (with, self.kind) {
            (Precondition::Primary, PreconditionerKind::Multigrid) => self.levels.cycle(&mut self.partial),
            _ => self.levels.finest_mut().divide_by_diagonal(&mut self.partial),
        };
        product / self.scale
    }

    fn update_direction(&mut self, beta: f64) {
        let (net, beta, alpha) = (self.levels.finest(), beta as f32, std::mem::take(&mut self.pending_alpha));
        let (counts, Shared { x, p, .. }) = (net.counts(), &mut self.shared);
        let directions = pieces_mut(&mut self.p, counts).zip(pieces(&net.x, counts));
        directions
            .zip(pieces_mut(&mut self.x, counts))
            .for_each(|((p, z), x)| blas::axpy_then_xpby(x, alpha, p, z, beta));
        blas::axpy_then_xpby(x, alpha, p, &net.shared.x, beta);
    }

    fn energy(&mut self) -> f64 {
        let (net, surfaces, bodies) = self.levels.finest_with_surfaces();
        surfaces.apply_response::<D, f32, f64>(bodies, net, [&self.p[0], &self.p[1]]);
        surfaces.update_scatter();
        let Shared { p, q, .. } = &mut self.shared;
        self.levels.finest().fill_halos(&mut self.p);
        multiply(&self.levels, (&self.p, p), (&mut self.q, q), &mut self.partial);
        let shared: f64 = p.iter().zip(&*q).map(|(&p, q)| f64::from(p) * *q).sum();
        let coupled = add_coupled(self.levels.finest(), (&self.p, p), (&mut self.q, q));
        self.partial.iter().sum::<f64>() + shared + coupled
    }

    fn step(&mut self, alpha: f64) -> ResidualNorm {
        self.settle_x();
        self.pending_alpha = alpha;
        self.update_residual(alpha)
    }
}

impl<const D: usize> Composite<D> {
    /// Makes `x` hold its value. In all iterations but the last that happens while the next pass has `p` at hand.
    fn settle_x(&mut self) {
        let (alpha, counts) = (std::mem::take(&mut self.pending_alpha), self.levels.finest().counts());
        if alpha != 0.0 {
            let steps = pieces_mut(&mut self.x, counts).zip(pieces(&self.p, counts));
            steps.for_each(|(x, p)| blas::axpy(x, alpha, p));
            blas::axpy(&mut self.shared.x, alpha, &self.shared.p);
        }
    }

    /// Makes `r` hold its value.
    fn settle_r(&mut self) {
        if std::mem::take(&mut self.r_is_rhs) {
            let counts = self.levels.finest().counts();
            let copies = pieces_mut(&mut self.r, counts).zip(pieces(&self.rhs, counts));
            copies.for_each(|(r, rhs)| r.copy_from_slice(rhs));
        }
    }

    /// `r −= α q`, handed to the preconditioner. Measures `r`.
    fn update_residual(&mut self, alpha: f64) -> ResidualNorm {
        let scale = self.scale;
        let net = self.levels.finest_mut();
        let counts = net.counts();
        let residuals = pieces_mut(&mut self.r, counts).zip(pieces_mut(&mut net.b, counts));
        let residuals = residuals.zip(pieces(&self.q, counts));
        let update =
            |((r, b), q): ((&mut [f64], &mut [f32]), &[f64])| blas::update_residual(r, b, q, alpha, scale);
        if std::mem::take(&mut self.r_is_rhs) {
            let residuals = residuals.zip(pieces(&self.rhs, counts)).map(|(((r, b), q), rhs)| {
                r.copy_from_slice(rhs);
                update(((r, b), q))
            });
            residuals.collect_into_vec(&mut self.sizes);
        } else {
            residuals.map(update).collect_into_vec(&mut self.sizes);
        }
        let Shared { r, q, .. } = &mut self.shared;
        r.iter_mut().zip(q).for_each(|(r, q)| *r -= alpha * *q);
        self.round_shared();
        self.measure()
    }
}

/// `q += Wᵀ W p`; returns `p·Wᵀ W p`.
fn add_coupled<T: Scalar, const D: usize>(
    net: &Network<D>,
    (p, shared_p): (&Colours<T>, &[T]),
    (q, shared_q): (&mut Colours<f64>, &mut [f64]),
) -> f64 {
    let forces = net.coupled.gather(|node| match node.place() {
        Place::Cell { colour, index } => p[colour][index].into(),
        Place::Explicit(shared) => shared_p[shared].into(),
    });
    net.coupled.scatter(&forces, |node, value| match node.place() {
        Place::Cell { colour, index } => q[colour][index] += value,
        Place::Explicit(shared) => shared_q[shared] += value,
    });
    forces.iter().map(|force| force * force).sum()
}

/// `q = A p` for nodes and shared nodes, with the `Jᵀ v` last prepared; `p·q` block by block.
fn multiply<T: Scalar, const D: usize>(
    levels: &CompositeHierarchy<D>,
    (p, shared_p): (&Colours<T>, &[T]),
    (q, shared_q): (&mut Colours<f64>, &mut [f64]),
    partial: &mut Vec<f64>,
) {
    let (net, surfaces) = (levels.finest(), levels.surfaces());
    let (blocks, whole) = (&net.blocks, f64::from(net.whole));
    let (red, black) = both(q);
    partial.clear();
    partial.resize(blocks.len() - 1, 0.0);
    let parts = (red, black, PerBlock(partial));
    let scratch = || Workspace::<T>::new(net.room);
    visit_batches(GRAIN, blocks, parts, &scratch, &|values, batch, (red, black, sum)| {
        let (mut q, block) = ([red.0, black.0], batch.start);
        for (colour, q) in q.iter_mut().enumerate() {
            let (range, other) = (net.range_of(batch.clone(), colour), &p[1 - colour]);
            let (here, half) = (&p[colour][range], &net.pattern(block).half[colour]);
            let view = || net.view(batch.clone(), colour, other);
            if blocks[block].is_plain {
                let diagonal = net.diagonal_of(batch.clone(), colour);
                rows::product_alone::<T, D>(q, here, diagonal, &view(), whole);
            } else if blocks[block].form != Form::Listed {
                rows::product::<T, D>(q, here, half, &view(), whole);
            } else {
                values.load(own(other, blocks, block, 1 - colour), net.halo_of(block, colour, other));
                list_kernels::product(q, here, half, values, whole);
            }
            net.scatter_velocity::<f64>(surfaces, batch.clone(), colour, q, 1.0);
            let entries = if blocks[block].has_shared[colour] { net.shared.of(colour, block) } else { &[] };
            for entry in entries {
                let node = (entry.node.1 - blocks[block].nodes[colour]) as usize;
                q[node] +=
                    f64::from(entry.link) * (here[node].into() - shared_p[entry.shared as usize].into());
            }
            sum.0[0] += blas::dot(here, q);
        }
    });
    for (shared, (q, &own)) in shared_q.iter_mut().zip(shared_p).enumerate() {
        *q = net.shared.diagonal[shared] * own.into() - net.shared.pull(shared, [&p[0], &p[1]]);
    }
}
