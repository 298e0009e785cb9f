//! Fluid in modes.

mod bodies;
mod drawn;
mod flow;
mod fluid;
