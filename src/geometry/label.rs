//! What each cell is made of.

use serde::{Deserialize, Serialize};

use crate::grid::{Blocks, Field, Halo, SIDE, Slots, for_each_block, halo_cells, load_halo};
use crate::math::unflatten;

use super::{Boundary, CellBits, Nearness};

/// What a cell is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Label {
    /// Open to flow, but not liquid.
    Air,
    /// Its centre is inside the liquid.
    Liquid,
    /// No open face.
    Solid,
}

/// Blocks whose labels cannot have changed, per slot: no liquid is near and no wall moves. In containers with much air
/// most blocks along the walls are like that, and later stages skip them too.
#[derive(Clone, Debug)]
pub struct Settled {
    state: Field<u8>,
}

/// The block may change at any time.
const RESTLESS: u8 = 0;
/// The block was labelled while it was dry: what is found there now will stay.
const DRIED: u8 = 1;
/// Nothing has changed since the block dried.
const SETTLED: u8 = 2;
/// Beside one of these: the block holds liquid.
const LIVE: u8 = 4;

impl Default for Settled {
    fn default() -> Self {
        Settled { state: Field::new(1, RESTLESS) }
    }
}

impl Settled {
    /// Whether everything found in the block one labelling ago still holds.
    #[inline]
    pub fn is_settled(&self, slot: usize) -> bool {
        self.state.as_slice().get(slot) == Some(&SETTLED)
    }

    fn resize<const D: usize>(&mut self, blocks: &Blocks<D>) {
        self.state.resize(blocks.slot_count());
        blocks.fresh().iter().for_each(|&slot| self.state.block_mut(slot as usize)[0] = RESTLESS);
    }
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
    settled: &mut Settled,
) {
    label.resize(blocks.slot_count());
    settled.resize(blocks);
    let dx = blocks.grid().dx as f32;
    for_each_block(blocks.slots(), (label.parts(), settled.state.parts()), |slot, (label, state)| {
        let (distances, nearness) = (surface.block(slot), boundary.nearness(slot));
        // Labels of calm blocks depend on nothing that changes: at walls, air that may seem so has to be far enough away.
        let calm = match nearness {
            Nearness::Clear => distances.iter().all(|&distance| distance > dx),
            Nearness::Static => distances.iter().all(|&distance| distance >= SEEMING_CELLS * dx),
            Nearness::Moving => false,
        };
        state[0] = match (calm, state[0] & !LIVE) {
            (false, _) => RESTLESS,
            (true, RESTLESS) => DRIED,
            (true, _) => SETTLED,
        };
        if state[0] == SETTLED {
            return;
        }
        for (label, &distance) in label.iter_mut().zip(distances) {
            *label = if distance <= 0.0 { Label::Liquid } else { Label::Air };
        }
        if nearness != Nearness::Clear {
            mark_solid(blocks, boundary, surface, slot, label);
        }
        if label.contains(&Label::Liquid) {
            state[0] |= LIVE;
        }
    });
    live.refill(blocks.slots(), |slot| settled.state[slot] & LIVE != 0);
}

/// Air farther from the liquid than this, in cells, has air around it.
const SEEMING_CELLS: f32 = 1.5;

/// Cells without an open face are solid, and seeming voids next to walls are liquid.
fn mark_solid<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    slot: usize,
    label: &mut [Label],
) {
    let bits = boundary.bits(slot);
    let reach = SEEMING_CELLS * blocks.grid().dx as f32;
    let is = |bits: &CellBits, cell: usize| bits[cell / 64] >> (cell % 64) & 1 == 1;
    let mut seeming = false;
    for (cell, (label, &distance)) in label.iter_mut().zip(surface.block(slot)).enumerate() {
        if is(&bits.closed, cell) {
            *label = Label::Solid;
        }
        seeming |= *label == Label::Air && distance < reach && is(&bits.close, cell);
    }
    if !seeming {
        return;
    }
    const HALO: Halo = Halo::new(1);
    const MOST: usize = halo_cells(HALO, 3);
    let mut distance = [0f32; MOST];
    load_halo(blocks, surface, slot, HALO, &mut distance);
    let mut open = [[0f32; MOST]; D];
    for axis in 0..D {
        load_halo(blocks, &boundary.open[axis], slot, HALO, &mut open[axis]);
    }
    for (cell, label) in label.iter_mut().enumerate() {
        let at = HALO.index(unflatten::<D>(cell, SIDE).map(|c| c as i32));
        if *label != Label::Air || distance[at] >= reach || !is(&bits.close, cell) {
            continue;
        }
        let all_liquid = open.iter().enumerate().all(|(axis, open)| {
            let stride = HALO.stride(axis);
            [(at, at - stride), (at + stride, at + stride)]
                .into_iter()
                .all(|(face, neighbour)| open[face] == 0.0 || distance[neighbour] <= 0.0)
        });
        if all_liquid {
            *label = Label::Liquid;
        }
    }
}
