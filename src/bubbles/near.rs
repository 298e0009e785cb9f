//! Which components the particles in each cell are part of.

use crate::grid::{Blocks, Field, Parts, block_cells};

/// No air component touches the cell.
pub const AIRLESS: u16 = u16::MAX;
/// Several air components do: nobody can tell which one a particle here belongs to.
pub const SEVERAL: u16 = u16::MAX - 1;
/// The liquid of particles that fly alone, away from every cell that is liquid; and of those in components too many to
/// number.
pub const SPRAY: u16 = SEVERAL;

/// The components that a particle in a cell is part of: the air whose wall it helps to make up ([`AIRLESS`] or
/// [`SEVERAL`] possible), and the liquid it belongs to ([`SPRAY`] possible).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// The air component.
    pub air: u16,
    /// The liquid component.
    pub liquid: u16,
}

/// In a wall.
pub const NOWHERE: Near = Near { air: AIRLESS, liquid: SPRAY };

/// Components from this number on are too many to be told apart by particles.
const MOST_COMPONENTS: u32 = u16::MAX as u32 - 16;

/// What particles remember of a component.
pub fn code(component: u32) -> u16 {
    if component < MOST_COMPONENTS { component as u16 } else { SEVERAL }
}

/// The components that particles are part of, cell by cell. Most blocks lie inside one component: for those one entry
/// says it all, and their cells need not be looked at.
#[derive(Clone, Debug)]
pub struct NearMap {
    cells: Field<Near>,
    alike: Field<Option<Near>>,
}

impl NearMap {
    /// Nothing known yet.
    pub fn new(dimension: usize) -> Self {
        NearMap { cells: Field::new(block_cells(dimension), NOWHERE), alike: Field::new(1, None) }
    }

    /// Makes room for all stored blocks, and forgets what reused ones held.
    pub fn resize<const D: usize>(&mut self, blocks: &Blocks<D>) {
        self.cells.resize(blocks.slot_count());
        self.alike.resize(blocks.slot_count());
        blocks.fresh().iter().for_each(|&slot| self.alike[slot as usize] = None);
    }

    /// Lends the blocks one by one to a parallel sweep: the cells, and what all of them have in common.
    pub fn parts(&mut self) -> (Parts<'_, Near>, Parts<'_, Option<Near>>) {
        (self.cells.parts(), self.alike.parts())
    }

    /// A block's cells.
    pub fn block(&self, slot: usize) -> &[Near] {
        self.cells.block(slot)
    }

    /// What all cells of a block have in common, if they do and it is known.
    pub fn alike(&self, slot: usize) -> Option<Near> {
        self.alike[slot]
    }

    /// Bytes held on the grid.
    pub fn bytes(&self) -> usize {
        self.cells.bytes()
    }
}

/// One block of a [`NearMap`], to be written.
pub struct NearBlock<'a> {
    /// The cells of the block. Whoever writes them one by one ends [`NearBlock::alike`] first.
    pub cells: &'a mut [Near],
    /// What all of them have in common.
    pub alike: &'a mut Option<Near>,
}

impl NearBlock<'_> {
    /// Gives all cells the same components.
    pub fn fill(&mut self, near: Near) {
        if *self.alike != Some(near) {
            self.cells.fill(near);
            *self.alike = Some(near);
        }
    }

    /// The cells, to be written one by one.
    pub fn each(&mut self) -> &mut [Near] {
        *self.alike = None;
        self.cells
    }
}
