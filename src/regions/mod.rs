//! Regions of liquid, or of air with mass, that move as one incompressible affine field (CBAR §5 and §6): where they are, how heavy they are,
//! and what their velocities are.
//!
//! * `bands`: the ordinary cells that every surface and wall keeps around itself.
//! * `boxes`: the lattice of tiles, uniform or graded.
//! * `carve`: which cells make a tile, in a box of the lattice or in a bubble as a whole.
//! * [`Tiling`]: the tiles themselves, as bodies for the linear solver.
//! * `contacts`: which tiles the cells of a block lie beside.
//! * `motion`: from face velocities to affine fields and back.
//! * `interior`: where tiles leave nothing to interpolate.

mod bands;
mod boxes;
mod carve;
mod contacts;
mod interior;
mod motion;
mod shape;
mod tiling;
mod whole;

pub use bands::CellRole;
pub use boxes::TileSize;
pub use motion::Beside;
pub use tiling::{Division, Fluid, Ground, Tile, TileRules, Tiling};
