//! Row storage of a block: which cell is kept in which row and lane.
//!
//! Rows are those of `linear::layout`, but they need not lie along x: a sheet of cells across x fills eight rows along y or z,
//! and would leave each of 64 rows along x with a single cell. Which axes take the places of x, y and the last axis there is a
//! block's *orientation*. Blocks that are nearly full keep all rows, along x; others only those that have nodes, or no rows at
//! all if these would be mostly empty.

use std::sync::LazyLock;

use crate::grid::{block_cells, masks};
use crate::math::{flatten, unflatten};

use super::super::layout::{half_rows, plane_rows, split_index};
use super::pattern::{DIRECTIONS, HaloNode};

/// Number of nodes from which on a block keeps all rows. Below, empty rows cost more than finding the others does.
const fn enough(dimension: usize) -> usize {
    block_cells(dimension) * 3 / 4
}

/// The axes along rows, across them, and along which two cells share a place, one of each colour.
const ORIENTATIONS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
/// The axes along rows and along which two cells share a place, in 2D.
const ORIENTATIONS_2D: [[usize; 2]; 2] = [[0, 1], [1, 0]];

fn orientation<const D: usize>(index: usize) -> [usize; D] {
    std::array::from_fn(|role| if D == 2 { ORIENTATIONS_2D[index][role] } else { ORIENTATIONS[index][role] })
}

/// Cells as bits, with the axes of an orientation in the places of x, y and z.
pub(super) struct Oriented<const D: usize>(masks::Bits);

impl<const D: usize> Oriented<D> {
    pub fn new(bits: &masks::Bits, orientation: usize) -> Self {
        let (first, last) = (masks::swap_xy, masks::swap_yz);
        Oriented(match (D, orientation) {
            (_, 0) => *bits,
            (2, _) | (_, 2) => first(bits),
            (_, 1) => last(bits),
            (_, 3) => last(&first(bits)),
            (_, 4) => first(&last(bits)),
            _ => first(&last(&first(bits))),
        })
    }

    /// The cells of a row of one colour, a bit for each lane.
    #[inline]
    pub fn lanes(&self, row: usize, colour: usize) -> u8 {
        let (m, y) = (row / plane_rows(D), row % plane_rows(D));
        let [low, high] = [2 * m, 2 * m + 1].map(|pair| {
            let (word, row) = if D == 3 { (pair, y) } else { (0, pair) };
            (self.0[word] >> (8 * row)) as u8
        });
        let [even, odd] = if (y + colour).is_multiple_of(2) { [low, high] } else { [high, low] };
        even & 0x55 | odd & 0xaa
    }
}

/// Where cells, neighbours and links are in rows; all blocks with the same orientation share it.
#[derive(Debug)]
pub(super) struct RowLayout {
    /// Its index among all orientations.
    pub index: usize,
    /// Which axes take the places of x, y and the last one; in 2D of x and y.
    pub orientation: Vec<usize>,
    /// The cells of each colour's places, and the cells of each colour.
    pub cells: [Vec<u16>; 2],
    pub coloured: [masks::Bits; 2],
    /// For each colour's rows, along each axis: twice the way from the block's corner to the centres of their cells.
    pub centres: [Vec<[[f32; 8]; 3]>; 2],
    /// Each cell's place among those of its colour.
    pub place: Vec<u16>,
    /// By direction, colour and row: lanes at that side of the block.
    pub outer: [[Vec<u8>; 2]; DIRECTIONS],
    /// For the cells of each colour: the halo, cells of the other one beyond the block, side by side.
    pub halo: [Vec<HaloNode>; 2],
    /// By direction and cell: the neighbour's place, or [`HALO`] and its place in `halo`.
    pub near: Vec<u16>,
    /// By direction and cell: the place of that link among those of the cell's colour.
    pub link: Vec<u16>,
    /// Rows of links that belong to one row of nodes.
    pub link_rows: usize,
}

impl PartialEq for RowLayout {
    fn eq(&self, other: &RowLayout) -> bool {
        std::ptr::eq(self, other)
    }
}

/// Marks places in [`RowLayout::halo`].
pub(super) const HALO: u16 = 1 << 15;

