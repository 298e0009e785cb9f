//! Particles to grid.
//!
//! Blocks are visited in 2^D colours, so that no two threads ever add to the same face, and every face collects its
//! contributions in the same order for any number of threads.

#[cfg(target_arch = "x86_64")]
use std::any::Any;

use macro_rules_attribute::apply;

use crate::grid::{
    Blocks, DisjointMut, FaceMask, Field, SIDE, Slots, block_cells, for_each_block, halo_cells, masks, share,
};
use crate::math::{power, simd, unflatten};

#[cfg(target_arch = "x86_64")]
use super::super::lanes::has_avx512;
use super::super::particles::unpack;
use super::super::{CellRanges, Particles};
use super::{HALO, MOST};

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
    for parity in 0..power(2, D) {
        colour.refill(blocks.slots(), |slot| {
            let coords = blocks.coords(slot);
            !ranges.of_block(slot).is_empty()
                && (0..D).all(|axis| (coords[axis] & 1) as usize == (parity >> axis) & 1)
        });
        let out = Sums {
            momentum: velocity.each_mut().map(|field| DisjointMut::new(field.as_mut_slice())),
            weight: weight.each_mut().map(|field| DisjointMut::new(field.as_mut_slice())),
        };
        let slots = colour.as_slice();
        share(slots.len(), 2, &|range| {
            let mut sums = BlockSums { momentum: [[0.0; MOST]; D], weight: [[0.0; MOST]; D] };
            for slot in slots[range].iter().map(|&slot| slot as usize) {
                for values in sums.momentum.iter_mut().chain(&mut sums.weight) {
                    values[..const { halo_cells(HALO, D) }].fill(0.0);
                }
                scatter_block(particles, ranges, slot, blocks.first_cell(slot), &mut sums);
                // SAFETY: blocks of one colour are two apart, so that their margins do not meet.
                unsafe { out.add_block(blocks, slot, &sums) };
            }
        });
    }
    let (velocity, weight) = (velocity.each_mut().map(Field::parts), weight.each_mut().map(Field::parts));
    let mask = mask.each_mut().map(|mask| mask.bits.parts());
    for_each_block(blocks.slots(), (velocity, weight, mask), |slot, (velocity, weight, mask)| {
        if blocks.around(slot).iter().all(|&near| ranges.of_block(near as usize).is_empty()) {
            // Nothing came here: all is zero still.
            return mask.into_iter().for_each(|bits| bits.fill(0));
        }
        for ((velocity, weight), mask) in velocity.into_iter().zip(weight).zip(mask) {
            divide_by_weight(velocity, weight, mask);
        }
    });
}

/// Turns momentum into velocity, with a bit in `mask` wherever there is any.
#[apply(simd)]
fn divide_by_weight(velocity: &mut [f32], weight: &[f32], mask: &mut [u8]) {
    let rows = velocity.as_chunks_mut::<SIDE>().0.iter_mut().zip(weight.as_chunks::<SIDE>().0);
    for ((velocity, weight), bits) in rows.zip(mask) {
        let mut known = [0u8; SIDE];
        for x in 0..SIDE {
            // Fainter traces of a particle say nothing reliable about its velocity.
            known[x] = u8::from(weight[x] > 1e-4);
            velocity[x] = if weight[x] > 1e-4 { velocity[x] / weight[x] } else { 0.0 };
        }
        *bits = masks::row_of(&known);
    }
}

/// What a block's particles add to the faces of the block and of the cells around it.
pub(super) struct BlockSums<const D: usize> {
    pub momentum: [[f32; MOST]; D],
    pub weight: [[f32; MOST]; D],
}

/// Faces that the particles of one cell reach across their component's axis: three along each other axis, in 2D with
/// room to spare.
const TAPS: usize = 16;

/// Place of each of those faces along the first and the second other axis, in cells from the particles' own cell. Too
/// far away to be reached where there is no such face.
const fn taps(dimension: usize) -> [[f32; TAPS]; 2] {
    let mut place = [[9.0; TAPS], [9.0; TAPS]];
    let mut i = 0;
    while i < 9 {
        if dimension == 3 {
            place[0][i] = (i % 3) as f32 - 1.0;
            place[1][i] = (i / 3) as f32 - 1.0;
        } else if i < 3 {
            place[0][i] = i as f32 - 1.0;
            place[1][i] = 0.0;
        }
        i += 1;
    }
    place
}

