//! Red–black neighbour gather: where each row finds its 2·D neighbours among the other colour.
//!
//! A row reads the other colour's row at the same place, four rows beside it and one place beyond each of its ends. Blocks with
//! the same orientation read each other's rows in place. What they read of others does not lie in a row there, and is copied
//! into rows, the *halo*, before each half-sweep. So an array by colour has, behind the nodes' places, a row of zeros and then
//! the halo; blocks that list their nodes find all their neighbours outside the block there.

use macro_rules_attribute::apply;

use crate::math::simd;
use rayon::prelude::*;

use super::super::layout::{Row, half_rows, plane_rows};
use super::super::topology::Topology;
use super::pattern::Pattern;
use super::row_layout::HALO;
use super::rows::{self, Rows};
use super::visit::Block;

/// The most rows of a colour that a block has.
const MOST_ROWS: usize = half_rows(3);

/// Where the neighbours of a row are, beside the row at its own place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RowNeighbours {
    /// Along the axis of pairs, in even lanes and in odd ones, then on the low and the high side along the axis across rows.
    pub rows: [u32; 4],
    /// Places beyond its ends.
    pub ends: [u32; 2],
}

/// The rows of one colour as neighbours of the other one's.
pub(super) struct NeighbourView<'a, T> {
    /// All rows of the colour, zeros and halo included.
    pub all: &'a [Row<T>],
    pub here: &'a [Row<T>],
    pub near: &'a [RowNeighbours],
}

/// Fills a halo: `copies[k] = from[places[k]]`. The places are those that [`NeighbourPlan::find`] finds.
pub(super) fn copy<T: Copy + Send + Sync>(from: &[T], places: &[u32], copies: &mut [T]) {
    const GRAIN: usize = 4096;
    let parts = copies.par_chunks_mut(GRAIN).zip(places.par_chunks(GRAIN));
    parts.for_each(|(copies, places)| gather(from, places, copies));
}

#[apply(simd)]
fn gather<T: Copy>(from: &[T], places: &[u32], copies: &mut [T]) {
    for (copy, &place) in copies.iter_mut().zip(places) {
        debug_assert!((place as usize) < from.len());
        // SAFETY: `from` holds all nodes and the row of zeros, and `NeighbourPlan` finds no other places.
        *copy = unsafe { *from.get_unchecked(place as usize) };
    }
}

/// A network whose blocks have their places.
pub(super) struct NeighbourPlan<'a, const D: usize> {
    pub topology: &'a Topology<D>,
    pub patterns: &'a [Pattern],
    pub blocks: &'a [Block],
    /// First place of the row of zeros, by colour.
    pub zeros: [u32; 2],
}

