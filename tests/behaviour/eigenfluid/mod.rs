//! Fluid in modes.

mod bodies;
mod drawn;
mod fluid;
