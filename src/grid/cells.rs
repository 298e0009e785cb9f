//! Sets of cells.

use super::masks::{self, Bits};
use super::{Blocks, Field, Slots, for_each_block};
use crate::archive::{ArchiveError, Reader, Writer};
use crate::math::Side;

/// Some of the cells of the active blocks. It stays valid for as long as the blocks it has cells in stay active.
#[derive(Clone, Debug)]
pub struct CellSet {
    bits: Field<Bits>,
    /// Blocks with any cell of the set.
    slots: Slots,
    /// Where the next version is written.
    next: Field<Bits>,
}

/// The most that a set can grow or shrink at once: what lies further away is not in the next block.
const FURTHEST: usize = super::SIDE - 1;

impl CellSet {
    /// No cell.
    pub fn new() -> Self {
        let none = || Field::new(1, masks::NONE);
        CellSet { bits: none(), slots: Slots::default(), next: none() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// How many.
    pub fn len(&self) -> usize {
        let cells = |&slot: &u32| self.bits(slot as usize).iter().map(|word| word.count_ones() as usize);
        self.slots.as_slice().iter().flat_map(cells).sum()
    }

    /// Blocks with any cell of the set.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Cells of the set in a block.
    #[inline]
    pub fn bits(&self, slot: usize) -> &Bits {
        self.bits.as_slice().get(slot).unwrap_or(&masks::NONE)
    }

    /// Cells of the set in a row of eight along x, a bit each.
    #[inline]
    pub fn row(&self, slot: usize, row: usize) -> u8 {
        masks::row(self.bits(slot), row)
    }

    /// Forgets all cells, keeps the memory.
    pub fn clear(&mut self) {
        for &slot in self.slots.as_slice() {
            self.bits[slot as usize] = masks::NONE;
        }
        self.slots.clear();
    }

    /// Becomes what `cells` says of each block.
    pub fn fill<const D: usize>(&mut self, blocks: &Blocks<D>, cells: impl Fn(usize) -> Bits + Sync + Send) {
        self.clear();
        self.bits.resize(blocks.slot_count());
        for_each_block(blocks.slots(), self.bits.parts(), |slot, bits| bits[0] = cells(slot));
        self.list(blocks);
    }

    /// Adds the cells up to so many cells away along every axis, diagonals included: `reach(slot)[axis]` says how many,
    /// towards low and towards high, for the cells of a block.
    pub fn grow<const D: usize>(
        &mut self,
        blocks: &Blocks<D>,
        reach: impl Fn(usize) -> [[usize; 2]; D] + Sync + Send,
    ) {
        let is_settled = |bits: &Bits, around: [&Bits; 2]| {
            *bits == masks::all(D) || *bits == masks::NONE && around.iter().all(|bits| **bits == masks::NONE)
        };
        self.spread(blocks, is_settled, |axis, [here, there], side, [bits, beyond], next| {
            let [own, other] =
                [here, there].map(|slot| reach(slot)[axis][side.opposite().index()].min(FURTHEST));
            for step in 1..=own.max(other) {
                let bits = if step <= own { bits } else { &masks::NONE };
                let beyond = if step <= other { beyond } else { &masks::NONE };
                let near = masks::away::<D>(bits, axis, side, beyond, step);
                (0..masks::words(D)).for_each(|word| next[word] |= near[word]);
            }
        });
    }

    /// Adds the cells up to `margin` cells away, diagonals included, however many that are.
    pub fn spread_out<const D: usize>(&mut self, blocks: &Blocks<D>, mut margin: usize) {
        while margin > 0 {
            let step = margin.min(FURTHEST);
            self.grow(blocks, |_| [[step; 2]; D]);
            margin -= step;
        }
    }

    /// Changes the cells of every block that has any; cells that were none are not to be added.
    pub fn map(&mut self, cells: impl Fn(usize, &Bits) -> Bits) {
        for &slot in self.slots.as_slice() {
            self.bits[slot as usize] = cells(slot as usize, &self.bits[slot as usize]);
        }
    }

    /// Adds the cells of another set.
    pub fn unite<const D: usize>(&mut self, blocks: &Blocks<D>, other: &CellSet) {
        self.bits.resize(blocks.slot_count());
        for &slot in other.slots.as_slice() {
            let slot = slot as usize;
            self.bits[slot] = masks::or(&self.bits[slot], other.bits(slot));
        }
        self.list(blocks);
    }

    /// Takes away the cells with one outside the set up to `margin` cells away, diagonals included.
    pub fn shrink<const D: usize>(&mut self, blocks: &Blocks<D>, margin: usize) {
        let all = masks::all(D);
        let is_settled = |bits: &Bits, around: [&Bits; 2]| {
            *bits == masks::NONE || *bits == all && around.iter().all(|bits| **bits == all)
        };
        self.spread(blocks, is_settled, |axis, _, side, [bits, beyond], next| {
            for step in 1..=margin.min(FURTHEST) {
                let near = masks::away::<D>(bits, axis, side, beyond, step);
                (0..masks::words(D)).for_each(|word| next[word] &= near[word]);
            }
        });
    }

    /// Axis by axis, changes the cells of every block by those on its low and on its high side: `join` is told the
    /// axis, the block and the one beside it, on which side that is, their cells, and what to change. Blocks
    /// that are settled between their neighbours stay as they are.
    fn spread<const D: usize>(
        &mut self,
        blocks: &Blocks<D>,
        is_settled: impl Fn(&Bits, [&Bits; 2]) -> bool + Sync + Send,
        join: impl Fn(usize, [usize; 2], Side, [&Bits; 2], &mut Bits) + Sync + Send,
    ) {
        if self.is_empty() {
            return;
        }
        self.bits.resize(blocks.slot_count());
        self.next.resize(blocks.slot_count());
        for axis in 0..D {
            self.next.as_mut_slice().fill(masks::NONE);
            let now = &self.bits;
            for_each_block(blocks.slots(), self.next.parts(), |slot, next| {
                next[0] = now[slot];
                let beside = Side::BOTH.map(|side| blocks.beside(slot, axis, side) as usize);
                if is_settled(&now[slot], beside.map(|slot| &now[slot])) {
                    return;
                }
                for (there, side) in beside.into_iter().zip(Side::BOTH) {
                    join(axis, [slot, there], side, [&now[slot], &now[there]], &mut next[0]);
                }
            });
            std::mem::swap(&mut self.bits, &mut self.next);
        }
        self.list(blocks);
    }

    /// Takes away the cells of the blocks that `keep` says no to.
    pub fn retain<const D: usize>(&mut self, blocks: &Blocks<D>, keep: impl Fn(usize) -> bool) {
        for &slot in self.slots.as_slice() {
            if !keep(slot as usize) {
                self.bits[slot as usize] = masks::NONE;
            }
        }
        self.list(blocks);
    }

    fn list<const D: usize>(&mut self, blocks: &Blocks<D>) {
        let bits = &self.bits;
        self.slots.refill(blocks.slots(), |slot| bits[slot] != masks::NONE);
    }

    /// Writes the set.
    pub fn save(&self, name: &str, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        let bits: Vec<Bits> = self.slots.as_slice().iter().map(|&slot| *self.bits(slot as usize)).collect();
        out.array(&format!("{name}.slots"), self.slots.as_slice())?;
        out.array(&format!("{name}.bits"), &bits)
    }

    /// Reads a set of cells of active blocks.
    pub fn load<const D: usize>(
        name: &str,
        blocks: &Blocks<D>,
        from: &mut Reader<'_>,
    ) -> Result<Self, ArchiveError> {
        let name = format!("{name}.slots");
        let slots = from.array::<u32>(&name, blocks.slots().len())?;
        let bits = from.array_of::<Bits>(&name.replace(".slots", ".bits"), slots.len())?;
        let mut set = CellSet::new();
        set.bits.resize(blocks.slot_count());
        for (&slot, bits) in slots.iter().zip(bits) {
            ArchiveError::unless(
                (slot as usize) < blocks.slot_count(),
                &name,
                "names a slot that is not there",
            )?;
            set.bits[slot as usize] = bits;
        }
        set.list(blocks);
        ArchiveError::unless(set.slots.as_slice() == slots, &name, "is not in order")?;
        Ok(set)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.bits.bytes() + self.next.bytes()
    }
}

impl Default for CellSet {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::math::{hash_unit, power, unflatten};

    fn sets_grow_and_shrink_like_single_cells<const D: usize>() {
        let blocks = Blocks::<D>::all(Grid { cells: [20; D], dx: 1.0 });
        let at = |cell: [i32; D], set: &CellSet| {
            let (slot, local) = blocks.locate(cell);
            set.bits(slot as usize)[local / 64] >> (local % 64) & 1 == 1
        };
        let random = |share: f32| {
            let mut set = CellSet::new();
            set.fill(&blocks, |slot| {
                let word = |word: usize| {
                    let chosen = |bit: &u64| hash_unit((slot * 512 + word * 64) as u64 + bit) < share;
                    if word < masks::words(D) {
                        (0..64).filter(chosen).fold(0, |w, bit| w | 1 << bit)
                    } else {
                        0
                    }
                };
                std::array::from_fn(word)
            });
            set
        };
        let cells = || (0..power(20, D)).map(|flat| unflatten::<D>(flat, 20).map(|c| c as i32));
        let near = |cell: [i32; D], reach: [i32; 2]| {
            let width = (reach[0] + reach[1] + 1) as usize;
            (0..power(width, D)).map(move |flat| {
                let step = unflatten::<D>(flat, width);
                std::array::from_fn(|k| cell[k] + step[k] as i32 - reach[0])
            })
        };
        let few = random(0.003);
        let mut grown = few.clone();
        grown.grow(&blocks, |_| [[1, 3]; D]);
        // Towards the high side by three: a cell joins if there is one up to three below it.
        assert!(cells().all(|cell| at(cell, &grown) == near(cell, [3, 1]).any(|other| at(other, &few))));
        assert!(grown.len() > 2 * few.len() && few.len() > 1, "{} {}", grown.len(), few.len());
        let most = random(0.997);
        let mut shrunk = most.clone();
        shrunk.shrink(&blocks, 2);
        assert!(cells().all(|cell| at(cell, &shrunk) == near(cell, [2, 2]).all(|other| at(other, &most))));
        assert!(!shrunk.is_empty() && shrunk.len() < most.len());
        shrunk.retain(&blocks, |slot| slot % 2 == 0);
        assert!(shrunk.slots().as_slice().iter().all(|slot| slot % 2 == 0));
        shrunk.clear();
        assert!(shrunk.is_empty() && (0..blocks.slot_count()).all(|slot| *shrunk.bits(slot) == masks::NONE));
    }

    #[test]
    fn sets_grow_and_shrink_like_single_cells_2d() {
        sets_grow_and_shrink_like_single_cells::<2>();
    }

    #[test]
    fn sets_grow_and_shrink_like_single_cells_3d() {
        sets_grow_and_shrink_like_single_cells::<3>();
    }
}
