//! The multigrid cycle that conjugate gradients use as their preconditioner.

use crate::grid::{Halo, SIDE, block_cells, halo_cells};
use crate::linear::Preconditioner;
use crate::math::{flatten, power, unflatten};

use super::coefficients::Coefficients;
use super::each_block;
use super::kernel::{add_stress, load_around};
use super::level::{Hierarchy, Level};
use super::surroundings::{MOST_NEAR, NEAR};

/// Relaxation of the sweeps in a row: Chebyshev's for eigenvalues from 0.4 to 3.7 of the matrix over its diagonal. None is larger
/// than 4, and up to there the sweeps together make no error larger; those above 3 occur at walls only.
const RELAXATION: [f32; 3] = [0.2874, 0.4878, 1.610];
/// Rounds of these sweeps on the coarsest level.
const COARSEST_ROUNDS: usize = 6;

/// The vectors of a level.
#[derive(Clone, Default)]
pub(super) struct Work {
    /// The answer.
    x: Vec<f32>,
    /// Where the next one is written, and the residual.
    next: Vec<f32>,
    /// The right-hand side.
    b: Vec<f32>,
}

impl Work {
    /// Makes room for vectors of that length; all are zero in the void block.
    pub fn resize(&mut self, len: usize) {
        for values in [&mut self.x, &mut self.next, &mut self.b] {
            values.clear();
            values.resize(len, 0.0);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (self.x.capacity() + self.next.capacity() + self.b.capacity())
    }
}

/// One V-cycle from zero: three sweeps, the correction of the coarser level, three sweeps.
pub(super) struct Cycle<'a, const D: usize> {
    levels: &'a [Level<D>],
    work: &'a mut [Work],
}

impl<'a, const D: usize> Cycle<'a, D> {
    /// With the finest level.
    pub fn new(hierarchy: &'a mut Hierarchy<D>) -> (&'a Level<D>, Self) {
        let (levels, work) = hierarchy.parts();
        (&levels[0], Cycle { levels, work })
    }

    /// Solves a level roughly, from zero.
    fn descend(&mut self, depth: usize) {
        let level = &self.levels[depth];
        let (finer, coarser) = self.work.split_at_mut(depth + 1);
        let work = &mut finer[depth];
        start(level, work);
        RELAXATION[1..].iter().for_each(|&relaxation| relax(level, work, relaxation));
        let Some(coarse_work) = coarser.first_mut() else {
            return (1..COARSEST_ROUNDS).for_each(|_| relax_all(level, work));
        };
        find_residual(level, work);
        restrict(&self.levels[depth + 1], level, &work.next, &mut coarse_work.b);
        self.descend(depth + 1);
        let (finer, coarser) = self.work.split_at_mut(depth + 1);
        prolong(&self.levels[depth + 1], level, &coarser[0].x, &mut finer[depth].x);
        relax_all(level, &mut finer[depth]);
    }
}

impl<const D: usize> Preconditioner for Cycle<'_, D> {
    fn apply(&mut self, r: &[f64], z: &mut [f64]) {
        self.work[0].b.iter_mut().zip(r).for_each(|(b, &r)| *b = r as f32);
        self.descend(0);
        z.iter_mut().zip(&self.work[0].x).for_each(|(z, &x)| *z = f64::from(x));
    }
}

/// The first sweep, from zero.
fn start<const D: usize>(level: &Level<D>, work: &mut Work) {
    let part = D * block_cells(D);
    let Work { x, b, .. } = work;
    each_block(x, part, |block, x| {
        let (inverse, b) = (level.coefficients(block).inverse, &b[block * part..][..part]);
        for ((x, inverse), b) in x.iter_mut().zip(inverse).zip(b) {
            *x = RELAXATION[0] * inverse * b;
        }
    });
}

