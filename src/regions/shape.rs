//! What follows from the shape of a body alone: its faces, its mass, and how it answers forces.

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, SIDE, block_cells};
use crate::linear::{BodyFace, Response};
use crate::math::{Side, power, unflatten};

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

/// Includes the faces at `offset` and further along x, where the bits of a row say so.
fn include_row(gram: &mut [[f64; 4]; 4], bits: u8, offset: [f64; 3]) {
    if bits == 0 {
        return;
    }
    let [count, sum, squares] = SUMS[bits as usize].map(f64::from);
    let [first, y, z] = offset;
    let along = sum + count * first;
    let along_squared = squares + 2.0 * first * sum + count * first * first;
    let rest = [1.0, y, z];
    let places = [0, 2, 3];
    for (k, a) in places.into_iter().zip(rest) {
        for (l, b) in places.into_iter().zip(rest) {
            gram[k][l] += count * a * b;
        }
        gram[1][k] += along * a;
        gram[k][1] += along * a;
    }
    gram[1][1] += along_squared;
}

/// Includes the faces at `offset` and further along all axes, one for each cell of a whole block.
fn include_block<const D: usize>(gram: &mut [[f64; 4]; 4], offset: [f64; 3]) {
    // Sums over the cells along one axis: of 1, of their places, and of the squares of these.
    let [count, sum, squares] = SUMS[255].map(f64::from);
    let rest = |axes: usize| count.powi((D - axes) as i32);
    let along = |k: usize| sum + count * offset[k];
    gram[0][0] += rest(0);
    for k in 0..D {
        let (first, place) = (rest(1) * along(k), k + 1);
        gram[0][place] += first;
        gram[place][0] += first;
        gram[place][place] += rest(1) * (squares + 2.0 * offset[k] * sum + count * offset[k] * offset[k]);
        for l in (0..D).filter(|&l| l != k) {
            gram[place][l + 1] += rest(2) * along(k) * along(l);
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
            let slot = piece.slot as usize;
            for axis in 0..D {
                let [below, above] = Side::BOTH.map(|side| self.blocks.beside(slot, axis, side));
                let low = masks::beside::<D>(&piece.bits, axis, false, &self.bits(below));
                let high = masks::beside::<D>(&piece.bits, axis, true, &self.bits(above));
                let stride = power(SIDE, axis);
                if piece.bits == masks::all(D) {
                    include_block::<D>(
                        &mut faces.all[axis],
                        self.offset(slot, axis, 0).map(|t| 0.5 * t as f64),
                    );
                } else {
                    for (_, bits, twice) in self.rows(slot, axis, &piece.bits) {
                        include_row(&mut faces.all[axis], bits, twice.map(|t| 0.5 * t as f64));
                    }
                }
                let only =
                    |beside: &Bits| -> Bits { std::array::from_fn(|word| piece.bits[word] & !beside[word]) };
                for (row, bits, twice) in self.rows(slot, axis, &only(&low)) {
                    include_row(&mut faces.surface[axis], bits, twice.map(|t| 0.5 * t as f64));
                    for x in masks::each_in(u64::from(bits)) {
                        let local = row * SIDE + x;
                        let (owner, cell) = match local / stride % SIDE {
                            0 => (below, local + (SIDE - 1) * stride),
                            _ => (piece.slot, local - stride),
                        };
                        faces.list[axis].push(face::<D>(owner, cell, along(twice, x), true));
                    }
                }
                for (row, bits, mut twice) in self.rows(slot, axis, &only(&high)) {
                    twice[axis] += 2;
                    let offset = twice.map(|t| 0.5 * t as f64);
                    include_row(&mut faces.all[axis], bits, offset);
                    include_row(&mut faces.surface[axis], bits, offset);
                    for x in masks::each_in(u64::from(bits)) {
                        let local = row * SIDE + x;
                        let (owner, cell) = match local / stride % SIDE {
                            last if last == SIDE - 1 => (above, local - (SIDE - 1) * stride),
                            _ => (piece.slot, local + stride),
                        };
                        faces.list[axis].push(face::<D>(owner, cell, along(twice, x), false));
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

    fn blocks_count_like_their_rows<const D: usize>() {
        let offset = std::array::from_fn(|k| if k < D { 2.5 - 7.0 * k as f64 } else { 0.0 });
        let (mut whole, mut by_row) = ([[0.0; 4]; 4], [[0.0; 4]; 4]);
        include_block::<D>(&mut whole, offset);
        for row in 0..block_cells(D) / SIDE {
            let at = unflatten::<D>(row * SIDE, SIDE);
            let place = std::array::from_fn(|k| offset[k] + at.get(k).map_or(0.0, |&c| c as f64));
            include_row(&mut by_row, u8::MAX, place);
        }
        // All numbers are quarters, and exact.
        assert_eq!(whole, by_row, "{D}D");
    }

    #[test]
    fn blocks_count_like_their_rows_2d() {
        blocks_count_like_their_rows::<2>();
    }

    #[test]
    fn blocks_count_like_their_rows_3d() {
        blocks_count_like_their_rows::<3>();
    }
}
