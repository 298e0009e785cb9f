//! What cells are to the pressure solve where some of them lie in tiles.

use crate::geometry::{Label, Nearness};
use crate::sim::{Simulation, tiles_in_gas, tiles_in_liquid};

use super::fields::Dense;

/// The roles of a cell; those of cells of air have [`role::GAS`] added.
pub mod role {
    /// None: no unknowns, or a fluid without tiles.
    pub const NONE: u8 = 0;
    /// It lies in a tile.
    pub const TILE: u8 = 1;
    /// An ordinary cell near the surface.
    pub const SURFACE: u8 = 2;
    /// An ordinary cell along a wall.
    pub const WALL: u8 = 3;
    /// An ordinary cell between tiles.
    pub const SEAM: u8 = 4;
    /// Added for air.
    pub const GAS: u8 = 8;
}

/// What is known about a cell, a bit each.
const OWN: u8 = 1;
const OTHER: u8 = 2;
const INSIDE: u8 = 4;
const CUT: u8 = 8;

/// The role of every cell of the dense grid; none if there are no tiles.
pub fn roles<const D: usize>(simulation: &Simulation<D>, dense: &Dense<'_, D>) -> Option<Vec<u8>> {
    let (state, projection) = (simulation.state(), simulation.projection());
    let tiling = projection.tiling.as_ref().filter(|tiling| !tiling.tiles.is_empty())?;
    let [nx, ny, nz] = dense.cells;
    let mut roles = vec![role::NONE; nx * ny * nz];
    let fluids = [tiles_in_liquid(&simulation.params), tiles_in_gas(&simulation.params)];
    for (rules, gas) in fluids.into_iter().zip([false, true]).filter_map(|(rules, gas)| Some((rules?, gas))) {
        let known = dense.gather(0, |slot, local| {
            let label = projection.label.block(slot)[local];
            let is_gas = label != Label::Liquid && projection.has_pressure(slot, local);
            let own = if gas { is_gas } else { label == Label::Liquid };
            let other = if gas { label != Label::Solid && !own } else { label == Label::Air };
            let bit = |bits: &[u64]| bits[local / 64] >> (local % 64) & 1 == 1;
            let cut = state.boundary.nearness(slot) != Nearness::Clear && bit(&state.boundary.bits(slot).cut);
            let inside = bit(tiling.inside(slot));
            let known = [(own, OWN), (other, OTHER), (inside, INSIDE), (cut, CUT)];
            known.iter().map(|(is, bit)| *is as u8 * bit).sum()
        });
        let surface = |index: usize| {
            let mut near = false;
            around(index, dense.cells, |other| near |= known[other] & OTHER != 0);
            near
        };
        let surface = band(&known, dense.cells, rules.surface_band, surface);
        let wall = band(&known, dense.cells, rules.wall_band, |index| known[index] & CUT != 0);
        let shift = if gas { role::GAS } else { 0 };
        for (index, role) in roles.iter_mut().enumerate().filter(|(index, _)| known[*index] & OWN != 0) {
            *role = shift
                + match () {
                    () if known[index] & INSIDE != 0 => role::TILE,
                    () if surface[index] => role::SURFACE,
                    () if wall[index] => role::WALL,
                    () => role::SEAM,
                };
        }
    }
    Some(roles)
}

/// A fluid's cells within so many layers of those where it starts.
fn band(known: &[u8], cells: [usize; 3], layers: usize, starts: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut band = vec![false; known.len()];
    let mut front: Vec<usize> =
        (0..known.len()).filter(|&index| known[index] & OWN != 0 && starts(index)).collect();
    front.iter().for_each(|&index| band[index] = true);
    for _ in 1..layers {
        let mut next = Vec::new();
        for &index in &front {
            around(index, cells, |other| {
                if known[other] & OWN != 0 && !band[other] {
                    band[other] = true;
                    next.push(other);
                }
            });
        }
        front = next;
    }
    band
}

/// Calls `each` with the cells that share a face with one.
fn around(index: usize, [nx, ny, nz]: [usize; 3], mut each: impl FnMut(usize)) {
    let place = [index % nx, index / nx % ny, index / (nx * ny)];
    let mut stride = 1;
    for (at, count) in place.into_iter().zip([nx, ny, nz]) {
        if at > 0 {
            each(index - stride);
        }
        if at + 1 < count {
            each(index + stride);
        }
        stride *= count;
    }
}
