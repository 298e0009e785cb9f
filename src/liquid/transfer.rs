//! Particles to grid and back: FLIP, APIC and blends of the two.
//!
//! Both directions work block by block on a small dense box with one cell of margin, which stays in the first-level
//! cache. Scattering visits blocks in 2^D colours, so that no two threads ever add to the same face, and every
//! face collects its contributions in the same order for any number of threads.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::{Blocks, Field, Halo, SIDE, Slots, block_cells, for_each_block, halo_cells, load_halo};
use crate::math::power;

use super::kernel::{
    LANES, LaneStencil, Lanes, Stencil, gather, lane_row_weight, lane_stencil, load_lanes, row_offset,
    row_weight, stencil,
};
use super::particles::{pack, unpack};
use super::{CellRanges, FaceMask, Particles};

const HALO: Halo = Halo::new(1);
/// Faces of one component in a block with margins, in 3D, rounded up to a power of two.
const MOST: usize = halo_cells(HALO, 3).next_power_of_two();

/// Scatters the particles' momentum and divides by their weight: `velocity` becomes the weighted average of the
/// particles around each face, zero where there is none; `mask` says where there is one.
///
/// `weight` is scratch memory of the same shape.
pub fn particles_to_grid<const D: usize>(
    particles: &Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    velocity: &mut [Field<f32>; D],
    weight: &mut [Field<f32>; D],
    mask: &mut [FaceMask; D],
    colour: &mut Slots,
) {
    let clear = velocity.each_mut().map(Field::parts);
    let clear_weight = weight.each_mut().map(Field::parts);
    for_each_block(blocks.slots(), (clear, clear_weight), |_, (velocity, weight)| {
        velocity.into_iter().chain(weight).for_each(|values| values.fill(0.0));
    });
    let out = Sums {
        momentum: velocity.each_mut().map(|field| field.as_mut_slice().as_mut_ptr()),
        weight: weight.each_mut().map(|field| field.as_mut_slice().as_mut_ptr()),
    };
    for parity in 0..power(2, D) {
        colour.refill(blocks.slots(), |slot| {
            let coords = blocks.coords(slot);
            !ranges.of_block(slot).is_empty()
                && (0..D).all(|axis| (coords[axis] & 1) as usize == (parity >> axis) & 1)
        });
        colour.as_slice().par_iter().for_each(|&slot| {
            let out = &out;
            let mut sums = [0f32; 3 * 2 * MOST];
            scatter_block(
                particles,
                ranges.of_block(slot as usize),
                blocks.first_cell(slot as usize),
                &mut sums,
            );
            // SAFETY: blocks of one colour are two apart, so that their margins do not meet.
            unsafe { out.add_block(blocks, slot as usize, &sums) };
        });
    }
    let (velocity, weight) = (velocity.each_mut().map(Field::parts), weight.each_mut().map(Field::parts));
    let mask = mask.each_mut().map(|mask| mask.bits.parts());
    for_each_block(blocks.slots(), (velocity, weight, mask), |_, (velocity, weight, mask)| {
        for ((velocity, weight), mask) in velocity.into_iter().zip(weight).zip(mask) {
            for ((velocity, weight), bits) in velocity.chunks_mut(SIDE).zip(weight.chunks(SIDE)).zip(mask) {
                *bits = 0;
                for x in 0..SIDE {
                    // Fainter traces of a particle say nothing reliable about its velocity.
                    let known = weight[x] > 1e-4;
                    velocity[x] = if known { velocity[x] / weight[x] } else { 0.0 };
                    *bits |= (known as u8) << x;
                }
            }
        }
    });
}

