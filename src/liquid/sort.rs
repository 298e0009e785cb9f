//! Sorting particles by block and cell, and activating the blocks they need.
//!
//! The order is that of a stable counting sort, so it depends on the particles alone and not on how many threads
//! did the work.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use crate::geometry::{Walls, block_is_solid};
use crate::grid::{Activation, Blocks, Field, SIDE, VOID, block_cells};
use crate::math::{Real, flatten, power, unflatten};

use super::Particles;

/// Where the particles of each block and cell are, after a sort.
#[derive(Clone, Debug)]
pub struct CellRanges {
    /// First particle of each cell.
    pub start: Field<u32>,
    /// First particle of each block by slot, and one past its last.
    pub block: Vec<[u32; 2]>,
}

impl CellRanges {
    /// Particles of a block.
    #[inline]
    pub fn of_block(&self, slot: usize) -> std::ops::Range<usize> {
        let [start, end] = self.block[slot];
        start as usize..end as usize
    }

    /// Particles of the cells `first..=last` of a block, which must lie in one row for this to mean anything.
    #[inline]
    pub fn of_cells(&self, slot: usize, first: usize, last: usize) -> std::ops::Range<usize> {
        let starts = self.start.block(slot);
        let end = starts.get(last + 1).copied().unwrap_or(self.block[slot][1]);
        starts[first] as usize..end as usize
    }
}

/// Scratch memory of the sort, and its result.
#[derive(Debug)]
pub struct Sorter<const D: usize> {
    /// Where each cell's particles are.
    pub ranges: CellRanges,
    wanted: Activation,
    /// Per block of the lookup table: which of its 3^D surroundings are needed.
    needs: Vec<AtomicU32>,
    rank: Vec<u32>,
    /// Particle counts, later first places, per block rank and chunk of particles.
    counts: Vec<u32>,
    order: Vec<u32>,
    spare: Vec<[f32; D]>,
}

/// Particles are cut into this many chunks whatever the number of threads.
const CHUNKS: usize = 64;

/// Cells around every particle whose blocks are stored: room for the surface's kernel, for extrapolation and for
/// the way a particle may go in one substep.
pub const MARGIN_CELLS: i32 = 4;

