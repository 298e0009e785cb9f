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
use crate::grid::{Blocks, Field, Halo, SIDE, for_each_block, halo_cells, load_halo};
use crate::math::{power, unflatten};

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
/// particles.
pub fn rebuild_surface<const D: usize>(
    particles: &Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &mut Field<f32>,
    scratch: &mut SurfaceScratch,
    per_cell: usize,
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
            filled.copy_from_slice(occupied);
            if boundary.nearness(slot) != Nearness::Clear {
                mark_walls(blocks, boundary, slot, filled);
            }
        },
    );
    let dx = blocks.grid().dx as f32;
    let (occupied, filled, profile) = (&scratch.occupied, &scratch.filled, &scratch.profile);
    for_each_block(blocks.slots(), (surface.parts(), scratch.deep.parts()), |slot, (surface, deep)| {
        let mut near = [0u8; SIDE * SIDE];
        spread(blocks, occupied, filled, slot, &mut near, deep);
        let view = BlockView::new(particles, ranges, blocks, boundary, profile, per_cell as f32, slot);
        for (row, &deep) in deep.iter().enumerate() {
            for x in 0..SIDE {
                let (bit, cell) = (1u8 << x, row * SIDE + x);
                surface[cell] = dx
                    * if deep & bit != 0 {
                        -KERNEL_CELLS
                    } else if near[row] & bit == 0 {
                        KERNEL_CELLS
                    } else {
                        view.distance(cell)
                    };
            }
        }
    });
}

/// The cells of a block that hold particles.
fn mark_occupied(ranges: &CellRanges, slot: usize, rows: &mut [u8]) {
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

/// Adds the cells whose centre is in a wall, or so close to it that particles need not be there.
fn mark_walls<const D: usize>(blocks: &Blocks<D>, boundary: &Boundary<D>, slot: usize, rows: &mut [u8]) {
    const CLOSE: f32 = 0.25;
    let mut corner = [0f32; halo_cells(WALLS, 3)];
    load_halo(blocks, &boundary.corner, slot, WALLS, &mut corner);
    for (row, bits) in rows.iter_mut().enumerate() {
        for x in 0..SIDE {
            let (distance, _) = wall_at(&corner, unflatten::<D>(row * SIDE + x, SIDE));
            *bits |= ((distance < CLOSE) as u8) << x;
        }
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
        let walls = (boundary.nearness(slot) != Nearness::Clear).then(|| {
            let mut corner = [0f32; halo_cells(WALLS, 3)];
            load_halo(blocks, &boundary.corner, slot, WALLS, &mut corner);
            corner
        });
        let around = blocks.around(slot);
        BlockView { particles, ranges, profile, per_cell, around, first: blocks.first_cell(slot), walls }
    }

    /// Signed distance of a cell's centre, in cells.
    fn distance(&self, cell: usize) -> f32 {
        let cell = unflatten::<D>(cell, SIDE);
        let centre: [f32; D] = std::array::from_fn(|k| (self.first[k] + cell[k] as i32) as f32 + 0.5);
        let (mut weight, mut sum) = (0f32, [0f32; D]);
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
            // A crowd must not drown the cells around it: it counts as a full cell and no more.
            let share = (self.per_cell / crowd.len() as f32).min(1.0);
            for x in &self.particles.position[crowd] {
                let arm: [f32; D] = std::array::from_fn(|k| x[k] - centre[k]);
                let r2 = arm.iter().map(|a| a * a).sum::<f32>() * (1.0 / (KERNEL_CELLS * KERNEL_CELLS));
                let fade = (1.0 - r2).max(0.0);
                let w = share * fade * fade * fade;
                weight += w;
                (0..D).for_each(|k| sum[k] += w * arm[k]);
            }
        }
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

/// The relation `G` between height over a flat surface and distance to the particles' mean, both ways, in cells.
#[derive(Clone, Debug)]
struct Profile {
    /// `G` at evenly spaced heights from −R to R.
    displacement: Vec<f32>,
    /// Height at evenly spaced displacements from 0 to R.
    height: Vec<f32>,
}

impl Profile {
    const STEPS: usize = 512;

    fn new(dimension: usize) -> Self {
        // Mass of the kernel in a plane at distance t (in units of R): (1 − t²)^m up to a constant, with m = 4 in
        // 3D and 7/2 in 2D. Then G = R · ∫ −t (1−t²)^m / ∫ (1−t²)^m over t from −1 to −y.
        let m = if dimension == 3 { 4.0 } else { 3.5 };
        let fine = 64 * Self::STEPS;
        let step = 2.0 / fine as f64;
        let (mut mass, mut moment) = (0.0, 0.0);
        let mut exact = Vec::with_capacity(Self::STEPS + 1);
        exact.push(1.0);
        for i in 0..fine {
            let t = -1.0 + (i as f64 + 0.5) * step;
            let plane = (1.0 - t * t).powf(m);
            mass += plane;
            moment -= t * plane;
            if (i + 1) % 64 == 0 {
                exact.push(moment / mass);
            }
        }
        // `exact[i]` belongs to planes up to t = −1 + 2i/STEPS, that is to height y = −t.
        exact.reverse();
        let radius = KERNEL_CELLS as f64;
        let displacement = exact.iter().map(|g| (g * radius) as f32).collect();
        let mut height = Vec::with_capacity(Self::STEPS + 1);
        let mut i = 0;
        for k in 0..=Self::STEPS {
            let wanted = k as f64 / Self::STEPS as f64;
            while i + 1 < Self::STEPS && exact[i + 1] < wanted {
                i += 1;
            }
            let (low, high) = (exact[i], exact[i + 1]);
            let along = ((wanted - low) / (high - low)).clamp(0.0, 1.0);
            height.push((radius * (-1.0 + 2.0 * (i as f64 + along) / Self::STEPS as f64)) as f32);
        }
        Profile { displacement, height }
    }

    fn lookup(table: &[f32], place: f32) -> f32 {
        let place = place.clamp(0.0, Self::STEPS as f32 - 0.001);
        let low = place as usize;
        let along = place - low as f32;
        table[low] * (1.0 - along) + table[low + 1] * along
    }

    /// `G`: distance to the mean at a height.
    fn displacement(&self, height: f32) -> f32 {
        Self::lookup(&self.displacement, (height / KERNEL_CELLS + 1.0) * (0.5 * Self::STEPS as f32))
    }

    /// The inverse of `G`: height at a distance to the mean.
    fn height(&self, displacement: f32) -> f32 {
        Self::lookup(&self.height, displacement / KERNEL_CELLS * Self::STEPS as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profile_inverts_itself() {
        for dimension in [2, 3] {
            let profile = Profile::new(dimension);
            for k in -100..=120 {
                let height = k as f32 * 0.01;
                let back = profile.height(profile.displacement(height));
                assert!((back - height).abs() < 0.02, "{dimension}D: {height} came back as {back}");
            }
            let on_surface = profile.displacement(0.0);
            let expected =
                if dimension == 3 { 1.5 * 0.1 / (128.0 / 315.0) } else { 1.5 * (1.0 / 9.0) / 0.429_5 };
            assert!((on_surface - expected).abs() < 1e-3, "{dimension}D: {on_surface} against {expected}");
        }
    }
}
