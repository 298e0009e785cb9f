//! Moving particles through the velocity field, and keeping them out of solids.

use rayon::prelude::*;

use crate::geometry::{Boundary, FAR, Nearness, Walls};
use crate::grid::{Blocks, DisjointMut, Field, Grid, Halo, SIDE, halo_cells, load_halo};
use crate::math::{Real, Vector, power};

use super::affine_cells::{AdvectAffine, AffineCells, each_stretch};
use super::kernel::{lane_sample, load_vectors, relative, store_vectors};
use super::lanes::{Job, LANES, Wide, dispatch};
use super::{CellRanges, Core, Particles};

/// Cells a particle may cross in one substep; the step size keeps to it. Blocks are stored four cells around every
/// particle, and velocities extrapolated as far.
pub const MOST_CELLS: f64 = 3.75;

/// Room for the last point where a velocity is looked up, three quarters of the path, and for the interpolation there.
pub(super) const HALO: Halo = Halo::new(4);
pub(super) const MOST: usize = halo_cells(HALO, 3);

/// Room for the end of the path, where wall distances are looked up.
const WALLS: Halo = Halo::new(5);
const MOST_CORNERS: usize = halo_cells(WALLS, 3);

/// Distance kept from solids, cells: just enough not to be caught by rounding.
pub(super) const SKIN: f32 = 0.02;

/// Moves every particle by `dt` with Ralston's third-order Runge–Kutta scheme, then pushes those that ended up in
/// a solid back to its surface. Particles that leave through an open side die. `affine(slot)` says where in a block
/// `velocity` is an affine field.
pub fn advect<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    dt: Real,
    affine: impl Fn(usize) -> Option<AffineCells<D>> + Sync,
) {
    let cells_per_speed = dt / blocks.grid().dx;
    let position = DisjointMut::new(&mut particles.position);
    // The room for a block's faces is made once for many: in 2D, clearing it takes longer than filling it.
    blocks.slots().as_slice().par_iter().for_each_init(no_faces, |faces, &slot| {
        let (slot, position) = (slot as usize, &position);
        if ranges.of_block(slot).is_empty() {
            return;
        }
        let first_cell = blocks.first_cell(slot).map(|c| c as f32);
        let affine = affine(slot);
        let displacement = affine.as_ref().map(|affine| affine.displacement(cells_per_speed));
        let mut are_loaded = false;
        each_stretch(ranges, slot, affine.as_ref().map(|affine| &affine.cells), |range, is_affine| {
            // SAFETY: blocks have disjoint ranges of particles.
            let position = unsafe { position.range(range) };
            if let Some(displacement) = displacement.filter(|_| is_affine) {
                return dispatch(AdvectAffine { position, first_cell, displacement });
            }
            if !std::mem::replace(&mut are_loaded, true) {
                load_faces(blocks, velocity, slot, faces);
            }
            let cells_per_speed = cells_per_speed as f32;
            dispatch(Advect { position, first_cell, faces, cells_per_speed });
        });
    });
}

/// Moves the particles that were seeded since the last sort, in cells that the core left: no block's range knows of
/// them yet.
pub fn advect_seeded<const D: usize>(
    particles: &mut Particles<D>,
    core: &Core,
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    dt: Real,
) {
    let cells_per_speed = (dt / blocks.grid().dx) as f32;
    let position = DisjointMut::new(&mut particles.position);
    core.seeded().for_each(|(slot, range)| {
        let position = &position;
        // SAFETY: the ranges are disjoint.
        let position = unsafe { position.range(range) };
        let first_cell = blocks.first_cell(slot).map(|c| c as f32);
        let mut faces = [0f32; 3 * MOST];
        load_faces(blocks, velocity, slot, &mut faces);
        dispatch(Advect { position, first_cell, faces: &faces, cells_per_speed });
    });
}

/// Room for the velocities in and around a block.
fn no_faces() -> [f32; 3 * MOST] {
    [0.0; 3 * MOST]
}

/// Copies the velocities in and around a block.
fn load_faces<const D: usize>(
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    slot: usize,
    faces: &mut [f32; 3 * MOST],
) {
    for axis in 0..D {
        load_halo(blocks, &velocity[axis], slot, HALO, &mut faces[axis * MOST..(axis + 1) * MOST]);
    }
}

/// Advection of a block's particles through the velocities around it.
struct Advect<'a, const D: usize> {
    position: &'a mut [[f32; D]],
    first_cell: [f32; D],
    faces: &'a [f32; 3 * MOST],
    cells_per_speed: f32,
}

impl<const D: usize> Job for Advect<'_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let (faces, per_speed) = (self.faces, W::splat(self.cells_per_speed));
        for position in self.position.chunks_mut(LANES) {
            let mut at = load_vectors::<W, D>(position);
            let x = relative::<W, D>(&at, &self.first_cell);
            let k1 = lane_displacement::<W, D>(faces, &inside::<W, D>(&x), per_speed);
            let k2 = lane_displacement::<W, D>(faces, &along::<W, D>(&x, &k1, 0.5), per_speed);
            let k3 = lane_displacement::<W, D>(faces, &along::<W, D>(&x, &k2, 0.75), per_speed);
            for k in 0..D {
                let sum = W::splat(2.0) * k1[k] + W::splat(3.0) * k2[k] + W::splat(4.0) * k3[k];
                at[k] = at[k] + sum * W::splat(1.0 / 9.0);
            }
            store_vectors::<W, D>(&at, position);
        }
    }
}

