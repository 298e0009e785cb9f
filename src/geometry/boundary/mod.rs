//! Obstacles and domain walls as the grid sees them: signed distances at cell corners and the open share of
//! every face.

mod sample;
mod shares;
mod voxels;
mod walls;

use super::Pose;
use crate::grid::{Blocks, CHUNKS, Field, Halo, SIDE, Slots, across, block_cells, for_each_block_collecting};
use crate::math::{Real, Side, power};

pub use sample::block_is_solid;
use sample::{nearness, reach, sample_block};
pub use walls::{SolidsNear, Walls};

/// Distances are stored in cells and cut off here: nothing farther away matters to any stage.
pub const FAR: f32 = 4.0;

/// How a block lies with respect to the solids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Nearness {
    /// No solid within [`FAR`] cells: every face is open.
    #[default]
    Clear,
    /// Some solid is near, none of those moves.
    Static,
    /// A moving solid is near.
    Moving,
}

/// A bit per cell of a block, 64 cells to a word, x fastest; a 2D block uses the first word.
pub type CellBits = [u64; SIDE];

/// What walls do to the cells of one block, as bits.
#[derive(Clone, Copy, Debug)]
pub struct WallBits {
    /// Per axis: the low face is open, if only in part.
    pub passable: [CellBits; 3],
    /// No face is open.
    pub closed: CellBits,
    /// Some face is not wholly open.
    pub cut: CellBits,
    /// The centre is closer to a wall than half a cell, or in it: the wall takes part of the cell.
    pub close: CellBits,
    /// The centre is closer than a quarter of a cell, or in the wall: particles need not be there.
    pub full: CellBits,
}

impl WallBits {
    /// No wall.
    const CLEAR: WallBits = WallBits {
        passable: [[u64::MAX; SIDE]; 3],
        closed: [0; SIDE],
        cut: [0; SIDE],
        close: [0; SIDE],
        full: [0; SIDE],
    };
}

/// The share of a low face that a body closes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BodyShare {
    /// The block of the cell whose low face it is.
    pub slot: u32,
    /// The axis that the face lies across.
    pub axis: u8,
    /// That cell inside its block.
    pub local: u16,
    /// The body: its place among the solids.
    pub solid: u32,
    /// With the open share, those of all bodies and what other solids close, it sums to one.
    pub share: f64,
}

impl BodyShare {
    /// Where it stands among others.
    fn key(&self) -> (u32, u8, u16, u32) {
        (self.slot, self.axis, self.local, self.solid)
    }
}

/// The walls sampled on the active blocks.
#[derive(Clone, Debug)]
pub struct Boundary<const D: usize> {
    /// Signed distance at every cell's low corner, in cells, cut off at ±[`FAR`].
    pub corner: Field<f32>,
    /// Open share of every low face, per axis.
    pub open: [Field<f32>; D],
    /// Closed low faces that lie along a wall, per axis: a bit per face, a byte per row of eight along x.
    pub along: [Field<u8>; D],
    /// What bodies close, in the order of slots, axes and cells, and where that of each slot begins.
    held: Vec<BodyShare>,
    held_of: Vec<u32>,
    found: Box<[Vec<BodyShare>; CHUNKS]>,
    /// When solids were sampled, and where bodies were.
    sampled: (Real, Vec<Pose<D>>),
    bits: Field<WallBits>,
    near: Vec<Nearness>,
    swept: Vec<bool>,
    due: Vec<bool>,
    stale: Slots,
}

impl<const D: usize> Boundary<D> {
    /// Nothing sampled yet. Beyond the active blocks all faces read as closed.
    pub fn new() -> Self {
        Boundary {
            corner: Field::new(block_cells(D), -FAR),
            open: std::array::from_fn(|_| Field::new(block_cells(D), 0.0)),
            along: std::array::from_fn(|_| Field::new(block_cells(D) / SIDE, 0)),
            held: Vec::new(),
            held_of: Vec::new(),
            found: Box::new(std::array::from_fn(|_| Vec::new())),
            sampled: (Real::NAN, Vec::new()),
            bits: Field::new(1, WallBits::CLEAR),
            near: Vec::new(),
            swept: Vec::new(),
            due: Vec::new(),
            stale: Slots::default(),
        }
    }

