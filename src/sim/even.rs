//! Where liquid in tiles moves as one affine field, as particles want to know it.

use crate::grid::masks::Bits;
use crate::grid::{Blocks, CellSet, Field};
use crate::linear::Moments;
use crate::liquid::{self, Even};
use crate::math::Real;
use crate::pressure::Projection;
use crate::regions::Tile;

/// Says where in a block the velocity of a substep's middle, `share` of the last change ahead, is an affine field: inside of
/// tiles that were there in the substep before as well, as long as particles do not go too far.
pub(super) fn even_in_middle<'a, const D: usize>(
    blocks: &'a Blocks<D>,
    projection: &'a Projection<D>,
    middle: &[Field<f32>; D],
    share: Real,
    dt: Real,
    cells: &'a mut CellSet,
) -> impl Fn(usize) -> Option<Even<D>> + use<'a, D> {
    // Particles look no further than three quarters of their way; and the ends of their ways are not known any better than
    // to that share of a cell.
    let cell_speed = blocks.grid().dx / dt;
    let (fastest, tolerance) = (liquid::EVEN_REACH / 0.75 * cell_speed, 1e-5 * cell_speed);
    let tiling = projection.tiling.as_deref();
    let mut fields = Vec::new();
    if let Some(tiling) = tiling {
        let ahead = tiling.fields_ahead(share).into_iter().zip(&tiling.tiles);
        fields.extend(ahead.map(|(field, tile)| (tile.fastest(&field) <= fastest).then_some(field)));
        tiling.find_even(blocks, middle, &fields, tolerance, cells);
    }
    let cells = &*cells;
    move |slot| {
        let (tiling, cells) = (tiling?, *cells.bits(slot));
        let tile = tiling.tile_in(slot)?;
        let field = fields[tile].as_ref()?;
        Some(even(blocks, slot, &tiling.tiles[tile], field, cells))
    }
}

/// Says where in a block the velocity of tiles is affine.
pub(super) fn even_in_tiles<const D: usize>(
    blocks: &Blocks<D>,
    projection: &Projection<D>,
) -> impl Fn(usize) -> Option<Even<D>> {
    let tiling = projection.tiling.as_ref();
    move |slot| {
        let (tile, cells) = tiling?.interior(slot)?;
        let tile = &tiling?.tiles[tile];
        Some(even(blocks, slot, tile, &tile.field, cells))
    }
}

/// The field of a tile in some cells of a block.
fn even<const D: usize>(
    blocks: &Blocks<D>,
    slot: usize,
    tile: &Tile<D>,
    field: &Moments,
    cells: Bits,
) -> Even<D> {
    let (velocity, slope) = tile.field_from(field, blocks.first_cell(slot));
    Even { cells, velocity, slope }
}
