//! Particles, their transfers, their motion and their surface.

mod affine_cells;
mod motion;
mod particles;
mod pool;
mod sources;
mod surface;
mod transfer;
