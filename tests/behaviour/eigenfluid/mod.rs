//! Fluid in modes.

mod drawn;
mod fluid;