    /// How the block in a slot lies with respect to the solids.
    #[inline]
    pub fn nearness(&self, slot: usize) -> Nearness {
        self.near[slot]
    }

    /// Whether a solid that moves by a script is near the block in a slot.
    #[inline]
    pub fn is_swept(&self, slot: usize) -> bool {
        self.swept[slot]
    }

    /// What walls do to a block's cells.
    #[inline]
    pub fn bits(&self, slot: usize) -> &WallBits {
        &self.bits.block(slot)[0]
    }

    /// Whether a cell's face on a side across an axis is open, if only in part.
    #[inline]
    pub fn is_open(&self, blocks: &Blocks<D>, slot: usize, cell: usize, axis: usize, side: Side) -> bool {
        // A face is stored with the cell on its high side.
        let (face, is_beyond) = match side {
            Side::Low => (cell, false),
            Side::High => across(cell, axis, side),
        };
        let slot = if is_beyond { blocks.beside(slot, axis, Side::High) as usize } else { slot };
        slot != crate::grid::VOID as usize
            && self.bits(slot).passable[axis][face / 64] >> (face % 64) & 1 == 1
    }

    /// Samples new blocks, and those near moving solids anew.
    pub fn update(&mut self, blocks: &Blocks<D>, walls: &Walls<D>, time: Real) {
        let known = self.near.len();
        self.corner.resize(blocks.slot_count());
        self.open.iter_mut().for_each(|open| open.resize(blocks.slot_count()));
        self.along.iter_mut().for_each(|along| along.resize(blocks.slot_count()));
        self.bits.resize(blocks.slot_count());
        self.near.resize(blocks.slot_count(), Nearness::Clear);
        self.swept.resize(blocks.slot_count(), false);
        // A block is due when it is new here, when a moving solid is near, or when one was.
        let due = &mut self.due;
        due.clear();
        due.resize(known, false);
        due.resize(blocks.slot_count(), true);
        blocks.fresh().iter().for_each(|&slot| due[slot as usize] = true);
        let has_bodies = walls.has_bodies();
        // With bodies, a substep looks at the same moment twice: at the old blocks and at the new.
        let is_known = has_bodies && self.sampled.0 == time && walls.poses().eq(self.sampled.1.iter());
        if has_bodies && !is_known {
            self.sampled.0 = time;
            self.sampled.1.clear();
            self.sampled.1.extend(walls.poses());
        }
        let (near, stale) = (&mut self.near, &mut self.stale);
        for solid in walls.solids.iter().filter(|solid| !is_known && solid.is_moving()) {
            let posed = solid.at(time);
            for &slot in blocks.slots().as_slice() {
                let (centre, _, reach) = reach(blocks, blocks.coords(slot as usize));
                let is_near = || {
                    near[slot as usize] == Nearness::Moving
                        || solid.may_reach(&centre, reach) && posed.distance(&centre) <= reach
                };
                due[slot as usize] = due[slot as usize] || is_near();
            }
        }
        stale.refill(blocks.slots(), |slot| due[slot]);
        for &slot in stale.as_slice() {
            (near[slot as usize], self.swept[slot as usize]) = nearness(blocks, walls, slot as usize, time);
        }
        self.found.iter_mut().for_each(Vec::clear);
        let near = &self.near;
        let (open, along) = (self.open.each_mut().map(Field::parts), self.along.each_mut().map(Field::parts));
        for_each_block_collecting(
            &self.stale,
            (self.corner.parts(), open, along, self.bits.parts()),
            &mut self.found,
            |slot, (corner, mut open, mut along, bits), found| {
                if near[slot] == Nearness::Clear {
                    corner.fill(FAR);
                    open.iter_mut().for_each(|face| face.fill(1.0));
                    along.iter_mut().for_each(|rows| rows.fill(0));
                    bits[0] = WallBits::CLEAR;
                } else {
                    let found = has_bodies.then_some(found);
                    bits[0] = sample_block(blocks, walls, slot, time, corner, &mut open, &mut along, found);
                }
            },
        );
        if !has_bodies {
            return;
        }
        // What other blocks have stays.
        let mut stays = vec![false; self.due.len()];
        blocks.slots().as_slice().iter().for_each(|&slot| stays[slot as usize] = !self.due[slot as usize]);
        self.held.retain(|held| stays[held.slot as usize]);
        self.found.iter().for_each(|found| self.held.extend_from_slice(found));
        self.held.sort_unstable_by_key(BodyShare::key);
        self.held_of.clear();
        self.held_of.resize(blocks.slot_count() + 1, 0);
        self.held.iter().for_each(|held| self.held_of[held.slot as usize + 1] += 1);
        (1..self.held_of.len()).for_each(|slot| self.held_of[slot] += self.held_of[slot - 1]);
    }

