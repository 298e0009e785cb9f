//! How much liquid there is, from its surface.

use crate::geometry::fraction::corner_mean;
use crate::geometry::{Boundary, Nearness};
use crate::grid::{Blocks, Field, Halo, SIDE, halo_cells, load_halo};
use crate::math::unflatten;

const HALO: Halo = Halo::new(1);

/// Share of every cell of a block that is liquid, from the signed distance of its centre and the wall distances at
/// its corners: exact where surface or wall lie along the grid, close elsewhere.
pub fn liquid_shares<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    slot: usize,
    shares: &mut [f32],
) {
    let dx = blocks.grid().dx as f32;
    for (share, distance) in shares.iter_mut().zip(surface.block(slot)) {
        *share = (0.5 - distance / dx).clamp(0.0, 1.0);
    }
    if boundary.nearness(slot) == Nearness::Clear || shares.iter().all(|&share| share == 0.0) {
        return;
    }
    let mut corner = [0f32; halo_cells(HALO, 3)];
    load_halo(blocks, &boundary.corner, slot, HALO, &mut corner);
    for (local, share) in shares.iter_mut().enumerate().filter(|(_, share)| **share > 0.0) {
        let at = HALO.index(unflatten::<D>(local, SIDE).map(|c| c as i32));
        let wall = corner_mean::<D>(at, |k| HALO.stride(k), |at| corner[at]);
        *share *= (0.5 + wall).clamp(0.0, 1.0);
    }
}
