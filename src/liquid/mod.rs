//! The liquid as particles: seeding, sorting, transfers to and from the grid, advection, and the surface around
//! them.

mod advect;
mod affine_cells;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod bodies;
mod emit;
mod kernel;
mod lanes;
mod midpoint;
mod narrow_band;
mod particles;
mod profile;
mod reseed;
mod sort;
mod surface;
mod transfer;
mod volume;

pub use advect::{MOST_CELLS, advect, advect_seeded, collide};
pub use affine_cells::{AFFINE_REACH, AffineCells, no_affine_cells};
pub use bodies::{born_leave_bodies, leave_bodies};
pub use emit::{Emitter, Layout, drain, seed};
pub(crate) use kernel::{lane_sample, lane_stencil};
pub(crate) use lanes::{Job, LANES, Wide, dispatch};
pub use midpoint::extrapolate_to_midpoint;
pub use narrow_band::{Band, CORE_DEPTH, Core, CoreScratch};
pub use particles::Particles;
pub use reseed::{Bounds, Reseeded, reseed};
pub use sort::{CellRanges, MARGIN_CELLS, Sorter};
pub use surface::{KERNEL_CELLS, SurfaceScratch, rebuild_surface};
pub use transfer::{grid_to_particles, particles_to_grid};
pub use volume::liquid_shares;