    /// All shares of faces that bodies close, in the order of slots, axes and cells.
    pub fn body_shares(&self) -> &[BodyShare] {
        &self.held
    }

    /// What bodies close of a cell's low face.
    pub fn bodies_at(&self, slot: usize, axis: usize, local: usize) -> &[BodyShare] {
        if self.held.is_empty() {
            return &[];
        }
        let own = &self.held[self.held_of[slot] as usize..self.held_of[slot + 1] as usize];
        let wanted = (axis as u8, local as u16);
        let place = |share: &BodyShare| (share.axis, share.local);
        let first = own.partition_point(|share| place(share) < wanted);
        let count = own[first..].iter().take_while(|share| place(share) == wanted).count();
        &own[first..first + count]
    }

    /// Derives the bits anew from open shares that were set by hand.
    pub fn derive_bits(&mut self, blocks: &Blocks<D>) {
        for &slot in blocks.slots().as_slice() {
            let slot = slot as usize;
            let mut bits = WallBits { closed: [0; SIDE], cut: [0; SIDE], ..*self.bits(slot) };
            for cell in 0..block_cells(D) {
                let (word, bit) = (cell / 64, cell % 64);
                let (mut closed, mut cut) = (true, false);
                for axis in 0..D {
                    let stride = power(SIDE, axis);
                    let low = self.open[axis].block(slot)[cell];
                    let high = if cell / stride % SIDE + 1 < SIDE {
                        self.open[axis].block(slot)[cell + stride]
                    } else {
                        let next = blocks.beside(slot, axis, crate::math::Side::High) as usize;
                        self.open[axis].block(next)[cell - (SIDE - 1) * stride]
                    };
                    closed &= low == 0.0 && high == 0.0;
                    cut |= low < 1.0 || high < 1.0;
                    bits.passable[axis][word] &= !(1 << bit);
                    bits.passable[axis][word] |= ((low > 0.0) as u64) << bit;
                }
                bits.closed[word] |= (closed as u64) << bit;
                bits.cut[word] |= (cut as u64) << bit;
            }
            self.bits.block_mut(slot)[0] = bits;
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.corner.bytes()
            + self.open.iter().map(Field::bytes).sum::<usize>()
            + self.along.iter().map(Field::bytes).sum::<usize>()
            + self.bits.bytes()
            + 3 * self.near.capacity()
    }
}

/// How much of each cell of a row walls leave free, from their distances at the corners of a block with a margin; the row
/// begins there at `at`, and `close` has a bit for every cell that a wall may reach.
#[inline(always)]
pub fn free_shares<const D: usize>(corner: &[f32], halo: Halo, at: usize, close: u64) -> [f32; SIDE] {
    // Corners that deep in a wall cannot belong to such a cell: they lie in a block that is not stored, where all is
    // air.
    let known = |corner: f32| if corner <= -FAR { FAR } else { corner };
    let mut column = [0f32; SIDE + 1];
    for edge in 0..1 << (D - 1) {
        let start = at + (1..D).map(|k| (edge >> (k - 1) & 1) * halo.stride(k)).sum::<usize>();
        for (sum, &corner) in column.iter_mut().zip(&corner[start..=start + SIDE]) {
            *sum += known(corner);
        }
    }
    let share = 1.0 / (1 << D) as f32;
    std::array::from_fn(|x| match close >> x & 1 {
        0 => 1.0,
        _ => (0.5 + share * (column[x] + column[x + 1])).clamp(0.0, 1.0),
    })
}

impl<const D: usize> Default for Boundary<D> {
    fn default() -> Self {
        Self::new()
    }
}