impl RowLayout {
    fn new<const D: usize>(index: usize) -> RowLayout {
        let (cells, orientation) = (block_cells(D), orientation::<D>(index));
        let oriented = |cell: usize| {
            let at = unflatten::<D>(cell, 8);
            flatten(orientation.map(|axis| at[axis]), 8)
        };
        let mut layout = RowLayout {
            index,
            orientation: orientation.to_vec(),
            cells: [0, 1].map(|_| vec![0; cells / 2]),
            coloured: [masks::NONE; 2],
            centres: [0, 1].map(|_| vec![[[0.0; 8]; 3]; cells / 16]),
            place: vec![0; cells],
            outer: std::array::from_fn(|_| [0, 1].map(|_| vec![0; cells / 16])),
            halo: Default::default(),
            near: vec![0; DIRECTIONS * cells],
            link: vec![0; DIRECTIONS * cells],
            link_rows: 2 * D,
        };
        for cell in 0..cells {
            let (colour, place) = split_index::<D>(oriented(cell));
            layout.cells[colour][place] = cell as u16;
            layout.place[cell] = place as u16;
            for (axis, c) in unflatten::<D>(cell, 8).into_iter().enumerate() {
                layout.centres[colour][place / 8][axis][place % 8] = (2 * c + 1) as f32;
            }
            layout.coloured[colour][cell / 64] |= 1 << (cell % 64);
        }
        for direction in 0..2 * D {
            let (axis, high) = (direction / 2, direction % 2);
            let role =
                orientation.iter().position(|&other| other == axis).expect("a orientation names all axes");
            for cell in 0..cells {
                let (colour, place) = split_index::<D>(oriented(cell));
                let mut at = unflatten::<D>(cell, 8);
                let own = at[axis];
                let is_beyond = own == 7 * high;
                at[axis] = (own + 7 + 2 * high) % 8;
                let other = flatten(at, 8);
                let there = split_index::<D>(oriented(other)).1;
                layout.near[direction * cells + cell] = if is_beyond {
                    let seen = HaloNode { side: direction as u8, ordinal: 0, cell: other as u16 };
                    layout.halo[colour].push(seen);
                    layout.outer[direction][colour][place / 8] |= 1 << (place % 8);
                    HALO | (layout.halo[colour].len() - 1) as u16
                } else {
                    there as u16
                };
                // The order of `kernels::neighbours`: x, the last axis with the other cell of the pair first, y.
                let slot = match role {
                    0 => high,
                    role if role == D - 1 => 2 + usize::from(own % 2 == high),
                    _ => 4 + high,
                };
                layout.link[direction * cells + cell] = ((place / 8 * 2 * D + slot) * 8 + place % 8) as u16;
            }
        }
        layout
    }
}

static LAYOUTS_2D: LazyLock<[RowLayout; 2]> = LazyLock::new(|| std::array::from_fn(RowLayout::new::<2>));
static LAYOUTS_3D: LazyLock<[RowLayout; 6]> = LazyLock::new(|| std::array::from_fn(RowLayout::new::<3>));

/// The row layout of an orientation; the first one keeps rows along x.
pub(super) fn layout<const D: usize>(orientation: usize) -> &'static RowLayout {
    if D == 2 { &LAYOUTS_2D[orientation] } else { &LAYOUTS_3D[orientation] }
}

/// Minimum fill (percent) for row storage; sparser blocks use an index list.
const LEAST_SHARE: usize = 40;

/// Which rows a block keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowChoice {
    pub orientation: usize,
    /// By bit; none if all of them.
    pub rows: Option<u32>,
}

impl RowChoice {
    /// For a block with some nodes: the orientation with the fewest rows; none if these would be mostly empty.
    pub fn new<const D: usize>(nodes: &masks::Bits) -> Option<RowChoice> {
        let nodes_here = masks::count(nodes);
        if nodes_here >= enough(D) {
            return Some(RowChoice { orientation: 0, rows: None });
        }
        let count = if D == 2 { ORIENTATIONS_2D.len() } else { ORIENTATIONS.len() };
        let views = views::<D>(nodes);
        // As many orientations have their rows along the same axis as there are axes left.
        let pairs = |orientation: usize| pairs(views[orientation / (D - 1)], orientation);
        let orientation = (0..count)
            .min_by_key(|&orientation| pairs(orientation).count_ones())
            .expect("there are orientations");
        let pairs = pairs(orientation);
        let places = 16 * pairs.count_ones() as usize;
        if 100 * nodes_here < LEAST_SHARE * places {
            return None;
        }
        let mut rows = 0;
        for row in 0..half_rows(D) {
            let (m, across) = (row / plane_rows(D), row % plane_rows(D));
            let bit = if orientation % 2 == 0 { across + 16 * m } else { 2 * m + 8 * across };
            rows |= ((pairs >> bit & 1) as u32) << row;
        }
        Some(RowChoice { orientation, rows: Some(rows) })
    }
}

