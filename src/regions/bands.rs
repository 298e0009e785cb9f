//! Which cells lie deep enough to belong to a tile.

use rayon::prelude::*;

use crate::geometry::Nearness;
use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, VOID};
use crate::math::Side;

use super::tiling::{Ground, TileRules};

/// Working memory: a mask per live block, numbered from 1 in the order of their list; 0 is for all others.
#[derive(Clone, Debug, Default)]
pub(super) struct Bands {
    /// Place of each slot's block among the live ones, 0 if it is not.
    pub place: Vec<u32>,
    /// The fluid's cells.
    own: Vec<Bits>,
    /// Cells close to the surface or to a wall, layer by layer.
    surface: Vec<Bits>,
    wall: Vec<Bits>,
    next: Vec<Bits>,
    /// Per slot: the cells of other fluids.
    others: Vec<Bits>,
}

impl Bands {
    /// Finds the bands of a fluid, whose cells in a block are `own(slot)`, beside other fluids in `other(slot)`. Layer 1
    /// of the surface's band are its cells next to others, of the walls' band those with a face that is not wholly open;
    /// further layers are the neighbours of the one before.
    pub fn find<const D: usize>(
        &mut self,
        ground: &Ground<'_, D>,
        own: impl Fn(usize) -> Bits + Sync,
        other: impl Fn(usize) -> Bits + Sync,
        rules: &TileRules,
    ) {
        let (blocks, boundary, live) = (ground.blocks, ground.boundary, ground.live.as_slice());
        self.place.clear();
        self.place.resize(blocks.slot_count(), 0);
        for (index, &slot) in live.iter().enumerate() {
            self.place[slot as usize] = index as u32 + 1;
        }
        let count = live.len() + 1;
        for list in [&mut self.own, &mut self.surface, &mut self.wall, &mut self.next] {
            list.clear();
            list.resize(count, masks::NONE);
        }
        self.others.resize(blocks.slot_count(), masks::NONE);
        self.others
            .par_iter_mut()
            .with_min_len(64)
            .enumerate()
            .for_each(|(slot, others)| *others = other(slot));
        let others = &self.others;
        let masked = self.own[1..].par_iter_mut().zip(&mut self.surface[1..]).zip(&mut self.wall[1..]);
        masked.zip(live).with_min_len(64).for_each(|(((cells, surface), wall), &slot)| {
            let slot = slot as usize;
            *cells = own(slot);
            if *cells == masks::NONE {
                return;
            }
            for axis in 0..D {
                for (high, side) in [(false, Side::Low), (true, Side::High)] {
                    let beyond = &others[blocks.beside(slot, axis, side) as usize];
                    let touching = masks::beside::<D>(&others[slot], axis, high, beyond);
                    (0..masks::words(D)).for_each(|word| surface[word] |= touching[word] & cells[word]);
                }
            }
            if boundary.nearness(slot) != Nearness::Clear {
                let cut = &boundary.bits(slot).cut;
                (0..masks::words(D)).for_each(|word| wall[word] = cut[word] & cells[word]);
            }
        });
        for _ in 1..rules.surface_band {
            grow::<D>(blocks, live, &self.place, &self.own, &mut self.surface, &mut self.next);
        }
        for _ in 1..rules.wall_band {
            grow::<D>(blocks, live, &self.place, &self.own, &mut self.wall, &mut self.next);
        }
    }

    /// Whether a block holds neither other fluids nor cells close to them. What is not stored lies behind walls, or beyond
    /// blocks that do.
    pub fn is_calm(&self, slot: u32) -> bool {
        let slot = slot as usize;
        slot == VOID as usize
            || self.others[slot] == masks::NONE && self.surface[self.place[slot] as usize] == masks::NONE
    }

    /// The fluid's cells of a live block beyond all bands.
    pub fn deep(&self, place: usize) -> Bits {
        std::array::from_fn(|word| {
            self.own[place][word] & !(self.surface[place][word] | self.wall[place][word])
        })
    }
}

/// Adds a layer to a band.
fn grow<const D: usize>(
    blocks: &Blocks<D>,
    live: &[u32],
    place: &[u32],
    within: &[Bits],
    band: &mut Vec<Bits>,
    next: &mut Vec<Bits>,
) {
    let before = &*band;
    next[1..].par_iter_mut().zip(live).enumerate().with_min_len(64).for_each(|(index, (grown, &slot))| {
        let here = &before[index + 1];
        *grown = *here;
        if *here == within[index + 1] || within[index + 1] == masks::NONE {
            return;
        }
        for axis in 0..D {
            for (high, side) in [(false, Side::Low), (true, Side::High)] {
                let beyond = place[blocks.beside(slot as usize, axis, side) as usize] as usize;
                let touching = masks::beside::<D>(here, axis, high, &before[beyond]);
                (0..masks::words(D)).for_each(|word| grown[word] |= touching[word]);
            }
        }
        (0..masks::words(D)).for_each(|word| grown[word] &= within[index + 1][word]);
    });
    std::mem::swap(band, next);
}