impl<const D: usize> NeighbourPlan<'_, D> {
    fn pattern(&self, block: usize) -> &Pattern {
        &self.patterns[self.blocks[block].pattern as usize]
    }

    /// The rows of the block on a side, if it has the same orientation, or else its pattern; none if there is no block.
    #[inline]
    fn beside<'a>(&'a self, rows: &Rows, block: usize) -> Option<Result<&'a Rows, &'a Pattern>> {
        let pattern = self.pattern(block);
        match &pattern.rows {
            _ if block == 0 => None,
            Some(there) if std::ptr::eq(there.layout, rows.layout) => Some(Ok(there)),
            _ => Some(Err(pattern)),
        }
    }

    /// Length of the halo of each colour of a block.
    pub fn copies(&self, block: usize) -> [usize; 2] {
        let pattern = self.pattern(block);
        let Some(rows) = &pattern.rows else {
            return [0, 1].map(|colour| pattern.half[colour].halo.len());
        };
        let mut counts = [0; 2];
        for &axis in &rows.layout.orientation[1..] {
            for high in 0..2 {
                let other = self.topology.beside(block)[axis][high] as usize;
                if let Some(Err(_)) = self.beside(rows, other) {
                    for (count, rows) in counts.iter_mut().zip(rows.halo_rows[2 * axis + high]) {
                        *count += 8 * rows.count_ones() as usize;
                    }
                }
            }
        }
        counts
    }

    /// Whether all rows of a block read rows of others in place.
    fn is_aligned(&self, block: usize, rows: &Rows) -> bool {
        let is_straight = |block: u32| {
            let there = self.beside(rows, block as usize);
            there.is_some_and(|there| there.is_ok_and(|there| there.kept_rows.is_none()))
        };
        self.blocks[block].is_even
            && self.topology.beside(block).as_flattened().iter().copied().all(is_straight)
    }

    /// [`Self::find`] for an aligned block, which has no halo.
    fn find_aligned(&self, block: usize, colour: usize, rows: &Rows, near: &mut [RowNeighbours]) {
        let first = |block: u32| self.blocks[block as usize].nodes[1 - colour] / 8;
        let (orientation, here) = (&rows.layout.orientation, first(block as u32));
        let beside = self.topology.beside(block).map(|sides| sides.map(first));
        for (row, near) in near.iter_mut().enumerate() {
            let side =
                |role: usize, high: usize, there: usize| beside[orientation[role]][high] + there as u32;
            let end = |high: usize| 8 * side(0, high, row) + 7 * (1 - high as u32);
            *near = row_neighbours::<D>(row, colour, |row| here + row as u32, side, end);
        }
    }

    /// Finds the neighbours of a colour's rows in a block, and the places that its halo copies.
    pub fn look(&self, block: usize, colour: usize, near: &mut [RowNeighbours], halo: &mut [u32]) {
        let (other, pattern) = (1 - colour, self.pattern(block));
        let beside = self.topology.beside(block);
        let zero = self.zeros[other];
        halo.fill(zero);
        let Some(rows) = &pattern.rows else {
            for (out, there) in halo.iter_mut().zip(pattern.half[colour].halo.iter()) {
                let block = beside[there.side as usize / 2][there.side as usize % 2] as usize;
                let node = self.pattern(block).find(there.cell as usize, there.ordinal);
                *out = node.map_or(zero, |node| self.blocks[block].nodes[other] + node as u32);
            }
            return;
        };
        if !self.is_aligned(block, rows) {
            return self.find_general(block, colour, rows, near, halo);
        }
        self.find_aligned(block, colour, rows, near);
        if cfg!(debug_assertions) {
            let mut closely = near.to_vec();
            self.find_general(block, colour, rows, &mut closely, halo);
            assert_eq!(near, closely, "block {block}, colour {colour}");
        }
    }

    /// [`Self::find`] for any block in rows, whatever there is beside it.
    fn find_general(
        &self,
        block: usize,
        colour: usize,
        rows: &Rows,
        near: &mut [RowNeighbours],
        halo: &mut [u32],
    ) {
        let (other, pattern, layout) = (1 - colour, self.pattern(block), rows.layout);
        let (beside, zero) = (self.topology.beside(block), self.zeros[other]);
        let row_of = |block: usize, rows: &Rows, row: usize| {
            rows.rank(row).map_or(zero / 8, |rank| self.blocks[block].nodes[other] / 8 + rank as u32)
        };
        // By axis and side: the block there, if any, and its rows if they can be read in place.
        let views: [[_; 2]; D] = beside.map(|sides| {
            sides.map(|block| self.beside(rows, block as usize).map(|there| (block as usize, there)))
        });
        let mut here = [zero / 8; MOST_ROWS];
        for row in rows.kept() {
            here[row] = row_of(block, rows, row);
        }
        let first_copy = (zero + 8 + self.blocks[block].halo[colour]) / 8;
        let mut copies = 0;
        // The neighbour outside the block of a cell in a lane of a row; none if its neighbour is inside.
        let find = |there: &Pattern, block: usize, cell: u16, direction: usize| {
            let near = layout.near[direction * layout.place.len() + cell as usize];
            let halo = (near & HALO != 0).then(|| layout.halo[colour][(near & !HALO) as usize])?;
            let node = there.find(halo.cell as usize, 0)?;
            Some(self.blocks[block].nodes[other] + node as u32)
        };
        for ((row, near), cells) in
            rows.kept().zip(near.iter_mut()).zip(pattern.half[colour].cells.as_chunks::<8>().0)
        {
            let side = |role: usize, high: usize, there: usize| {
                let axis = layout.orientation[role];
                if rows.halo_rows[2 * axis + high][colour] >> row & 1 == 0 {
                    return zero / 8;
                }
                match views[axis][high] {
                    None => zero / 8,
                    Some((block, Ok(rows))) => row_of(block, rows, there),
                    Some((block, Err(there))) => {
                        let out = &mut halo[8 * copies..8 * copies + 8];
                        for (out, &cell) in out.iter_mut().zip(cells) {
                            *out = find(there, block, cell, 2 * axis + high).unwrap_or(zero);
                        }
                        copies += 1;
                        first_copy + copies as u32 - 1
                    }
                }
            };
            let end = |high: usize| {
                let axis = layout.orientation[0];
                match views[axis][high] {
                    None => zero,
                    Some((block, Ok(there))) => 8 * row_of(block, there, row) + 7 * (1 - high as u32),
                    Some((block, Err(there))) => {
                        find(there, block, cells[7 * high], 2 * axis + high).unwrap_or(zero)
                    }
                }
            };
            *near = row_neighbours::<D>(row, colour, |row| here[row], side, end);
        }
    }
}

