//! The set of active blocks.

use crate::archive::{ArchiveError, Reader, Writer};
use crate::math::{Side, power, unflatten};

use super::{Grid, Parts, SIDE, Slots, for_each_block};

/// The slot that stands for every block that is not active. Fields hold their default value there, so that
/// reading past the active set is harmless; nothing may write to it.
pub const VOID: u32 = 0;

/// Which blocks should be active next: one mark per block of the domain.
#[derive(Clone, Debug, Default)]
pub struct Activation {
    marks: Vec<bool>,
}

/// The active blocks of a [`Grid`], each with a slot that stays the same for as long as the block is active.
///
/// The blocks at the domain's edge hold a few cells beyond it ([`super::PAD`]), so that no sweep needs a special
/// case there.
#[derive(Clone, Debug)]
pub struct Blocks<const D: usize> {
    grid: Grid<D>,
    /// Extent of the lookup table: the domain's blocks and a border that is never active.
    extent: [usize; D],
    lookup: Vec<u32>,
    /// Coordinates of the block in each slot; meaningless for free slots.
    coords: Vec<[i32; D]>,
    /// `3^D` slots around (and including) each slot, x fastest.
    around: Vec<u32>,
    free: Vec<u32>,
    slots: Slots,
    fresh: Vec<u32>,
}

impl<const D: usize> Blocks<D> {
    /// No active block.
    pub fn new(grid: Grid<D>) -> Self {
        let extent = grid.blocks().map(|count| count + 2);
        Blocks {
            grid,
            extent,
            lookup: vec![VOID; extent.iter().product()],
            coords: vec![[i32::MIN; D]],
            around: vec![VOID; power(3, D)],
            free: Vec::new(),
            slots: Slots::default(),
            fresh: Vec::new(),
        }
    }

    /// Every block of the domain active: for tests and small tools.
    pub fn all(grid: Grid<D>) -> Self {
        let mut blocks = Blocks::new(grid);
        let mut wanted = Activation::default();
        blocks.begin(&mut wanted);
        for coords in grid.all_blocks() {
            blocks.mark(&mut wanted, coords);
        }
        blocks.activate(&wanted);
        blocks
    }

    /// The domain this set lives in.
    pub fn grid(&self) -> &Grid<D> {
        &self.grid
    }

    /// Active slots, sorted by block coordinates (x fastest).
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Slots that became active in the last [`Self::activate`]: their fields hold stale values.
    pub fn fresh(&self) -> &[u32] {
        &self.fresh
    }

    /// One more than the largest slot in use: how many blocks a field must hold.
    pub fn slot_count(&self) -> usize {
        self.coords.len()
    }

    /// Block coordinates of an active slot.
    #[inline]
    pub fn coords(&self, slot: usize) -> [i32; D] {
        self.coords[slot]
    }

    /// The cell at the low corner of an active slot.
    #[inline]
    pub fn first_cell(&self, slot: usize) -> [i32; D] {
        self.grid.first_cell(self.coords[slot])
    }

    /// The cell at a place in the block of an active slot.
    #[inline]
    pub fn cell_at(&self, slot: usize, local: usize) -> [i32; D] {
        let (first, at) = (self.first_cell(slot), unflatten::<D>(local, SIDE));
        std::array::from_fn(|axis| first[axis] + at[axis] as i32)
    }

    /// Whether an active slot holds cells beyond the domain. Behind its open sides those are air, but none that counts:
    /// how many of them are stored is chance.
    pub fn reaches_out(&self, slot: usize) -> bool {
        let (first, cells) = (self.first_cell(slot), self.grid.cells);
        (0..D).any(|axis| first[axis] < 0 || first[axis] + SIDE as i32 > cells[axis] as i32)
    }

    /// The `3^D` slots around a slot, itself in the middle; [`VOID`] where no block is active.
    #[inline]
    pub fn around(&self, slot: usize) -> &[u32] {
        let count = power(3, D);
        &self.around[slot * count..(slot + 1) * count]
    }

    /// The slot next to `slot` along an axis; [`VOID`] where no block is active.
    #[inline]
    pub fn beside(&self, slot: usize, axis: usize, side: Side) -> u32 {
        let centre = power(3, D) / 2;
        let stride = power(3, axis);
        match side {
            Side::Low => self.around(slot)[centre - stride],
            Side::High => self.around(slot)[centre + stride],
        }
    }

