//! What a simulation shows of itself: small, single precision, immutable, understood without the solver.
//!
//! * [`Snapshot`]: a moment, of either dimension; [`Scenery`]: what stands still in it.
//! * [`show_grid`]: how the grid solver fills a snapshot in, at once; [`sketch_grid`]: in two parts, the second of which
//!   needs no simulation. Other solvers fill in what they have.

mod calm;
mod data;
mod fields;
mod grid;
mod half;
mod haze;
mod roles;
mod scenery;
mod wall_surface;

pub use data::{
    CellFields, SampleParticle, Smoke, Snapshot, SolidField, TileView, Triangles, Wanted, region,
};
pub use grid::{Undrawn, show_grid, sketch_grid};
pub use half::{f32_from_half, half_from_f32};
pub use haze::OPTICAL_DEPTH;
pub use roles::role;
pub use scenery::{Scenery, ScenerySolid, SolidPose, solid_field};
