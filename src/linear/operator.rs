//! The f64 side of a solve: vectors in the order of the finest level, and the products of conjugate gradients.
//!
//! `A p` is never stored: it is cheaper to compute it twice, once for `p·A p` and once for `r −= α A p`, than to send it
//! through memory. Terms beyond the cell network (shared nodes, and bodies' `Wᵀ W`) add to both in [`Vectors::energy`] and
//! [`Vectors::step`]; any further symmetric term has its place there.

use crate::grid::{DisjointMut, Field, Slots, for_each_block};

use super::blas;
use super::explicit::{Explicit, paired_index};
use super::kernels::{self, Around};
use super::krylov::ResidualNorm;
use super::layout::{Place, Row, half_rows};
use super::level::Level;
use super::parallel::{cut, each_block};
use super::stencil::grow;

/// Vectors of a solve. Cells: both colours of a block together; shared nodes: one entry each.
///
/// The direction `p` is rounded to f32: `r` and `x` then move along exactly the same rounded direction, so the residual
/// stays true.
#[derive(Clone, Debug, Default)]
pub(super) struct Vectors {
    pub x: Vec<Row<f64>>,
    pub r: Vec<Row<f64>>,
    pub p: Vec<Row<f32>>,
    pub shared_x: Vec<f64>,
    pub shared_r: Vec<f64>,
    pub shared_p: Vec<f32>,
    /// `x` is zero, whatever the memory says.
    x_is_zero: bool,
    partial: Vec<f64>,
    contact_sums: Vec<f64>,
    sizes: Vec<ResidualNorm>,
}

impl Vectors {
    /// Makes room for a level's cells and shared nodes; all zero.
    pub fn reset<const D: usize>(&mut self, level: &Level<D>) {
        let rows = 2 * half_rows(D) * level.topology.len();
        grow(&mut self.x, rows);
        grow(&mut self.r, rows);
        grow(&mut self.p, rows);
        // The absent block is read by its neighbours.
        self.x[..2 * half_rows(D)].fill([0.0; 8]);
        self.p[..2 * half_rows(D)].fill([0.0; 8]);
        let shared = level.explicit.count;
        for values in [&mut self.shared_x, &mut self.shared_r] {
            values.clear();
            values.resize(shared, 0.0);
        }
        self.shared_p.clear();
        self.shared_p.resize(shared, 0.0);
        grow(&mut self.partial, level.topology.len());
        self.sizes.clear();
        self.sizes.resize(level.topology.len(), ResidualNorm::default());
    }

    /// Sets `x` to zero, in memory only when it is needed.
    pub fn clear_x(&mut self) {
        self.x_is_zero = true;
        self.shared_x.fill(0.0);
    }

    /// Makes `x` hold its value.
    pub fn settle_x(&mut self) {
        if self.x_is_zero {
            self.x.fill([0.0; 8]);
            self.x_is_zero = false;
        }
    }

    /// Takes `x` from a field in natural order.
    pub fn load_x<const D: usize>(&mut self, field: &Field<f64>, live: &Slots, shared: &[f64]) {
        self.x_is_zero = false;
        gather::<D>(field, live, &mut self.x, &mut self.sizes);
        self.shared_x.copy_from_slice(shared);
    }

    /// Takes `r` from a field in natural order, and measures it. Shared nodes without links get 0.
    pub fn load_r<const D: usize>(
        &mut self,
        field: &Field<f64>,
        live: &Slots,
        shared: &[f64],
        level: &Level<D>,
    ) -> ResidualNorm {
        gather::<D>(field, live, &mut self.r, &mut self.sizes);
        self.shared_r.copy_from_slice(shared);
        level.explicit.clear_unlinked(&mut self.shared_r);
        self.measure()
    }

    /// Measures `r`.
    pub fn measure_r<const D: usize>(&mut self) -> ResidualNorm {
        let (r, rows) = (&self.r, 2 * half_rows(D));
        each_block::<D, _>((cut(&mut self.sizes, 1),), |block, (size,)| {
            size[0] = blas::norm(r[block * rows..(block + 1) * rows].as_flattened());
        });
        self.measure()
    }

