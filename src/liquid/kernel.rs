//! The linear interpolation kernel of the staggered grid, on a block with a margin: for one particle, and for
//! eight side by side.

use crate::grid::Halo;

use super::lanes::{Arithmetic, LANES, Wide};

/// Where a particle lies among the faces of one velocity component.
pub(super) struct Stencil<const D: usize> {
    /// Index of the lowest of its 2^D faces in the block with margins.
    pub base: usize,
    /// Share of the way to the higher face along each axis, 0 to 1.
    pub fraction: [f32; D],
}

/// Finds the faces of component `axis` around `x`, given in cells from the block's low corner. Faces sit at whole
/// coordinates along their own axis and at halves along the others.
#[inline(always)]
pub(super) fn stencil<const D: usize>(x: &[f32; D], axis: usize, halo: Halo) -> Stencil<D> {
    let mut base = 0;
    let mut stride = 1;
    let mut fraction = [0.0; D];
    for k in 0..D {
        // Shifted by the margin first: then truncation is rounding down, and cheaper.
        let shifted = x[k] + (halo.margin as f32 - if k == axis { 0.0 } else { 0.5 });
        let low = shifted as i32;
        fraction[k] = shifted - low as f32;
        base += low as usize * stride;
        stride *= halo.side;
    }
    Stencil { base, fraction }
}

/// Weight of the face row that lies `corner` (bits for y, z) above the base along the axes past the first, and its
/// offset in memory.
#[inline(always)]
pub(super) fn row_weight<const D: usize>(fraction: &[f32; D], corner: usize, halo: Halo) -> (f32, usize) {
    let (mut weight, mut offset, mut stride) = (1.0, 0, halo.side);
    for k in 1..D {
        if corner & (1 << (k - 1)) != 0 {
            weight *= fraction[k];
            offset += stride;
        } else {
            weight *= 1.0 - fraction[k];
        }
        stride *= halo.side;
    }
    (weight, offset)
}

/// Interpolates one component, given on a block with margins.
#[inline(always)]
pub(super) fn sample<const D: usize>(values: &[f32], x: &[f32; D], axis: usize, halo: Halo) -> f32 {
    let Stencil { base, fraction } = stencil(x, axis, halo);
    let mut sum = 0.0;
    for corner in 0..1 << (D - 1) {
        let (weight, offset) = row_weight(&fraction, corner, halo);
        let row = &values[base + offset..base + offset + 2];
        sum += weight * ((1.0 - fraction[0]) * row[0] + fraction[0] * row[1]);
    }
    sum
}

/// [`Stencil`] for several particles.
pub(super) struct LaneStencil<W: Wide, const D: usize> {
    pub base: W::Index,
    pub fraction: [W::Eight; D],
}

/// [`stencil`] for several particles; an axis past the last finds the corners of their cells.
#[inline(always)]
pub(super) fn lane_stencil<W: Wide, const D: usize>(
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

/// [`sample`] for several particles, whose stencil is known.
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

/// [`sample`] for several particles.
#[inline(always)]
pub(super) fn lane_sample<W: Wide, const D: usize, const N: usize>(
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
