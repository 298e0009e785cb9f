//! Moving particles through the velocity field, and keeping them out of solids.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::geometry::{Boundary, Nearness, Walls};
use crate::grid::{Blocks, Field, Grid, Halo, halo_cells, load_halo};
use crate::math::{Real, Vector, power};

use super::kernel::{LANES, Lanes, lane_sample, load_lanes};
use super::shared::SharedOut;
use super::{CellRanges, Particles};

/// Cells a particle may cross in one substep; the step size keeps to it. Blocks are stored four cells around every
/// particle, and velocities extrapolated as far.
pub const MOST_CELLS: f64 = 3.5;

/// Room for the last point where a velocity is looked up, three quarters of the way, and for the interpolation there.
const HALO: Halo = Halo::new(4);
const MOST: usize = halo_cells(HALO, 3);

/// Room for the end of the way, where wall distances are looked up.
const WALLS: Halo = Halo::new(5);
const MOST_CORNERS: usize = halo_cells(WALLS, 3).next_power_of_two();

/// Distance kept from solids, cells: just enough not to be caught by rounding.
const SKIN: f32 = 0.02;

/// Moves every particle by `dt` with Ralston's third-order Runge–Kutta scheme, then pushes those that ended up in
/// a solid back to its surface. Particles that leave through an open side die.
pub fn advect<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    dt: Real,
) {
    let cells_per_speed = (dt / blocks.grid().dx) as f32;
    let position = SharedOut(particles.position.as_mut_ptr());
    blocks.slots().as_slice().par_iter().for_each(|&slot| {
        let (slot, position) = (slot as usize, &position);
        let range = ranges.of_block(slot);
        if range.is_empty() {
            return;
        }
        let mut faces = [0f32; 3 * MOST];
        for axis in 0..D {
            load_halo(blocks, &velocity[axis], slot, HALO, &mut faces[axis * MOST..(axis + 1) * MOST]);
        }
        // SAFETY: blocks have disjoint ranges of particles.
        let position = unsafe { std::slice::from_raw_parts_mut(position.0.add(range.start), range.len()) };
        let first_cell = blocks.first_cell(slot).map(|c| c as f32);
        advect_block(position, first_cell, &faces, cells_per_speed);
    });
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn advect_block<const D: usize>(
    position: &mut [[f32; D]],
    first_cell: [f32; D],
    faces: &[f32; 3 * MOST],
    cells_per_speed: f32,
) {
    for position in position.chunks_mut(LANES) {
        let x = load_lanes(position, &first_cell);
        let k1 = lane_velocity(faces, &x, cells_per_speed);
        let k2 = lane_velocity(faces, &along(&x, &k1, 0.5), cells_per_speed);
        let k3 = lane_velocity(faces, &along(&x, &k2, 0.75), cells_per_speed);
        for (l, position) in position.iter_mut().enumerate() {
            for k in 0..D {
                position[k] += (2.0 * k1[k][l] + 3.0 * k2[k][l] + 4.0 * k3[k][l]) * (1.0 / 9.0);
            }
        }
    }
}

/// The way a particle would go in a substep, in cells.
#[inline(always)]
fn lane_velocity<const D: usize>(
    faces: &[f32; 3 * MOST],
    x: &[Lanes; D],
    cells_per_speed: f32,
) -> [Lanes; D] {
    let mut way = [[0.0; LANES]; D];
    for axis in 0..D {
        let component: &[f32; MOST] =
            (&faces[axis * MOST..(axis + 1) * MOST]).try_into().expect("one box per component");
        way[axis] = lane_sample(component, x, axis, HALO);
        for l in 0..LANES {
            way[axis][l] *= cells_per_speed;
        }
    }
    way
}

/// `x + share · way`, kept inside the box: a particle faster than the step allows reads its border.
#[inline(always)]
fn along<const D: usize>(x: &[Lanes; D], way: &[Lanes; D], share: f32) -> [Lanes; D] {
    let (low, high) = (0.5 - HALO.margin as f32, (HALO.side - HALO.margin) as f32 - 1.001);
    let mut moved = *x;
    for k in 0..D {
        for l in 0..LANES {
            let to = x[k][l] + share * way[k][l];
            moved[k][l] = if to > low { if to < high { to } else { high } } else { low };
        }
    }
    moved
}

/// Pushes particles out of solids, takes away the velocity that drove them in, and removes those that left through
/// an open side. Particles are where [`advect`] put them; `ranges` is still that of the last sort.
pub fn collide<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    walls: &Walls<D>,
    time: Real,
) {
    let position = SharedOut(particles.position.as_mut_ptr());
    let velocity = SharedOut(particles.velocity.as_mut_ptr());
    let sides = Sides::new(walls, blocks.grid());
    blocks.slots().as_slice().par_iter().for_each(|&slot| {
        let (slot, position, velocity) = (slot as usize, &position, &velocity);
        let range = ranges.of_block(slot);
        if range.is_empty() || boundary.nearness(slot) == Nearness::Clear && !sides.reach(blocks, slot) {
            return;
        }
        let mut corner = [0f32; MOST_CORNERS];
        load_halo(blocks, &boundary.corner, slot, WALLS, &mut corner);
        // SAFETY: blocks have disjoint ranges of particles.
        let (position, velocity) = unsafe {
            (
                std::slice::from_raw_parts_mut(position.0.add(range.start), range.len()),
                std::slice::from_raw_parts_mut(velocity.0.add(range.start), range.len()),
            )
        };
        let first = blocks.first_cell(slot).map(|c| c as f32);
        let moving = boundary.nearness(slot) == Nearness::Moving;
        for (position, velocity) in position.chunks_mut(LANES).zip(velocity.chunks_mut(LANES)) {
            // Sides first: beyond them there are no wall distances to look at.
            position.iter_mut().for_each(|position| sides.keep(position));
            let distance = wall_distances(&corner, position, &first);
            for ((position, velocity), distance) in position.iter_mut().zip(velocity).zip(distance) {
                if distance < SKIN {
                    let wall = if moving {
                        let at = Vector::from_fn(|k, _| position[k] as Real * blocks.grid().dx);
                        walls.velocity(&at, time)
                    } else {
                        Vector::zeros()
                    };
                    push_out(&corner, position, velocity, &first, &wall);
                    sides.keep(position);
                }
            }
        }
    });
}