/// Adds up a block's particles in the fastest way that this processor knows.
fn scatter_block<const D: usize>(
    particles: &Particles<D>,
    ranges: &CellRanges,
    slot: usize,
    first_cell: [i32; D],
    sums: &mut BlockSums<D>,
) {
    #[cfg(target_arch = "x86_64")]
    {
        let this: (&dyn Any, &mut dyn Any, &dyn Any) = (particles, sums, &first_cell);
        let solid = (this.0.downcast_ref(), this.1.downcast_mut(), this.2.downcast_ref());
        if let (Some(particles), Some(sums), Some(&first_cell)) = solid
            && has_avx512()
        {
            // SAFETY: the processor has these instructions.
            return unsafe { super::avx512::scatter_block(particles, ranges, slot, first_cell, sums) };
        }
    }
    scatter_plainly(particles, ranges, slot, first_cell, sums);
}

/// Adds up a block's particles cell by cell: all particles of a cell reach the same few faces, whose sums stay in
/// registers meanwhile.
#[apply(simd)]
fn scatter_plainly<const D: usize>(
    particles: &Particles<D>,
    ranges: &CellRanges,
    slot: usize,
    first_cell: [i32; D],
    sums: &mut BlockSums<D>,
) {
    for local in 0..block_cells(D) {
        let range = ranges.of_cells(slot, local, local);
        if range.is_empty() {
            continue;
        }
        let cell: [i32; D] = unflatten::<D>(local, SIDE).map(|c| c as i32);
        let low: [f32; D] = std::array::from_fn(|k| (first_cell[k] + cell[k]) as f32);
        let at = HALO.index(cell);
        scatter_cell::<D, 0>(particles, range.clone(), &low, at, sums);
        scatter_cell::<D, 1>(particles, range.clone(), &low, at, sums);
        if D == 3 {
            scatter_cell::<D, 2>(particles, range, &low, at, sums);
        }
    }
}

/// Adds up component `AXIS` of the particles of a cell, whose low corner is `low` and whose low faces are at `at`.
#[inline(always)]
fn scatter_cell<const D: usize, const AXIS: usize>(
    particles: &Particles<D>,
    range: std::ops::Range<usize>,
    low: &[f32; D],
    at: usize,
    sums: &mut BlockSums<D>,
) {
    let [one, two] = const { [(AXIS + 1) % D, (AXIS + 2) % D] };
    let place = const { taps(D) };
    // At the cell's low faces and those beside them, and at its high faces.
    let (mut low_momentum, mut low_weight) = ([0f32; TAPS], [0f32; TAPS]);
    let (mut high_momentum, mut high_weight) = ([0f32; TAPS], [0f32; TAPS]);
    let affine = &particles.affine[AXIS % D][range.clone()];
    let (position, velocity) = (&particles.position[range.clone()], &particles.velocity[range]);
    for ((x, velocity), affine) in position.iter().zip(velocity).zip(affine) {
        let (along, first_slope) = (unpack(affine[AXIS % D]), unpack(affine[one]));
        let high = x[AXIS % D] - low[AXIS % D];
        let velocity = velocity[AXIS % D] - along * high;
        // Faces across the axis sit at cell centres.
        let first = x[one] - low[one] - 0.5;
        let (second, second_slope) =
            if D == 3 { (x[two] - low[two] - 0.5, unpack(affine[two])) } else { (0.0, 0.0) };
        for l in 0..TAPS {
            let (a, b) = (place[0][l] - first, place[1][l] - second);
            let (wa, wb) = (1.0 - a.abs(), 1.0 - b.abs());
            let weight = if wa > 0.0 { wa } else { 0.0 } * if wb > 0.0 { wb } else { 0.0 };
            let v = velocity + first_slope * a + second_slope * b;
            let (low_share, high_share) = (weight * (1.0 - high), weight * high);
            low_momentum[l] += low_share * v;
            low_weight[l] += low_share;
            high_momentum[l] += high_share * (v + along);
            high_weight[l] += high_share;
        }
    }
    let offsets = const { tap_offsets(D, AXIS) };
    let (momentum, weight) = (&mut sums.momentum[AXIS % D], &mut sums.weight[AXIS % D]);
    for tap in 0..const { if D == 3 { 9 } else { 3 } } {
        // The box is a power of two large, so that cutting an index to it costs nothing and none can leave it.
        let low_face = (at as i32 + offsets[tap]) as usize & (MOST - 1);
        let high_face = (low_face + HALO.stride(AXIS)) & (MOST - 1);
        momentum[low_face] += low_momentum[tap];
        weight[low_face] += low_weight[tap];
        momentum[high_face] += high_momentum[tap];
        weight[high_face] += high_weight[tap];
    }
}

