//! The linear interpolation of [`crate::grid`] for eight particles side by side.

use crate::grid::Halo;

use super::lanes::{Arithmetic, LANES, Wide};

/// [`crate::grid::Stencil`] for several particles.
pub(crate) struct LaneStencil<W: Wide, const D: usize> {
    pub base: W::Index,
    pub fraction: [W::Eight; D],
}

/// [`crate::grid::stencil`] for several particles; an axis past the last finds the corners of their cells.
#[inline(always)]
pub(crate) fn lane_stencil<W: Wide, const D: usize>(
    x: &[W::Eight; D],
    axis: usize,
    halo: Halo,
) -> LaneStencil<W, D> {
    let mut found = LaneStencil { base: W::origin(), fraction: *x };
    let mut stride = 1;
    for k in 0..D {
        let shift = halo.margin as f32 - if k == axis || axis >= D { 0.0 } else { 0.5 };
        (found.base, found.fraction[k]) = W::split(x[k] + W::splat(shift), stride, found.base);
        stride *= halo.side as u32;
    }
    found
}

/// The way from `a` to `b`, at `t`.
#[inline(always)]
pub(super) fn blend<T: Arithmetic>(a: T, b: T, t: T) -> T {
    a + t * (b - a)
}

/// Interpolates along y between the faces that start `offset` past the base: what is left differs along x only.
#[inline(always)]
fn lane_rows<W: Wide, const D: usize, const N: usize>(
    values: &[f32; N],
    at: &LaneStencil<W, D>,
    offset: u32,
    halo: Halo,
) -> W::Pairs {
    let (low, high) =
        (W::pairs(values, at.base, offset), W::pairs(values, at.base, offset + halo.side as u32));
    blend(low, high, W::twice(at.fraction[1]))
}

/// [`crate::grid::sample`] for several particles, whose stencil is known.
#[inline(always)]
pub(super) fn lane_value<W: Wide, const D: usize, const N: usize>(
    values: &[f32; N],
    at: &LaneStencil<W, D>,
    halo: Halo,
) -> W::Eight {
    let mut rows = lane_rows::<W, D, N>(values, at, 0, halo);
    if D == 3 {
        let above = lane_rows::<W, D, N>(values, at, (halo.side * halo.side) as u32, halo);
        rows = blend(rows, above, W::twice(at.fraction[D - 1]));
    }
    let (low, high) = W::apart(rows);
    blend(low, high, at.fraction[0])
}

/// [`crate::grid::sample`] for several particles.
#[inline(always)]
pub(crate) fn lane_sample<W: Wide, const D: usize, const N: usize>(
    values: &[f32; N],
    x: &[W::Eight; D],
    axis: usize,
    halo: Halo,
) -> W::Eight {
    lane_value::<W, D, N>(values, &lane_stencil::<W, D>(x, axis, halo), halo)
}

/// Change of the interpolated value across one cell, along each axis, for several particles.
#[inline(always)]
pub(super) fn lane_slope<W: Wide, const D: usize, const N: usize>(
    values: &[f32; N],
    at: &LaneStencil<W, D>,
    halo: Halo,
) -> [W::Eight; D] {
    let (row, plane) = (halo.side as u32, (halo.side * halo.side) as u32);
    let y = W::twice(at.fraction[1]);
    let low = W::pairs(values, at.base, 0);
    let mut along_y = W::pairs(values, at.base, row) - low;
    let mut rows = low + y * along_y;
    let mut slope = at.fraction;
    if D == 3 {
        let z = W::twice(at.fraction[D - 1]);
        let low = W::pairs(values, at.base, plane);
        let above = W::pairs(values, at.base, plane + row) - low;
        let along_z = low + y * above - rows;
        along_y = blend(along_y, above, z);
        rows = rows + z * along_z;
        let (low, high) = W::apart(along_z);
        slope[D - 1] = blend(low, high, at.fraction[0]);
    }
    let (low, high) = W::apart(along_y);
    slope[1] = blend(low, high, at.fraction[0]);
    let (low, high) = W::apart(rows);
    slope[0] = high - low;
    slope
}

/// Vectors of up to eight particles, one group of numbers per axis. Missing ones repeat the last.
#[inline(always)]
pub(super) fn load_vectors<W: Wide, const D: usize>(from: &[[f32; D]]) -> [W::Eight; D] {
    let mut apart = [[0.0; LANES]; D];
    if let Ok(from) = <&[[f32; D]; LANES]>::try_from(from) {
        // Almost always: known to be eight, the transposition is a few shuffles.
        for l in 0..LANES {
            for k in 0..D {
                apart[k][l] = from[l][k];
            }
        }
    } else {
        for l in 0..LANES {
            for k in 0..D {
                apart[k][l] = from[l.min(from.len() - 1)][k];
            }
        }
    }
    let mut x = [W::splat(0.0); D];
    for k in 0..D {
        x[k] = W::load(&apart[k]);
    }
    x
}

/// The inverse of [`load_vectors`].
#[inline(always)]
pub(super) fn store_vectors<W: Wide, const D: usize>(x: &[W::Eight; D], to: &mut [[f32; D]]) {
    let mut apart = [[0.0; LANES]; D];
    for k in 0..D {
        apart[k] = W::store(x[k]);
    }
    store_lanes(&apart, to);
}

/// Writes the numbers of up to eight particles, given by axis.
#[inline(always)]
pub(super) fn store_lanes<T: Copy, const D: usize>(apart: &[[T; LANES]; D], to: &mut [[T; D]]) {
    if let Ok(to) = <&mut [[T; D]; LANES]>::try_from(&mut *to) {
        for l in 0..LANES {
            for k in 0..D {
                to[l][k] = apart[k][l];
            }
        }
    } else {
        for (l, to) in to.iter_mut().enumerate() {
            for k in 0..D {
                to[k] = apart[k][l];
            }
        }
    }
}

/// Positions relative to a block's low corner.
#[inline(always)]
pub(super) fn relative<W: Wide, const D: usize>(
    position: &[W::Eight; D],
    first_cell: &[f32; D],
) -> [W::Eight; D] {
    let mut x = *position;
    for k in 0..D {
        x[k] = x[k] - W::splat(first_cell[k]);
    }
    x
}
