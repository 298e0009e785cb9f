//! The liquid's signed distance, rebuilt from its particles.
//!
//! The distance of a point to the weighted mean of the particles around it (ZB05) tells how far it is from the
//! surface. For a flat surface that relation is known exactly: with the kernel (1 − r²/R²)³ and evenly spread
//! particles below height zero, a point at height y sees their mean at distance `G(y)`. Inverting `G` makes flat
//! surfaces exact at any position on the grid, so that still water stays still.
//!
//! A wall hides particles in the same way as a surface does. The part of the displacement that the wall explains,
//! `G` of minus the distance to it, is taken away; so liquid reaches up to walls, and into cells whose centre lies
//! inside one.

use crate::geometry::{Boundary, Nearness};
use crate::grid::{Blocks, CellSet, Field, Halo, SIDE, for_each_block, halo_cells, load_halo, masks};
use crate::math::{power, unflatten};

use super::kernel::load_vectors;
use super::lanes::{Job, LANES, Wide, dispatch};
use super::profile::Profile;
use super::{CellRanges, Particles};

/// Radius of the kernel, cells: a cell's centre then sees exactly the cells around it.
pub const KERNEL_CELLS: f32 = 1.5;

/// Scratch memory of the surface, and the sets of cells it found.
#[derive(Clone, Debug)]
pub struct SurfaceScratch {
    /// Cells that hold particles: a byte is a row of eight along x.
    occupied: Field<u8>,
    /// Cells that hold particles, or have no room for any because their centre is in or at a wall.
    filled: Field<u8>,
    /// Cells whose 3^D surroundings are all filled: there is no surface near.
    pub deep: Field<u8>,
    profile: Profile,
}

impl SurfaceScratch {
    /// For grids of that dimension.
    pub fn new(dimension: usize) -> Self {
        let rows = power(SIDE, dimension - 1);
        SurfaceScratch {
            occupied: Field::new(rows, 0),
            filled: Field::new(rows, 0),
            deep: Field::new(rows, 0),
            profile: Profile::new(dimension),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.occupied.bytes() + self.filled.bytes() + self.deep.bytes()
    }
}

/// Computes the signed distance at cell centres, metres, cut off at the kernel's radius. A full cell holds `per_cell`
/// particles; the cells of a `core` are full without any.
pub fn rebuild_surface<const D: usize>(
    particles: &Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &mut Field<f32>,
    scratch: &mut SurfaceScratch,
    per_cell: usize,
    core: &CellSet,
) {
    surface.resize(blocks.slot_count());
    scratch.occupied.resize(blocks.slot_count());
    scratch.filled.resize(blocks.slot_count());
    scratch.deep.resize(blocks.slot_count());
    for_each_block(
        blocks.slots(),
        (scratch.occupied.parts(), scratch.filled.parts()),
        |slot, (occupied, filled)| {
            mark_occupied(ranges, slot, occupied);
            if *core.bits(slot) != masks::NONE {
                occupied.iter_mut().enumerate().for_each(|(row, bits)| *bits |= core.row(slot, row));
            }
            filled.copy_from_slice(occupied);
            if boundary.nearness(slot) != Nearness::Clear {
                // Cells whose centre is in a wall, or so close to it that particles need not be there.
                let full = &boundary.bits(slot).full;
                filled.iter_mut().enumerate().for_each(|(row, bits)| *bits |= masks::row(full, row));
            }
        },
    );
    let dx = blocks.grid().dx as f32;
    let (occupied, filled, profile) = (&scratch.occupied, &scratch.filled, &scratch.profile);
    for_each_block(blocks.slots(), (surface.parts(), scratch.deep.parts()), |slot, (surface, deep)| {
        let mut near = [0u8; SIDE * SIDE];
        spread(blocks, occupied, filled, slot, &mut near, deep);
        if near.iter().all(|&row| row == 0) {
            // Nothing but air, as in most blocks that are stored for their walls.
            return surface.fill(dx * KERNEL_CELLS);
        }
        let view = BlockView::new(particles, ranges, blocks, boundary, profile, per_cell as f32, slot);
        dispatch(Rebuild { view, near: &near, deep, surface, dx });
    });
}

/// The signed distances of a block's cells.
struct Rebuild<'a, const D: usize> {
    view: BlockView<'a, D>,
    near: &'a [u8; SIDE * SIDE],
    deep: &'a [u8],
    surface: &'a mut [f32],
    dx: f32,
}

