//! How a level stores the cells of a block: red cells first, then black ones, in rows of eight.
//!
//! Two cells stacked along the last axis have different colours, so each colour keeps one of the two: row `(m, y)`,
//! lane `x` of colour `k` holds the cell with last coordinate `2m + (x + y + k) mod 2`. Then
//! * neighbours along x and y of a red cell are the black cells one lane or one row away,
//! * of its two neighbours along the last axis one is the black cell at the same place (`pair`), the other the black
//!   cell at the same place of the plane below or above, in alternating lanes.
//!
//! So a sweep over one colour reads whole rows of the other and needs no masks. In 2D there is one row per plane.

use crate::grid::block_cells;
use crate::math::power;

/// Eight values along x.
pub(super) type Row<T> = [T; 8];

/// Rows along y: what a plane of one colour has.
#[inline(always)]
pub(super) const fn plane_rows(dimension: usize) -> usize {
    power(8, dimension - 2)
}

/// Rows of one colour of a block.
#[inline(always)]
pub(super) const fn half_rows(dimension: usize) -> usize {
    4 * plane_rows(dimension)
}

/// Colour and place inside its colour's half of a cell, given its natural index inside the block.
#[inline(always)]
pub(super) fn split_index<const D: usize>(local: usize) -> (usize, usize) {
    let rows = const { plane_rows(D) };
    let (x, y, z) = (local % 8, local / 8 % rows, local / (8 * rows));
    ((x + y + z) % 2, (z / 2 * rows + y) * 8 + x)
}

/// The inverse of [`split_index`].
#[inline(always)]
pub(super) fn natural_index<const D: usize>(colour: usize, place: usize) -> usize {
    let rows = const { plane_rows(D) };
    let (x, y, m) = (place % 8, place / 8 % rows, place / (8 * rows));
    let z = 2 * m + (x + y + colour) % 2;
    (z * rows + y) * 8 + x
}

/// Takes the even lanes of one row and the odd lanes of the other.
#[inline(always)]
pub(super) fn blend<T: Copy>(even: Row<T>, odd: Row<T>) -> Row<T> {
    [even[0], odd[1], even[2], odd[3], even[4], odd[5], even[6], odd[7]]
}

/// One colour of a block, from its natural order.
#[inline(always)]
pub(super) fn split_row<T: Copy, const D: usize>(natural: &[Row<T>], colour: usize, row: usize) -> Row<T> {
    let rows = const { plane_rows(D) };
    let (m, y) = (row / rows, row % rows);
    let (low, high) = (natural[2 * m * rows + y], natural[(2 * m + 1) * rows + y]);
    if (y + colour).is_multiple_of(2) { blend(low, high) } else { blend(high, low) }
}

/// One row in natural order, from the two colours of a block.
#[inline(always)]
pub(super) fn join_row<T: Copy, const D: usize>(
    red: &[Row<T>],
    black: &[Row<T>],
    natural_row: usize,
) -> Row<T> {
    let rows = const { plane_rows(D) };
    let (z, y) = (natural_row / rows, natural_row % rows);
    let row = z / 2 * rows + y;
    if (y + z).is_multiple_of(2) { blend(red[row], black[row]) } else { blend(black[row], red[row]) }
}

/// The row of a cover, in natural order, over a row of one of its blocks; `plane` is [`plane_rows`].
#[inline(always)]
pub(super) fn row_of_cover<const D: usize>(octant: &[usize; D], row: usize, plane: usize) -> usize {
    if D == 3 {
        (4 * octant[2] + row / plane) * plane + 4 * octant[1] + row % plane / 2
    } else {
        4 * octant[1] + row
    }
}

/// Names one node of a level: a stored cell (block, colour, place), or a node of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Node(pub u32);

/// Where a [`Node`] is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Index into a colour's array.
    Cell { colour: usize, index: usize },
    /// Index into the explicit nodes of the level.
    Explicit(usize),
}

const EXPLICIT: u32 = 1 << 31;

impl Node {
    /// No node at all.
    pub const NONE: Node = Node(u32::MAX);

    /// A cell, by block and natural index inside it. Red cells sort before black ones.
    #[inline]
    pub fn cell<const D: usize>(block: usize, local: usize) -> Node {
        let (colour, place) = split_index::<D>(local);
        let index = block * (block_cells(D) / 2) + place;
        debug_assert!(index < 1 << 30, "too many cells for 30-bit indices");
        Node((colour << 30 | index) as u32)
    }

    /// A node of its own.
    #[inline]
    pub fn explicit(index: usize) -> Node {
        Node(EXPLICIT | index as u32)
    }

    /// Whether this is a node of its own.
    #[inline]
    pub fn is_explicit(self) -> bool {
        self.0 & EXPLICIT != 0
    }

    /// Where its values are.
    #[inline]
    pub fn place(self) -> Place {
        if self.is_explicit() {
            Place::Explicit((self.0 & !EXPLICIT) as usize)
        } else {
            Place::Cell { colour: (self.0 >> 30) as usize, index: (self.0 & ((1 << 30) - 1)) as usize }
        }
    }

    /// Block and natural index of a cell.
    #[inline]
    pub fn block_and_local<const D: usize>(self) -> (usize, usize) {
        debug_assert!(!self.is_explicit());
        let (colour, index) = ((self.0 >> 30) as usize, (self.0 & ((1 << 30) - 1)) as usize);
        let half = block_cells(D) / 2;
        (index / half, natural_index::<D>(colour, index % half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::SIDE;
    use crate::math::unflatten;

    fn split_order_is_a_permutation_by_colour<const D: usize>() {
        let cells = block_cells(D);
        let mut seen = vec![false; cells];
        for local in 0..cells {
            let (colour, place) = split_index::<D>(local);
            assert_eq!(colour, unflatten::<D>(local, SIDE).iter().sum::<usize>() % 2);
            assert_eq!(natural_index::<D>(colour, place), local);
            assert!(!std::mem::replace(&mut seen[colour * cells / 2 + place], true));
            assert_eq!(Node::cell::<D>(7, local).block_and_local::<D>(), (7, local));
        }
        let natural: Vec<Row<usize>> = (0..cells / 8).map(|r| std::array::from_fn(|x| r * 8 + x)).collect();
        let half = |colour| -> Vec<_> {
            (0..half_rows(D)).map(|row| split_row::<_, D>(&natural, colour, row)).collect()
        };
        let (red, black) = (half(0), half(1));
        for (place, &local) in red.as_flattened().iter().enumerate() {
            assert_eq!(split_index::<D>(local), (0, place));
        }
        for (row, expected) in natural.iter().enumerate() {
            assert_eq!(join_row::<_, D>(&red, &black, row), *expected);
        }
    }

    #[test]
    fn split_order_is_a_permutation_by_colour_2d() {
        split_order_is_a_permutation_by_colour::<2>();
    }

    #[test]
    fn split_order_is_a_permutation_by_colour_3d() {
        split_order_is_a_permutation_by_colour::<3>();
    }
}
