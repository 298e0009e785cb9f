//! Where tiles of liquid leave nothing to interpolate: cells deep enough inside of one, and the field that moves them.

use rayon::prelude::*;

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, CellSet, Field};
use crate::linear::Moments;

use super::motion::{corner_of, greatest_difference};
use super::tiling::{Tile, Tiling};

/// Which cells of each block lie inside a tile with all the cells around them.
#[derive(Clone, Debug)]
pub(super) struct Interior {
    cells: CellSet,
    /// By slot: the tile that most of them belong to, and which of all pieces its own are; `NONE` if there is none.
    owner: Field<[u32; 2]>,
}

const NONE: [u32; 2] = [u32::MAX; 2];

impl Interior {
    pub fn new() -> Self {
        Interior { cells: CellSet::new(), owner: Field::new(1, NONE) }
    }
}

impl<const D: usize> Tiling<D> {
    /// Finds what [`Self::interior`] tells.
    pub fn find_interior(&mut self, blocks: &Blocks<D>) {
        let Tiling { interior: Interior { cells, owner }, inside, tiles, of_liquid, pieces, .. } = self;
        // Tiles are at least a layer apart: a cell that has none but tiles' cells around it has those of its own tile.
        cells.fill(blocks, |slot| inside[slot]);
        cells.shrink(blocks, 1);
        owner.resize(blocks.slot_count());
        owner.as_mut_slice().fill(NONE);
        for (index, tile) in tiles.iter().enumerate().take(*of_liquid) {
            for piece in tile.pieces.clone() {
                let slot = pieces[piece].slot as usize;
                let count = |piece: usize| masks::count(&masks::and(cells.bits(slot), &pieces[piece].bits));
                let before = if owner[slot] == NONE { 0 } else { count(owner[slot][1] as usize) };
                if count(piece) > before {
                    owner[slot] = [index as u32, piece as u32];
                }
            }
        }
    }

    /// Cells of a block that lie inside a tile of liquid with all the cells around them, as found last: its place in the list, and
    /// the cells. Where there are several, one of those that have most of them.
    pub fn interior(&self, slot: usize) -> Option<(usize, Bits)> {
        let &[tile, piece] = self.interior.owner.as_slice().get(slot).filter(|&&owner| owner != NONE)?;
        let own = &self.pieces[piece as usize].bits;
        Some((tile as usize, masks::and(self.interior.cells.bits(slot), own)))
    }

    /// For every tile of liquid, the affine field that `velocity` is on all its faces, if it is one to within `tolerance` m/s.
    pub fn fields_of(
        &self,
        blocks: &Blocks<D>,
        velocity: &[Field<f32>; D],
        tolerance: f64,
    ) -> Vec<Option<Moments>> {
        let tiles = self.tiles[..self.of_liquid].par_iter();
        let fields = tiles.zip(&self.bodies[..self.of_liquid]).map(|(tile, body)| {
            let field = self.closest(blocks, tile, body, velocity);
            let is_near = (0..D).all(|axis| {
                let (field, velocity) = (&field[axis], &velocity[axis]);
                self.pieces[tile.pieces.clone()].iter().all(|piece| {
                    let corner = corner_of(blocks, tile, piece, axis);
                    let values = velocity.block(piece.slot as usize);
                    greatest_difference::<D>(field, values, &piece.bits, corner) <= tolerance
                }) && body.across(axis, &self.patches).iter().filter(|patch| !patch.ahead).all(|patch| {
                    let values = velocity.block(patch.slot as usize);
                    greatest_difference::<D>(field, values, &patch.cells, patch.corner()) <= tolerance
                })
            });
            is_near.then_some(field)
        });
        fields.collect()
    }
}

impl<const D: usize> Tile<D> {
    /// A field of this tile, from the low corner of a cell on: the velocity there, and its change per cell.
    pub fn field_from(&self, field: &Moments, cell: [i32; D]) -> ([f64; D], [[f64; D]; D]) {
        let slope: [[f64; D]; D] = std::array::from_fn(|axis| std::array::from_fn(|k| field[axis][k + 1]));
        let way: [f64; D] = std::array::from_fn(|k| f64::from(cell[k] - self.origin[k]));
        let velocity =
            std::array::from_fn(|axis| field[axis][0] + (0..D).map(|k| slope[axis][k] * way[k]).sum::<f64>());
        (velocity, slope)
    }

    /// The largest magnitude that any component of a field of this tile has in the box around it.
    pub fn fastest(&self, field: &Moments) -> f64 {
        let ends = [self.low, self.high].map(|end| self.field_from(field, end));
        let largest = |axis: usize| {
            let middle = 0.5 * (ends[0].0[axis] + ends[1].0[axis]);
            let half = |k: usize| 0.5 * f64::from(self.high[k] - self.low[k]);
            middle.abs() + (0..D).map(|k| ends[0].1[axis][k].abs() * half(k)).sum::<f64>()
        };
        (0..D).map(largest).fold(0.0, f64::max)
    }
}
