//! Where liquid in tiles moves as one affine field, as particles want to know it.

use crate::grid::masks::Bits;
use crate::grid::{Blocks, CellSet, Field};
use crate::liquid::{self, AffineCells};
use crate::math::{AffineMotion, Real};
use crate::pressure::Projection;
use crate::tiles::Tile;

/// Says where in a block the velocity of a substep's midpoint, `share` of the last change ahead, is an affine field:
/// inside of tiles that were there in the substep before as well, as long as particles do not go too far.
pub(super) fn affine_cells_at_midpoint<'a, const D: usize>(
    blocks: &'a Blocks<D>,
    projection: &'a Projection<D>,
    midpoint: &[Field<f32>; D],
    share: Real,
    dt: Real,
    cells: &'a mut CellSet,
) -> impl Fn(usize) -> Option<AffineCells<D>> + use<'a, D> {
    // Particles look no further than three quarters of their way; and the ends of their ways are not known any better
    // than to that share of a cell.
    let cell_speed = blocks.grid().dx / dt;
    let (fastest, tolerance) = (liquid::AFFINE_REACH / 0.75 * cell_speed, 1e-5 * cell_speed);
    let tiling = projection.tiling.as_deref();
    let mut motions = Vec::new();
    if let Some(tiling) = tiling {
        let at_midpoint = tiling.motions_at_midpoint(share).into_iter().zip(&tiling.tiles);
        motions
            .extend(at_midpoint.map(|(motion, tile)| (tile.fastest(&motion) <= fastest).then_some(motion)));
        tiling.find_affine(blocks, midpoint, &motions, tolerance, cells);
    }
    let cells = &*cells;
    move |slot| {
        let (tiling, cells) = (tiling?, *cells.bits(slot));
        let tile = tiling.tile_in(slot)?;
        let motion = motions[tile].as_ref()?;
        Some(affine(blocks, slot, &tiling.tiles[tile], motion, cells))
    }
}

/// Says where in a block the velocity of tiles is affine.
pub(super) fn affine_cells_in_tiles<const D: usize>(
    blocks: &Blocks<D>,
    projection: &Projection<D>,
) -> impl Fn(usize) -> Option<AffineCells<D>> {
    let tiling = projection.tiling.as_ref();
    move |slot| {
        let (tile, cells) = tiling?.interior(slot)?;
        let tile = &tiling?.tiles[tile];
        Some(affine(blocks, slot, tile, &tile.motion, cells))
    }
}

/// The motion of a tile in some cells of a block.
fn affine<const D: usize>(
    blocks: &Blocks<D>,
    slot: usize,
    tile: &Tile<D>,
    motion: &AffineMotion,
    cells: Bits,
) -> AffineCells<D> {
    let (velocity, slope) = tile.motion_from(motion, blocks.first_cell(slot));
    AffineCells { cells, velocity, slope }
}
