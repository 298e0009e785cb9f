//! Where the liquid needs no particles: so deep below every surface, and so far from every wall that moves, that nothing
//! that particles know better comes there within a substep.
//!
//! Walls that stand still are no reason for particles: liquid goes along them, and there is air behind none of them that
//! would not be near.

use crate::geometry::{Boundary, Nearness};
use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, Field, SIDE, block_cells};
use crate::math::unflatten;

use super::super::{Bounds, CellRanges};
use super::{CORE_DEPTH, Core, CoreScratch, full_cells};

/// A core that is smaller than this share of the deep liquid is not worth having, in percent. The second is for one that
/// is there.
const WORTHWHILE: [usize; 2] = [20, 15];

/// What the cells near the surface are found from.
pub struct Band<'a, const D: usize> {
    /// The walls.
    pub boundary: &'a Boundary<D>,
    /// Cells whose 3^D surroundings are all filled with liquid or wall.
    pub deep: &'a Field<u8>,
    /// Particles by cell.
    pub ranges: &'a CellRanges,
    /// Particles in a full cell.
    pub per_cell: usize,
    /// Cells of particles below every surface.
    pub width: usize,
}

impl<const D: usize> CoreScratch<D> {
    /// Adds the cells beyond a band to the next core, as far as `may_have` says that a block may be part of it.
    pub fn find_target(
        &mut self,
        core: &Core,
        blocks: &Blocks<D>,
        band: &Band<'_, D>,
        may_have: impl Fn(usize) -> bool + Sync,
    ) {
        let Band { boundary, deep, ranges, per_cell, width } = *band;
        let deep_cells = |slot: usize| rows(deep.block(slot));
        let all = masks::all(D);
        let least = WORTHWHILE[usize::from(!core.cells.is_empty())];
        let (liquid, most) = self.bound(blocks, band);
        // Thin liquid has no core: where there is none to be kept either, nothing else needs to be looked at.
        if core.cells.is_empty() && 100 * (self.target.len() + most) < (least * liquid).max(1) {
            return;
        }
        // Liquid that is not deep, and air; what lies inside of walls is neither.
        self.outside.fill(blocks, |slot| {
            masks::without(&all, &masks::or(&deep_cells(slot), &full_cells(boundary, slot)))
        });
        self.outside.spread_out(blocks, width.max(CORE_DEPTH) - 1);
        self.walls.fill(blocks, |slot| {
            if boundary.nearness(slot) != Nearness::Moving {
                return masks::NONE;
            }
            let bits = boundary.bits(slot);
            masks::or(&masks::or(&bits.full, &bits.closed), &masks::or(&bits.cut, &bits.close))
        });
        self.walls.spread_out(blocks, CORE_DEPTH);
        let (outside, walls, moved) = (&self.outside, &self.walls, &self.moved);
        // Cells without particles stay so where the others get none.
        let fewest = Bounds::around(per_cell).fewest;
        let kept = |slot: usize| -> Bits {
            let (mut kept, near) = (masks::NONE, masks::or(outside.bits(slot), walls.bits(slot)));
            for cell in masks::each(&masks::without(moved.bits(slot), &near)) {
                let is_empty = ranges.of_cells(slot, cell, cell).len() < fewest;
                kept[cell / 64] |= u64::from(is_empty) << (cell % 64);
            }
            kept
        };
        self.stay
            .fill(blocks, |slot| if *moved.bits(slot) == masks::NONE { masks::NONE } else { kept(slot) });
        self.outside.unite(blocks, &self.walls);
        self.outside.spread_out(blocks, 1);
        let (outside, stay, target) = (&self.outside, &self.stay, &self.target);
        self.walls.fill(blocks, |slot| {
            let new = masks::or(&masks::without(&all, outside.bits(slot)), stay.bits(slot));
            let new = masks::without(&new, &full_cells(boundary, slot));
            if new == masks::NONE || !may_have(slot) {
                return *target.bits(slot);
            }
            masks::or(target.bits(slot), &new)
        });
        if 100 * self.walls.len() >= least * liquid {
            std::mem::swap(&mut self.target, &mut self.walls);
        }
    }

    /// How many cells are deep in liquid, and how many of them could be beyond the band at most: around any such cell
    /// the middle of its block is without a surface.
    fn bound(&self, blocks: &Blocks<D>, band: &Band<'_, D>) -> (usize, usize) {
        let Band { boundary, deep, width, .. } = *band;
        let middle = middle::<D>(width.max(CORE_DEPTH));
        let (mut liquid, mut most) = (0, 0);
        for slot in blocks.slots().as_slice().iter().map(|&slot| slot as usize) {
            let cells = rows(deep.block(slot));
            if cells == masks::NONE {
                continue;
            }
            let count = masks::count(&cells);
            liquid += count;
            if masks::without(&middle, &masks::or(&cells, &full_cells(boundary, slot))) == masks::NONE {
                most += count;
            }
        }
        (liquid, most)
    }
}

/// The cells of a block that are no further than `width` from any of its cells, along every axis.
fn middle<const D: usize>(width: usize) -> Bits {
    let mut bits = masks::NONE;
    for cell in 0..block_cells(D) {
        let is_near = unflatten::<D>(cell, SIDE).into_iter().all(|at| at <= width && SIDE - 1 - at <= width);
        bits[cell / 64] |= u64::from(is_near) << (cell % 64);
    }
    bits
}

/// Rows of eight cells as the bits of a block.
fn rows(rows: &[u8]) -> Bits {
    let mut bits = masks::NONE;
    for (word, rows) in bits.iter_mut().zip(rows.as_chunks::<SIDE>().0) {
        *word = u64::from_le_bytes(*rows);
    }
    bits
}
