//! The lattice of cell centres, extended to the walls, that the surface is extracted from.

use crate::grid::{Blocks, Field, SIDE, VOID};
use crate::math::power;

/// Samples along a side of a [`Lattice::load`] box: a block, one more layer above, and one around for gradients.
pub(super) const BOX: usize = SIDE + 3;

/// The wall layer lies this far inside the wall, in cells: a hairline bevel instead of triangles without area.
const BEVEL: f32 = 0.02;

/// How the samples of a block agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Air,
    Mixed,
    Liquid,
}

/// Cell centres `0..n`, a layer at the walls (`−1` and `n`) that repeats them, and air beyond.
pub(super) struct Lattice<'a, const D: usize> {
    pub blocks: &'a Blocks<D>,
    pub field: &'a Field<f32>,
    pub dx: f32,
}

impl<const D: usize> Lattice<'_, D> {
    fn last(&self, axis: usize) -> i32 {
        self.blocks.grid().cells[axis] as i32 - 1
    }

    /// Whether a lattice point is air by definition.
    #[inline]
    pub fn is_beyond(&self, axis: usize, index: i32) -> bool {
        index < -1 || index > self.last(axis) + 1
    }

    /// Coordinate of a lattice point, metres.
    #[inline]
    pub fn coordinate(&self, axis: usize, index: i32) -> f32 {
        let end = (self.last(axis) + 1) as f32;
        let cells = match index {
            ..-1 => 0.0,
            -1 => BEVEL,
            _ if index > self.last(axis) + 1 => end,
            _ if index > self.last(axis) => end - BEVEL,
            _ => index as f32 + 0.5,
        };
        cells * self.dx
    }

    /// Copies the samples from `first − 1` on, [`BOX`] along each axis, repeating the domain's outermost cells
    /// beyond its walls. Values are bounded, and what is not a number is air.
    pub fn load(&self, first: [i32; D], out: &mut [f32]) {
        let limit = 3.0 * self.dx;
        for row in 0..power(BOX, D - 1) {
            let mut cell = [0; D];
            let mut rest = row;
            for axis in 1..D {
                cell[axis] = (first[axis] + (rest % BOX) as i32 - 1).clamp(0, self.last(axis));
                rest /= BOX;
            }
            for (offset, value) in out[row * BOX..(row + 1) * BOX].iter_mut().enumerate() {
                cell[0] = (first[0] + offset as i32 - 1).clamp(0, self.last(0));
                *value = limit;
                let (slot, local) = self.blocks.locate(cell);
                if slot != VOID {
                    let sample = self.field.block(slot as usize)[local];
                    if sample < limit {
                        *value = sample.max(-limit);
                    }
                }
            }
        }
    }

    /// How the cells of a block that belong to the domain agree.
    pub fn content(&self, slot: usize) -> Content {
        let first = self.blocks.first_cell(slot);
        let belongs = |local: usize| {
            let offset = crate::math::unflatten::<D>(local, SIDE);
            (0..D).all(|axis| (0..=self.last(axis)).contains(&(first[axis] + offset[axis] as i32)))
        };
        let whole = belongs(0) && belongs(self.field.block_len() - 1);
        let (mut all, mut inside) = (0, 0);
        for (local, value) in self.field.block(slot).iter().enumerate() {
            let counts = whole || belongs(local);
            all += usize::from(counts);
            inside += usize::from(counts && *value < 0.0);
        }
        match inside {
            0 => Content::Air,
            _ if inside == all => Content::Liquid,
            _ => Content::Mixed,
        }
    }
}
