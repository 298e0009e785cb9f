//! Sorting particles by block and cell, and activating the blocks they need.
//!
//! The order is that of a stable counting sort, so it depends on the particles alone and not on how many threads
//! did the work.

use std::sync::atomic::{AtomicU32, Ordering};

use macro_rules_attribute::apply;
use rayon::prelude::*;

use crate::archive::{ArchiveError, Reader, Writer};
use crate::geometry::{Walls, block_is_solid};
use crate::grid::{Activation, Blocks, DisjointMut, Field, PAD, SIDE, VOID, block_cells};
use crate::math::{Real, power, simd, unflatten};

use super::Particles;
use super::lanes::LANES;

/// Where the particles of each block and cell are, after a sort. Those added later are listed behind.
#[derive(Clone, Debug)]
pub struct CellRanges {
    /// First particle of each cell.
    pub start: Field<u32>,
    /// First particle of each block by slot, and one past its last.
    pub block: Vec<[u32; 2]>,
}

impl CellRanges {
    /// No particles, on grids of that dimension.
    pub fn new(dimension: usize) -> Self {
        CellRanges { start: Field::new(block_cells(dimension), 0), block: Vec::new() }
    }

    /// Writes how many particles each cell has.
    pub fn save<const D: usize>(&self, blocks: &Blocks<D>, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        let slots = blocks.slots().as_slice().iter();
        let counts: Vec<u32> =
            slots.flat_map(|&slot| self.cells(slot as usize).map(|range| range.len() as u32)).collect();
        out.array("particles.per_cell", &counts)
    }

    /// Reads what [`CellRanges::save`] wrote, for that many particles, the sorted ones first.
    pub fn load<const D: usize>(
        blocks: &Blocks<D>,
        particles: usize,
        from: &mut Reader<'_>,
    ) -> Result<Self, ArchiveError> {
        let (mut ranges, slots) = (CellRanges::new(D), blocks.slots().as_slice());
        let counts = from.array_of::<u32>("particles.per_cell", slots.len() * block_cells(D))?;
        let sorted: u64 = counts.iter().map(|&count| u64::from(count)).sum();
        ArchiveError::unless(sorted <= particles as u64, "particles.per_cell", "counts more than there are")?;
        ranges.start.resize(blocks.slot_count());
        ranges.block.resize(blocks.slot_count(), [0; 2]);
        let mut next = 0;
        for (&slot, counts) in slots.iter().zip(counts.chunks_exact(block_cells(D))) {
            let first = next;
            for (start, count) in ranges.start.block_mut(slot as usize).iter_mut().zip(counts) {
                (*start, next) = (next, next + count);
            }
            ranges.block[slot as usize] = [first, next];
        }
        Ok(ranges)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.start.bytes() + self.block.capacity() * size_of::<[u32; 2]>()
    }

    /// Particles that were there at the sort: those behind were added since.
    pub fn sorted_count<const D: usize>(&self, blocks: &Blocks<D>) -> usize {
        blocks.slots().as_slice().iter().map(|&slot| self.of_block(slot as usize).end).max().unwrap_or(0)
    }

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

/// Scratch memory of the sort.
#[derive(Debug)]
pub struct Sorter<const D: usize> {
    wanted: Activation,
    /// Per cell of a block: which of the block's 3^D surroundings a particle there needs.
    surroundings: Vec<u32>,
    /// Per block of the lookup table: which of its 3^D surroundings are needed.
    needs: Vec<AtomicU32>,
    rank: Vec<u32>,
    /// Particle counts, later first places, per block rank and chunk of particles.
    counts: Vec<u32>,
    /// First places per block rank.
    starts: Vec<u32>,
    order: Vec<u32>,
    spare: Vec<[f32; D]>,
}

/// Particles are cut into this many chunks whatever the number of threads.
const CHUNKS: usize = 64;

/// Cells around every particle whose blocks are stored: room for the surface's kernel, for extrapolation and for
/// the way a particle may go in one substep.
pub const MARGIN_CELLS: usize = 4;

/// Blocks whose counts a thread sums at a time.
const RANKS: usize = 256;

/// Key of a particle that is to vanish: past every table of blocks.
const DEAD: u32 = u32::MAX;

/// Further than any table of blocks reaches, in cells.
const FAR: f32 = 1e8;

impl<const D: usize> Sorter<D> {
    /// No memory yet.
    pub fn new() -> Self {
        Sorter {
            wanted: Activation::default(),
            surroundings: (0..block_cells(D)).map(|cell| surroundings(unflatten::<D>(cell, SIDE))).collect(),
            needs: Vec::new(),
            rank: Vec::new(),
            counts: Vec::new(),
            starts: Vec::new(),
            order: Vec::new(),
            spare: Vec::new(),
        }
    }

