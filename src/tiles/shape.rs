//! What follows from the shape of a body alone: its faces, its mass, and how it answers forces.

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, SIDE};
use crate::linear::{BodyPatch, Response};
use crate::math::Side;

/// The cells of a body in one block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub slot: u32,
    pub bits: Bits,
}

/// Sums over the faces of a body: products of (1, x, y, z) per axis, x from the body's origin in cells.
pub(super) type Gram = [[[f64; 4]; 4]; 3];

/// The faces of a body, counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Faces {
    /// All faces that bound one of its cells, or two.
    pub all: Gram,
    /// Faces at its surface.
    pub surface: Gram,
    /// Patches of the surface, by axis.
    pub patches: [Vec<BodyPatch>; 3],
}

impl Faces {
    /// Counts faces at the surface, if there are any.
    fn add<const D: usize>(&mut self, axis: usize, patch: BodyPatch) {
        if patch.cells == masks::NONE {
            return;
        }
        let sums = CellSums::of::<D>(&patch.cells);
        sums.include::<D>(&mut self.surface[axis], patch.corner());
        if patch.side == Side::Low {
            // Low faces are counted with the body's cells; these belong to cells beyond it.
            sums.include::<D>(&mut self.all[axis], patch.corner());
        }
        self.patches[axis].push(patch);
    }
}

/// Of the bits of a row: how many, the sum of their places, and that of the squares of these.
static SUMS: [[u8; 3]; 256] = {
    let mut sums = [[0; 3]; 256];
    let mut at = 0;
    while at < 256 * SIDE {
        let (bits, x) = (at / SIDE, at % SIDE);
        if bits >> x & 1 == 1 {
            let [count, sum, squares] = sums[bits];
            sums[bits] = [count + 1, sum + x as u8, squares + (x * x) as u8];
        }
        at += 1;
    }
    sums
};

/// Sums over some cells of a block: of products of (1, x, y, z), their places in the block.
#[derive(Clone, Copy, Default)]
struct CellSums {
    count: u32,
    first: [u32; 3],
    squares: [u32; 3],
    /// Of xy, xz and yz.
    mixed: [u32; 3],
}

impl CellSums {
    fn of<const D: usize>(cells: &Bits) -> Self {
        let mut all = CellSums::default();
        for (z, &word) in cells.iter().enumerate().take(masks::words(D)).filter(|(_, word)| **word != 0) {
            let mut layer = CellSums::default();
            for (y, bits) in word.to_le_bytes().into_iter().enumerate() {
                let ([count, sum, squares], y) = (SUMS[bits as usize].map(u32::from), y as u32);
                layer.count += count;
                layer.first[0] += sum;
                layer.first[1] += y * count;
                layer.squares[0] += squares;
                layer.squares[1] += y * y * count;
                layer.mixed[0] += y * sum;
            }
            let z = z as u32;
            all.count += layer.count;
            for k in 0..2 {
                all.first[k] += layer.first[k];
                all.squares[k] += layer.squares[k];
                all.mixed[k + 1] += z * layer.first[k];
            }
            all.first[2] += z * layer.count;
            all.squares[2] += z * z * layer.count;
            all.mixed[0] += layer.mixed[0];
        }
        all
    }

    /// Adds the same sums for cells counted from elsewhere: the block's first one is at `offset`.
    fn include<const D: usize>(&self, gram: &mut [[f64; 4]; 4], offset: [f64; 3]) {
        let (count, first) = (f64::from(self.count), self.first.map(f64::from));
        gram[0][0] += count;
        for k in 0..D {
            let along = first[k] + count * offset[k];
            gram[0][k + 1] += along;
            gram[k + 1][0] += along;
            for l in 0..D {
                let own = if k == l { self.squares[k] } else { self.mixed[k + l - 1] };
                let moved = offset[k] * first[l] + offset[l] * first[k] + count * offset[k] * offset[l];
                gram[k + 1][l + 1] += f64::from(own) + moved;
            }
        }
    }
}

/// A body among its neighbours.
pub(super) struct BodyOnGrid<'a, const D: usize> {
    blocks: &'a Blocks<D>,
    /// The body, block by block.
    pieces: &'a [Piece],
    /// Their slots in ascending order, with their places in the list.
    by_slot: Vec<(u32, usize)>,
    /// Its origin: the lattice corner that offsets are counted from, in cells.
    origin: [i32; D],
}

impl<'a, const D: usize> BodyOnGrid<'a, D> {
    pub fn new(blocks: &'a Blocks<D>, pieces: &'a [Piece], origin: [i32; D]) -> Self {
        let mut by_slot: Vec<(u32, usize)> = pieces.iter().map(|piece| piece.slot).zip(0..).collect();
        by_slot.sort_unstable();
        BodyOnGrid { blocks, pieces, by_slot, origin }
    }

