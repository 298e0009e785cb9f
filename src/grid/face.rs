//! Faces of cells by name.

use crate::math::Side;

/// A face of a block's cells. It carries the place of the cell on its high side, counted from the block's first cell along
/// each axis: one past the last cell for the faces at the block's high side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Face<const D: usize> {
    /// The axis across the face.
    pub axis: usize,
    /// The cell on its high side.
    pub cell: [usize; D],
}

impl<const D: usize> Face<D> {
    /// The face that a cell has on a side across an axis.
    #[inline(always)]
    pub fn of(mut cell: [usize; D], axis: usize, side: Side) -> Self {
        cell[axis] += side.index();
        Face { axis, cell }
    }
}
