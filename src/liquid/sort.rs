//! Sorting particles by block and cell, and activating the blocks they need.
//!
//! The order is that of a stable counting sort, so it depends on the particles alone and not on how many threads
//! did the work.

use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;

use crate::geometry::{Walls, block_is_solid};
use crate::grid::{Activation, Blocks, Field, SIDE, VOID, block_cells};
use crate::math::{Real, power, unflatten};

use super::Particles;
use super::shared::SharedOut;

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

    /// Particles of every cell of a block, in the order of its cells.
    #[inline]
    pub fn cells(&self, slot: usize) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        let starts = self.start.block(slot);
        let ends = starts[1..].iter().chain(std::iter::once(&self.block[slot][1]));
        starts.iter().zip(ends).map(|(&start, &end)| start as usize..end as usize)
    }
}

/// Scratch memory of the sort, and its result.
#[derive(Debug)]
pub struct Sorter<const D: usize> {
    /// Where each cell's particles are.
    pub ranges: CellRanges,
    wanted: Activation,
    /// Per cell of a block: which of the block's 3^D surroundings a particle there needs.
    surroundings: Vec<u32>,
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
pub const MARGIN_CELLS: usize = 4;

/// Key of a particle that is to vanish: past every table of blocks.
const DEAD: u32 = u32::MAX;

impl<const D: usize> Clone for Sorter<D> {
    fn clone(&self) -> Self {
        Sorter {
            ranges: self.ranges.clone(),
            wanted: self.wanted.clone(),
            surroundings: self.surroundings.clone(),
            needs: self.needs.iter().map(|need| AtomicU32::new(need.load(Ordering::Relaxed))).collect(),
            rank: self.rank.clone(),
            counts: self.counts.clone(),
            order: self.order.clone(),
            spare: self.spare.clone(),
        }
    }
}

impl<const D: usize> Sorter<D> {
    /// No memory yet.
    pub fn new() -> Self {
        Sorter {
            ranges: CellRanges { start: Field::new(block_cells(D), 0), block: Vec::new() },
            wanted: Activation::default(),
            surroundings: (0..block_cells(D)).map(|cell| surroundings(unflatten::<D>(cell, SIDE))).collect(),
            needs: Vec::new(),
            rank: Vec::new(),
            counts: Vec::new(),
            order: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The place that each particle had in the list before the last sort.
    pub fn origin(&self) -> &[u32] {
        &self.order
    }

    /// Drops dead particles, activates the blocks around the living and those that are `needed` (places in the lookup
    /// table), and sorts by block and cell.
    pub fn sort(
        &mut self,
        particles: &mut Particles<D>,
        blocks: &mut Blocks<D>,
        walls: &Walls<D>,
        needed: &[u32],
        time: Real,
    ) {
        self.find_blocks(particles, blocks, walls, needed, time);
        self.ranges.start.resize(blocks.slot_count());
        self.ranges.block.clear();
        self.ranges.block.resize(blocks.slot_count(), [0; 2]);
        let living = self.order_by_block(blocks, particles.len());
        self.order_by_cell(blocks, particles.len());
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
            + (self.surroundings.capacity()
                + self.needs.capacity()
                + self.rank.capacity()
                + self.counts.capacity())
                * 4
    }

    fn find_blocks(
        &mut self,
        particles: &Particles<D>,
        blocks: &mut Blocks<D>,
        walls: &Walls<D>,
        needed: &[u32],
        time: Real,
    ) {
        self.needs.resize_with(blocks.table_len(), || AtomicU32::new(0));
        resize_tight(&mut self.spare, particles.len());
        let (needs, surroundings) = (&self.needs, &self.surroundings);
        let keys: &mut [u32] = &mut bytemuck::cast_slice_mut(&mut self.spare)[..particles.len()];
        let chunk = particles.len().div_ceil(CHUNKS).max(1);
        particles.position.par_chunks(chunk).zip(keys.par_chunks_mut(chunk)).for_each(|(positions, keys)| {
            let mut last = (usize::MAX, 0u32);
            for (position, key) in positions.iter().zip(keys) {
                *key = DEAD;
                if !Particles::is_alive(position) {
                    continue;
                }
                let cell = position.map(floor);
                let Some(index) = blocks.table_index(blocks.grid().block_of(cell)) else { continue };
                let local = blocks.local_index(cell);
                *key = (index * block_cells(D) + local) as u32;
                let mask = surroundings[local];
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
        for &index in needed {
            blocks.mark(&mut self.wanted, blocks.table_coords(index as usize));
        }
        blocks.activate(&self.wanted);
    }

    /// Writes into `order` the indices of the living particles, block by block. Returns how many live.
    fn order_by_block(&mut self, blocks: &Blocks<D>, particles: usize) -> usize {
        let ranks = blocks.slots().len();
        self.rank.clear();
        self.rank.resize(blocks.table_len(), u32::MAX);
        for (rank, &slot) in blocks.slots().as_slice().iter().enumerate() {
            if let Some(index) = blocks.table_index(blocks.coords(slot as usize)) {
                self.rank[index] = rank as u32;
            }
        }
        let chunk = particles.div_ceil(CHUNKS).max(1);
        let keys: &[u32] = &bytemuck::cast_slice(&self.spare)[..particles];
        let rank = &self.rank;
        // A dead particle's key lies past the table.
        let rank_of =
            |key: u32| rank.get(key as usize / block_cells(D)).copied().filter(|&rank| rank != u32::MAX);
        self.counts.clear();
        self.counts.resize(CHUNKS * ranks.max(1), 0);
        self.counts.par_chunks_mut(ranks.max(1)).zip(keys.par_chunks(chunk)).for_each(|(counts, keys)| {
            for rank in keys.iter().filter_map(|&key| rank_of(key)) {
                counts[rank as usize] += 1;
            }
        });
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
        resize_tight(&mut self.order, living);
        let order = SharedOut(self.order.as_mut_ptr());
        self.counts.par_chunks_mut(ranks.max(1)).zip(keys.par_chunks(chunk)).enumerate().for_each(
            |(chunk_index, (places, keys))| {
                let order = &order;
                for (offset, &key) in keys.iter().enumerate() {
                    if let Some(rank) = rank_of(key) {
                        let place = &mut places[rank as usize];
                        // SAFETY: counting gave every living particle a place of its own below `living`.
                        unsafe { *order.0.add(*place as usize) = (chunk_index * chunk + offset) as u32 };
                        *place += 1;
                    }
                }
            },
        );
        living
    }

    /// Sorts each block's share of `order` by cell, stably.
    fn order_by_cell(&mut self, blocks: &Blocks<D>, particles: usize) {
        // The spare array holds the keys; behind them it has room for the sorted order.
        let spare: &mut [u32] = bytemuck::cast_slice_mut(&mut self.spare);
        let (keys, sorted) = spare.split_at_mut(particles);
        let sorted = &mut sorted[..self.order.len()];
        let (keys, out) = (&*keys, SharedOut(sorted.as_mut_ptr()));
        let (order, block) = (&self.order, &self.ranges.block);
        crate::grid::for_each_block(blocks.slots(), self.ranges.start.parts(), |slot, start| {
            let out = &out;
            let [first, end] = block[slot];
            let indices = &order[first as usize..end as usize];
            let local = |index: u32| keys[index as usize] as usize % block_cells(D);
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
        copy(sorted, &mut self.order);
    }

    /// Moves every array into the new order, one at a time through the spare one.
    fn rearrange(&mut self, particles: &mut Particles<D>, living: usize) {
        let order = &self.order[..living];
        resize_tight(&mut self.spare, living.max(1));
        for values in [&mut particles.position, &mut particles.velocity] {
            gather(order, values, &mut self.spare[..living]);
            // The two arrays trade places; the dead are cut off at the end.
            std::mem::swap(values, &mut self.spare);
            values.truncate(living);
            resize_tight(&mut self.spare, order.len().max(1));
        }
        // The first row steps aside, each other one moves into the array of the row before it.
        let aside: &mut [[u16; D]] = &mut bytemuck::cast_slice_mut(&mut self.spare)[..living];
        gather(order, &particles.affine[0], aside);
        for row in 1..D {
            let (before, from) = particles.affine.split_at_mut(row);
            gather(order, &from[0], &mut before[row - 1][..living]);
        }
        copy(aside, &mut particles.affine[D - 1][..living]);
        particles.affine.rotate_right(1);
        particles.affine.iter_mut().for_each(|row| row.truncate(living));
    }
}

impl<const D: usize> Default for Sorter<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// Particles that a thread moves at a time.
const GRAIN: usize = 4096;

fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T]) {
    to.par_chunks_mut(GRAIN).zip(from.par_chunks(GRAIN)).for_each(|(to, from)| to.copy_from_slice(from));
}

fn gather<T: Copy + Send + Sync>(order: &[u32], from: &[T], to: &mut [T]) {
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
fn surroundings<const D: usize>(local: [usize; D]) -> u32 {
    // Along each axis: low, same and high neighbour as three bits; then their product over the axes.
    let mut mask = 1;
    for axis in 0..D {
        let width = power(3, axis);
        let low = if local[axis] < MARGIN_CELLS { mask } else { 0 };
        let high = if local[axis] >= SIDE - MARGIN_CELLS { mask } else { 0 };
        mask = low | (mask << width) | (high << (2 * width));
    }
    mask
}

/// Rounds down; a library call for this would take longer than the rest of the key.
#[inline(always)]
fn floor(x: f32) -> i32 {
    let toward_zero = x as i32;
    toward_zero - (x < toward_zero as f32) as i32
}