    /// Entries of the table of all blocks that could be asked about.
    pub fn table_len(&self) -> usize {
        self.lookup.len()
    }

    /// How many blocks that table has along each axis: one more than the domain at either side.
    pub fn table_extent(&self) -> [usize; D] {
        self.extent
    }

    /// A block's place in that table, unless it is too far from the domain to be in it.
    #[inline]
    pub fn table_index(&self, coords: [i32; D]) -> Option<usize> {
        let mut index = 0;
        for axis in (0..D).rev() {
            let shifted = coords[axis] + 1;
            if shifted < 0 || shifted as usize >= self.extent[axis] {
                return None;
            }
            index = index * self.extent[axis] + shifted as usize;
        }
        Some(index)
    }

    /// The slot of a block, [`VOID`] if it is not active.
    #[inline]
    pub fn slot_at(&self, coords: [i32; D]) -> u32 {
        self.table_index(coords).map_or(VOID, |index| self.lookup[index])
    }

    /// The slot and the index inside its block of a cell.
    #[inline]
    pub fn locate(&self, cell: [i32; D]) -> (u32, usize) {
        (self.slot_at(self.grid.block_of(cell)), self.local_index(cell))
    }

    /// The index of a cell inside its block.
    #[inline]
    pub fn local_index(&self, cell: [i32; D]) -> usize {
        crate::math::flatten(cell.map(|c| ((c + super::PAD) & (SIDE as i32 - 1)) as usize), SIDE)
    }

    /// Whether a block may be active at all.
    #[inline]
    fn may_hold(&self, coords: [i32; D]) -> bool {
        (0..D).all(|axis| coords[axis] >= 0 && coords[axis] + 2 < self.extent[axis] as i32)
    }

    /// Starts a new activation with no block marked.
    pub fn begin(&self, wanted: &mut Activation) {
        wanted.marks.clear();
        wanted.marks.resize(self.lookup.len(), false);
    }

    /// Asks for a block; requests outside the domain are ignored.
    #[inline]
    pub fn mark(&self, wanted: &mut Activation, coords: [i32; D]) {
        if self.may_hold(coords)
            && let Some(index) = self.table_index(coords)
        {
            wanted.marks[index] = true;
        }
    }

