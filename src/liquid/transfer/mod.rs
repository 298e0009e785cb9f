//! Particles to grid and back: FLIP, APIC and blends of the two.
//!
//! Both directions work block by block on a small dense box with one cell of margin, which stays in the first-level
//! cache.

#[cfg(target_arch = "x86_64")]
mod avx512;
mod gather;
mod scatter;

use crate::grid::{Halo, halo_cells};

pub(super) use gather::gather_new;
pub use gather::grid_to_particles;
pub use scatter::particles_to_grid;

const HALO: Halo = Halo::new(1);
/// Faces of one component in a block with margins, in 3D, rounded up to a power of two.
const MOST: usize = halo_cells(HALO, 3).next_power_of_two();