/// Adds a block's particles into pairs of (momentum, weight), one box with margins per component.
#[multiversion(targets("x86_64+avx2+fma", "x86_64+avx"))]
fn scatter_block<const D: usize>(
    particles: &Particles<D>,
    range: std::ops::Range<usize>,
    first_cell: [i32; D],
    sums: &mut [f32; 3 * 2 * MOST],
) {
    let (position, velocity) = (&particles.position[range.clone()], &particles.velocity[range.clone()]);
    for axis in 0..D {
        let affine = &particles.affine[axis][range.clone()];
        let sums: &mut [f32; 2 * MOST] =
            (&mut sums[axis * 2 * MOST..(axis + 1) * 2 * MOST]).try_into().expect("one box per component");
        for ((position, velocity), affine) in position.iter().zip(velocity).zip(affine) {
            let x: [f32; D] = std::array::from_fn(|k| position[k] - first_cell[k] as f32);
            let Stencil { base, fraction } = stencil(&x, axis, HALO);
            let slope = affine.map(unpack);
            // Velocity at the lowest face of the stencil, and at its neighbour along x.
            let lowest = (0..D).fold(velocity[axis], |v, k| v - slope[k] * fraction[k]);
            for corner in 0..1 << (D - 1) {
                let (weight, offset) = row_weight(&fraction, corner, HALO);
                let v =
                    (1..D).fold(lowest, |v, k| if corner & (1 << (k - 1)) != 0 { v + slope[k] } else { v });
                let (w0, w1) = (weight * (1.0 - fraction[0]), weight * fraction[0]);
                let add = [w0 * v, w0, w1 * (v + slope[0]), w1];
                let row = &mut sums[2 * (base + offset)..][..4];
                for i in 0..4 {
                    row[i] += add[i];
                }
            }
        }
    }
}

/// The grid's accumulators, written by several threads at places of their own.
struct Sums<const D: usize> {
    momentum: [*mut f32; D],
    weight: [*mut f32; D],
}
// SAFETY: see `particles_to_grid`: concurrent calls of `add_block` touch disjoint faces.
unsafe impl<const D: usize> Sync for Sums<D> {}

impl<const D: usize> Sums<D> {
    /// Adds a block with margins to the grid.
    ///
    /// # Safety
    /// No other thread may touch the faces of this block or of the one-cell margin around it.
    unsafe fn add_block(&self, blocks: &Blocks<D>, slot: usize, sums: &[f32; 3 * 2 * MOST]) {
        let around = blocks.around(slot);
        let cells = block_cells(D);
        for row in 0..power(HALO.side, D - 1) {
            let (mut rest, mut block, mut local) = (row, 0, 0);
            for axis in 1..D {
                let coordinate = rest % HALO.side + SIDE - HALO.margin;
                rest /= HALO.side;
                block += coordinate / SIDE * power(3, axis);
                local += coordinate % SIDE * power(SIDE, axis);
            }
            for axis in 0..D {
                let pairs = &sums[axis * 2 * MOST + 2 * row * HALO.side..][..2 * HALO.side];
                let add = |side: usize, x: usize, pair: &[f32]| {
                    let owner = around[block + side] as usize;
                    if owner != crate::grid::VOID as usize && pair[1] != 0.0 {
                        let index = owner * cells + local + x;
                        // SAFETY: an active slot's cell, ours alone by the caller's promise.
                        unsafe {
                            *self.momentum[axis].add(index) += pair[0];
                            *self.weight[axis].add(index) += pair[1];
                        }
                    }
                };
                add(0, SIDE - 1, &pairs[..2]);
                for x in 0..SIDE {
                    add(1, x, &pairs[2 * (x + 1)..2 * (x + 2)]);
                }
                add(2, 0, &pairs[2 * (SIDE + 1)..]);
            }
        }
    }
}

/// Gives the particles their new velocities: the share `flip` keeps each particle's own velocity and adds the
/// grid's change since `before`, the rest takes the grid's velocity and its gradient (APIC).
pub fn grid_to_particles<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    before: &[Field<f32>; D],
    flip: f32,
) {
    let out = ParticleOut {
        velocity: particles.velocity.as_mut_ptr(),
        affine: particles.affine.each_mut().map(|row| row.as_mut_ptr()),
    };
    let position = &particles.position;
    blocks.slots().as_slice().par_iter().with_min_len(2).for_each(|&slot| {
        let (slot, out) = (slot as usize, &out);
        let range = ranges.of_block(slot);
        if range.is_empty() {
            return;
        }
        let (mut now, mut change) = ([[0f32; MOST]; D], [[0f32; MOST]; D]);
        for axis in 0..D {
            load_halo(blocks, &velocity[axis], slot, HALO, &mut now[axis]);
            load_halo(blocks, &before[axis], slot, HALO, &mut change[axis]);
            for (change, now) in change[axis].iter_mut().zip(&now[axis]) {
                *change = now - *change;
            }
        }
        // SAFETY: blocks have disjoint ranges of particles.
        let (velocity, affine) = unsafe { out.range(range.clone()) };
        let first_cell = blocks.first_cell(slot).map(|c| c as f32);
        gather_block(&position[range], velocity, affine, first_cell, &now, &change, flip);
    });
}

