//! Which cells lie deep enough to belong to a tile.

use rayon::prelude::*;

use crate::geometry::Nearness;
use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, VOID};
use crate::math::Side;

use super::tiling::{TileDomain, TileRules};

/// What a cell of a fluid with tiles is to the pressure solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellRole {
    /// It lies in a tile.
    Tile,
    /// An ordinary cell near the surface.
    Surface,
    /// An ordinary cell along a wall.
    Wall,
    /// An ordinary cell between tiles.
    Seam,
}

/// Working memory: a mask per live block, numbered from 1 in the order of their list; 0 is for all others.
#[derive(Clone, Debug, Default)]
pub(super) struct Bands {
    /// Place of each slot's block among the live ones, 0 if it is not.
    pub place: Vec<u32>,
    /// The fluid's cells.
    own: Vec<Bits>,
    /// Cells close to the surface or to a wall, layer by layer.
    surface: Band,
    wall: Band,
    /// Per slot: the cells of other fluids.
    others: Vec<Bits>,
    /// Cells with a face across an axis that is wholly closed, by axis; only where bands at walls have a single layer.
    shut: Vec<[Bits; 3]>,
}

impl Bands {
    /// Finds the bands of a fluid, whose cells in a block are `own(slot)`, beside other fluids in `other(slot)`. Layer
    /// 1 of the surface's band are its cells next to others, of the walls' band those with a face that is not wholly
    /// open or that share an edge with a closed one; further layers are the neighbours of the one before.
    pub fn find<const D: usize>(
        &mut self,
        domain: &TileDomain<'_, D>,
        own: impl Fn(usize) -> Bits + Sync,
        other: impl Fn(usize) -> Bits + Sync,
        rules: &TileRules,
    ) {
        let (blocks, boundary, live) = (domain.blocks, domain.boundary, domain.live.as_slice());
        self.place.clear();
        self.place.resize(blocks.slot_count(), 0);
        for (index, &slot) in live.iter().enumerate() {
            self.place[slot as usize] = index as u32 + 1;
        }
        let count = live.len() + 1;
        self.own.clear();
        self.own.resize(count, masks::NONE);
        [&mut self.surface, &mut self.wall].into_iter().for_each(|band| band.clear(count));
        self.others.resize(blocks.slot_count(), masks::NONE);
        self.others
            .par_iter_mut()
            .with_min_len(64)
            .enumerate()
            .for_each(|(slot, others)| *others = other(slot));
        let others = &self.others;
        let bands = self.surface.cells[1..].par_iter_mut().zip(&mut self.wall.cells[1..]);
        let masked = self.own[1..].par_iter_mut().zip(bands);
        masked.zip(live).with_min_len(64).for_each(|((cells, (surface, wall)), &slot)| {
            let slot = slot as usize;
            *cells = own(slot);
            if *cells == masks::NONE {
                return;
            }
            for axis in 0..D {
                for side in Side::BOTH {
                    let beyond = &others[blocks.beside(slot, axis, side) as usize];
                    let touching = masks::beside::<D>(&others[slot], axis, side, beyond);
                    (0..masks::words(D)).for_each(|word| surface[word] |= touching[word] & cells[word]);
                }
            }
            if boundary.nearness(slot) != Nearness::Clear {
                let cut = &boundary.bits(slot).cut;
                (0..masks::words(D)).for_each(|word| wall[word] = cut[word] & cells[word]);
            }
        });
        let within = BandDomain { blocks, live, place: &self.place, cells: &self.own };
        self.surface.grow(&within, rules.surface_band);
        self.wall.grow(&within, rules.wall_band);
        if rules.wall_band == 1 {
            self.join_at_edges(domain);
        }
    }

    /// Adds the cells that share an edge (in 2D a corner) with a closed face to the walls' band; a second layer has them anyway.
    ///
    /// Around the edge of a solid that lies on the lines of the grid, cells that share faces with it touch each other by edges
    /// only. If the cell between them were in a tile, they would exchange nothing but through the tile: each a part of the network
    /// on its own, without being closed. The solver takes the parts that tiles separate for closed.
    fn join_at_edges<const D: usize>(&mut self, domain: &TileDomain<'_, D>) {
        let TileDomain { blocks, boundary, live } = *domain;
        self.shut.clear();
        self.shut.resize(live.as_slice().len() + 1, [masks::NONE; 3]);
        self.shut[1..].par_iter_mut().zip(live.as_slice()).with_min_len(64).for_each(|(shut, &slot)| {
            let slot = slot as usize;
            if boundary.nearness(slot) == Nearness::Clear {
                return;
            }
            for (axis, shut) in shut.iter_mut().enumerate().take(D) {
                let closed =
                    |slot: usize| masks::without(&masks::all(D), &boundary.bits(slot).passable[axis]);
                let (here, beyond) = (closed(slot), closed(blocks.beside(slot, axis, Side::High) as usize));
                *shut = masks::or(&here, &masks::beside::<D>(&here, axis, Side::High, &beyond));
            }
        });
        let (shut, place, own) = (&self.shut, &self.place, &self.own);
        self.wall.cells[1..].par_iter_mut().zip(live.as_slice()).with_min_len(64).for_each(
            |(wall, &slot)| {
                let slot = slot as usize;
                if boundary.nearness(slot) == Nearness::Clear {
                    return;
                }
                let here = place[slot] as usize;
                for along in 0..D {
                    for side in Side::BOTH {
                        let next = place[blocks.beside(slot, along, side) as usize] as usize;
                        for across in (0..D).filter(|&across| across != along) {
                            let [cells, beyond] = [here, next].map(|place| &shut[place][across]);
                            *wall = masks::or(wall, &masks::beside::<D>(cells, along, side, beyond));
                        }
                    }
                }
                *wall = masks::and(wall, &own[here]);
            },
        );
    }

