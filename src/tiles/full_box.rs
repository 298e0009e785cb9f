//! Tiles that fill their box: everything about them follows from its size.

use crate::grid::{Blocks, SIDE, masks};
use crate::linear::BodyPatch;
use crate::math::Side;

use super::boxes::{TileBox, low_plane};
use super::shape::{Faces, Gram, ShapeResponse, twice_to_face};

/// Number, sum and sum of squares of coordinates.
fn moments(coordinates: impl Iterator<Item = f64>) -> [f64; 3] {
    coordinates.fold([0.0; 3], |[count, sum, squares], x| [count + 1.0, sum + x, squares + x * x])
}

/// How a box of `side` blocks along each axis answers forces. Sums over a lattice of faces are products of sums along
/// the axes.
pub(super) fn response<const D: usize>(side: i32) -> ShapeResponse {
    let width = side * SIDE as i32;
    let middle = f64::from(width) / 2.0;
    // Cells 1 to width − 1 belong to the tile.
    let centres = moments((1..width).map(|cell| f64::from(cell) + 0.5 - middle));
    let planes = moments((1..=width).map(|plane| f64::from(plane) - middle));
    let ends = moments([1, width].into_iter().map(|plane| f64::from(plane) - middle));
    let gram = |across: [f64; 3]| -> Gram {
        std::array::from_fn(|axis| {
            std::array::from_fn(|k| {
                std::array::from_fn(|l| {
                    if axis >= D || k > D || l > D {
                        return 0.0;
                    }
                    (0..D)
                        .map(|m| {
                            let along = if m == axis { across } else { centres };
                            along[(k == m + 1) as usize + (l == m + 1) as usize]
                        })
                        .product()
                })
            })
        })
    };
    let faces = Faces { all: gram(planes), surface: gram(ends), ..Faces::default() };
    ShapeResponse::new::<D>(&faces, 1.0).expect("a tile of at least seven cells along each axis has a mass")
}

/// The patches at the surface of a box, by axis.
pub(super) fn patches<const D: usize>(blocks: &Blocks<D>, this: &TileBox<D>) -> [Vec<BodyPatch>; 3] {
    let origin = this.middle(blocks);
    std::array::from_fn(|axis| {
        let mut list = Vec::new();
        if axis >= D {
            return list;
        }
        // Cells at the low side of the box stay ordinary, and so do those beyond its high side.
        for block in this.blocks().filter(|block| block[axis] == this.low[axis]) {
            let aside = this.seams_across(block, |k| k != axis);
            let cells = std::array::from_fn(|word| match word < masks::words(D) {
                true => low_plane(axis, word) & !aside[word],
                false => 0,
            });
            for (side, steps) in [(Side::High, 0), (Side::Low, this.side)] {
                let mut block = block;
                block[axis] += steps;
                let twice = twice_to_face(blocks.grid().first_cell(block), origin, axis, side);
                list.push(BodyPatch { slot: blocks.slot_at(block), cells, twice, side });
            }
        }
        list
    })
}

#[cfg(test)]
mod tests {
    use super::super::shape::{BodyOnGrid, Piece};
    use super::*;
    use crate::grid::Grid;
    use crate::grid::masks::{self, Bits};

    fn the_short_cut_counts_like_the_long_way<const D: usize>() {
        let blocks = Blocks::<D>::all(Grid { cells: [40; D], dx: 0.1 });
        let this = TileBox { low: [1; D], side: 2 };
        let pieces: Vec<Piece> = this
            .blocks()
            .map(|block| {
                let (all, seams) = (masks::all(D), this.seams(block));
                let bits: Bits = masks::without(&all, &seams);
                Piece { slot: blocks.slot_at(block), bits }
            })
            .collect();
        let origin = this.middle(&blocks);
        let counted = BodyOnGrid::new(&blocks, &pieces, origin).count();
        let expected = ShapeResponse::new::<D>(&counted, 1.0).expect("thick enough");
        let found = response::<D>(2);
        assert!((found.bound - expected.bound).abs() < 1e-9, "{} {}", found.bound, expected.bound);
        assert_eq!(found.surface, expected.surface, "{D}D");
        let forces = [[1.0, -0.5, 2.0, 0.3], [0.2, 0.7, -1.0, 0.9], [1.5, 0.1, 0.4, -0.6]];
        let (a, b) = (found.response.apply::<D>(&forces), expected.response.apply::<D>(&forces));
        for axis in 0..D {
            for k in 0..=D {
                assert!((a[axis][k] - b[axis][k]).abs() < 1e-12, "{D}D {axis} {k}");
            }
            let sort = |list: &[BodyPatch]| {
                let mut list = list.to_vec();
                list.sort_by_key(|patch| (patch.slot, patch.side));
                list
            };
            let listed = sort(&patches(&blocks, &this)[axis]);
            assert_eq!(listed, sort(&counted.patches[axis]), "{D}D axis {axis}");
        }
    }

    #[test]
    fn the_short_cut_counts_like_the_long_way_2d() {
        the_short_cut_counts_like_the_long_way::<2>();
    }

    #[test]
    fn the_short_cut_counts_like_the_long_way_3d() {
        the_short_cut_counts_like_the_long_way::<3>();
    }
}
