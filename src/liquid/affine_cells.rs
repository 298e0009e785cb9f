//! Particles amid liquid that moves as one affine field: there is nothing to interpolate.
//!
//! Linear interpolation gives back an affine field as it is. Deep inside a tile, where all faces that a particle looks
//! at belong to one field, its gradient and the particle's displacement follow from the field's few numbers, without
//! looking at any face.

use std::ops::Range;

use crate::grid::masks::{self, Bits};

use super::CellRanges;
use super::kernel::{load_vectors, relative, store_vectors};
use super::lanes::{Job, LANES, Wide};
use super::particles::pack;

/// Cells of a block amid liquid that moves as one affine field.
#[derive(Clone, Copy, Debug)]
pub struct AffineCells<const D: usize> {
    /// The cells: the faces that particles in them look at all move so, even half a cell away.
    pub cells: Bits,
    /// The velocity at the low corner of the block's first cell, m/s.
    pub velocity: [f64; D],
    /// The change of each component, m/s, per cell along each axis.
    pub slope: [[f64; D]; D],
}

/// How far from its place a particle may look things up, for a block's [`AffineCells::cells`] to hold, in cells.
pub const AFFINE_REACH: f64 = 0.5;

/// For liquid that moves as an affine field nowhere.
pub fn no_affine_cells<const D: usize>(_slot: usize) -> Option<AffineCells<D>> {
    None
}

impl<const D: usize> AffineCells<D> {
    /// The gradient that particles keep, `share` of it.
    pub(super) fn packed_slope(&self, share: f32) -> [[u16; D]; D] {
        self.slope.map(|row| row.map(|slope| pack(share * slope as f32)))
    }

    /// How particles move in a substep, by the scheme of [`super::advect`]: with `w(x) = W x + w` for the displacement
    /// that the velocity at `x` gives, its three stages add up to `(1 + W/2 + W²/6) w(x)`.
    pub(super) fn displacement(&self, cells_per_speed: f64) -> AffineDisplacement<D> {
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
        let at_corner = std::array::from_fn(|row| {
            (0..D).map(|k| stages[row][k] * self.velocity[k] * cells_per_speed).sum::<f64>() as f32
        });
        let slope =
            std::array::from_fn(|row| std::array::from_fn(|column| product(&stages, row, column) as f32));
        AffineDisplacement { at_corner, slope }
    }
}

/// Cuts the particles of a block into stretches that lie in `affine` cells or do not, and are whole groups of lanes
/// long: calls
/// `each(stretch, is_affine)`. A group that lies in both kinds of cells counts as not affine.
pub(super) fn each_stretch(
    ranges: &CellRanges,
    slot: usize,
    affine: Option<&Bits>,
    mut each: impl FnMut(Range<usize>, bool),
) {
    let Range { start: first, end } = ranges.of_block(slot);
    let mut next = first;
    for run in affine.into_iter().flat_map(masks::runs) {
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

/// A displacement that is affine in a particle's position.
#[derive(Clone, Copy)]
pub(super) struct AffineDisplacement<const D: usize> {
    /// At the low corner of the block's first cell, in cells.
    at_corner: [f32; D],
    /// Its change per cell along each axis.
    slope: [[f32; D]; D],
}

/// Moves particles of a block by an affine displacement.
pub(super) struct AdvectAffine<'a, const D: usize> {
    pub position: &'a mut [[f32; D]],
    pub first_cell: [f32; D],
    pub displacement: AffineDisplacement<D>,
}

impl<const D: usize> Job for AdvectAffine<'_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let AdvectAffine { position, first_cell, displacement: AffineDisplacement { at_corner, slope } } =
            self;
        for position in position.chunks_mut(LANES) {
            let mut at = load_vectors::<W, D>(position);
            let x = relative::<W, D>(&at, &first_cell);
            for axis in 0..D {
                let mut sum = W::splat(at_corner[axis]);
                for k in 0..D {
                    sum = sum + W::splat(slope[axis][k]) * x[k];
                }
                at[axis] = at[axis] + sum;
            }
            store_vectors::<W, D>(&at, position);
        }
    }
}
