//! What cells are to the pressure solve where some of them lie in tiles.

use crate::sim::Simulation;
use crate::tiles::{CellRole, Fluid};

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

/// The role of every cell of the dense grid; none if there are no tiles.
pub fn roles<const D: usize>(simulation: &Simulation<D>, dense: &Dense<'_, D>) -> Option<Vec<u8>> {
    let tiling = simulation.projection().tiling.as_ref().filter(|tiling| !tiling.tiles.is_empty())?;
    Some(dense.gather(role::NONE, |slot, local| match tiling.role(slot, local) {
        None => role::NONE,
        Some((Fluid::Liquid, role)) => code(role),
        Some((Fluid::Gas, role)) => role::GAS + code(role),
    }))
}

fn code(role: CellRole) -> u8 {
    match role {
        CellRole::Tile => role::TILE,
        CellRole::Surface => role::SURFACE,
        CellRole::Wall => role::WALL,
        CellRole::Seam => role::SEAM,
    }
}
