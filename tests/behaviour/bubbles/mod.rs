//! Trapped air: its components, its constraint, its identity and its volume.

mod cooler;
pub mod dense;
mod fill;
mod life;
mod limit;
mod naive;
mod names;
pub mod projection;
mod released;
mod runs;
pub mod shapes;
mod sources;