    fn bits(&self, slot: u32) -> Option<&Bits> {
        let at = self.by_slot.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        Some(&self.pieces[self.by_slot[at].1].bits)
    }

    /// Counts the faces.
    pub fn count(&self) -> Faces {
        let mut faces = Faces::default();
        for piece in self.pieces {
            let (first, own) = (self.blocks.first_cell(piece.slot as usize), CellSums::of::<D>(&piece.bits));
            for axis in 0..D {
                let low =
                    twice_to_face(first, self.origin, axis, Side::Low).map(|twice| 0.5 * f64::from(twice));
                own.include::<D>(&mut faces.all[axis], low);
                let next = Side::BOTH.map(|side| self.blocks.beside(piece.slot as usize, axis, side));
                let beyond = next.map(|slot| self.bits(slot));
                for side in Side::BOTH {
                    let twice = twice_to_face(first, self.origin, axis, side);
                    // Cells of the same block, before a cell of the body there or in the block beyond.
                    let there = beyond[side.index()].unwrap_or(&masks::NONE);
                    let before = masks::beside::<D>(&piece.bits, axis, side, there);
                    let cells = masks::without(&before, &piece.bits);
                    faces.add::<D>(axis, BodyPatch { slot: piece.slot, cells, twice, side });
                    // Those of the block on the other side, unless it is the body's too and so has its turn.
                    let back = side.opposite().index();
                    if beyond[back].is_none() {
                        let cells = masks::beside::<D>(&masks::NONE, axis, side, &piece.bits);
                        let mut twice = twice;
                        twice[axis] += if side == Side::High { -2 } else { 2 } * SIDE as i16;
                        faces.add::<D>(axis, BodyPatch { slot: next[back], cells, twice, side });
                    }
                }
            }
        }
        faces
    }
}

/// Twice the offset from a body's origin of the face that the cell `first` has on a side across an axis.
pub(super) fn twice_to_face<const D: usize>(
    first: [i32; D],
    origin: [i32; D],
    axis: usize,
    side: Side,
) -> [i16; 3] {
    std::array::from_fn(|k| match k {
        k if k >= D => 0,
        k if k == axis => 2 * (first[k] - origin[k] + side.index() as i32) as i16,
        k => 2 * (first[k] - origin[k]) as i16 + 1,
    })
}

/// How bodies of a shape answer forces, and the bound of their term.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapeResponse {
    pub response: Response,
    pub bound: f64,
    /// Products of (1, x, y, z) summed over all faces at the surface.
    pub surface: [[f64; 4]; 4],
}

impl ShapeResponse {
    /// None for bodies so thin that some affine field is not determined.
    pub fn new<const D: usize>(faces: &Faces, density: f64) -> Option<ShapeResponse> {
        let response = Response::new::<D>(&faces.all, density)?;
        let across = &faces.surface;
        let surface = std::array::from_fn(|k| {
            std::array::from_fn(|l| across[..D].iter().map(|products| products[k][l]).sum::<f64>())
        });
        Some(ShapeResponse { response, bound: response.bound::<D>(across), surface })
    }

    /// The answer of a shape as large, of another density.
    pub fn with_density(&self, density: f64) -> ShapeResponse {
        ShapeResponse { response: self.response.with_density(density), bound: self.bound / density, ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::block_cells;
    use crate::math::{hash_unit, unflatten};

    fn cell_sums_add_up_cells<const D: usize>() {
        let offset = std::array::from_fn(|k| if k < D { 2.5 - 7.0 * k as f64 } else { 0.0 });
        for share in [0.1, 0.5, 1.1] {
            let mut cells = masks::NONE;
            for cell in 0..block_cells(D) {
                let is_in = hash_unit(cell as u64) < share;
                cells[cell / 64] |= u64::from(is_in) << (cell % 64);
            }
            let (mut found, mut expected) = ([[0.0; 4]; 4], [[0.0; 4]; 4]);
            CellSums::of::<D>(&cells).include::<D>(&mut found, offset);
            for cell in masks::each(&cells) {
                let at = unflatten::<D>(cell, SIDE);
                let place: [f64; 4] = std::array::from_fn(|k| match k {
                    0 => 1.0,
                    k if k <= D => offset[k - 1] + at[k - 1] as f64,
                    _ => 0.0,
                });
                for k in 0..4 {
                    (0..4).for_each(|l| expected[k][l] += place[k] * place[l]);
                }
            }
            // All numbers are quarters, and exact.
            assert_eq!(found, expected, "{D}D, {share} of all cells");
        }
    }

    #[test]
    fn cell_sums_add_up_cells_2d() {
        cell_sums_add_up_cells::<2>();
    }

    #[test]
    fn cell_sums_add_up_cells_3d() {
        cell_sums_add_up_cells::<3>();
    }
}