/// Wall distances of up to eight particles; those of dead ones mean nothing.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512bw+avx512dq+avx2+fma", "x86_64+avx2+fma"))]
fn wall_distances<const D: usize>(
    corner: &[f32; MOST_CORNERS],
    position: &[[f32; D]],
    first: &[f32; D],
) -> Lanes {
    let (low, high) = (-(WALLS.margin as f32), (WALLS.side - WALLS.margin) as f32 - 1.001);
    let mut x = load_lanes(position, first);
    for x in &mut x {
        for x in x {
            // Also catches the NaN of a dead particle.
            *x = if *x > low { if *x < high { *x } else { high } } else { low };
        }
    }
    lane_sample(corner, &x, D, WALLS)
}

/// Moves a particle to the wall's surface and takes away the velocity that drove it in.
fn push_out<const D: usize>(
    corner: &[f32; MOST_CORNERS],
    position: &mut [f32; D],
    velocity: &mut [f32; D],
    first: &[f32; D],
    wall: &Vector<D>,
) {
    let mut x: [f32; D] = std::array::from_fn(|k| position[k] - first[k]);
    for attempt in 0..3 {
        let (distance, normal) = distance_and_normal(corner, &x);
        if distance >= SKIN || !Particles::is_alive(position) {
            break;
        }
        if attempt == 0 {
            let into: f32 = (0..D).map(|k| (velocity[k] - wall[k] as f32) * normal[k]).sum();
            (0..D).for_each(|k| velocity[k] -= into.min(0.0) * normal[k]);
        }
        (0..D).for_each(|k| x[k] += (SKIN - distance) * normal[k]);
    }
    *position = std::array::from_fn(|k| x[k] + first[k]);
}

/// Interpolated wall distance and its normalised gradient at a point given in cells from the block's low corner.
#[inline]
fn distance_and_normal<const D: usize>(corner: &[f32; MOST_CORNERS], x: &[f32; D]) -> (f32, [f32; D]) {
    let (mut base, mut fraction) = (0, [0.0; D]);
    for k in 0..D {
        let shifted = (x[k] + WALLS.margin as f32).clamp(0.0, WALLS.side as f32 - 1.001);
        let low = shifted as i32 as usize;
        fraction[k] = shifted - low as f32;
        base += low * WALLS.stride(k);
    }
    let (mut value, mut gradient) = (0.0, [0.0; D]);
    for c in 0..power(2, D) {
        let high = |k: usize| c & (1 << k) != 0;
        let sample = corner[base + (0..D).filter(|&k| high(k)).map(|k| WALLS.stride(k)).sum::<usize>()];
        let weight = |k: usize| if high(k) { fraction[k] } else { 1.0 - fraction[k] };
        value += sample * (0..D).map(weight).product::<f32>();
        for k in 0..D {
            let others: f32 = (0..D).filter(|&j| j != k).map(weight).product();
            gradient[k] += if high(k) { sample * others } else { -sample * others };
        }
    }
    let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt().max(1e-6);
    (value, gradient.map(|g| g / norm))
}

/// The domain's sides: closed ones stop particles exactly, open ones let them go.
struct Sides<const D: usize> {
    limit: [[f32; 2]; D],
    open: [[bool; 2]; D],
}

impl<const D: usize> Sides<D> {
    fn new(walls: &Walls<D>, grid: &Grid<D>) -> Self {
        let limit = std::array::from_fn(|axis| {
            let high = (walls.size[axis] / grid.dx) as f32;
            [
                if walls.open[axis][0] { 0.0 } else { SKIN },
                if walls.open[axis][1] { high } else { high - SKIN },
            ]
        });
        Sides { limit, open: walls.open }
    }

    /// Whether particles of a block could reach a side in one substep.
    fn reach(&self, blocks: &Blocks<D>, slot: usize) -> bool {
        let first = blocks.first_cell(slot);
        (0..D).any(|axis| {
            (first[axis] - HALO.margin as i32) < 0
                || (first[axis] + (HALO.side - HALO.margin) as i32) as f32 > self.limit[axis][1]
        })
    }

    fn keep(&self, position: &mut [f32; D]) {
        for axis in 0..D {
            let [low, high] = self.limit[axis];
            let [open_low, open_high] = self.open[axis];
            if (open_low && position[axis] < low) || (open_high && position[axis] > high) {
                Particles::kill(position);
                return;
            }
            position[axis] = position[axis].clamp(low, high);
        }
    }
}