/// Projections of the nodes along each axis: a bit for each cell of the plane across it, of the axes left the lower one first.
/// In 2D there is a line, and it is laid so that its cells are paired as those of each orientation.
fn views<const D: usize>(nodes: &masks::Bits) -> [u64; 3] {
    if D == 2 {
        let spread = masks::each_in(masks::rows_in(nodes[0])).fold(0, |line, bit| line | 1 << (8 * bit));
        return [spread, masks::columns_in(nodes[0]), 0];
    }
    let gather = |layer: &dyn Fn(u64) -> u64| {
        nodes.iter().enumerate().fold(0, |view, (z, &word)| view | layer(word) << (8 * z))
    };
    [gather(&masks::rows_in), gather(&masks::columns_in), nodes.iter().fold(0, |view, &word| view | word)]
}

/// Bits of a projection, two joined into one: along its slower axis, and in every other orientation along its faster one.
fn pairs(view: u64, orientation: usize) -> u64 {
    if orientation.is_multiple_of(2) {
        (view | view >> 8) & 0x00ff_00ff_00ff_00ff
    } else {
        (view | view >> 1) & 0x5555_5555_5555_5555
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    fn lanes_are_the_cells_of_a_row<const D: usize>() {
        for orientation in 0..if D == 2 { 2 } else { 6 } {
            let mut bits = masks::NONE;
            for cell in 0..block_cells(D) {
                bits[cell / 64] |=
                    u64::from(hash_unit(1000 * orientation as u64 + cell as u64) < 0.5) << (cell % 64);
            }
            let oriented = Oriented::<D>::new(&bits, orientation);
            for colour in 0..2 {
                for (place, &cell) in layout::<D>(orientation).cells[colour].iter().enumerate() {
                    let lane = oriented.lanes(place / 8, colour) >> (place % 8) & 1;
                    assert_eq!(
                        lane == 1,
                        masks::has(&bits, cell as usize),
                        "{D}D orientation {orientation} place {place}"
                    );
                }
            }
        }
    }

    #[test]
    fn lanes_are_the_cells_of_a_row_2d() {
        lanes_are_the_cells_of_a_row::<2>();
    }

    #[test]
    fn lanes_are_the_cells_of_a_row_3d() {
        lanes_are_the_cells_of_a_row::<3>();
    }

    fn rows_kept_have_all_nodes_and_no_others<const D: usize>() {
        let orientations = if D == 2 { 2 } else { 6 };
        let mut compared = 0;
        for salt in 0..300 {
            // Some sheets, lines and single cells.
            let mut nodes = masks::NONE;
            for cell in 0..block_cells(D) {
                let at = unflatten::<D>(cell, 8);
                let is_in = (0..D).any(|axis| {
                    let own = hash_unit(salt * 10 + axis as u64);
                    own < 0.4 && at[axis] == (20.0 * own) as usize
                });
                let is_alone = hash_unit(salt * 1000 + cell as u64 + 7) < 0.003;
                nodes[cell / 64] |= u64::from(is_in || is_alone) << (cell % 64);
            }
            let Some(RowChoice { orientation, rows: Some(rows) }) = RowChoice::new::<D>(&nodes) else {
                continue;
            };
            let used = |orientation: usize| {
                masks::each(&nodes)
                    .fold(0u32, |rows, cell| rows | 1 << (layout::<D>(orientation).place[cell] / 8))
            };
            assert_eq!(rows, used(orientation), "{D}D {salt}");
            let fewest = (0..orientations).map(|orientation| used(orientation).count_ones()).min();
            assert_eq!(Some(rows.count_ones()), fewest, "{D}D {salt}");
            compared += 1;
        }
        assert!(compared > 50, "{D}D: only {compared} blocks keep some rows");
    }

    #[test]
    fn rows_kept_have_all_nodes_and_no_others_2d() {
        rows_kept_have_all_nodes_and_no_others::<2>();
    }

    #[test]
    fn rows_kept_have_all_nodes_and_no_others_3d() {
        rows_kept_have_all_nodes_and_no_others::<3>();
    }

    #[test]
    fn a_sheet_fills_eight_rows_whatever_it_lies_across() {
        for axis in 0..3 {
            let mut nodes = masks::NONE;
            for cell in (0..512).filter(|&cell| unflatten::<3>(cell, 8)[axis] == 5) {
                nodes[cell / 64] |= 1 << (cell % 64);
            }
            let rows = RowChoice::new::<3>(&nodes).and_then(|choice| choice.rows).expect("kept_rows nodes");
            assert_eq!(rows.count_ones(), 4, "four of each colour across axis {axis}");
        }
    }
}
