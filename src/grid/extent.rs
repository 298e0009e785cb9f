//! The domain: how many cells, how wide.

use crate::math::{Real, Vector};

use super::{PAD, SIDE};

/// The domain's box: its low corner is the origin, cells are cubes of width `dx`.
///
/// The domain's size need not be a whole number of cells: `cells` covers it, and the walls cut the last layer.
///
/// ```
/// use glug::grid::Grid;
///
/// let grid = Grid::covering([1.0, 0.5], 8);
/// assert_eq!((grid.cells, grid.dx), ([8, 4], 0.125));
/// assert!(grid.contains([7, 3]) && !grid.contains([8, 0]));
/// let x = grid.world_from_grid([4.0, 1.5]);
/// assert_eq!(grid.grid_from_world(&x), [4.0, 1.5]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid<const D: usize> {
    /// Cells along each axis.
    pub cells: [usize; D],
    /// Cell width, metres.
    pub dx: Real,
}

impl<const D: usize> Grid<D> {
    /// The coarsest grid of cell width `size[0] / cells_x` that covers a box of `size` metres.
    pub fn covering(size: [Real; D], cells_x: usize) -> Self {
        let dx = size[0] / cells_x as Real;
        // A hair's breadth of slack, so that 1.0 / (1.0 / 64.0) is 64 cells and not 65.
        let cells = size.map(|length| ((length / dx) - 1e-6).ceil().max(1.0) as usize);
        Grid { cells, dx }
    }

    /// Cells in the whole box.
    pub fn cell_count(&self) -> usize {
        self.cells.iter().product()
    }

    /// Blocks along each axis that cover the domain and [`PAD`] cells around it.
    pub fn blocks(&self) -> [usize; D] {
        self.cells.map(|cells| (cells + 2 * PAD as usize).div_ceil(SIDE))
    }

    /// The cell at the low corner of a block.
    #[inline]
    pub fn first_cell(&self, block: [i32; D]) -> [i32; D] {
        block.map(|c| c * SIDE as i32 - PAD)
    }

    /// The block that holds a cell.
    #[inline]
    pub fn block_of(&self, cell: [i32; D]) -> [i32; D] {
        cell.map(|c| (c + PAD) >> SIDE.trailing_zeros())
    }

    /// All blocks, x fastest.
    pub fn all_blocks(&self) -> impl Iterator<Item = [i32; D]> {
        let counts = self.blocks();
        (0..counts.iter().product()).map(move |mut flat: usize| {
            std::array::from_fn(|axis| {
                let c = flat % counts[axis];
                flat /= counts[axis];
                c as i32
            })
        })
    }

    /// Volume of one cell, m³ (m² in 2D).
    pub fn cell_volume(&self) -> Real {
        self.dx.powi(D as i32)
    }

    /// Position in cells to position in metres.
    #[inline]
    pub fn world_from_grid(&self, x_grid: [Real; D]) -> Vector<D> {
        Vector::from(x_grid) * self.dx
    }

    /// Position in metres to position in cells.
    #[inline]
    pub fn grid_from_world(&self, x_world: &Vector<D>) -> [Real; D] {
        (x_world / self.dx).into()
    }

    /// Whether a cell, which may lie outside, belongs to the domain.
    #[inline]
    pub fn contains(&self, cell: [i32; D]) -> bool {
        (0..D).all(|axis| cell[axis] >= 0 && (cell[axis] as usize) < self.cells[axis])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_covers_the_domain() {
        let exact = Grid::covering([1.0, 0.5, 2.0], 64);
        assert_eq!(exact.cells, [64, 32, 128]);
        let cut = Grid::<2>::covering([1.0, 0.51], 50);
        assert_eq!(cut.cells, [50, 26]);
    }
}
