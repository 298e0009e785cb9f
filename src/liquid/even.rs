//! Particles amid liquid that moves as one affine field: there is nothing to interpolate.
//!
//! Linear interpolation gives back an affine field as it is. Deep inside a tile, where all faces that a particle looks at
//! belong to one field, its gradient and the particle's way follow from the field's few numbers, without looking at any face.

use std::ops::Range;

use crate::grid::masks::{self, Bits};

use super::CellRanges;
use super::kernel::{load_vectors, relative, store_vectors};
use super::lanes::{Job, LANES, Wide};
use super::particles::pack;

/// Cells of a block amid liquid that moves as one affine field.
#[derive(Clone, Copy, Debug)]
pub struct Even<const D: usize> {
    /// The cells: the faces that particles in them look at all move so, even half a cell away.
    pub cells: Bits,
    /// The velocity at the low corner of the block's first cell, m/s.
    pub velocity: [f64; D],
    /// The change of each component, m/s, per cell along each axis.
    pub slope: [[f64; D]; D],
}

/// How far from its place a particle may look things up, for a block's [`Even::cells`] to hold, in cells.
pub const EVEN_REACH: f64 = 0.5;

/// For liquid that moves evenly nowhere.
pub fn even_nowhere<const D: usize>(_slot: usize) -> Option<Even<D>> {
    None
}

impl<const D: usize> Even<D> {
    /// The gradient that particles keep, `share` of it.
    pub(super) fn packed_slope(&self, share: f32) -> [[u16; D]; D] {
        self.slope.map(|row| row.map(|slope| pack(share * slope as f32)))
    }

    /// How particles move in a substep, by the scheme of [`super::advect`]: with `w(x) = W x + w` for the way that a velocity
    /// would take them, its three stages add up to `(1 + W/2 + W²/6) w(x)`.
    pub(super) fn drift(&self, cells_per_speed: f64) -> Drift<D> {
        let slope = self.slope.map(|row| row.map(|slope| slope * cells_per_speed));
        let product = |a: &[[f64; D]; D], row: usize, column: usize| -> f64 {
            (0..D).map(|k| a[row][k] * slope[k][column]).sum()
        };
        let stages: [[f64; D]; D] = std::array::from_fn(|row| {
            std::array::from_fn(|column| {
                let own = if row == column { 1.0 } else { 0.0 };
                own + slope[row][column] / 2.0 + product(&slope, row, column) / 6.0
            })
        });
        let way = std::array::from_fn(|row| {
            (0..D).map(|k| stages[row][k] * self.velocity[k] * cells_per_speed).sum::<f64>() as f32
        });
        let change =
            std::array::from_fn(|row| std::array::from_fn(|column| product(&stages, row, column) as f32));
        Drift { way, change }
    }
}

/// Cuts the particles of a block into stretches that lie in `even` cells or do not, and are whole groups of lanes long: calls
/// `each(stretch, is_even)`. A group that lies in both kinds of cells counts as uneven.
pub(super) fn each_stretch(
    ranges: &CellRanges,
    slot: usize,
    even: Option<&Bits>,
    mut each: impl FnMut(Range<usize>, bool),
) {
    let Range { start: first, end } = ranges.of_block(slot);
    let mut next = first;
    for run in even.into_iter().flat_map(masks::runs) {
        let own = ranges.of_cells(slot, run.start, run.end - 1);
        let from = first + (own.start - first).next_multiple_of(LANES);
        let to = if own.end == end { end } else { own.end - (own.end - first) % LANES };
        if from < to {
            if next < from {
                each(next..from, false);
            }
            each(from..to, true);
            next = to;
        }
    }
    if next < end {
        each(next..end, false);
    }
}

/// A way that is affine in a particle's place.
#[derive(Clone, Copy)]
pub(super) struct Drift<const D: usize> {
    /// The way from the low corner of the block's first cell, in cells, and its change per cell along each axis.
    way: [f32; D],
    change: [[f32; D]; D],
}

/// Moves particles of a block by such a way.
pub(super) struct Follow<'a, const D: usize> {
    pub position: &'a mut [[f32; D]],
    pub first_cell: [f32; D],
    pub drift: Drift<D>,
}

impl<const D: usize> Job for Follow<'_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let Follow { position, first_cell, drift: Drift { way, change } } = self;
        for position in position.chunks_mut(LANES) {
            let mut at = load_vectors::<W, D>(position);
            let x = relative::<W, D>(&at, &first_cell);
            for axis in 0..D {
                let mut sum = W::splat(way[axis]);
                for k in 0..D {
                    sum = sum + W::splat(change[axis][k]) * x[k];
                }
                at[axis] = at[axis] + sum;
            }
            store_vectors::<W, D>(&at, position);
        }
    }
}