impl<const D: usize> Sorter<D> {
    /// No memory yet.
    pub fn new() -> Self {
        Sorter {
            ranges: CellRanges { start: Field::new(block_cells(D), 0), block: Vec::new() },
            wanted: Activation::default(),
            needs: Vec::new(),
            rank: Vec::new(),
            counts: Vec::new(),
            order: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// Drops dead particles, activates the blocks around the living, and sorts by block and cell.
    pub fn sort(
        &mut self,
        particles: &mut Particles<D>,
        blocks: &mut Blocks<D>,
        walls: &Walls<D>,
        time: Real,
    ) {
        self.find_blocks(particles, blocks, walls, time);
        self.ranges.start.resize(blocks.slot_count());
        self.ranges.block.clear();
        self.ranges.block.resize(blocks.slot_count(), [0; 2]);
        let living = self.order_by_block(particles, blocks);
        self.order_by_cell(particles, blocks);
        self.rearrange(particles, living);
    }

    /// Bytes held per particle and per cell, together.
    pub fn bytes(&self) -> usize {
        self.order.capacity() * 4 + self.spare.capacity() * size_of::<[f32; D]>()
    }

    /// Bytes held on the grid.
    pub fn grid_bytes(&self) -> usize {
        self.ranges.start.bytes()
            + self.ranges.block.capacity() * 8
            + (self.needs.capacity() + self.rank.capacity() + self.counts.capacity()) * 4
    }

    fn find_blocks(
        &mut self,
        particles: &Particles<D>,
        blocks: &mut Blocks<D>,
        walls: &Walls<D>,
        time: Real,
    ) {
        self.needs.resize_with(blocks.table_len(), || AtomicU32::new(0));
        let needs = &self.needs;
        let chunk = particles.len().div_ceil(CHUNKS).max(1);
        particles.position.par_chunks(chunk).for_each(|positions| {
            let mut last = (usize::MAX, 0u32);
            for position in positions.iter().filter(|p| Particles::is_alive(p)) {
                let cell = position.map(|x| x.floor() as i32);
                let coords = cell.map(|c| c.div_euclid(SIDE as i32));
                let Some(index) = blocks.table_index(coords) else { continue };
                let mask = surroundings(cell);
                if last.0 != index {
                    last = (index, needs[index].load(Ordering::Relaxed));
                }
                if mask & !last.1 != 0 {
                    last.1 = needs[index].fetch_or(mask, Ordering::Relaxed) | mask;
                }
            }
        });
        blocks.begin(&mut self.wanted);
        for index in 0..self.needs.len() {
            let mask = std::mem::take(self.needs[index].get_mut());
            if mask == 0 {
                continue;
            }
            let coords = blocks.table_coords(index);
            for bit in (0..power(3, D)).filter(|bit| mask & (1 << bit) != 0) {
                let step = unflatten::<D>(bit, 3);
                let next = std::array::from_fn(|axis| coords[axis] + step[axis] as i32 - 1);
                if blocks.slot_at(next) != VOID || !block_is_solid(blocks, walls, next, time) {
                    blocks.mark(&mut self.wanted, next);
                }
            }
        }
        blocks.activate(&self.wanted);
    }

    /// Writes into `order` the indices of the living particles, block by block. Returns how many live.
    fn order_by_block(&mut self, particles: &Particles<D>, blocks: &Blocks<D>) -> usize {
        let ranks = blocks.slots().len();
        self.rank.clear();
        self.rank.resize(blocks.slot_count(), u32::MAX);
        for (rank, &slot) in blocks.slots().as_slice().iter().enumerate() {
            self.rank[slot as usize] = rank as u32;
        }
        let chunk = particles.len().div_ceil(CHUNKS).max(1);
        let rank = &self.rank;
        let rank_of = |position: &[f32; D]| -> Option<usize> {
            if !Particles::is_alive(position) {
                return None;
            }
            let slot = blocks.slot_at(position.map(|x| (x.floor() as i32).div_euclid(SIDE as i32)));
            rank.get(slot as usize).filter(|&&rank| rank != u32::MAX).map(|&rank| rank as usize)
        };
        self.counts.clear();
        self.counts.resize(CHUNKS * ranks, 0);
        if ranks > 0 {
            self.counts.par_chunks_mut(ranks).zip(particles.position.par_chunks(chunk)).for_each(
                |(counts, positions)| positions.iter().filter_map(rank_of).for_each(|rank| counts[rank] += 1),
            );
        }
        let mut next = 0;
        for (rank, &slot) in blocks.slots().as_slice().iter().enumerate() {
            self.ranges.block[slot as usize][0] = next;
            for chunk in 0..CHUNKS {
                let count = &mut self.counts[chunk * ranks + rank];
                (*count, next) = (next, next + *count);
            }
            self.ranges.block[slot as usize][1] = next;
        }
        let living = next as usize;
        resize_tight(&mut self.order, living.max(particles.len()));
        let order = SharedOut(self.order.as_mut_ptr());
        if ranks > 0 {
            self.counts.par_chunks_mut(ranks).zip(particles.position.par_chunks(chunk)).enumerate().for_each(
                |(chunk_index, (places, positions))| {
                    let order = &order;
                    for (offset, position) in positions.iter().enumerate() {
                        if let Some(rank) = rank_of(position) {
                            // SAFETY: counts gave every living particle a place of its own below `living`.
                            unsafe {
                                *order.0.add(places[rank] as usize) = (chunk_index * chunk + offset) as u32
                            };
                            places[rank] += 1;
                        }
                    }
                },
            );
        }
        living
    }

    /// Sorts each block's share of `order` by cell, stably.
    fn order_by_cell(&mut self, particles: &Particles<D>, blocks: &Blocks<D>) {
        resize_tight(&mut self.spare, self.order.len());
        // The spare array is not needed yet: it lends its memory for the sorted order.
        let sorted: &mut [u32] = &mut bytemuck::cast_slice_mut(&mut self.spare)[..self.order.len()];
        let out = SharedOut(sorted.as_mut_ptr());
        let (order, block) = (&self.order, &self.ranges.block);
        crate::grid::for_each_block(blocks.slots(), self.ranges.start.parts(), |slot, start| {
            let out = &out;
            let first_cell = blocks.first_cell(slot);
            let [first, end] = block[slot];
            let indices = &order[first as usize..end as usize];
            let local = |index: u32| {
                let position = particles.position[index as usize];
                let cell =
                    std::array::from_fn(|axis| (position[axis].floor() as i32 - first_cell[axis]) as usize);
                flatten::<D>(cell, SIDE)
            };
            start.fill(0);
            indices.iter().for_each(|&index| start[local(index)] += 1);
            let mut next = first;
            for count in start.iter_mut() {
                (*count, next) = (next, next + *count);
            }
            for &index in indices {
                let place = &mut start[local(index)];
                // SAFETY: places are distinct and inside this block's own range.
                unsafe { *out.0.add(*place as usize) = index };
                *place += 1;
            }
            // Each start has moved to its cell's end, which is the next cell's start.
            start.copy_within(..start.len() - 1, 1);
            start[0] = first;
        });
        let sorted: &[u32] = &bytemuck::cast_slice(&self.spare)[..self.order.len()];
        self.order.copy_from_slice(sorted);
    }

    /// Moves every array into the new order, one at a time through the spare one.
    fn rearrange(&mut self, particles: &mut Particles<D>, living: usize) {
        let order = &self.order[..living];
        for values in [&mut particles.position, &mut particles.velocity] {
            gather(order, values, &mut self.spare[..living]);
            // The two arrays trade places; the dead are cut off at the end.
            std::mem::swap(values, &mut self.spare);
            values.truncate(living);
            resize_tight(&mut self.spare, order.len().max(1));
        }
        for row in &mut particles.affine {
            let spare: &mut [[u16; D]] = &mut bytemuck::cast_slice_mut(&mut self.spare)[..living];
            gather(order, row, spare);
            row.truncate(living);
            row.copy_from_slice(spare);
        }
    }
}

impl<const D: usize> Default for Sorter<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// A pointer that threads write through, each at places of its own.
struct SharedOut<T>(*mut T);
// SAFETY: every use writes disjoint places (see there).
unsafe impl<T: Send> Sync for SharedOut<T> {}

fn gather<T: Copy + Send + Sync>(order: &[u32], from: &[T], to: &mut [T]) {
    const GRAIN: usize = 4096;
    to.par_chunks_mut(GRAIN).zip(order.par_chunks(GRAIN)).for_each(|(to, order)| {
        for (to, &index) in to.iter_mut().zip(order) {
            *to = from[index as usize];
        }
    });
}

/// Sets a length, growing with little slack: particle memory is budgeted.
fn resize_tight<T: Copy + bytemuck::Zeroable>(values: &mut Vec<T>, len: usize) {
    if len > values.capacity() {
        values.reserve_exact(len + len / 64 - values.len());
    }
    values.resize(len, T::zeroed());
}

/// Which of the 3^D blocks around a cell's block lie within the margin of the cell, as bits.
#[inline]
fn surroundings<const D: usize>(cell: [i32; D]) -> u32 {
    let mut mask = 0b111u32;
    // Along each axis: low, same and high neighbour as three bits; then their product over the axes.
    let side = |c: i32| {
        let local = c.rem_euclid(SIDE as i32);
        0b010 | (local < MARGIN_CELLS) as u32 | (((local >= SIDE as i32 - MARGIN_CELLS) as u32) << 2)
    };
    for axis in 0..D {
        let bits = side(cell[axis]);
        if axis == 0 {
            mask = bits;
            continue;
        }
        let width = power(3, axis);
        mask = (0..3).filter(|k| bits & (1 << k) != 0).fold(0, |all, k| all | (mask << (k * width)));
    }
    mask
}
