//! The lattice of tiles.
//!
//! Boxes are aligned with the blocks of the grid and with powers of two. Every box keeps the cells at its lower faces
//! ordinary: so no two tiles touch, not even at an edge or a corner and not across sizes either.

use serde::{Deserialize, Serialize};

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, SIDE};

/// How large tiles are, in cells along each axis, one layer of ordinary cells included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileSize {
    /// Next to the bands.
    pub least: usize,
    /// Far below the surface. The same as `least` for a uniform lattice.
    pub most: usize,
}

/// A box of the lattice, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct TileBox<const D: usize> {
    pub low: [i32; D],
    /// Blocks along each axis.
    pub side: i32,
}

impl<const D: usize> TileBox<D> {
    /// The box of some size around a block.
    pub fn around(block: [i32; D], side: i32) -> Self {
        TileBox { low: block.map(|c| c.div_euclid(side) * side), side }
    }

    /// Cells of a block of this box that stay ordinary.
    pub fn seams(&self, block: [i32; D]) -> Bits {
        self.seams_across(block, |_| true)
    }

    /// Cells of a block that stay ordinary because they lie at the box's lower face across some of the axes.
    pub fn seams_across(&self, block: [i32; D], is_one: impl Fn(usize) -> bool) -> Bits {
        let mut bits = masks::NONE;
        for axis in (0..D).filter(|&axis| is_one(axis)) {
            if block[axis] == self.low[axis] {
                for (word, bits) in bits.iter_mut().enumerate().take(masks::words(D)) {
                    *bits |= low_plane(axis, word);
                }
            }
        }
        bits
    }

    /// The middle of the box, in cells.
    pub fn middle(&self, blocks: &Blocks<D>) -> [i32; D] {
        blocks.grid().first_cell(self.low).map(|first| first + self.side * SIDE as i32 / 2)
    }

    /// Blocks of the box, x fastest.
    pub fn blocks(&self) -> impl Iterator<Item = [i32; D]> + '_ {
        let count = (0..D).map(|_| self.side as usize).product::<usize>();
        (0..count).map(|index| {
            let at = crate::math::unflatten::<D>(index, self.side as usize);
            std::array::from_fn(|axis| self.low[axis] + at[axis] as i32)
        })
    }
}

/// The lowest cells of a block across an axis, in one of its words.
pub(super) fn low_plane(axis: usize, word: usize) -> u64 {
    match axis {
        0 => 0x0101_0101_0101_0101,
        1 => 0xff,
        _ if word == 0 => u64::MAX,
        _ => 0,
    }
}

/// Lists the boxes over the given blocks, each once. `is_calm(block)` says that a block has no cell close to the
/// surface. Walls do not matter: they only cut pieces off the boxes there.
pub(super) fn boxes<const D: usize>(
    size: TileSize,
    blocks: impl Iterator<Item = [i32; D]>,
    is_calm: impl Fn([i32; D]) -> bool,
) -> Vec<TileBox<D>> {
    let (least, most) = ((size.least / SIDE) as i32, (size.most / SIDE) as i32);
    let mut found: Vec<TileBox<D>> = blocks.map(|block| TileBox::around(block, most)).collect();
    found.sort_unstable();
    found.dedup();
    if least == most {
        return found;
    }
    let mut out = Vec::new();
    found.into_iter().for_each(|large| divide(large, least, &is_calm, &mut out));
    out
}

/// Splits a box until each part is of the least size, or lies at least a quarter of its size away from the surface's
/// band, in whole blocks.
fn divide<const D: usize>(
    this: TileBox<D>,
    least: i32,
    is_calm: &impl Fn([i32; D]) -> bool,
    out: &mut Vec<TileBox<D>>,
) {
    let margin = this.side / 4;
    let reach = (this.side + 2 * margin) as usize;
    let count = (0..D).map(|_| reach).product::<usize>();
    let fits = this.side <= least
        || (0..count).all(|index| {
            let at = crate::math::unflatten::<D>(index, reach);
            is_calm(std::array::from_fn(|axis| this.low[axis] - margin + at[axis] as i32))
        });
    if fits {
        out.push(this);
        return;
    }
    let half = this.side / 2;
    for corner in 0..1 << D {
        let low = std::array::from_fn(|axis| this.low[axis] + (corner >> axis & 1) * half);
        divide(TileBox { low, side: half }, least, is_calm, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxes_grow_with_depth_and_not_away_from_walls<const D: usize>() {
        // Eight blocks deep and wide, with walls all around but above; what lies at `depth` or above is close to the
        // surface.
        let count = (0..D).map(|_| 8).product::<usize>();
        let tank = |index| crate::math::unflatten::<D>(index, 8).map(|c| c as i32);
        let of_depth = |depth: i32| {
            let is_calm = |block: [i32; D]| block[1] < depth;
            boxes(TileSize { least: 8, most: 32 }, (0..count).map(tank), is_calm)
        };
        let side_at = |found: &[TileBox<D>], block: [i32; D]| {
            let of: Vec<i32> = found
                .iter()
                .filter(|this| (0..D).all(|k| (0..this.side).contains(&(block[k] - this.low[k]))))
                .map(|this| this.side)
                .collect();
            assert_eq!(of.len(), 1, "{D}D: {block:?} lies in one box");
            of[0]
        };
        // Right below the surface, a box of four blocks would be too close.
        let deep = (of_depth(7), [(0, 4), (3, 4), (4, 2), (5, 2), (6, 1), (7, 1)]);
        let shallow = (of_depth(4), [(0, 2), (1, 2), (2, 2), (3, 2), (4, 1), (7, 1)]);
        for (x, (found, sides)) in (0..8).flat_map(|x| [(x, &deep), (x, &shallow)]) {
            let mut block = [x; D];
            for (y, side) in *sides {
                block[1] = y;
                assert_eq!(side_at(found, block), side, "{D}D: {block:?}");
            }
        }
    }

    #[test]
    fn boxes_grow_with_depth_and_not_away_from_walls_2d() {
        boxes_grow_with_depth_and_not_away_from_walls::<2>();
    }

    #[test]
    fn boxes_grow_with_depth_and_not_away_from_walls_3d() {
        boxes_grow_with_depth_and_not_away_from_walls::<3>();
    }
}
