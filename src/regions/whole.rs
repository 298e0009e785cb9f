//! Tiles that fill their box: everything about them follows from its size.

use crate::grid::{Blocks, SIDE};
use crate::linear::BodyFace;
use crate::math::{flatten, power, unflatten};

use super::boxes::Box;
use super::shape::{Answer, Faces, Gram, face};

/// Number, sum and sum of squares of coordinates.
fn moments(coordinates: impl Iterator<Item = f64>) -> [f64; 3] {
    coordinates.fold([0.0; 3], |[count, sum, squares], x| [count + 1.0, sum + x, squares + x * x])
}

/// How a box of `side` blocks along each axis answers forces. Sums over a lattice of faces are products of sums along
/// the axes.
pub(super) fn answer<const D: usize>(side: i32) -> Answer {
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
    Answer::new::<D>(&faces, 1.0).expect("a tile of at least seven cells along each axis has a mass")
}

/// The faces at the surface of a box, by axis: low side, then high side.
pub(super) fn faces<const D: usize>(blocks: &Blocks<D>, this: &Box<D>) -> [Vec<BodyFace>; 3] {
    let side = this.side as usize;
    // The blocks of the box, and those beyond its high faces.
    let slots: Vec<u32> = (0..power(side + 1, D))
        .map(|index| {
            let at = unflatten::<D>(index, side + 1);
            blocks.slot_at(std::array::from_fn(|axis| this.low[axis] + at[axis] as i32))
        })
        .collect();
    let width = side * SIDE;
    let across = width - 1;
    std::array::from_fn(|axis| {
        let mut list = Vec::new();
        if axis >= D {
            return list;
        }
        list.reserve_exact(2 * power(across, D - 1));
        for (plane, neighbour, ahead) in [(1, 0, true), (width, width, false)] {
            for index in 0..power(across, D - 1) {
                let mut rest = index;
                let (mut cell, mut twice) = ([0usize; D], [0i32; 3]);
                for k in 0..D {
                    if k == axis {
                        cell[k] = neighbour;
                        twice[k] = 2 * plane as i32 - width as i32;
                    } else {
                        cell[k] = 1 + rest % across;
                        rest /= across;
                        twice[k] = 2 * cell[k] as i32 + 1 - width as i32;
                    }
                }
                let slot = slots[flatten(cell.map(|c| c / SIDE), side + 1)];
                list.push(face::<D>(slot, flatten(cell.map(|c| c % SIDE), SIDE), twice, ahead));
            }
        }
        list
    })
}

#[cfg(test)]
mod tests {
    use super::super::shape::{Around, Piece};
    use super::*;
    use crate::grid::Grid;
    use crate::grid::masks::{self, Bits};

    fn the_short_cut_counts_like_the_long_way<const D: usize>() {
        let blocks = Blocks::<D>::all(Grid { cells: [40; D], dx: 0.1 });
        let this = Box { low: [1; D], side: 2 };
        let pieces: Vec<Piece> = this
            .blocks()
            .map(|block| {
                let (all, seams) = (masks::all(D), this.seams(block));
                let bits: Bits = std::array::from_fn(|word| all[word] & !seams[word]);
                Piece { slot: blocks.slot_at(block), bits }
            })
            .collect();
        let origin = blocks.grid().first_cell(this.low).map(|c| c + 8);
        let counted = Around { blocks: &blocks, pieces: &pieces, origin }.count();
        let expected = Answer::new::<D>(&counted, 1.0).expect("thick enough");
        let found = answer::<D>(2);
        assert!((found.bound - expected.bound).abs() < 1e-9, "{} {}", found.bound, expected.bound);
        let forces = [[1.0, -0.5, 2.0, 0.3], [0.2, 0.7, -1.0, 0.9], [1.5, 0.1, 0.4, -0.6]];
        let (a, b) = (found.response.apply::<D>(&forces), expected.response.apply::<D>(&forces));
        for axis in 0..D {
            for k in 0..=D {
                assert!((a[axis][k] - b[axis][k]).abs() < 1e-12, "{D}D {axis} {k}");
            }
            let sort = |mut list: Vec<BodyFace>| {
                list.sort_by_key(|face| (face.cell, face.ahead));
                list
            };
            let listed = sort(faces(&blocks, &this)[axis].clone());
            assert_eq!(listed, sort(counted.list[axis].clone()), "{D}D axis {axis}");
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
