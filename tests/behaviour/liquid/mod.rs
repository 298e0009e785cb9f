//! Particles, their transfers, their motion and their surface.

mod even;
mod motion;
mod particles;
mod pool;
mod surface;
mod transfer;