    /// The place that each particle had in the list before the last sort.
    pub fn origin(&self) -> &[u32] {
        &self.order
    }

    /// Drops dead particles, activates the blocks around the living and those that are `needed` (places in the lookup
    /// table), and sorts by block and cell: `ranges` then says where each cell's particles are.
    pub fn sort(
        &mut self,
        particles: &mut Particles<D>,
        ranges: &mut CellRanges,
        blocks: &mut Blocks<D>,
        walls: &Walls<D>,
        needed: &[u32],
        time: Real,
    ) {
        self.find_blocks(particles, blocks, walls, needed, time);
        ranges.start.resize(blocks.slot_count());
        ranges.block.clear();
        ranges.block.resize(blocks.slot_count(), [0; 2]);
        let living = self.order_by_block(blocks, particles.len(), ranges);
        self.order_by_cell(blocks, particles.len(), ranges);
        self.rearrange(particles, living);
    }

    /// Bytes held per particle and per cell, together.
    pub fn bytes(&self) -> usize {
        self.order.capacity() * 4 + self.spare.capacity() * size_of::<[f32; D]>()
    }

    /// Bytes held on the grid.
    pub fn grid_bytes(&self) -> usize {
        (self.surroundings.capacity()
            + self.needs.capacity()
            + self.rank.capacity()
            + self.counts.capacity()
            + self.starts.capacity())
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
        let (chunk, table) = (particles.len().div_ceil(CHUNKS).max(1), blocks.table_extent());
        particles.position.par_chunks(chunk).zip(keys.par_chunks_mut(chunk)).for_each(|(positions, keys)| {
            find_keys::<D>(positions, &table, keys);
            for run in keys.chunk_by(same_block::<D>).filter(|run| run[0] != DEAD) {
                let local = |key: u32| key as usize % block_cells(D);
                let mask = run.iter().fold(0, |mask, &key| mask | surroundings[local(key)]);
                let need = &needs[run[0] as usize / block_cells(D)];
                if mask & !need.load(Ordering::Relaxed) != 0 {
                    need.fetch_or(mask, Ordering::Relaxed);
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
    fn order_by_block(&mut self, blocks: &Blocks<D>, particles: usize, ranges: &mut CellRanges) -> usize {
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
        // The rank of the block that a run of keys lies in, if these are not of dead particles.
        let rank_of = |run: &[u32]| {
            let rank = rank.get(run[0] as usize / block_cells(D)).copied();
            rank.filter(|&rank| rank != u32::MAX).map(|rank| rank as usize)
        };
        self.counts.resize(CHUNKS * ranks.max(1), 0);
        let empty = keys.len().div_ceil(chunk) * ranks.max(1);
        self.counts[empty..].fill(0);
        self.counts.par_chunks_mut(ranks.max(1)).zip(keys.par_chunks(chunk)).for_each(|(counts, keys)| {
            counts.fill(0);
            for run in keys.chunk_by(same_block::<D>) {
                if let Some(rank) = rank_of(run) {
                    counts[rank] += run.len() as u32;
                }
            }
        });
        let living = place_blocks(&mut self.counts, &mut self.starts, blocks, ranges);
        resize_tight(&mut self.order, living);
        let order = DisjointMut::new(&mut self.order);
        self.counts.par_chunks_mut(ranks.max(1)).zip(keys.par_chunks(chunk)).enumerate().for_each(
            |(chunk_index, (places, keys))| {
                let order = &order;
                let mut first = (chunk_index * chunk) as u32;
                for run in keys.chunk_by(same_block::<D>) {
                    let count = run.len() as u32;
                    if let Some(rank) = rank_of(run) {
                        let place = places[rank];
                        places[rank] += count;
                        // SAFETY: counting gave every living particle a place of its own below `living`.
                        let order = unsafe { order.range(place as usize..(place + count) as usize) };
                        order.iter_mut().zip(first..).for_each(|(order, index)| *order = index);
                    }
                    first += count;
                }
            },
        );
        living
    }

    /// Sorts each block's share of `order` by cell, stably.
    fn order_by_cell(&mut self, blocks: &Blocks<D>, particles: usize, ranges: &mut CellRanges) {
        // The spare array holds the keys; behind them it has room for the order as it was.
        let spare: &mut [u32] = bytemuck::cast_slice_mut(&mut self.spare);
        let (keys, before) = spare.split_at_mut(particles);
        let (keys, before) = (&*keys, DisjointMut::new(&mut before[..self.order.len()]));
        let (order, block) = (DisjointMut::new(&mut self.order), &ranges.block);
        crate::grid::for_each_block(blocks.slots(), ranges.start.parts(), |slot, start| {
            let (order, before) = (&order, &before);
            let [first, end] = block[slot];
            let range = first as usize..end as usize;
            // SAFETY: blocks have disjoint ranges, below the number of particles.
            let (order, before) = unsafe { (order.range(range.clone()), before.range(range)) };
            before.copy_from_slice(order);
            let local = |index: u32| keys[index as usize] as usize % block_cells(D);
            start.fill(0);
            before.iter().for_each(|&index| start[local(index)] += 1);
            let mut next = first;
            for count in start.iter_mut() {
                (*count, next) = (next, next + *count);
            }
            for &index in &*before {
                let place = &mut start[local(index)];
                order[(*place - first) as usize] = index;
                *place += 1;
            }
            // Each start has moved to its cell's end, which is the next cell's start.
            start.copy_within(..start.len() - 1, 1);
            start[0] = first;
        });
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

/// Turns counts into first places, and finds where each block's particles are. Returns how many live.
fn place_blocks<const D: usize>(
    counts: &mut [u32],
    starts: &mut Vec<u32>,
    blocks: &Blocks<D>,
    ranges: &mut CellRanges,
) -> usize {
    let slots = blocks.slots().as_slice();
    let ranks = slots.len();
    // How many there are in each block, then where they begin, then where each chunk's begin.
    starts.clear();
    starts.resize(ranks, 0);
    starts.par_chunks_mut(RANKS).enumerate().for_each(|(part, starts)| {
        for chunk in 0..CHUNKS {
            let counts = &counts[chunk * ranks + part * RANKS..][..starts.len()];
            starts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
    });
    let mut next = 0;
    for (start, &slot) in starts.iter_mut().zip(slots) {
        (*start, next) = (next, next + *start);
        ranges.block[slot as usize] = [*start, next];
    }
    let counts = DisjointMut::new(counts);
    starts.par_chunks_mut(RANKS).enumerate().for_each(|(part, starts)| {
        for chunk in 0..CHUNKS {
            let first = chunk * ranks + part * RANKS;
            // SAFETY: parts are disjoint, and so are chunks.
            let counts = unsafe { counts.range(first..first + starts.len()) };
            for (start, count) in starts.iter_mut().zip(counts) {
                (*count, *start) = (*start, *start + *count);
            }
        }
    });
    next as usize
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

/// Whether two particles lie in one block, by their keys.
fn same_block<const D: usize>(one: &u32, other: &u32) -> bool {
    *one as usize / block_cells(D) == *other as usize / block_cells(D)
}

/// Finds the keys of particles: the block's place in a `table` of that many blocks along each axis, and the cell in it.
#[apply(simd)]
fn find_keys<const D: usize>(positions: &[[f32; D]], table: &[usize; D], keys: &mut [u32]) {
    let (groups, rest) = positions.as_chunks::<LANES>();
    let (key_groups, key_rest) = keys.as_chunks_mut::<LANES>();
    for (positions, keys) in groups.iter().zip(key_groups) {
        *keys = keys_of(positions, table);
    }
    let mut last = [[f32::NAN; D]; LANES];
    last[..rest.len()].copy_from_slice(rest);
    key_rest.copy_from_slice(&keys_of(&last, table)[..rest.len()]);
}

/// The keys of several particles, side by side.
#[inline(always)]
fn keys_of<const D: usize>(positions: &[[f32; D]; LANES], table: &[usize; D]) -> [u32; LANES] {
    let mut apart = [[0.0; LANES]; D];
    for lane in 0..LANES {
        for axis in 0..D {
            apart[axis][lane] = positions[lane][axis];
        }
    }
    let (mut keys, mut outside) = ([0u32; LANES], [0u32; LANES]);
    let (mut width, mut stride) = (1, block_cells(D) as u32);
    for axis in 0..D {
        let size = table[axis] as u32;
        for lane in 0..LANES {
            // What is no number, as with dead particles, goes far away as well. One comparison at a time.
            let x = if apart[axis][lane] > -FAR { apart[axis][lane] } else { -FAR };
            let x = if x < FAR { x } else { FAR };
            // SAFETY: a number between two that an `i32` can hold. The conversion that is always safe takes longer than
            // all the rest, and so does rounding down by a library call.
            let toward_zero: i32 = unsafe { x.to_int_unchecked() };
            let cell = toward_zero + PAD - i32::from(x < toward_zero as f32);
            // The table has one more block at either side. What lies below it wraps around to large numbers.
            let coordinate = ((cell >> SIDE.trailing_zeros()) + 1) as u32;
            outside[lane] |= u32::from(coordinate >= size);
            let (block, local) = (coordinate.wrapping_mul(stride), (cell as u32 % SIDE as u32) * width);
            keys[lane] = keys[lane].wrapping_add(block).wrapping_add(local);
        }
        (width, stride) = (width * SIDE as u32, stride.wrapping_mul(size));
    }
    for lane in 0..LANES {
        keys[lane] = if outside[lane] == 0 { keys[lane] } else { DEAD };
    }
    keys
}
