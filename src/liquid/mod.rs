//! The liquid as particles: seeding, sorting, transfers to and from the grid, advection, and the surface around
//! them; and the velocity of air that has mass.

mod advect;
mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod emit;
mod even;
mod extrapolate;
mod gas;
mod hollow;
mod kernel;
mod lanes;
mod particles;
mod profile;
mod reseed;
mod sort;
mod surface;
mod transfer;
mod volume;

pub use advect::{MOST_CELLS, advect, advect_born, collide};
pub use ahead::look_ahead;
pub use emit::{Layout, drain, emit, seed};
pub use even::{EVEN_REACH, Even, even_nowhere};
pub use extrapolate::{ExtrapolateScratch, FaceMask, extrapolate, mask_parts};
pub use gas::Gas;
pub use hollow::{HOLLOW_DEPTH, Hollow, HollowScratch};
pub use particles::Particles;
pub use reseed::{Bounds, Reseeded, reseed};
pub use sort::{CellRanges, MARGIN_CELLS, Sorter};
pub use surface::{KERNEL_CELLS, SurfaceScratch, rebuild_surface};
pub use transfer::{grid_to_particles, particles_to_grid};
pub use volume::liquid_shares;
