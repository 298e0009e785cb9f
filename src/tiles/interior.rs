//! Where tiles of liquid leave nothing to interpolate: cells deep enough inside of one, and the field that moves them.

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, CellSet, Field, SIDE};
use crate::math::{AffineMotion, Side};

use super::motion::{corner_of, matching_faces};
use super::tiling::{Tile, Tiling};

/// Which cells of each block lie inside a tile with all the cells around them.
#[derive(Clone, Debug)]
pub(super) struct Interior {
    cells: CellSet,
    /// By slot: the tile that has most cells there, and which of all pieces these are; `NONE` if there is none.
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
                let owner = &mut owner[pieces[piece].slot as usize];
                let count = |piece: usize| masks::count(&pieces[piece].bits);
                if *owner == NONE || count(piece) > count(owner[1] as usize) {
                    *owner = [index as u32, piece as u32];
                }
            }
        }
    }

    /// Cells of a block that lie inside a tile of liquid with all the cells around them, as found last: its place in
    /// the list, and the cells. Of several tiles it is the one that has most cells of the block.
    pub fn interior(&self, slot: usize) -> Option<(usize, Bits)> {
        let [tile, piece] = self.owner(slot)?;
        Some((tile, masks::and(self.interior.cells.bits(slot), &self.pieces[piece].bits)))
    }

    /// The tile that has most cells of a block, and which of all pieces these are.
    fn owner(&self, slot: usize) -> Option<[usize; 2]> {
        let owner = self.interior.owner.as_slice().get(slot)?;
        (*owner != NONE).then(|| owner.map(|index| index as usize))
    }

    /// The motions that tiles will have after `share` of the change since the step before. Those that were not there
    /// then stay as they are.
    pub fn motions_at_midpoint(&self, share: f64) -> Vec<AffineMotion> {
        let at_midpoint = |tile: &Tile<D>| match self.before.get(&tile.id) {
            Some(before) => tile.motion.extrapolated(before, share),
            None => tile.motion,
        };
        self.tiles.iter().map(at_midpoint).collect()
    }

    /// Finds the cells around which `velocity` is as `motions` say for their tiles, to within `tolerance` m/s: on all
    /// faces of the cells, and of those around them. Only in blocks that a tile has most cells of, as found last.
    pub fn find_affine(
        &self,
        blocks: &Blocks<D>,
        velocity: &[Field<f32>; D],
        motions: &[Option<AffineMotion>],
        tolerance: f64,
        cells: &mut CellSet,
    ) {
        cells.fill(blocks, |slot| {
            let Some([tile, piece]) = self.owner(slot) else { return masks::NONE };
            let Some(motion) = &motions[tile] else { return masks::NONE };
            let mut cells = self.pieces[piece].bits;
            for axis in 0..D {
                let mut corner = corner_of(blocks, &self.tiles[tile], &self.pieces[piece], axis);
                let near = |slot: usize, faces: &Bits, corner: [f64; 3]| {
                    let values = velocity[axis].block(slot);
                    matching_faces::<D>(motion.row(axis), values, faces, corner, tolerance)
                };
                let low = near(slot, &masks::all(D), corner);
                // Faces on the high side of the last cells are those of the next block's first ones.
                let first = masks::beside::<D>(&masks::NONE, axis, Side::Low, &masks::all(D));
                corner[axis] += SIDE as f64;
                let beyond = near(blocks.beside(slot, axis, Side::High) as usize, &first, corner);
                let high = masks::beside::<D>(&low, axis, Side::High, &beyond);
                cells = masks::and(&cells, &masks::and(&low, &high));
            }
            cells
        });
        cells.shrink(blocks, 1);
    }

    /// The tile whose cells [`Self::find_affine`] finds in a block.
    pub fn tile_in(&self, slot: usize) -> Option<usize> {
        self.owner(slot).map(|[tile, _]| tile)
    }
}

impl<const D: usize> Tile<D> {
    /// A motion of this tile, from the low corner of a cell on: the velocity there, and its change per cell.
    pub fn motion_from(&self, motion: &AffineMotion, cell: [i32; D]) -> ([f64; D], [[f64; D]; D]) {
        let slope: [[f64; D]; D] = std::array::from_fn(|axis| std::array::from_fn(|k| motion.slope(axis, k)));
        let x: [f64; D] = std::array::from_fn(|k| f64::from(cell[k] - self.origin[k]));
        let velocity = std::array::from_fn(|axis| {
            motion.velocity(axis) + (0..D).map(|k| slope[axis][k] * x[k]).sum::<f64>()
        });
        (velocity, slope)
    }

    /// The largest magnitude that any component of a motion of this tile has in the box around it.
    pub fn fastest(&self, motion: &AffineMotion) -> f64 {
        let ends = [self.low, self.high].map(|end| self.motion_from(motion, end));
        let largest = |axis: usize| {
            let middle = 0.5 * (ends[0].0[axis] + ends[1].0[axis]);
            let half = |k: usize| 0.5 * f64::from(self.high[k] - self.low[k]);
            middle.abs() + (0..D).map(|k| ends[0].1[axis][k].abs() * half(k)).sum::<f64>()
        };
        (0..D).map(largest).fold(0.0, f64::max)
    }
}
