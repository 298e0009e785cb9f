//! Tiles of liquid, or of air with mass, that move as one incompressible affine field each (CBAR §5 and §6, "affine
//! regions"): where they are, how heavy they are, and what their velocities are.
//!
//! * `bands`: the ordinary cells that every surface and wall keeps around itself.
//! * `boxes`: the lattice of tiles, uniform or graded.
//! * `carve`: which cells make a tile, in a box of the lattice or in a bubble as a whole.
//! * [`Tiling`]: the tiles themselves, as bodies for the linear solver.
//! * `contacts`: which tiles the cells of a block lie beside.
//! * `motion`: from face velocities to affine fields and back.
//! * `interior`: where tiles leave nothing to interpolate.
//! * [`TileMemory`]: what the next step has to know of them.

mod bands;
mod boxes;
mod carve;
mod contacts;
mod full_box;
mod interior;
mod memory;
mod motion;
mod shape;
mod tiling;

pub use bands::CellRole;
pub use boxes::TileSize;
pub use memory::TileMemory;
pub use motion::TileFaces;
pub use tiling::{Division, Fluid, Tile, TileDomain, TileRules, Tiling};