/// The displacement in a substep by the velocity at `x`, in cells.
#[inline(always)]
pub(super) fn lane_displacement<W: Wide, const D: usize>(
    faces: &[f32; 3 * MOST],
    x: &[W::Eight; D],
    cells_per_speed: W::Eight,
) -> [W::Eight; D] {
    let mut displacement = *x;
    for axis in 0..D {
        let component: &[f32; MOST] =
            (&faces[axis * MOST..(axis + 1) * MOST]).try_into().expect("one box per component");
        displacement[axis] = lane_sample::<W, D, MOST>(component, x, axis, HALO) * cells_per_speed;
    }
    displacement
}

/// `x + share · displacement`, kept inside the box: a particle faster than the step allows reads its border.
#[inline(always)]
pub(super) fn along<W: Wide, const D: usize>(
    x: &[W::Eight; D],
    displacement: &[W::Eight; D],
    share: f32,
) -> [W::Eight; D] {
    let mut moved = *x;
    for k in 0..D {
        moved[k] = x[k] + W::splat(share) * displacement[k];
    }
    inside::<W, D>(&moved)
}

/// Cuts places to the box; so the NaN of a dead particle finds a place, too.
#[inline(always)]
fn inside<W: Wide, const D: usize>(x: &[W::Eight; D]) -> [W::Eight; D] {
    let mut cut = *x;
    for k in 0..D {
        let (low, high) = (0.5 - HALO.margin as f32, (HALO.side - HALO.margin) as f32 - 1.001);
        cut[k] = W::within(x[k], low, high);
    }
    cut
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
    let position = DisjointMut::new(&mut particles.position);
    let velocity = DisjointMut::new(&mut particles.velocity);
    let sides = Sides::new(walls, blocks.grid());
    blocks.slots().as_slice().par_iter().for_each_init(no_corners, |corner, &slot| {
        let (slot, position, velocity) = (slot as usize, &position, &velocity);
        let range = ranges.of_block(slot);
        if range.is_empty() || boundary.nearness(slot) == Nearness::Clear && !sides.reach(blocks, slot) {
            return;
        }
        load_halo(blocks, &boundary.corner, slot, WALLS, corner);
        // SAFETY: blocks have disjoint ranges of particles.
        let (position, velocity) = unsafe { (position.range(range.clone()), velocity.range(range)) };
        let first = blocks.first_cell(slot).map(|c| c as f32);
        let moving = boundary.nearness(slot) == Nearness::Moving;
        let dx = blocks.grid().dx;
        let near = moving.then(|| {
            let middle = Vector::<D>::from_fn(|k, _| (Real::from(first[k]) + 0.5 * SIDE as Real) * dx);
            let reach = 0.5 * SIDE as Real * (D as Real).sqrt() + MOST_CELLS + Real::from(FAR);
            walls.near(&middle, reach * dx)
        });
        let wall_velocity = |position: &[f32; D]| match &near {
            Some(near) => walls.velocity_of(near, &Vector::from_fn(|k, _| position[k] as Real * dx), time),
            None => Vector::zeros(),
        };
        let sides = &sides;
        dispatch(Collide { position, velocity, first, corner, sides, wall_velocity });
    });
}

/// Room for the wall distances in and around a block.
fn no_corners() -> [f32; MOST_CORNERS] {
    [0.0; MOST_CORNERS]
}

/// The particles of a block among the walls around it.
struct Collide<'a, const D: usize, F> {
    position: &'a mut [[f32; D]],
    velocity: &'a mut [[f32; D]],
    first: [f32; D],
    corner: &'a [f32; MOST_CORNERS],
    sides: &'a Sides<D>,
    wall_velocity: F,
}

impl<const D: usize, F: Fn(&[f32; D]) -> Vector<D>> Job for Collide<'_, D, F> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let Collide { position, velocity, first, corner, sides, wall_velocity } = self;
        for (position, velocity) in position.chunks_mut(LANES).zip(velocity.chunks_mut(LANES)) {
            // Nearly always nobody is in a wall, which takes a few instructions to see.
            if clear_of_walls::<W, D>(position, &first, corner, sides) {
                continue;
            }
            for (position, velocity) in position.iter_mut().zip(velocity) {
                // Sides first: beyond them there are no wall distances to look at.
                sides.keep(position);
                let x: [f32; D] = std::array::from_fn(|k| position[k] - first[k]);
                if Particles::is_alive(position) && distance_and_normal(corner, &x).0 < SKIN {
                    let wall = wall_velocity(position);
                    push_out(corner, position, velocity, &first, &wall);
                    sides.keep(position);
                }
            }
        }
    }
}

/// Whether up to eight particles are all alive, between the domain's sides and outside solids.
#[inline(always)]
fn clear_of_walls<W: Wide, const D: usize>(
    position: &[[f32; D]],
    first: &[f32; D],
    corner: &[f32; MOST_CORNERS],
    sides: &Sides<D>,
) -> bool {
    let at = load_vectors::<W, D>(position);
    let mut x = relative::<W, D>(&at, first);
    let mut all = true;
    for k in 0..D {
        let [low, high] = sides.limit[k];
        all &= W::all_within(at[k], low, high);
        x[k] = W::within(x[k], -(WALLS.margin as f32), (WALLS.side - WALLS.margin) as f32 - 1.001);
    }
    all && W::all_within(lane_sample::<W, D, MOST_CORNERS>(corner, &x, D, WALLS), SKIN, f32::INFINITY)
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
