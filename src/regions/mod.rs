//! Regions of liquid that move as one incompressible affine field (CBAR §5 and §6): where they are, how heavy they are,
//! and what their velocities are.
//!
//! * `bands`: the ordinary cells that every surface and wall keeps around itself.
//! * `boxes`: the lattice of tiles, uniform or graded.
//! * [`Tiling`]: the tiles themselves, as bodies for the linear solver.
//! * `motion`: from face velocities to affine fields and back.

mod bands;
mod boxes;
mod motion;
mod shape;
mod tiling;
mod whole;

pub use boxes::TileSize;
pub use tiling::{Tile, TileRules, Tiling};