/// Distance in memory from a cell's own face to each of the faces that [`taps`] lists.
const fn tap_offsets(dimension: usize, axis: usize) -> [i32; TAPS] {
    let one = HALO.stride((axis + 1) % dimension) as i32;
    let two = if dimension == 3 { HALO.stride((axis + 2) % dimension) as i32 } else { 0 };
    let mut offsets = [0; TAPS];
    let mut i = 0;
    while i < 9 {
        let (a, b) = (i as i32 % 3 - 1, i as i32 / 3 - 1);
        offsets[i] = if dimension == 3 { a * one + b * two } else { a * one };
        i += 1;
    }
    offsets
}

/// The grid's accumulators, written by several threads at places of their own.
struct Sums<'a, const D: usize> {
    momentum: [DisjointMut<'a, f32>; D],
    weight: [DisjointMut<'a, f32>; D],
}

impl<const D: usize> Sums<'_, D> {
    /// Adds a block with margins to the grid.
    ///
    /// # Safety
    /// No other thread may touch the faces of this block or of the one-cell margin around it.
    unsafe fn add_block(&self, blocks: &Blocks<D>, slot: usize, sums: &BlockSums<D>) {
        let around = blocks.around(slot);
        for row in 0..power(HALO.side, D - 1) {
            let (mut rest, mut block, mut local) = (row, 0, 0);
            for axis in 1..D {
                let coordinate = rest % HALO.side + SIDE - HALO.margin;
                rest /= HALO.side;
                block += coordinate / SIDE * power(3, axis);
                local += coordinate % SIDE * power(SIDE, axis);
            }
            for axis in 0..D {
                for (to, from) in
                    [(&self.momentum[axis], &sums.momentum[axis]), (&self.weight[axis], &sums.weight[axis])]
                {
                    let from: &[f32; SIDE + 2] =
                        from[row * HALO.side..][..SIDE + 2].try_into().expect("a row with margins");
                    // The cell left of the block, its own eight, and the one right of it.
                    for (side, first, count, offset) in
                        [(0, SIDE - 1, 1, 0), (1, 0, SIDE, 1), (2, 0, 1, SIDE + 1)]
                    {
                        let owner = around[block + side] as usize;
                        if owner == crate::grid::VOID as usize {
                            continue;
                        }
                        let index = owner * block_cells(D) + local + first;
                        // SAFETY: ours alone by the caller's promise.
                        let to = unsafe { to.range(index..index + count) };
                        to.iter_mut().zip(&from[offset..]).for_each(|(to, from)| *to += from);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    /// Random particles of a block, in the order of its cells; up to 20 in each.
    fn block<const D: usize>(first_cell: [i32; D]) -> (Particles<D>, CellRanges) {
        let mut particles = Particles::<D>::default();
        let mut ranges = CellRanges { start: Field::new(block_cells(D), 0), block: vec![[0; 2]] };
        ranges.start.resize(1);
        let mut key = 0;
        let mut random = || {
            key += 1;
            hash_unit(key)
        };
        for local in 0..block_cells(D) {
            ranges.start.block_mut(0)[local] = particles.len() as u32;
            let cell = unflatten::<D>(local, SIDE);
            for _ in 0..(random() * 21.0) as usize {
                let place = std::array::from_fn(|k| (first_cell[k] + cell[k] as i32) as f32 + random());
                particles.push(place, std::array::from_fn(|_| 2.0 * random() - 1.0));
            }
        }
        for row in particles.affine.iter_mut().flatten().flatten() {
            *row = super::super::super::particles::pack(random() - 0.5);
        }
        ranges.block[0] = [0, particles.len() as u32];
        (particles, ranges)
    }

    fn all_ways_give_the_same_bits<const D: usize>() {
        let first_cell = [16; D];
        let (particles, ranges) = block(first_cell);
        let none = || BlockSums { momentum: [[0.0; MOST]; D], weight: [[0.0; MOST]; D] };
        let (mut plain, mut fast) = (none(), none());
        scatter_plainly(&particles, &ranges, 0, first_cell, &mut plain);
        scatter_block(&particles, &ranges, 0, first_cell, &mut fast);
        let bits = |values: &[[f32; MOST]; D]| values.map(|axis| axis.map(f32::to_bits));
        assert!(bits(&plain.momentum) == bits(&fast.momentum), "{D}D");
        assert!(bits(&plain.weight) == bits(&fast.weight), "{D}D");
        // Every particle has a weight of one in all.
        for axis in 0..D {
            let total: f64 = fast.weight[axis].iter().map(|&weight| f64::from(weight)).sum();
            let count = particles.len() as f64;
            assert!(count > 100.0 && (total / count - 1.0).abs() < 1e-5, "{D}D: {total} of {count}");
        }
    }

    #[test]
    fn all_ways_give_the_same_bits_2d() {
        all_ways_give_the_same_bits::<2>();
    }

    #[test]
    fn all_ways_give_the_same_bits_3d() {
        all_ways_give_the_same_bits::<3>();
    }
}
