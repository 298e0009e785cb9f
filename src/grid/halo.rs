//! A block together with a margin of its neighbours, copied into one small dense box.

use crate::math::power;

use super::{Blocks, Field, SIDE, block_cells};

/// Shape of a block with `margin` cells around it: `side` cells along every axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halo {
    /// Cells added on every side, at most [`SIDE`].
    pub margin: usize,
    /// Cells along an axis, margins included.
    pub side: usize,
}

impl Halo {
    /// A block with `margin` cells around it.
    pub const fn new(margin: usize) -> Self {
        assert!(margin <= SIDE);
        Halo { margin, side: SIDE + 2 * margin }
    }

    /// Distance in memory between neighbours along an axis.
    #[inline]
    pub const fn stride(&self, axis: usize) -> usize {
        power(self.side, axis)
    }

    /// Index of a cell given relative to the block's low corner (from −margin on).
    #[inline]
    pub fn index<const D: usize>(&self, cell: [i32; D]) -> usize {
        (0..D).rev().fold(0, |index, axis| index * self.side + (cell[axis] + self.margin as i32) as usize)
    }
}

/// Cells in a block with margins.
pub const fn halo_cells(halo: Halo, dimension: usize) -> usize {
    power(halo.side, dimension)
}

/// Copies a block and its margins into `out`, x fastest. Inlined, so that a constant margin makes the copies short
/// straight moves.
#[inline(always)]
pub fn load_halo<const D: usize, T: Copy + Send + Sync>(
    blocks: &Blocks<D>,
    field: &Field<T>,
    slot: usize,
    halo: Halo,
    out: &mut [T],
) {
    let (margin, side) = (halo.margin, halo.side);
    let around = blocks.around(slot);
    let out = &mut out[..power(side, D)];
    // Along y (and z): which block, from where in it, how far, and where that goes.
    let spans = [(SIDE - margin, margin, 0), (0, SIDE, margin), (0, margin, margin + SIDE)];
    let layers = if D == 3 { &spans[..] } else { &[(0, 1, 0)] };
    for (z, &(first_z, count_z, to_z)) in layers.iter().enumerate() {
        for (y, &(first_y, count_y, to_y)) in spans.iter().enumerate() {
            // The same three blocks for all these rows.
            let row = 3 * y + if D == 3 { 9 * z } else { 0 };
            let [low, here, high] =
                [0, 1, 2].map(|x| &field.block(around[row + x] as usize)[..block_cells(D)]);
            for k in 0..count_z {
                for j in 0..count_y {
                    let from = ((first_z + k) * SIDE + first_y + j) * SIDE;
                    let target = &mut out[((to_z + k) * side + to_y + j) * side..][..side];
                    target[..margin].copy_from_slice(&low[from + SIDE - margin..from + SIDE]);
                    target[margin..margin + SIDE].copy_from_slice(&here[from..from + SIDE]);
                    target[margin + SIDE..].copy_from_slice(&high[from..from + margin]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::math::{flatten, unflatten};

    fn margins_hold_the_neighbours_cells<const D: usize>() {
        let blocks = Blocks::all(Grid::<D> { cells: [24; D], dx: 1.0 });
        let mut field = Field::new(block_cells(D), -1i64);
        field.resize(blocks.slot_count());
        let key = |cell: [i32; D]| cell.iter().rev().fold(0i64, |k, &c| k * 1000 + c as i64);
        for &slot in blocks.slots().as_slice() {
            let first = blocks.first_cell(slot as usize);
            for local in 0..block_cells(D) {
                let offset = unflatten::<D>(local, SIDE);
                let cell = std::array::from_fn(|axis| first[axis] + offset[axis] as i32);
                field.block_mut(slot as usize)[flatten(offset, SIDE)] = key(cell);
            }
        }
        for margin in [0, 1, 3, 8] {
            let halo = Halo::new(margin);
            let mut out = vec![0; halo_cells(halo, D)];
            for &slot in blocks.slots().as_slice() {
                load_halo(&blocks, &field, slot as usize, halo, &mut out);
                let first = blocks.first_cell(slot as usize);
                for (index, &value) in out.iter().enumerate() {
                    let offset = unflatten::<D>(index, halo.side);
                    let cell = std::array::from_fn(|axis| first[axis] + offset[axis] as i32 - margin as i32);
                    let stored = cell.iter().all(|c| (-4..28).contains(c));
                    let expected = if stored { key(cell) } else { -1 };
                    assert_eq!(value, expected, "{D}D margin {margin} cell {cell:?}");
                }
            }
        }
    }

    #[test]
    fn margins_hold_the_neighbours_cells_2d() {
        margins_hold_the_neighbours_cells::<2>();
    }

    #[test]
    fn margins_hold_the_neighbours_cells_3d() {
        margins_hold_the_neighbours_cells::<3>();
    }
}
