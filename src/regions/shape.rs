//! What follows from the shape of a body alone: its faces, its mass, and how it answers forces.

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, SIDE, across, block_cells};
use crate::linear::{BodyFace, Response};
use crate::math::{Side, unflatten};

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
    /// Those at its surface.
    pub surface: Gram,
    /// The latter, by axis.
    pub list: [Vec<BodyFace>; 3],
}

/// Twice an offset so many cells further along x.
fn along(twice: [i32; 3], x: usize) -> [i32; 3] {
    [twice[0] + 2 * x as i32, twice[1], twice[2]]
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

/// Where a body's neighbours and its own cells are looked up.
pub(super) struct Around<'a, const D: usize> {
    pub blocks: &'a Blocks<D>,
    /// The body, block by block.
    pub pieces: &'a [Piece],
    /// Its origin: the lattice corner that offsets are counted from, in cells.
    pub origin: [i32; D],
}

impl<const D: usize> Around<'_, D> {
    fn bits(&self, slot: u32) -> Bits {
        self.pieces.iter().find(|piece| piece.slot == slot).map_or(masks::NONE, |piece| piece.bits)
    }

    /// Twice the offset of the low face across an axis of a row's first cell from the origin.
    fn offset(&self, slot: usize, axis: usize, row: usize) -> [i32; 3] {
        let (first, at) = (self.blocks.first_cell(slot), unflatten::<D>(row * SIDE, SIDE));
        let mut twice = [0; 3];
        for k in 0..D {
            twice[k] = 2 * (first[k] + at[k] as i32 - self.origin[k]) + (k != axis) as i32;
        }
        twice
    }

    /// Rows with cells: number, bits, and [`Self::offset`].
    fn rows(&self, slot: usize, axis: usize, cells: &Bits) -> impl Iterator<Item = (usize, u8, [i32; 3])> {
        let cells = *cells;
        let rows = if cells == masks::NONE { 0 } else { block_cells(D) / SIDE };
        let bits = move |row: usize| (row, masks::row(&cells, row));
        (0..rows)
            .map(bits)
            .filter(|(_, bits)| *bits != 0)
            .map(move |(row, bits)| (row, bits, self.offset(slot, axis, row)))
    }

    /// Counts the faces.
    pub fn count(&self) -> Faces {
        let mut faces = Faces::default();
        for piece in self.pieces {
            let (slot, cells) = (piece.slot as usize, CellSums::of::<D>(&piece.bits));
            for axis in 0..D {
                let mut first = self.offset(slot, axis, 0).map(|t| 0.5 * t as f64);
                cells.include::<D>(&mut faces.all[axis], first);
                for (side, high) in Side::BOTH.into_iter().zip([false, true]) {
                    let next = self.blocks.beside(slot, axis, side);
                    let inner = masks::beside::<D>(&piece.bits, axis, high, &self.bits(next));
                    let ends: Bits = std::array::from_fn(|word| piece.bits[word] & !inner[word]);
                    let surface = CellSums::of::<D>(&ends);
                    if high {
                        // Low faces were counted with their cells.
                        first[axis] += 1.0;
                        surface.include::<D>(&mut faces.all[axis], first);
                    }
                    surface.include::<D>(&mut faces.surface[axis], first);
                    for (row, bits, mut twice) in self.rows(slot, axis, &ends) {
                        twice[axis] += 2 * i32::from(high);
                        for x in masks::each_in(u64::from(bits)) {
                            let (cell, is_beyond) = across(row * SIDE + x, axis, high);
                            let owner = if is_beyond { next } else { piece.slot };
                            faces.list[axis].push(face::<D>(owner, cell, along(twice, x), !high));
                        }
                    }
                }
            }
        }
        faces
    }
}

pub(super) fn face<const D: usize>(slot: u32, local: usize, twice: [i32; 3], ahead: bool) -> BodyFace {
    BodyFace { cell: slot * block_cells(D) as u32 + local as u32, twice: twice.map(|t| t as i8), ahead }
}

/// How bodies of a shape answer forces, and the bound of their term.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub response: Response,
    pub bound: f64,
}

impl Answer {
    /// None for bodies so thin that some affine field is not determined.
    pub fn new<const D: usize>(faces: &Faces, density: f64) -> Option<Answer> {
        let response = Response::new::<D>(&faces.all, density)?;
        Some(Answer { response, bound: response.bound::<D>(&faces.surface) })
    }

    /// The same shape, so many times denser.
    pub fn with_density(&self, density: f64) -> Answer {
        Answer { response: self.response.with_density(density), bound: self.bound / density }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

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
