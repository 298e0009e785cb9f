//! What each cell is made of.

use crate::geometry::{Boundary, Nearness};
use crate::grid::{Blocks, Field, Halo, SIDE, Slots, block_cells, for_each_block, halo_cells, load_halo};
use crate::math::unflatten;

/// What a cell is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Label {
    /// Open to flow, but not liquid.
    Air,
    /// Its centre is inside the liquid.
    Liquid,
    /// No open face.
    Solid,
}

/// Labels all stored cells, and lists in `live` the blocks that hold liquid.
///
/// The surface already reaches into walls, so that a cell whose centre lies inside a wall is liquid when the liquid
/// next to it is; no further rule is needed.
pub fn label_cells<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    label: &mut Field<Label>,
    live: &mut Slots,
) {
    label.resize(blocks.slot_count());
    for_each_block(blocks.slots(), label.parts(), |slot, label| {
        for (label, &distance) in label.iter_mut().zip(surface.block(slot)) {
            *label = if distance <= 0.0 { Label::Liquid } else { Label::Air };
        }
        if boundary.nearness(slot) != Nearness::Clear {
            mark_solid(blocks, boundary, slot, label);
        }
    });
    let label = &*label;
    live.refill(blocks.slots(), |slot| label.block(slot).contains(&Label::Liquid));
}

/// Cells without an open face are solid.
fn mark_solid<const D: usize>(blocks: &Blocks<D>, boundary: &Boundary<D>, slot: usize, label: &mut [Label]) {
    let halo = Halo::new(1);
    let mut has_opening = [false; block_cells(3)];
    let mut open = [0f32; halo_cells(Halo::new(1), 3)];
    for axis in 0..D {
        load_halo(blocks, &boundary.open[axis], slot, halo, &mut open);
        for (local, has) in has_opening[..label.len()].iter_mut().enumerate() {
            let face = halo.index(unflatten::<D>(local, SIDE).map(|c| c as i32));
            *has |= open[face] > 0.0 || open[face + halo.stride(axis)] > 0.0;
        }
    }
    for (label, has) in label.iter_mut().zip(has_opening) {
        if !has {
            *label = Label::Solid;
        }
    }
}
