//! Cells that solids or liquid have covered: what is left in them goes to the nearest open cells.

use crate::grid::{Blocks, for_each_block_collecting};
use crate::math::{power, unflatten};

use super::{Smoke, SmokeScratch};

/// A cell with air but without room: its slot, and its place in the block.
pub(super) type Covered = (u32, u16);

/// Open cells are looked for this far, in cells. Where there is none, air waits for the cell to be uncovered.
const REACH: i32 = 4;

/// Moves the air out of covered cells. These are few, and come one after the other: two may share a neighbour.
pub(super) fn make_way<const D: usize>(
    smoke: &mut Smoke<D>,
    blocks: &Blocks<D>,
    scratch: &mut SmokeScratch<D>,
) {
    let SmokeScratch { room, covered, .. } = scratch;
    covered.iter_mut().for_each(Vec::clear);
    let (air, room) = (&smoke.air, &*room);
    for_each_block_collecting(blocks.slots(), (), covered, |slot, (), covered| {
        let cells = room.block(slot).iter().zip(air.block(slot)).enumerate();
        let is_covered = |(_, (room, air)): &(usize, (&f32, &f32))| **room == 0.0 && **air > 0.0;
        covered.extend(cells.filter(is_covered).map(|(local, _)| (slot as u32, local as u16)));
    });
    let mut targets = Vec::new();
    for &(slot, local) in covered.iter().flatten() {
        let (slot, local) = (slot as usize, local as usize);
        find_open(
            blocks,
            blocks.cell_at(slot, local),
            |slot, local| room.block(slot)[local] > 0.0,
            &mut targets,
        );
        if targets.is_empty() {
            continue;
        }
        let take = |field: &mut crate::grid::Field<f32>| std::mem::take(&mut field.block_mut(slot)[local]);
        let left = take(&mut smoke.air) / targets.len() as f32;
        let carried = [take(&mut smoke.density), take(&mut smoke.heat)];
        for &(slot, local) in &targets {
            let (slot, local) = (slot as usize, local as usize);
            let air = &mut smoke.air.block_mut(slot)[local];
            *air += left;
            let share = left / *air;
            for (field, value) in [&mut smoke.density, &mut smoke.heat].into_iter().zip(carried) {
                let own = &mut field.block_mut(slot)[local];
                *own += share * (value - *own);
            }
        }
    }
}

/// The nearest open cells of the domain: those across faces, or of the first cube around the cell that has any.
fn find_open<const D: usize>(
    blocks: &Blocks<D>,
    cell: [i32; D],
    is_open: impl Fn(usize, usize) -> bool,
    found: &mut Vec<Covered>,
) {
    found.clear();
    let look = |step: [i32; D], found: &mut Vec<Covered>| {
        let next = std::array::from_fn(|axis| cell[axis] + step[axis]);
        let (slot, local) = blocks.locate(next);
        if blocks.grid().contains(next) && is_open(slot as usize, local) {
            found.push((slot, local as u16));
        }
    };
    for place in 0..2 * D {
        let sign = if place % 2 == 0 { -1 } else { 1 };
        look(std::array::from_fn(|axis| if axis == place / 2 { sign } else { 0 }), found);
    }
    for reach in 1..=REACH {
        if !found.is_empty() {
            return;
        }
        let side = 2 * reach as usize + 1;
        for place in 0..power(side, D) {
            let step = unflatten::<D>(place, side).map(|c| c as i32 - reach);
            if step.iter().any(|c| c.abs() == reach) {
                look(step, found);
            }
        }
    }
}
