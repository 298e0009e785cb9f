//! How much liquid there is, from its surface.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::geometry::{Boundary, Nearness};
use crate::grid::{Blocks, Field, Halo, SIDE, halo_cells, load_halo, sum_over_blocks};
use crate::math::{Real, power, unflatten};

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
    if boundary.nearness(slot) == Nearness::Clear {
        return;
    }
    let mut corner = [0f32; halo_cells(HALO, 3)];
    load_halo(blocks, &boundary.corner, slot, HALO, &mut corner);
    for (local, share) in shares.iter_mut().enumerate().filter(|(_, share)| **share > 0.0) {
        let at = HALO.index(unflatten::<D>(local, SIDE).map(|c| c as i32));
        let wall = (0..power(2, D))
            .map(|c| corner[at + (0..D).filter(|k| c & (1 << k) != 0).map(|k| HALO.stride(k)).sum::<usize>()])
            .sum::<f32>()
            / power(2, D) as f32;
        *share *= (0.5 + wall).clamp(0.0, 1.0);
    }
}

/// Liquid volume in cells, and that part of it which lies at least one cell below the surface.
pub fn measure_volume<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    surface: &Field<f32>,
    partial: &mut Vec<f64>,
) -> [Real; 2] {
    let below = -blocks.grid().dx as f32;
    let deep = AtomicUsize::new(0);
    let all = sum_over_blocks(blocks.slots(), partial, |slot| {
        let mut shares = [0f32; SIDE * SIDE * SIDE];
        let shares = &mut shares[..surface.block_len()];
        liquid_shares(blocks, boundary, surface, slot, shares);
        // Whole numbers add up to the same whatever the order.
        let cells = surface.block(slot).iter().filter(|&&distance| distance <= below).count();
        deep.fetch_add(cells, Ordering::Relaxed);
        shares.iter().map(|&share| share as f64).sum()
    });
    [all, deep.into_inner() as Real]
}
