//! The linear interpolation kernel of the staggered grid, on a block with a margin: for one particle, and for
//! eight side by side, which compilers turn into vector instructions.

use crate::grid::Halo;

/// Particles interpolated side by side.
pub(super) const LANES: usize = 8;

/// One number per particle.
pub(super) type Lanes = [f32; LANES];

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
pub(super) struct LaneStencil<const D: usize> {
    pub base: [u32; LANES],
    pub fraction: [Lanes; D],
}

/// [`stencil`] for several particles; an axis past the last finds the corners of their cells.
#[inline(always)]
pub(super) fn lane_stencil<const D: usize>(x: &[Lanes; D], axis: usize, halo: Halo) -> LaneStencil<D> {
    let mut found = LaneStencil { base: [0; LANES], fraction: [[0.0; LANES]; D] };
    let mut stride = 1;
    for k in 0..D {
        let shift = halo.margin as f32 - if k == axis || axis >= D { 0.0 } else { 0.5 };
        for l in 0..LANES {
            let shifted = x[k][l] + shift;
            // SAFETY: callers keep particles inside the box, so that this is a small positive number.
            let low = unsafe { shifted.to_int_unchecked::<i32>() };
            found.fraction[k][l] = shifted - low as f32;
            found.base[l] += low as u32 * stride;
        }
        stride *= halo.side as u32;
    }
    found
}

/// Reads a value per particle. The box's size is a power of two, so that cutting the index to it costs nothing and
/// no read can leave the box.
#[inline(always)]
pub(super) fn gather<const N: usize>(values: &[f32; N], base: &[u32; LANES], offset: u32) -> Lanes {
    const { assert!(N.is_power_of_two()) };
    let mut out = [0.0; LANES];
    for l in 0..LANES {
        out[l] = values[(base[l] + offset) as usize & (N - 1)];
    }
    out
}

/// [`sample`] for several particles.
#[inline(always)]
pub(super) fn lane_sample<const D: usize, const N: usize>(
    values: &[f32; N],
    x: &[Lanes; D],
    axis: usize,
    halo: Halo,
) -> Lanes {
    let LaneStencil { base, fraction } = lane_stencil(x, axis, halo);
    let mut sum = [0.0; LANES];
    for row in 0..1 << (D - 1) {
        let offset = row_offset(row, halo);
        let (low, high) = (gather(values, &base, offset), gather(values, &base, offset + 1));
        let weight = lane_row_weight(&fraction, row);
        for l in 0..LANES {
            sum[l] += weight[l] * ((1.0 - fraction[0][l]) * low[l] + fraction[0][l] * high[l]);
        }
    }
    sum
}

/// Offset in memory of a row of faces: bit 0 of `row` is a step along y, bit 1 one along z.
#[inline(always)]
pub(super) fn row_offset(row: usize, halo: Halo) -> u32 {
    ((row & 1) * halo.side + (row >> 1) * halo.side * halo.side) as u32
}

/// [`row_weight`] for several particles.
#[inline(always)]
pub(super) fn lane_row_weight<const D: usize>(fraction: &[Lanes; D], row: usize) -> Lanes {
    let mut weight = [1.0; LANES];
    for k in 1..D {
        for l in 0..LANES {
            weight[l] *= if row & (1 << (k - 1)) != 0 { fraction[k][l] } else { 1.0 - fraction[k][l] };
        }
    }
    weight
}

/// Positions of up to eight particles, in cells from the block's low corner, one array per axis. Missing ones
/// repeat the last.
#[inline(always)]
pub(super) fn load_lanes<const D: usize>(position: &[[f32; D]], first_cell: &[f32; D]) -> [Lanes; D] {
    let mut x = [[0.0; LANES]; D];
    for l in 0..LANES {
        let from = &position[l.min(position.len() - 1)];
        for k in 0..D {
            x[k][l] = from[k] - first_cell[k];
        }
    }
    x
}
