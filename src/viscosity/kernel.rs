//! The stress on the faces of a block.

use std::ops::{Add, AddAssign, Mul, Sub};

use macro_rules_attribute::apply;

use crate::grid::{Blocks, Field, SIDE, block_cells, halo_cells, load_halo};
use crate::math::{power, simd};

use super::surroundings::{MOST_NEAR, NEAR};

/// A floating-point number that the kernel is compiled for.
pub(super) trait Number:
    Copy
    + Default
    + From<f32>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + AddAssign
    + Send
    + Sync
{
}

impl Number for f32 {}
impl Number for f64 {}

/// Eight numbers of a halo, from a place on.
#[inline(always)]
fn row<T>(values: &[T], at: usize) -> &[T; SIDE] {
    values[at..].first_chunk().expect("rows end inside")
}

/// Where a row of eight cells of a block lies in its halo.
#[inline(always)]
fn place_of_row<const D: usize>(row: usize) -> usize {
    (0..D).map(|axis| NEAR.stride(axis)).sum::<usize>()
        + (1..D).map(|axis| row / power(SIDE, axis - 1) % SIDE * NEAR.stride(axis)).sum::<usize>()
}

/// `out += Eᵀ K E x` on the faces of a block; `x` holds a halo per axis.
///
/// `weights` hold a halo for every pair of axes: at `a, a` what the normal sample of a cell weighs, at `a, b` what the difference
/// of component `a` along `b` counts in the shear sample at the cell's low edge, so that the sample's stress is
/// `s = w_ab Δ_b u_a + w_ba Δ_a u_b`, and component `a` feels `w_ab s`.
#[apply(simd)]
pub(super) fn add_stress<T: Number, const D: usize>(weights: &[f32], x: &[T], out: &mut [T]) {
    let cells = halo_cells(NEAR, D);
    for a in 0..D {
        let (out, across) = (&mut out[a * block_cells(D)..][..block_cells(D)], NEAR.stride(a));
        let (u, w) = (&x[a * cells..][..cells], &weights[(a * D + a) * cells..][..cells]);
        for (place, out) in out.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
            let at = place_of_row::<D>(place);
            let (low, here, high) = (row(u, at - across), row(u, at), row(u, at + across));
            let (below, above) = (row(w, at - across), row(w, at));
            for i in 0..SIDE {
                out[i] += T::from(below[i]) * (here[i] - low[i]) - T::from(above[i]) * (high[i] - here[i]);
            }
        }
        for b in (0..D).filter(|&b| b != a) {
            let along = NEAR.stride(b);
            let v = &x[b * cells..][..cells];
            let p = &weights[(a * D + b) * cells..][..cells];
            let q = &weights[(b * D + a) * cells..][..cells];
            for (place, out) in out.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
                let at = place_of_row::<D>(place);
                let (low, here, high) = (row(u, at - along), row(u, at), row(u, at + along));
                // The other component beside the lower edge and the higher one, on both sides.
                let [[v00, v01], [v10, v11]] = [at, at + along].map(|at| [row(v, at - across), row(v, at)]);
                let ([p0, p1], [q0, q1]) =
                    ([at, at + along].map(|at| row(p, at)), [at, at + along].map(|at| row(q, at)));
                for i in 0..SIDE {
                    let [p0, p1, q0, q1] = [p0[i], p1[i], q0[i], q1[i]].map(T::from);
                    let below = p0 * (here[i] - low[i]) + q0 * (v01[i] - v00[i]);
                    let above = p1 * (high[i] - here[i]) + q1 * (v11[i] - v10[i]);
                    out[i] += p0 * below - p1 * above;
                }
            }
        }
    }
}

/// Loads the sums of velocities around a block, one halo per axis.
pub(super) fn load_faces<const D: usize>(
    blocks: &Blocks<D>,
    velocity: [&[Field<f32>; D]; 2],
    slot: usize,
    out: &mut [f64; 3 * MOST_NEAR],
) {
    let cells = halo_cells(NEAR, D);
    let mut halo = [[0f32; MOST_NEAR]; 2];
    for axis in 0..D {
        for (halo, velocity) in halo.iter_mut().zip(velocity) {
            load_halo(blocks, &velocity[axis], slot, NEAR, halo);
        }
        for (at, out) in out[axis * cells..][..cells].iter_mut().enumerate() {
            *out = f64::from(halo[0][at]) + f64::from(halo[1][at]);
        }
    }
}

/// Loads the values of a vector around a block, one halo per axis: `around` are the blocks around it, itself in the middle, and
/// every block holds the faces of all axes one after the other.
#[inline(always)]
pub(super) fn load_around<T: Copy, const D: usize>(around: &[u32], values: &[T], out: &mut [T]) {
    let (cells, side) = (halo_cells(NEAR, D), NEAR.side);
    // Along y (and z): which block, from where in it, how far, and where that goes.
    const SPANS: [(usize, usize, usize); 3] = [(SIDE - 1, 1, 0), (0, SIDE, 1), (0, 1, 1 + SIDE)];
    let layers = if D == 3 { &SPANS[..] } else { &[(0, 1, 0)] };
    for (z, &(first_z, count_z, to_z)) in layers.iter().enumerate() {
        for (y, &(first_y, count_y, to_y)) in SPANS.iter().enumerate() {
            let place = 3 * y + if D == 3 { 9 * z } else { 0 };
            for axis in 0..D {
                let [low, here, high] = [0, 1, 2].map(|x| {
                    &values[(around[place + x] as usize * D + axis) * block_cells(D)..][..block_cells(D)]
                });
                let out = &mut out[axis * cells..][..cells];
                for k in 0..count_z {
                    for j in 0..count_y {
                        let from = ((first_z + k) * SIDE + first_y + j) * SIDE;
                        let target = &mut out[((to_z + k) * side + to_y + j) * side..][..side];
                        target[0] = low[from + SIDE - 1];
                        target[1..=SIDE].copy_from_slice(&here[from..from + SIDE]);
                        target[SIDE + 1] = high[from];
                    }
                }
            }
        }
    }
}
