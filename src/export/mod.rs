//! Files out of a simulation: surface meshes, particles, pictures, statistics, linear systems.
//!
//! A file appears under its name only when it is whole ([`AtomicFile`]); statistics grow by whole lines
//! ([`StatsWriter`]).

mod atomic;
mod image;
mod mesh;
mod particles;
mod stats;
mod system;
mod video;

pub use atomic::{AtomicFile, ctrl_c_is_ignored, exit_cleanly, on_interrupt, probe_folder, remove_strays};
pub use image::{Picture, draw};
pub use mesh::{write_obj, write_ply};
pub use particles::write_particles;
pub use stats::StatsWriter;
pub use system::{SystemMeta, write_system};
pub use video::Video;