impl<const D: usize> Job for Rebuild<'_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        for (row, (&deep, &near)) in self.deep.iter().zip(self.near).enumerate() {
            for x in 0..SIDE {
                let (bit, cell) = (1u8 << x, row * SIDE + x);
                self.surface[cell] = self.dx
                    * if deep & bit != 0 {
                        -KERNEL_CELLS
                    } else if near & bit == 0 {
                        KERNEL_CELLS
                    } else {
                        self.view.distance(cell, self.view.sums::<W>(cell))
                    };
            }
        }
    }
}

/// The cells of a block that hold particles.
fn mark_occupied(ranges: &CellRanges, slot: usize, rows: &mut [u8]) {
    if ranges.of_block(slot).is_empty() {
        return rows.fill(0);
    }
    let starts = ranges.start.block(slot);
    let end = ranges.of_block(slot).end as u32;
    for (row, bits) in rows.iter_mut().enumerate() {
        *bits = (0..SIDE).fold(0, |bits, x| {
            let cell = row * SIDE + x;
            let next = starts.get(cell + 1).copied().unwrap_or(end);
            bits | (((next > starts[cell]) as u8) << x)
        });
    }
}

/// Cells with an occupied cell around them, and those among them with none but filled ones.
fn spread<const D: usize>(
    blocks: &Blocks<D>,
    occupied: &Field<u8>,
    filled: &Field<u8>,
    slot: usize,
    near: &mut [u8; SIDE * SIDE],
    deep: &mut [u8],
) {
    const WIDE: usize = SIDE + 2;
    let around = blocks.around(slot);
    // Rows with a margin: bit 0 is the cell left of the block, bits 1 to 8 its own, bit 9 the one right of it.
    let (mut any, mut all) = ([0u16; WIDE * WIDE], [0u16; WIDE * WIDE]);
    for row in 0..power(WIDE, D - 1) {
        let (mut rest, mut block, mut local) = (row, 0, 0);
        for axis in 1..D {
            let coordinate = rest % WIDE + SIDE - 1;
            rest /= WIDE;
            block += coordinate / SIDE * power(3, axis);
            local += coordinate % SIDE * power(SIDE, axis - 1);
        }
        let wide = |cells: &Field<u8>| {
            let bits = |side: usize| cells.block(around[block + side] as usize)[local] as u16;
            (bits(0) >> 7) | (bits(1) << 1) | (bits(2) << 9)
        };
        let (occupied, filled) = (wide(occupied), wide(filled));
        any[row] = occupied | (occupied << 1) | (occupied >> 1);
        all[row] = filled & (filled << 1) & (filled >> 1);
    }
    for (row, deep) in deep.iter_mut().enumerate() {
        let (mut some, mut every) = (0u16, u16::MAX);
        for step in 0..power(3, D - 1) {
            let (mut rest_row, mut rest_step, mut index, mut stride) = (row, step, 0, 1);
            for _ in 1..D {
                index += (rest_row % SIDE + rest_step % 3) * stride;
                rest_row /= SIDE;
                rest_step /= 3;
                stride *= WIDE;
            }
            some |= any[index];
            every &= all[index];
        }
        near[row] = (some >> 1) as u8;
        *deep = ((some & every) >> 1) as u8;
    }
}

/// Wall distances at the corners of a block's cells.
const WALLS: Halo = Halo::new(1);

/// Wall distances around a block. Not inlined: it would crowd out what its callers need inlined.
#[inline(never)]
fn wall_corners<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    slot: usize,
) -> [f32; halo_cells(WALLS, 3)] {
    let mut corner = [0f32; halo_cells(WALLS, 3)];
    load_halo(blocks, &boundary.corner, slot, WALLS, &mut corner);
    corner
}

/// From place `8 − n` on: `n` ones, and zeros up to eight.
const FIRST_OF_EIGHT: [f32; 2 * LANES] = {
    let mut ones = [0.0; 2 * LANES];
    let mut i = 0;
    while i < LANES {
        ones[i] = 1.0;
        i += 1;
    }
    ones
};

/// What the cells of one block see.
struct BlockView<'a, const D: usize> {
    particles: &'a Particles<D>,
    ranges: &'a CellRanges,
    profile: &'a Profile,
    per_cell: f32,
    around: &'a [u32],
    first: [i32; D],
    /// Wall distances at corners, when a wall is near.
    walls: Option<[f32; halo_cells(WALLS, 3)]>,
}

