//! Linear interpolation of face velocities, on a block with a margin.

use super::Halo;

/// Where a point lies among the faces of one velocity component.
pub struct Stencil<const D: usize> {
    /// Index of the lowest of the 2^D faces around it in the block with margins.
    pub base: usize,
    /// Share of the way to the higher face along each axis, 0 to 1.
    pub fraction: [f32; D],
}

/// Finds the faces of component `axis` around `x`, given in cells from the block's low corner. Faces sit at whole
/// coordinates along their own axis and at halves along the others.
#[inline(always)]
pub fn stencil<const D: usize>(x: &[f32; D], axis: usize, halo: Halo) -> Stencil<D> {
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
pub fn row_weight<const D: usize>(fraction: &[f32; D], corner: usize, halo: Halo) -> (f32, usize) {
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
pub fn sample<const D: usize>(values: &[f32], x: &[f32; D], axis: usize, halo: Halo) -> f32 {
    let Stencil { base, fraction } = stencil(x, axis, halo);
    let mut sum = 0.0;
    for corner in 0..1 << (D - 1) {
        let (weight, offset) = row_weight(&fraction, corner, halo);
        let row = &values[base + offset..base + offset + 2];
        sum += weight * ((1.0 - fraction[0]) * row[0] + fraction[0] * row[1]);
    }
    sum
}