/// The particles' arrays, written by several threads in disjoint ranges.
struct ParticleOut<const D: usize> {
    velocity: *mut [f32; D],
    affine: [*mut [u16; D]; D],
}
// SAFETY: used in disjoint ranges only.
unsafe impl<const D: usize> Sync for ParticleOut<D> {}

impl<const D: usize> ParticleOut<D> {
    /// # Safety
    /// The range must be inside the arrays and overlap no other one in use.
    #[allow(clippy::mut_from_ref, reason = "the caller promises disjoint ranges")]
    unsafe fn range(&self, range: std::ops::Range<usize>) -> (&mut [[f32; D]], [&mut [[u16; D]]; D]) {
        // SAFETY: by the caller's promise.
        unsafe {
            (
                std::slice::from_raw_parts_mut(self.velocity.add(range.start), range.len()),
                self.affine.map(|row| std::slice::from_raw_parts_mut(row.add(range.start), range.len())),
            )
        }
    }
}

/// Interpolates velocity and change at a block's particles.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn gather_block<const D: usize>(
    position: &[[f32; D]],
    velocity: &mut [[f32; D]],
    affine: [&mut [[u16; D]]; D],
    first_cell: [f32; D],
    now: &[[f32; MOST]; D],
    change: &[[f32; MOST]; D],
    flip: f32,
) {
    for (axis, affine) in affine.into_iter().enumerate() {
        let particles = position.chunks(LANES).zip(velocity.chunks_mut(LANES)).zip(affine.chunks_mut(LANES));
        for ((position, velocity), affine) in particles {
            let x = load_lanes(position, &first_cell);
            let at = gather_lanes(&now[axis], &change[axis], &x, axis);
            for (l, (velocity, affine)) in velocity.iter_mut().zip(affine).enumerate() {
                velocity[axis] = flip * (velocity[axis] + at.change[l]) + (1.0 - flip) * at.velocity[l];
                for k in 0..D {
                    affine[k] = pack((1.0 - flip) * at.slope[k][l]);
                }
            }
        }
    }
}

/// One component of the grid's velocity at several particles.
struct Gathered<const D: usize> {
    velocity: Lanes,
    change: Lanes,
    /// Change of the velocity across one cell, along each axis.
    slope: [Lanes; D],
}

#[inline(always)]
fn gather_lanes<const D: usize>(
    now: &[f32; MOST],
    change: &[f32; MOST],
    x: &[Lanes; D],
    axis: usize,
) -> Gathered<D> {
    let LaneStencil { base, fraction } = lane_stencil(x, axis, HALO);
    let mut at = Gathered { velocity: [0.0; LANES], change: [0.0; LANES], slope: [[0.0; LANES]; D] };
    for row in 0..1 << (D - 1) {
        let offset = row_offset(row, HALO);
        let weight = lane_row_weight(&fraction, row);
        let (now_low, now_high) = (gather(now, &base, offset), gather(now, &base, offset + 1));
        let (change_low, change_high) = (gather(change, &base, offset), gather(change, &base, offset + 1));
        let mut along = [0.0; LANES];
        for l in 0..LANES {
            along[l] = (1.0 - fraction[0][l]) * now_low[l] + fraction[0][l] * now_high[l];
            at.velocity[l] += weight[l] * along[l];
        }
        for l in 0..LANES {
            at.change[l] +=
                weight[l] * ((1.0 - fraction[0][l]) * change_low[l] + fraction[0][l] * change_high[l]);
        }
        for l in 0..LANES {
            at.slope[0][l] += weight[l] * (now_high[l] - now_low[l]);
        }
        for k in 1..D {
            // The derivative of the weight along k: the weight along the other axis, with the sign of the side.
            let other = if D == 3 { 3 - k } else { 0 };
            for l in 0..LANES {
                let share = match (D, row & (1 << other.max(1) >> 1) != 0) {
                    (2, _) => 1.0,
                    (_, true) => fraction[other][l],
                    (_, false) => 1.0 - fraction[other][l],
                };
                let signed = if row & (1 << (k - 1)) != 0 { share } else { -share };
                at.slope[k][l] += signed * along[l];
            }
        }
    }
    at
}