impl<'a, const D: usize> BlockView<'a, D> {
    fn new(
        particles: &'a Particles<D>,
        ranges: &'a CellRanges,
        blocks: &'a Blocks<D>,
        boundary: &Boundary<D>,
        profile: &'a Profile,
        per_cell: f32,
        slot: usize,
    ) -> Self {
        let walls =
            (boundary.nearness(slot) != Nearness::Clear).then(|| wall_corners(blocks, boundary, slot));
        let around = blocks.around(slot);
        BlockView { particles, ranges, profile, per_cell, around, first: blocks.first_cell(slot), walls }
    }

    /// Weight of the particles around a cell's centre, and their weighted distances from it, in cells.
    #[inline(always)]
    fn sums<W: Wide>(&self, cell: usize) -> (f32, [f32; D]) {
        let cell = unflatten::<D>(cell, SIDE);
        let (mut weight, mut sum) = (W::splat(0.0), [W::splat(0.0); D]);
        let positions = &self.particles.position;
        for step in 0..power(3, D) {
            // The block that the cell at this step lies in, and its place there.
            let (mut rest, mut block, mut place) = (step, 0, 0);
            for (axis, &at) in cell.iter().enumerate() {
                let coordinate = at + rest % 3 + SIDE - 1;
                rest /= 3;
                block += coordinate / SIDE * power(3, axis);
                place += coordinate % SIDE * power(SIDE, axis);
            }
            let slot = self.around[block] as usize;
            if slot == crate::grid::VOID as usize {
                continue;
            }
            let crowd = self.ranges.of_cells(slot, place, place);
            if crowd.is_empty() {
                continue;
            }
            // A crowd must not drown the cells around it: it counts as a full cell and no more.
            let share = (self.per_cell / crowd.len() as f32).min(1.0);
            for first in crowd.clone().step_by(LANES) {
                // Eight at a time, those past the cell's last with no weight.
                let x = load_vectors::<W, D>(&positions[first..positions.len().min(first + LANES)]);
                let count = (crowd.end - first).min(LANES);
                let counts: &[f32; LANES] =
                    FIRST_OF_EIGHT[LANES - count..][..LANES].try_into().expect("eight numbers");
                let (mut arm, mut r2) = (x, W::splat(0.0));
                for k in 0..D {
                    arm[k] = x[k] - W::splat((self.first[k] + cell[k] as i32) as f32 + 0.5);
                    r2 = r2 + arm[k] * arm[k];
                }
                let nearness = W::splat(1.0) - r2 * W::splat(1.0 / (KERNEL_CELLS * KERNEL_CELLS));
                let fade = W::within(nearness, 0.0, 1.0);
                let w = W::load(counts) * W::splat(share) * fade * fade * fade;
                weight = weight + w;
                for k in 0..D {
                    sum[k] = sum[k] + w * arm[k];
                }
            }
        }
        let mut total = [0.0; D];
        for k in 0..D {
            total[k] = W::store(sum[k]).iter().sum();
        }
        (W::store(weight).iter().sum(), total)
    }

    /// Signed distance of a cell's centre, in cells, from the sums over the particles around it.
    fn distance(&self, cell: usize, (weight, sum): (f32, [f32; D])) -> f32 {
        let cell = unflatten::<D>(cell, SIDE);
        if weight < 1e-6 {
            return KERNEL_CELLS;
        }
        let mut arm = sum.map(|s| s / weight);
        if let Some(corner) = &self.walls {
            let (distance, normal) = wall_at(corner, cell);
            if distance < KERNEL_CELLS {
                // How far the mean lies from the wall, as seen from here, and how much of that the wall explains.
                let away: f32 = (0..D).map(|k| arm[k] * normal[k]).sum();
                let explained = away.clamp(0.0, self.profile.displacement(-distance));
                (0..D).for_each(|k| arm[k] -= explained * normal[k]);
            }
        }
        self.profile.height(arm.iter().map(|a| a * a).sum::<f32>().sqrt())
    }
}

/// Wall distance and normal at the centre of a cell, given relative to the block.
fn wall_at<const D: usize>(corner: &[f32], cell: [usize; D]) -> (f32, [f32; D]) {
    let base = WALLS.index(cell.map(|c| c as i32));
    let (mut value, mut gradient) = (0.0, [0.0; D]);
    for c in 0..power(2, D) {
        let sample =
            corner[base + (0..D).filter(|k| c & (1 << k) != 0).map(|k| WALLS.stride(k)).sum::<usize>()];
        value += sample;
        (0..D).for_each(|k| gradient[k] += if c & (1 << k) != 0 { sample } else { -sample });
    }
    let norm = gradient.iter().map(|g| g * g).sum::<f32>().sqrt().max(1e-6);
    (value / power(2, D) as f32, gradient.map(|g| g / norm))
}
