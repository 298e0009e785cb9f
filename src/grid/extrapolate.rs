//! Spreading known face velocities into the unknown faces around them, layer by layer.

use crate::math::{Side, power};

use super::{Blocks, Blockwise, DisjointMut, Field, SIDE, Slots, block_cells, for_each_block};

/// One bit per face: a byte holds a row of eight along x.
#[derive(Clone, Debug)]
pub struct FaceMask {
    /// `8^(D−1)` bytes per block.
    pub bits: Field<u8>,
}

impl FaceMask {
    /// All bits off.
    pub fn new(dimension: usize) -> Self {
        FaceMask { bits: Field::new(power(SIDE, dimension - 1), 0) }
    }

    /// Whether a face of a block is marked.
    #[inline]
    pub fn get(&self, slot: usize, local: usize) -> bool {
        self.bits.block(slot)[local / SIDE] & (1 << (local % SIDE)) != 0
    }
}

/// Rows above and below a row along y and z, as (slot, row) pairs.
#[inline]
fn row_neighbours<const D: usize>(blocks: &Blocks<D>, slot: usize, row: usize) -> [(usize, usize); 4] {
    let mut found = [(0, 0); 4];
    for axis in 1..D {
        let stride = power(SIDE, axis - 1);
        let place = row / stride % SIDE;
        found[2 * axis - 2] = match place {
            0 => (blocks.beside(slot, axis, Side::Low) as usize, row + (SIDE - 1) * stride),
            _ => (slot, row - stride),
        };
        found[2 * axis - 1] = match place {
            p if p == SIDE - 1 => (blocks.beside(slot, axis, Side::High) as usize, row - (SIDE - 1) * stride),
            _ => (slot, row + stride),
        };
    }
    found
}

/// What is known in a block: nothing, something, everything.
const NOTHING: u8 = 0;
const SOMETHING: u8 = 1;
const EVERYTHING: u8 = 2;

fn how_much(bits: &[u8]) -> u8 {
    let (any, all) = bits.iter().fold((0, 0xff), |(any, all), &bits| (any | bits, all & bits));
    match (any, all) {
        (0, _) => NOTHING,
        (_, 0xff) => EVERYTHING,
        _ => SOMETHING,
    }
}

/// Fills faces around the masked ones with the average of their known neighbours, `layers` deep. The mask grows
/// with them. A whole layer is computed from the one before, so that the order of visits does not matter.
pub fn extrapolate<const D: usize>(
    blocks: &Blocks<D>,
    velocity: &mut Field<f32>,
    mask: &mut FaceMask,
    scratch: &mut ExtrapolateScratch,
    layers: usize,
) {
    let ExtrapolateScratch { grown, known: amount, edge } = scratch;
    grown.bits.resize(blocks.slot_count());
    amount.resize(blocks.slot_count());
    let bits = &mask.bits;
    for_each_block(blocks.slots(), amount.parts(), |slot, amount| amount[0] = how_much(bits.block(slot)));
    for _ in 0..layers {
        // Blocks that a layer can reach: partly known, or next to a block where something is known.
        edge.refill(blocks.slots(), |slot| match amount[slot] {
            SOMETHING => true,
            EVERYTHING => false,
            _ => (0..D).any(|axis| {
                Side::BOTH.iter().any(|&side| amount[blocks.beside(slot, axis, side) as usize] > 0)
            }),
        });
        // New values go to faces that are not known yet, and only known ones are read: the two never meet.
        let (known, values) = (&mask.bits, DisjointMut::new(velocity.as_mut_slice()));
        for_each_block(edge, grown.bits.parts(), |slot, grown| {
            grown.fill(0);
            grow_block(blocks, known, &values, slot, grown);
        });
        let grown = &grown.bits;
        for_each_block(edge, (mask.bits.parts(), amount.parts()), |slot, (mask, amount)| {
            mask.iter_mut().zip(grown.block(slot)).for_each(|(mask, grown)| *mask |= grown);
            amount[0] = how_much(mask);
        });
    }
}

/// Memory that extrapolation reuses.
#[derive(Clone, Debug)]
pub struct ExtrapolateScratch {
    /// Faces that a layer adds.
    grown: FaceMask,
    /// How much is known in each block.
    known: Field<u8>,
    /// Blocks that a layer can reach.
    edge: Slots,
}

impl ExtrapolateScratch {
    /// For grids of that dimension.
    pub fn new(dimension: usize) -> Self {
        ExtrapolateScratch {
            grown: FaceMask::new(dimension),
            known: Field::new(1, NOTHING),
            edge: Slots::default(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.grown.bits.bytes() + self.known.bytes()
    }
}

fn grow_block<const D: usize>(
    blocks: &Blocks<D>,
    known: &Field<u8>,
    values: &DisjointMut<'_, f32>,
    slot: usize,
    grown: &mut [u8],
) {
    let cells = block_cells(D);
    let left = blocks.beside(slot, 0, Side::Low) as usize;
    let right = blocks.beside(slot, 0, Side::High) as usize;
    for row in 0..power(SIDE, D - 1) {
        let own = known.block(slot)[row];
        if own == 0xff {
            continue;
        }
        let across = row_neighbours(blocks, slot, row);
        let across_bits = across.map(|(slot, row)| known.block(slot)[row]);
        let across_bits = &across_bits[..2 * (D - 1)];
        let from_left = (own << 1) | (known.block(left)[row] >> (SIDE - 1));
        let from_right = (own >> 1) | (known.block(right)[row] << (SIDE - 1));
        let reached = across_bits.iter().fold(from_left | from_right, |all, bits| all | bits) & !own;
        grown[row] = reached;
        let mut rest = reached;
        while rest != 0 {
            let x = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let (mut sum, mut count) = (0.0, 0.0);
            let mut add = |slot: usize, local: usize| {
                // SAFETY: a known face of an active block; known faces are not written in this layer.
                sum += unsafe { values.read(slot * cells + local) };
                count += 1.0;
            };
            if from_left & (1 << x) != 0 {
                if x > 0 { add(slot, row * SIDE + x - 1) } else { add(left, row * SIDE + SIDE - 1) }
            }
            if from_right & (1 << x) != 0 {
                if x + 1 < SIDE { add(slot, row * SIDE + x + 1) } else { add(right, row * SIDE) }
            }
            for (bits, (slot, row)) in across_bits.iter().zip(across) {
                if bits & (1 << x) != 0 {
                    add(slot, row * SIDE + x);
                }
            }
            // SAFETY: an unknown face of this block, which no other visit reads or writes.
            unsafe { *values.at(slot * cells + row * SIDE + x) = sum / count };
        }
    }
}

/// Lends the bits of all masks block by block.
pub fn mask_parts<const D: usize>(mask: &mut [FaceMask; D]) -> impl Blockwise<Block = [&mut [u8]; D]> {
    mask.each_mut().map(|mask| mask.bits.parts())
}
