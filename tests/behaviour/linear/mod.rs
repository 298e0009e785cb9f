//! The linear solver.

mod domain;
mod exact;
mod large;
mod shapes;
