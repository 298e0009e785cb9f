//! What each cell is made of.

use crate::grid::{Blocks, Field, Halo, SIDE, Slots, for_each_block, halo_cells, load_halo};
use crate::math::{power, unflatten};

use super::{Boundary, Nearness};

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
/// The surface already reaches into walls. But the corner of a wall may hide so much that a cell full of liquid looks
/// empty; therefore a cell whose centre lies close to a wall, or in it, is liquid when all cells it is open to are.
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
            mark_solid(blocks, boundary, surface, slot, label);
        }
    });
    let label = &*label;
    live.refill(blocks.slots(), |slot| label.block(slot).contains(&Label::Liquid));
}

/// Cells without an open face are solid, and seeming voids next to walls are liquid.
fn mark_solid<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    slot: usize,
    label: &mut [Label],
) {
    // Centres closer to a wall than this, in cells, are not trusted to be air.
    const CLOSE: f32 = 0.5;
    const HALO: Halo = Halo::new(1);
    const MOST: usize = halo_cells(HALO, 3);
    let (mut distance, mut corner) = ([0f32; MOST], [0f32; MOST]);
    load_halo(blocks, surface, slot, HALO, &mut distance);
    load_halo(blocks, &boundary.corner, slot, HALO, &mut corner);
    let mut open = [[0f32; MOST]; D];
    for axis in 0..D {
        load_halo(blocks, &boundary.open[axis], slot, HALO, &mut open[axis]);
    }
    for (local, label) in label.iter_mut().enumerate() {
        let at = HALO.index(unflatten::<D>(local, SIDE).map(|c| c as i32));
        let (mut openings, mut to_liquid) = (0, 0);
        for (axis, open) in open.iter().enumerate() {
            let stride = HALO.stride(axis);
            for (face, neighbour) in [(at, at - stride), (at + stride, at + stride)] {
                openings += (open[face] > 0.0) as usize;
                to_liquid += (open[face] > 0.0 && distance[neighbour] <= 0.0) as usize;
            }
        }
        if openings == 0 {
            *label = Label::Solid;
        } else if to_liquid == openings && *label == Label::Air {
            let corners = power(2, D);
            let offset =
                |c: usize| (0..D).filter(|k| c & (1 << k) != 0).map(|k| HALO.stride(k)).sum::<usize>();
            let wall = (0..corners).map(|c| corner[at + offset(c)]).sum::<f32>() / corners as f32;
            if wall < CLOSE {
                *label = Label::Liquid;
            }
        }
    }
}