    /// No fluid has been looked at.
    pub fn clear(&mut self) {
        self.place.clear();
    }

    /// What a cell of the fluid is, given the cells of its block that lie in tiles; `None` for cells of other fluids.
    pub fn role(&self, slot: usize, local: usize, inside: &Bits) -> Option<CellRole> {
        let place = *self.place.get(slot)? as usize;
        let bit = |bits: &Bits| bits[local / 64] >> (local % 64) & 1 == 1;
        bit(&self.own[place]).then(|| match () {
            () if bit(inside) => CellRole::Tile,
            () if bit(&self.surface.cells[place]) => CellRole::Surface,
            () if bit(&self.wall.cells[place]) => CellRole::Wall,
            () => CellRole::Seam,
        })
    }

    /// Whether a block holds neither other fluids nor cells close to them. What is not stored lies behind walls, or
    /// beyond blocks that do.
    pub fn is_calm(&self, slot: u32) -> bool {
        let slot = slot as usize;
        slot == VOID as usize
            || self.others[slot] == masks::NONE
                && self.surface.cells[self.place[slot] as usize] == masks::NONE
    }

    /// The fluid's cells of a live block beyond all bands.
    pub fn deep(&self, place: usize) -> Bits {
        std::array::from_fn(|word| {
            self.own[place][word] & !(self.surface.cells[place][word] | self.wall.cells[place][word])
        })
    }
}

/// Cells close to something, by live block.
#[derive(Clone, Debug, Default)]
struct Band {
    cells: Vec<Bits>,
    next: Vec<Bits>,
    /// Blocks that have any.
    any: Vec<bool>,
    next_any: Vec<bool>,
}

/// What a band grows in.
struct BandDomain<'a, const D: usize> {
    blocks: &'a Blocks<D>,
    live: &'a [u32],
    place: &'a [u32],
    cells: &'a [Bits],
}

impl Band {
    /// Removes all cells, and makes room for `count` blocks.
    fn clear(&mut self, count: usize) {
        for cells in [&mut self.cells, &mut self.next] {
            cells.clear();
            cells.resize(count, masks::NONE);
        }
        for any in [&mut self.any, &mut self.next_any] {
            any.clear();
            any.resize(count, false);
        }
    }

    /// Grows from one layer to `layers`.
    fn grow<const D: usize>(&mut self, within: &BandDomain<'_, D>, layers: usize) {
        for (any, cells) in self.any.iter_mut().zip(&self.cells) {
            *any = *cells != masks::NONE;
        }
        (1..layers).for_each(|_| self.add_layer(within));
    }

    fn add_layer<const D: usize>(&mut self, within: &BandDomain<'_, D>) {
        let (before, any) = (&self.cells, &self.any);
        let next = self.next[1..].par_iter_mut().zip(&mut self.next_any[1..]);
        next.zip(within.live).enumerate().with_min_len(64).for_each(|(index, ((grown, has_any), &slot))| {
            let beside = |axis: usize, side: Side| {
                within.place[within.blocks.beside(slot as usize, axis, side) as usize] as usize
            };
            let is_near = || (0..D).any(|axis| Side::BOTH.iter().any(|&side| any[beside(axis, side)]));
            if !any[index + 1] && !is_near() {
                // Far away from the band: there were no cells and there are none.
                return;
            }
            let (here, own) = (&before[index + 1], &within.cells[index + 1]);
            *grown = *here;
            *has_any = any[index + 1];
            if here == own {
                return;
            }
            for axis in 0..D {
                for side in Side::BOTH {
                    let touching = masks::beside::<D>(here, axis, side, &before[beside(axis, side)]);
                    *grown = masks::or(grown, &touching);
                }
            }
            *grown = masks::and(grown, own);
            *has_any = *grown != masks::NONE;
        });
        std::mem::swap(&mut self.cells, &mut self.next);
        std::mem::swap(&mut self.any, &mut self.next_any);
    }
}