    /// `x += α p`, leaving `r` behind.
    pub fn axpy_x(&mut self, alpha: f64) {
        self.settle_x();
        blas::axpy(self.x.as_flattened_mut(), alpha, self.p.as_flattened());
        for (x, &p) in self.shared_x.iter_mut().zip(&self.shared_p) {
            *x += alpha * f64::from(p);
        }
    }

    /// Sets `x` to zero in cells and shared nodes that are no unknowns: a guess may come from an earlier system.
    pub fn clear_outside<const D: usize>(&mut self, level: &Level<D>) {
        level.explicit.clear_unlinked(&mut self.shared_x);
        let half = half_rows(D);
        each_block::<D, _>((cut(&mut self.x, 2 * half),), |block, (x,)| {
            if level.stencil.is_uniform(block) {
                return;
            }
            for (colour, x) in x.chunks_exact_mut(half).enumerate() {
                let diagonal = level.stencil.exact_of::<D>(block, colour).diagonal;
                for (x, diagonal) in x.as_flattened_mut().iter_mut().zip(diagonal.as_flattened()) {
                    *x = if *diagonal > 0.0 { *x } else { 0.0 };
                }
            }
        });
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.x.capacity() + self.r.capacity()) * 64
            + self.p.capacity() * 32
            + (self.shared_x.capacity()
                + self.shared_r.capacity()
                + self.partial.capacity()
                + self.contact_sums.capacity())
                * 8
            + self.shared_p.capacity() * 4
            + self.sizes.capacity() * 16
    }

    /// `p·A p`.
    pub fn energy<const D: usize>(&mut self, level: &Level<D>) -> f64 {
        let half = half_rows(D);
        let p = &self.p;
        each_block::<D, _>((cut(&mut self.partial, 1),), |block, (sum,)| {
            sum[0] = (0..2)
                .map(|colour| {
                    let start = 2 * block * half + colour * half;
                    kernels::energy(
                        &p[start..start + half],
                        &Around::new(p, 2 * half, (1 - colour) * half, &level.topology, block),
                        &level.stencil.exact_of::<D>(block, colour),
                        colour,
                    )
                })
                .sum();
        });
        let cells: f64 = self.partial[1..].iter().sum();
        let flat = self.p.as_flattened();
        let shared: f64 =
            self.shared_p.iter().zip(&level.explicit.diagonal).map(|(&p, d)| d * f64::from(p).powi(2)).sum();
        let shared_p = &self.shared_p;
        let mixed = level.explicit.sum_over_contacts(&mut self.contact_sums, |cell, links| {
            let pull = links.fold(0.0, |sum, node, link| sum + f64::from(link) * f64::from(shared_p[node]));
            f64::from(flat[paired_index::<D>(cell)]) * pull
        });
        let coupled: f64 =
            self.forces(level, |at| f64::from(flat[at]), &self.shared_p).iter().map(|f| f * f).sum();
        cells + shared - 2.0 * mixed + coupled
    }

    /// `W p` for a vector of cells and shared nodes.
    fn forces<const D: usize, T: Copy + Into<f64>>(
        &self,
        level: &Level<D>,
        cells: impl Fn(usize) -> f64,
        shared: &[T],
    ) -> Vec<f64> {
        level.coupled.gather(|node| match node.place() {
            Place::Cell { .. } => cells(paired_index::<D>(node)),
            Place::Explicit(index) => shared[index].into(),
        })
    }

    /// `r −= α Wᵀ f`.
    fn subtract_coupled<const D: usize>(&mut self, level: &Level<D>, alpha: f64, forces: &[f64]) {
        level.coupled.scatter(forces, |node, value| match node.place() {
            Place::Cell { .. } => self.r.as_flattened_mut()[paired_index::<D>(node)] -= alpha * value,
            Place::Explicit(index) => self.shared_r[index] -= alpha * value,
        });
    }

    /// `x += α p`, `r −= α A p`; the level's `b` becomes the new `r`, scaled and rounded. Measures `r`.
    pub fn step<const D: usize>(&mut self, level: &mut Level<D>, alpha: f64, scale: f64) -> ResidualNorm {
        let (p, shared_p) = (self.p.as_flattened(), &self.shared_p);
        let cell_p = |at: usize| f64::from(p[at]);
        let own_p = |node: usize| f64::from(shared_p[node]);
        add_contacts(&mut level.explicit, alpha, cell_p, own_p, &mut self.r, &mut self.shared_r);
        let forces = self.forces(level, |at| f64::from(self.p.as_flattened()[at]), &self.shared_p);
        self.subtract_coupled(level, alpha, &forces);
        for (x, &p) in self.shared_x.iter_mut().zip(&self.shared_p) {
            *x += alpha * f64::from(p);
        }
        let rows = 2 * half_rows(D);
        let (p, topology, stencil) = (&self.p, &level.topology, &level.stencil);
        let was_zero = std::mem::take(&mut self.x_is_zero);
        let parts = (
            cut(&mut self.r, rows),
            cut(&mut level.b, rows),
            cut(&mut self.x, rows),
            cut(&mut self.sizes, 1),
        );
        each_block::<D, _>(parts, |block, (r, b, x, size)| {
            size[0] = step_block::<f32, D>(block, r, b, alpha, scale, p, topology, stencil);
            let p = &p[block * rows..(block + 1) * rows];
            if was_zero {
                blas::scaled_copy(x.as_flattened_mut(), alpha, p.as_flattened());
            } else {
                blas::axpy(x.as_flattened_mut(), alpha, p.as_flattened());
            }
        });
        self.round_shared(level, scale);
        self.measure()
    }

    /// `r −= A x`, for an `r` that holds the right-hand side; otherwise as [`Self::step`].
    pub fn subtract_product<const D: usize>(&mut self, level: &mut Level<D>, scale: f64) -> ResidualNorm {
        self.settle_x();
        let (x, shared_x) = (self.x.as_flattened(), &self.shared_x);
        add_contacts(
            &mut level.explicit,
            1.0,
            |at| x[at],
            |node| shared_x[node],
            &mut self.r,
            &mut self.shared_r,
        );
        let forces = self.forces(level, |at| self.x.as_flattened()[at], &self.shared_x);
        self.subtract_coupled(level, 1.0, &forces);
        let rows = 2 * half_rows(D);
        let (x, topology, stencil) = (&self.x, &level.topology, &level.stencil);
        let parts = (cut(&mut self.r, rows), cut(&mut level.b, rows), cut(&mut self.sizes, 1));
        each_block::<D, _>(parts, |block, (r, b, size)| {
            size[0] = step_block::<f64, D>(block, r, b, 1.0, scale, x, topology, stencil);
        });
        self.round_shared(level, scale);
        self.measure()
    }

    /// Rounds `r` into the level's `b`.
    pub fn round_residual<const D: usize>(&mut self, level: &mut Level<D>, scale: f64) {
        let (rows, r) = (2 * half_rows(D), &self.r);
        each_block::<D, _>((cut(&mut level.b, rows),), |block, (b,)| {
            blas::round(b.as_flattened_mut(), r[block * rows..(block + 1) * rows].as_flattened(), scale);
        });
        self.round_shared(level, scale);
    }

    fn round_shared<const D: usize>(&self, level: &mut Level<D>, scale: f64) {
        for (r, b) in self.shared_r.iter().zip(&mut level.explicit.b) {
            *b = (r * scale) as f32;
        }
    }

    /// The size of `r` from those of its parts.
    fn measure(&self) -> ResidualNorm {
        let mut size = ResidualNorm::default();
        self.sizes[1..].iter().for_each(|&part| size.include_all(part));
        self.shared_r.iter().for_each(|&r| size.include(r));
        size
    }

    /// `z·b` for the level's `x` as `z`.
    pub fn alignment<const D: usize>(&mut self, level: &Level<D>) -> f64 {
        let half = half_rows(D);
        each_block::<D, _>((cut(&mut self.partial, 1),), |block, (sum,)| {
            sum[0] = (0..2)
                .map(|colour| {
                    let start = (2 * block + colour) * half;
                    blas::dot(
                        level.x[colour][block * half..(block + 1) * half].as_flattened(),
                        level.b[start..start + half].as_flattened(),
                    )
                })
                .sum();
        });
        let shared: f64 =
            level.explicit.x.iter().zip(&level.explicit.b).map(|(&x, &b)| f64::from(x) * f64::from(b)).sum();
        self.partial[1..].iter().sum::<f64>() + shared
    }

    /// `p = z + β p` for the level's `x` as `z`; `β = 0` forgets `p`, whatever it holds.
    pub fn update_direction<const D: usize>(&mut self, level: &Level<D>, beta: f64) {
        let half = half_rows(D);
        each_block::<D, _>((cut(&mut self.p, 2 * half),), |block, (p,)| {
            for (colour, p) in p.chunks_exact_mut(half).enumerate() {
                let z = &level.x[colour][block * half..(block + 1) * half];
                blas::xpby(p.as_flattened_mut(), z.as_flattened(), beta as f32);
            }
        });
        for (p, &z) in self.shared_p.iter_mut().zip(&level.explicit.x) {
            *p = if beta == 0.0 { z } else { z + beta as f32 * *p };
        }
    }
}

