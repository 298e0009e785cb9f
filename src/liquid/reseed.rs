//! Keeping the particle count of interior cells bounded: starved cells get particles that move with the grid,
//! crowded ones lose some.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::geometry::{Boundary, Nearness};
use crate::grid::{
    Blocks, DisjointMut, Field, Halo, SIDE, block_cells, for_each_block, halo_cells, load_halo, sample,
};
use crate::math::{hash_unit, mix, power, unflatten};

use super::{CellRanges, Particles};

/// How many particles an interior cell may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Cells with fewer are topped up to this many.
    pub fewest: usize,
    /// Cells with more lose the rest.
    pub most: usize,
}

impl Bounds {
    /// Half to twice the number a cell is filled with.
    pub fn around(per_cell: usize) -> Self {
        Bounds { fewest: per_cell.div_ceil(2), most: 2 * per_cell }
    }
}

/// What a reseeding did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reseeded {
    /// Particles added.
    pub added: usize,
    /// Particles removed.
    pub removed: usize,
}

const HALO: Halo = Halo::new(1);
const MOST: usize = halo_cells(HALO, 3);

/// Adds particles to starved cells among those marked in `deep`, which are surrounded by liquid, and removes some from
/// crowded cells anywhere. `births` is scratch memory, a number per block.
#[allow(clippy::too_many_arguments, reason = "what a particle needs to be born: place, field, bounds")]
pub fn reseed<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    boundary: &Boundary<D>,
    deep: &Field<u8>,
    bounds: Bounds,
    salt: u64,
    births: &mut Field<u32>,
) -> Reseeded {
    let nursery = Nursery { ranges, blocks, boundary, deep, fewest: bounds.fewest, salt };
    let (position, removed) = (DisjointMut::new(&mut particles.position), AtomicUsize::new(0));
    for_each_block(blocks.slots(), births.parts(), |slot, births| {
        births[0] = 0;
        if ranges.of_block(slot).is_empty() {
            return;
        }
        let mut is_starved = false;
        for (cell, range) in ranges.cells(slot).enumerate() {
            if range.len() > bounds.most {
                let rest = range.start + bounds.most..range.end;
                removed.fetch_add(rest.len(), Ordering::Relaxed);
                // SAFETY: cells have disjoint ranges.
                unsafe { position.range(rest) }.iter_mut().for_each(Particles::kill);
            }
            is_starved |= range.len() < bounds.fewest && nursery.is_deep(slot, cell);
        }
        if is_starved {
            nursery.each_birth(slot, |_| births[0] += 1);
        }
    });
    // Numbers become places behind the particles that there are, from 1 on, in the order of blocks.
    let (first, mut added) = (particles.len(), 0);
    for &slot in blocks.slots().as_slice() {
        let births = &mut births[slot as usize];
        if *births > 0 {
            (*births, added) = (added + 1, added + *births);
        }
    }
    let done = Reseeded { added: added as usize, removed: removed.into_inner() };
    if done.added == 0 {
        return done;
    }
    particles.extend(done.added);
    let position = DisjointMut::new(&mut particles.position);
    let speed = DisjointMut::new(&mut particles.velocity);
    for_each_block(blocks.slots(), births.parts(), |slot, births| {
        if births[0] == 0 {
            return;
        }
        let mut faces = [[0f32; MOST]; D];
        for axis in 0..D {
            load_halo(blocks, &velocity[axis], slot, HALO, &mut faces[axis]);
        }
        let (low, mut next) = (blocks.first_cell(slot), first + births[0] as usize - 1);
        nursery.each_birth(slot, |local| {
            // SAFETY: as many places as counted are the block's own.
            let (position, speed) = unsafe { (position.at(next), speed.at(next)) };
            *position = std::array::from_fn(|k| local[k] + low[k] as f32);
            *speed = std::array::from_fn(|axis| sample(&faces[axis], local, axis, HALO));
            next += 1;
        });
    });
    done
}

/// Where particles are born.
struct Nursery<'a, const D: usize> {
    ranges: &'a CellRanges,
    blocks: &'a Blocks<D>,
    boundary: &'a Boundary<D>,
    deep: &'a Field<u8>,
    fewest: usize,
    salt: u64,
}

impl<const D: usize> Nursery<'_, D> {
    fn is_deep(&self, slot: usize, cell: usize) -> bool {
        self.deep.block(slot)[cell / SIDE] & (1 << (cell % SIDE)) != 0
    }

    /// Calls `born` with the place in a block, in cells, of every particle that the block lacks.
    fn each_birth(&self, slot: usize, mut born: impl FnMut(&[f32; D])) {
        let clear = self.boundary.nearness(slot) == Nearness::Clear;
        let corner = if clear { [1f32; MOST] } else { wall_corners(self.blocks, self.boundary, slot) };
        for (cell, range) in self.ranges.cells(slot).enumerate() {
            let count = range.len();
            if count >= self.fewest || !self.is_deep(slot, cell) {
                continue;
            }
            let offset = unflatten::<D>(cell, SIDE);
            for new in count..self.fewest {
                let key = mix(self.salt ^ mix((slot * block_cells(D) + cell) as u64) ^ ((new as u64) << 40));
                let local: [f32; D] = std::array::from_fn(|k| {
                    offset[k] as f32 + 0.05 + 0.9 * hash_unit(key.wrapping_add(k as u64))
                });
                // Half a particle's spacing from the wall at least: a cell that the wall cuts needs fewer particles.
                if clear || corner_sample(&corner, &local) >= 0.25 {
                    born(&local);
                }
            }
        }
    }
}

/// Wall distances in and around a block, for [`corner_sample`].
pub(super) fn wall_corners<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    slot: usize,
) -> [f32; MOST] {
    let mut corner = [1f32; MOST];
    load_halo(blocks, &boundary.corner, slot, HALO, &mut corner);
    corner
}

/// Interpolates a value given at the corners of cells.
pub(super) fn corner_sample<const D: usize>(corner: &[f32; MOST], x: &[f32; D]) -> f32 {
    let low = x.map(|x| x as i32);
    let base = HALO.index(low);
    (0..power(2, D))
        .map(|c| {
            let high = |k: usize| c & (1 << k) != 0;
            let weight = |k: usize| if high(k) { x[k] - low[k] as f32 } else { 1.0 - x[k] + low[k] as f32 };
            let at = base + (0..D).filter(|&k| high(k)).map(|k| HALO.stride(k)).sum::<usize>();
            corner[at] * (0..D).map(weight).product::<f32>()
        })
        .sum()
}