/// The neighbours of a row: `here(row)` is a row of its own block, `side(role, high, row)` one of the block on a side along the axis
/// with that role, `end(high)` the place beyond an end.
#[inline(always)]
fn row_neighbours<const D: usize>(
    row: usize,
    colour: usize,
    here: impl Fn(usize) -> u32,
    mut side: impl FnMut(usize, usize, usize) -> u32,
    end: impl Fn(usize) -> u32,
) -> RowNeighbours {
    let plane = const { plane_rows(D) };
    let (m, y) = (row / plane, row % plane);
    let below = if m > 0 { here(row - plane) } else { side(D - 1, 0, row + 3 * plane) };
    let above = if m < 3 { here(row + plane) } else { side(D - 1, 1, row - 3 * plane) };
    let [even, odd] = if (y + colour).is_multiple_of(2) { [below, above] } else { [above, below] };
    let [south, north] = if D == 3 {
        [
            if y > 0 { here(row - 1) } else { side(1, 0, row + 7) },
            if y < 7 { here(row + 1) } else { side(1, 1, row - 7) },
        ]
    } else {
        // Not read.
        [below; 2]
    };
    RowNeighbours { rows: [even, odd, south, north], ends: [end(0), end(1)] }
}

impl<'a, T> NeighbourView<'a, T> {
    /// The neighbours of a block's rows: `other` is the array of the other colour, whose places here are given.
    #[inline]
    pub fn new(other: &'a [T], here: std::ops::Range<usize>, near: &'a [RowNeighbours]) -> Self {
        NeighbourView { all: rows::rows(other), here: rows::rows(&other[here]), near }
    }
}

impl<T: Copy> NeighbourView<'_, T> {
    /// Makes sure of the number of rows.
    #[inline(always)]
    pub fn check(&self, rows: usize) {
        assert!(self.here.len() == rows && self.near.len() == rows);
    }

    /// The neighbours of the cells in a row, in the order of `kernels::neighbours`.
    #[inline(always)]
    pub fn neighbours(&self, at: usize) -> [Row<T>; 6] {
        let (here, near) = (self.here[at], &self.near[at]);
        let [west, east] = [near.ends[0] as usize, near.ends[1] as usize];
        let (west, east) = (self.all[west / 8][west % 8], self.all[east / 8][east % 8]);
        let (even, odd) = (self.all[near.rows[0] as usize], self.all[near.rows[1] as usize]);
        [
            [west, here[0], here[1], here[2], here[3], here[4], here[5], here[6]],
            [here[1], here[2], here[3], here[4], here[5], here[6], here[7], east],
            here,
            super::super::layout::blend(even, odd),
            self.all[near.rows[2] as usize],
            self.all[near.rows[3] as usize],
        ]
    }
}