/// Subtracts what links between cells and shared nodes, and grounds of the latter, put into `α A p`; `p` in `cells` and `own`. A
/// shared node's row is summed as `Σ g (p_cell − p_node)`: the two sums by themselves are larger by orders of magnitude, and
/// their difference would be rounding.
fn add_contacts<const D: usize>(
    explicit: &mut Explicit<D>,
    alpha: f64,
    cells: impl Fn(usize) -> f64 + Sync,
    own: impl Fn(usize) -> f64 + Sync,
    r: &mut [Row<f64>],
    shared_r: &mut [f64],
) {
    let r = DisjointMut::new(r.as_flattened_mut());
    explicit.each_contact(|cell, links| {
        let pull = links.fold(0.0, |sum, node, link| sum + f64::from(link) * own(node));
        // SAFETY: each contact is a cell of its own.
        unsafe { *r.at(paired_index::<D>(cell)) += alpha * pull };
    });
    explicit.pull_shared_by(|cell, node| cells(paired_index::<D>(cell)) - own(node));
    for (r, (node, pull)) in shared_r.iter_mut().zip(explicit.pull_of_shared()) {
        *r += alpha * (pull - f64::from(explicit.ground[node]) * own(node));
    }
}

#[allow(clippy::too_many_arguments)]
#[inline]
fn step_block<T: Copy + Into<f64>, const D: usize>(
    block: usize,
    r: &mut [Row<f64>],
    b: &mut [Row<f32>],
    alpha: f64,
    scale: f64,
    p: &[Row<T>],
    topology: &super::topology::Topology<D>,
    stencil: &super::stencil::Stencil,
) -> ResidualNorm {
    let half = half_rows(D);
    let mut sum = ResidualNorm::default();
    for (colour, (r, b)) in r.chunks_exact_mut(half).zip(b.chunks_exact_mut(half)).enumerate() {
        let start = (2 * block + colour) * half;
        let size = kernels::step(
            r,
            b,
            scale,
            alpha,
            &p[start..start + half],
            &Around::new(p, 2 * half, (1 - colour) * half, topology, block),
            &stencil.exact_of::<D>(block, colour),
            colour,
        );
        sum.include_all(size);
    }
    sum
}

/// Copies the live blocks of a field into the solver's order.
fn gather<const D: usize>(
    field: &Field<f64>,
    live: &Slots,
    out: &mut [Row<f64>],
    sizes: &mut [ResidualNorm],
) {
    each_block::<D, _>((cut(out, 2 * half_rows(D)), cut(sizes, 1)), |block, (out, size)| {
        size[0] = kernels::load::<D>(out, field.block(live.as_slice()[block - 1] as usize).as_chunks().0);
    });
}

/// Copies back into a field; blocks that are not live become zero.
pub(super) fn scatter<const D: usize>(
    values: &[Row<f64>],
    slots: &Slots,
    block_of: &[u32],
    field: &mut Field<f64>,
) {
    let rows = 2 * half_rows(D);
    for_each_block(slots, field.parts(), |slot, out| match block_of[slot] as usize {
        0 => out.fill(0.0),
        block => kernels::store::<D>(out.as_chunks_mut().0, &values[block * rows..(block + 1) * rows]),
    });
}