    /// Makes exactly the marked blocks active. Blocks that stay keep their slot.
    pub fn activate(&mut self, wanted: &Activation) {
        assert_eq!(
            wanted.marks.len(),
            self.lookup.len(),
            "the activation was begun on another set of blocks"
        );
        self.slots.clear();
        self.fresh.clear();
        for (index, &mark) in wanted.marks.iter().enumerate() {
            if !mark && self.lookup[index] != VOID {
                self.free.push(self.lookup[index]);
                self.lookup[index] = VOID;
            }
        }
        for (index, &mark) in wanted.marks.iter().enumerate() {
            if !mark {
                continue;
            }
            if self.lookup[index] == VOID {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.coords.push([0; D]);
                    self.around.resize(self.around.len() + power(3, D), VOID);
                    (self.coords.len() - 1) as u32
                });
                self.lookup[index] = slot;
                self.coords[slot as usize] = self.table_coords(index);
                self.fresh.push(slot);
            }
            self.slots.push(self.lookup[index]);
        }
        self.link_neighbours();
    }

    /// The block at a place of that table.
    pub fn table_coords(&self, mut index: usize) -> [i32; D] {
        std::array::from_fn(|axis| {
            let shifted = index % self.extent[axis];
            index /= self.extent[axis];
            shifted as i32 - 1
        })
    }

    fn link_neighbours(&mut self) {
        let mut around = std::mem::take(&mut self.around);
        for_each_block(&self.slots, Parts::new(&mut around, power(3, D)), |slot, around| {
            let coords = self.coords[slot];
            for (offset, around) in around.iter_mut().enumerate() {
                let step = unflatten::<D>(offset, 3);
                *around = self.slot_at(std::array::from_fn(|axis| coords[axis] + step[axis] as i32 - 1));
            }
        });
        self.around = around;
    }

    /// Writes which blocks are active, and in which slots: later blocks get the slots that are free now.
    pub fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.array("blocks.coords", &self.coords)?;
        out.array("blocks.slots", self.slots.as_slice())?;
        out.array("blocks.free", &self.free)
    }

    /// Reads active blocks of a grid; none of them is fresh.
    pub fn load(grid: Grid<D>, from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        let mut blocks = Blocks::new(grid);
        let most = blocks.lookup.len() + 1;
        let coords = from.array::<[i32; D]>("blocks.coords", most)?;
        let slots = from.array::<u32>("blocks.slots", most)?;
        blocks.free = from.array("blocks.free", most)?;
        let mut is_used = vec![false; coords.len()];
        for &slot in slots.iter().chain(&blocks.free) {
            let is_new = is_used.get_mut(slot as usize).is_some_and(|used| !std::mem::replace(used, true));
            ArchiveError::unless(
                is_new && slot != VOID,
                "blocks.slots",
                "names a slot twice, or one that is not there",
            )?;
        }
        let all_used = coords.len() == slots.len() + blocks.free.len() + 1;
        ArchiveError::unless(all_used, "blocks.coords", "has slots that are neither active nor free")?;
        blocks.coords = coords;
        blocks.around.resize(blocks.coords.len() * power(3, D), VOID);
        let mut last = None;
        for slot in slots {
            let coords = blocks.coords[slot as usize];
            let index = blocks.table_index(coords).filter(|_| blocks.may_hold(coords));
            ArchiveError::unless(index.is_some() && index > last, "blocks.slots", "is not in order")?;
            blocks.lookup[index.unwrap_or_default()] = slot;
            blocks.slots.push(slot);
            last = index;
        }
        blocks.link_neighbours();
        Ok(blocks)
    }

    /// Bytes held by the tables of this set.
    pub fn bytes(&self) -> usize {
        self.lookup.capacity() * 4
            + self.coords.capacity() * size_of::<[i32; D]>()
            + (self.around.capacity() + self.free.capacity() + self.fresh.capacity()) * 4
            + self.slots.as_slice().len() * 4
    }
}

/// The cell beside one of a block, on one side along an axis: its place, and whether that is in the next block.
#[inline(always)]
pub fn across(cell: usize, axis: usize, side: Side) -> (usize, bool) {
    let (stride, last) = (power(SIDE, axis), SIDE - 1);
    match (side, cell / stride % SIDE) {
        (Side::Low, 0) => (cell + last * stride, true),
        (Side::Low, _) => (cell - stride, false),
        (Side::High, at) if at == last => (cell - last * stride, true),
        (Side::High, _) => (cell + stride, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbours_agree_with_coordinates<const D: usize>() {
        let grid = Grid { cells: [40; D], dx: 0.1 };
        let mut blocks = Blocks::all(grid);
        assert_eq!(blocks.slots().len(), power(6, D));
        let mut wanted = Activation::default();
        blocks.begin(&mut wanted);
        for &slot in blocks.slots().as_slice() {
            let coords = blocks.coords(slot as usize);
            if coords[0] != 2 {
                blocks.mark(&mut wanted, coords);
            }
        }
        let before = blocks.slot_at([1; D]);
        blocks.activate(&wanted);
        assert_eq!(blocks.slot_at([1; D]), before, "a block that stays keeps its slot");
        assert_eq!(blocks.slot_at([2; D]), VOID);
        for &slot in blocks.slots().as_slice() {
            let coords = blocks.coords(slot as usize);
            for axis in 0..D {
                for side in Side::BOTH {
                    let mut next = coords;
                    next[axis] += side.sign() as i32;
                    assert_eq!(blocks.beside(slot as usize, axis, side), blocks.slot_at(next));
                }
            }
        }
        let mut order: Vec<_> = blocks.slots().as_slice().to_vec();
        order.sort_by_key(|&slot| {
            let mut coords = blocks.coords(slot as usize);
            coords.reverse();
            coords
        });
        assert_eq!(order, blocks.slots().as_slice(), "slots are listed by coordinates");
    }

    #[test]
    fn neighbours_agree_with_coordinates_2d() {
        neighbours_agree_with_coordinates::<2>();
    }

    #[test]
    fn neighbours_agree_with_coordinates_3d() {
        neighbours_agree_with_coordinates::<3>();
    }
}
