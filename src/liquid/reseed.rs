//! Keeping the particle count of interior cells bounded: starved cells get particles that move with the grid,
//! crowded ones lose some.

use crate::geometry::{Boundary, Nearness};
use crate::grid::{Blocks, Field, Halo, SIDE, block_cells, for_each_block, halo_cells, load_halo};
use crate::math::{hash_unit, mix, power, unflatten};

use super::kernel::sample;
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

/// A block has a cell with too many particles.
const CROWDED: u8 = 1;
/// A block has a deep cell with too few.
const STARVED: u8 = 2;

/// Adds particles to starved cells among those marked in `deep`, which are surrounded by liquid, and removes some from
/// crowded cells anywhere. Both are rare: only blocks with such a cell, flagged in `uneven`, are visited one by one.
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
    uneven: &mut Field<u8>,
) -> Reseeded {
    let is_deep = |slot: usize, cell: usize| deep.block(slot)[cell / SIDE] & (1 << (cell % SIDE)) != 0;
    for_each_block(blocks.slots(), uneven.parts(), |slot, uneven| {
        uneven[0] = 0;
        if ranges.of_block(slot).is_empty() {
            return;
        }
        for (cell, range) in ranges.cells(slot).enumerate() {
            uneven[0] |= (range.len() > bounds.most) as u8 * CROWDED;
            if range.len() < bounds.fewest && is_deep(slot, cell) {
                uneven[0] |= STARVED;
            }
        }
    });
    let mut done = Reseeded::default();
    for &slot in blocks.slots().as_slice().iter().filter(|&&slot| uneven[slot as usize] != 0) {
        let slot = slot as usize;
        if uneven[slot] & CROWDED != 0 {
            for range in ranges.cells(slot).filter(|range| range.len() > bounds.most) {
                done.removed += range.len() - bounds.most;
                particles.position[range].iter_mut().skip(bounds.most).for_each(Particles::kill);
            }
        }
        if uneven[slot] & STARVED == 0 {
            continue;
        }
        let mut faces = [[0f32; MOST]; D];
        for axis in 0..D {
            load_halo(blocks, &velocity[axis], slot, HALO, &mut faces[axis]);
        }
        let first = blocks.first_cell(slot);
        let clear = boundary.nearness(slot) == Nearness::Clear;
        let mut corner = [1f32; MOST];
        if !clear {
            load_halo(blocks, &boundary.corner, slot, HALO, &mut corner);
        }
        for (cell, range) in ranges.cells(slot).enumerate() {
            let count = range.len();
            if count >= bounds.fewest || !is_deep(slot, cell) {
                continue;
            }
            let offset = unflatten::<D>(cell, SIDE);
            for new in count..bounds.fewest {
                let key = mix(salt ^ mix((slot * block_cells(D) + cell) as u64) ^ ((new as u64) << 40));
                let local: [f32; D] = std::array::from_fn(|k| {
                    offset[k] as f32 + 0.05 + 0.9 * hash_unit(key.wrapping_add(k as u64))
                });
                // Half a particle's spacing from the wall at least: a cell that the wall cuts needs fewer particles.
                if !clear && corner_sample(&corner, &local) < 0.25 {
                    continue;
                }
                let speed = std::array::from_fn(|axis| sample(&faces[axis], &local, axis, HALO));
                particles.push(std::array::from_fn(|k| local[k] + first[k] as f32), speed);
                done.added += 1;
            }
        }
    }
    done
}

/// Interpolates a value given at the corners of cells.
fn corner_sample<const D: usize>(corner: &[f32; MOST], x: &[f32; D]) -> f32 {
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
