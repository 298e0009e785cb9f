//! The f64 side of a solve: vectors in the order of the finest level, and the products of conjugate gradients.
//!
//! `A p` is never stored: it is cheaper to compute it twice, once for `p·A p` and once for `r −= α A p`, than to send it
//! through memory. Terms beyond the cell network (shared nodes) add to both in [`Vectors::energy`] and
//! [`Vectors::step`]; any further symmetric term has its place there.

use crate::grid::{Field, Slots, for_each_block};

use super::blas;
use super::explicit::paired_index;
use super::kernels::{self, Around};
use super::krylov::ResidualNorm;
use super::layout::{Row, half_rows};
use super::level::Level;
use super::parallel::{Cut, each_block};
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
        each_block::<D, _>((Cut(&mut self.sizes, 1),), |block, (size,)| {
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
        each_block::<D, _>((Cut(&mut self.x, 2 * half),), |block, (x,)| {
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
            + (self.shared_x.capacity() + self.shared_r.capacity() + self.partial.capacity()) * 8
            + self.shared_p.capacity() * 4
            + self.sizes.capacity() * 16
    }

    /// `p·A p`.
    pub fn energy<const D: usize>(&mut self, level: &Level<D>) -> f64 {
        let half = half_rows(D);
        let p = &self.p;
        each_block::<D, _>((Cut(&mut self.partial, 1),), |block, (sum,)| {
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
        let mixed: f64 = level
            .explicit
            .contact_links()
            .map(|(cell, node, link)| {
                f64::from(link) * f64::from(flat[paired_index::<D>(cell)]) * f64::from(self.shared_p[node])
            })
            .sum();
        cells + shared - 2.0 * mixed
    }

    /// `x += α p`, `r −= α A p`; the level's `b` becomes the new `r`, scaled and rounded. Measures `r`.
    pub fn step<const D: usize>(&mut self, level: &mut Level<D>, alpha: f64, scale: f64) -> ResidualNorm {
        let flat = self.p.as_flattened();
        for (cell, node, link) in level.explicit.contact_links() {
            let (at, link) = (paired_index::<D>(cell), f64::from(link));
            self.r.as_flattened_mut()[at] += alpha * link * f64::from(self.shared_p[node]);
            self.shared_r[node] += alpha * link * f64::from(flat[at]);
        }
        for (node, &p) in self.shared_p.iter().enumerate() {
            self.shared_x[node] += alpha * f64::from(p);
            self.shared_r[node] -= alpha * level.explicit.diagonal[node] * f64::from(p);
        }
        let rows = 2 * half_rows(D);
        let (p, topology, stencil) = (&self.p, &level.topology, &level.stencil);
        let was_zero = std::mem::take(&mut self.x_is_zero);
        let parts = (
            Cut(&mut self.r, rows),
            Cut(&mut level.b, rows),
            Cut(&mut self.x, rows),
            Cut(&mut self.sizes, 1),
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
        for (cell, node, link) in level.explicit.contact_links() {
            let (at, link) = (paired_index::<D>(cell), f64::from(link));
            self.r.as_flattened_mut()[at] += link * self.shared_x[node];
            self.shared_r[node] += link * self.x.as_flattened()[at];
        }
        for (node, &x) in self.shared_x.iter().enumerate() {
            self.shared_r[node] -= level.explicit.diagonal[node] * x;
        }
        let rows = 2 * half_rows(D);
        let (x, topology, stencil) = (&self.x, &level.topology, &level.stencil);
        let parts = (Cut(&mut self.r, rows), Cut(&mut level.b, rows), Cut(&mut self.sizes, 1));
        each_block::<D, _>(parts, |block, (r, b, size)| {
            size[0] = step_block::<f64, D>(block, r, b, 1.0, scale, x, topology, stencil);
        });
        self.round_shared(level, scale);
        self.measure()
    }

    /// Rounds `r` into the level's `b`.
    pub fn round_residual<const D: usize>(&mut self, level: &mut Level<D>, scale: f64) {
        let (rows, r) = (2 * half_rows(D), &self.r);
        each_block::<D, _>((Cut(&mut level.b, rows),), |block, (b,)| {
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
        each_block::<D, _>((Cut(&mut self.partial, 1),), |block, (sum,)| {
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
        each_block::<D, _>((Cut(&mut self.p, 2 * half),), |block, (p,)| {
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
    each_block::<D, _>((Cut(out, 2 * half_rows(D)), Cut(sizes, 1)), |block, (out, size)| {
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