/// Calls `body` for every block with where to write, its `A x`, its coefficients, `x` and `b`.
fn with_products<const D: usize>(
    level: &Level<D>,
    work: &mut Work,
    body: impl Fn(&mut [f32], &[f32], Coefficients<'_>, &[f32], &[f32]) + Sync + Send,
) {
    let part = D * block_cells(D);
    let Work { x, next, b } = work;
    each_block(next, part, |block, next| {
        const MOST: usize = 3 * SIDE * SIDE * SIDE;
        let (mut halo, mut product) = ([0f32; 3 * MOST_NEAR], [0f32; MOST]);
        load_around::<f32, D>(level.places.around(block), x, &mut halo);
        let coefficients = level.coefficients(block);
        let [x, b] = [&x, &b].map(|values| &values[block * part..][..part]);
        let product = &mut product[..part];
        for ((product, x), mass) in product.iter_mut().zip(x).zip(coefficients.mass) {
            *product = mass * x;
        }
        add_stress::<f32, D>(coefficients.weights, &halo, product);
        body(next, product, coefficients, x, b);
    });
}

/// A sweep of damped Jacobi: `x += ω D⁻¹ (b − A x)`.
fn relax<const D: usize>(level: &Level<D>, work: &mut Work, relaxation: f32) {
    with_products(level, work, |next, product, coefficients, x, b| {
        for i in 0..next.len() {
            next[i] = x[i] + relaxation * coefficients.inverse[i] * (b[i] - product[i]);
        }
    });
    std::mem::swap(&mut work.x, &mut work.next);
}

/// A round of sweeps.
fn relax_all<const D: usize>(level: &Level<D>, work: &mut Work) {
    for relaxation in RELAXATION {
        relax(level, work, relaxation);
    }
}

/// `next = b − A x` on unknowns.
fn find_residual<const D: usize>(level: &Level<D>, work: &mut Work) {
    with_products(level, work, |next, product, coefficients, _, b| {
        for i in 0..next.len() {
            next[i] = if coefficients.inverse[i] > 0.0 { b[i] - product[i] } else { 0.0 };
        }
    });
}

/// How much a coarse face takes from the finer ones around it, along an axis: first by steps from twice its place, then weights.
const ALONG: &[(i32, f32)] = &[(-1, 0.5), (0, 1.0), (1, 0.5)];
const ACROSS: &[(i32, f32)] = &[(-1, 0.25), (0, 0.75), (1, 0.75), (2, 0.25)];
const FLAT: &[(i32, f32)] = &[(0, 1.0)];

/// The coarse right-hand side: the transpose of [`prolong`], per coarse cell.
fn restrict<const D: usize>(coarse: &Level<D>, fine: &Level<D>, residual: &[f32], b: &mut [f32]) {
    const HALF: usize = SIDE / 2;
    let part = D * block_cells(D);
    let scale = 1.0 / power(2, D) as f32;
    each_block(b, part, |block, b| {
        b.fill(0.0);
        let inverse = coarse.coefficients(block).inverse;
        for (octant, &child) in
            coarse.places.children(block).iter().enumerate().filter(|(_, child)| **child != 0)
        {
            let mut halo = [0f32; 3 * MOST_NEAR];
            load_around::<f32, D>(fine.places.around(child as usize), residual, &mut halo);
            let corner = unflatten::<D>(octant, 2).map(|bit| bit * HALF);
            for axis in 0..D {
                let halo = &halo[axis * halo_cells(NEAR, D)..];
                let taps: [_; 3] = std::array::from_fn(|k| match k {
                    k if k >= D => FLAT,
                    k if k == axis => ALONG,
                    _ => ACROSS,
                });
                for cell in 0..power(HALF, D) {
                    let cell = unflatten::<D>(cell, HALF);
                    let place = axis * block_cells(D)
                        + flatten::<D>(std::array::from_fn(|k| corner[k] + cell[k]), SIDE);
                    if inverse[place] == 0.0 {
                        continue;
                    }
                    let base = NEAR.index(cell.map(|c| 2 * c as i32)) as i32;
                    let mut sum = 0.0;
                    for &(z, wz) in taps[2] {
                        for &(y, wy) in taps[1] {
                            for &(x, wx) in taps[0] {
                                let step = x + y * NEAR.stride(1) as i32 + z * NEAR.stride(2) as i32;
                                sum += wz * wy * wx * halo[(base + step) as usize];
                            }
                        }
                    }
                    b[place] = scale * sum;
                }
            }
        }
    });
}

/// Adds the coarse correction to `x`, interpolated linearly: along its own axis every other face coincides with a coarse one,
/// across it faces lie a quarter of the way between two.
fn prolong<const D: usize>(coarse: &Level<D>, fine: &Level<D>, correction: &[f32], x: &mut [f32]) {
    const HALF: i32 = SIDE as i32 / 2;
    let part = D * block_cells(D);
    each_block(x, part, |block, x| {
        let (parent, octant) = fine.places.parent(block);
        let mut halo = [0f32; 3 * MOST_NEAR];
        load_around::<f32, D>(coarse.places.around(parent), correction, &mut halo);
        let corner = unflatten::<D>(octant, 2).map(|bit| bit as i32 * HALF);
        let inverse = fine.coefficients(block).inverse;
        for axis in 0..D {
            let halo = &halo[axis * halo_cells(NEAR, D)..];
            for local in 0..block_cells(D) {
                let place = axis * block_cells(D) + local;
                if inverse[place] > 0.0 {
                    x[place] += interpolate::<D>(halo, NEAR, corner, unflatten(local, SIDE), axis);
                }
            }
        }
    });
}

/// The value of a coarse field at a low face of a fine cell; `corner` is the coarse cell where the fine block starts.
#[inline]
fn interpolate<const D: usize>(
    values: &[f32],
    halo: Halo,
    corner: [i32; D],
    cell: [usize; D],
    axis: usize,
) -> f32 {
    let base = halo.index::<D>(std::array::from_fn(|k| corner[k] + cell[k] as i32 / 2)) as i32;
    let mut steps = [(0, 0.0); 3];
    for k in 0..D {
        let (is_odd, stride) = (cell[k] % 2 == 1, halo.stride(k) as i32);
        steps[k] = match (k == axis, is_odd) {
            (true, false) => (0, 0.0),
            (true, true) => (stride, 0.5),
            (false, false) => (-stride, 0.25),
            (false, true) => (stride, 0.25),
        };
    }
    let mut sum = 0.0;
    for corner in 0..power(2, D) {
        let (mut place, mut weight) = (base, 1.0);
        for (k, &(step, share)) in steps.iter().enumerate().take(D) {
            let is_beyond = corner & (1 << k) != 0;
            place += if is_beyond { step } else { 0 };
            weight *= if is_beyond { share } else { 1.0 - share };
        }
        sum += weight * values[place as usize];
    }
    sum
}
