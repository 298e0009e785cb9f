//! How much air the cells have room for.

use crate::geometry::{Label, Nearness, free_shares};
use crate::grid::{Field, Halo, SIDE, for_each_block, halo_cells, load_halo};
use crate::math::unflatten;

use super::Around;

/// A cell with an open face counts as at least that much room: air that passes it would otherwise fill it many times in a
/// substep.
const LEAST: f32 = 0.1;
/// The room of a cell behind an open side.
pub(super) const OUTSIDE: f32 = 1.0;

const HALO: Halo = Halo::new(1);

/// Finds the share of every cell that is air; none where air cannot get.
pub(super) fn find<const D: usize>(around: &Around<'_, D>, room: &mut Field<f32>) {
    let Around { blocks, boundary, label, voxels } = *around;
    room.resize(blocks.slot_count());
    for_each_block(blocks.slots(), room.parts(), |slot, room| {
        for (room, &label) in room.iter_mut().zip(label.block(slot)) {
            *room = if label == Label::Air { 1.0 } else { 0.0 };
        }
        let close = &boundary.bits(slot).close;
        let is_cut = boundary.nearness(slot) != Nearness::Clear && close.iter().any(|&word| word != 0);
        if is_cut && !voxels {
            let mut corner = [1f32; halo_cells(HALO, 3)];
            load_halo(blocks, &boundary.corner, slot, HALO, &mut corner);
            for (row, room) in room.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
                let first = row * SIDE;
                let at = HALO.index(unflatten::<D>(first, SIDE).map(|c| c as i32));
                let close = close[first / 64] >> (first % 64) & 0xff;
                if close != 0 {
                    let free = free_shares::<D>(&corner, HALO, at, close);
                    for (room, free) in room.iter_mut().zip(free).filter(|(room, _)| **room > 0.0) {
                        *room = free.max(LEAST);
                    }
                }
            }
        }
        if blocks.reaches_out(slot) {
            for (local, room) in room.iter_mut().enumerate() {
                if !blocks.grid().contains(blocks.cell_at(slot, local)) {
                    *room = OUTSIDE;
                }
            }
        }
    });
}
