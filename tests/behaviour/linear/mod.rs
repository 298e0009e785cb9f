//! The linear solver.

mod domain;
mod exact;
mod hard;
mod large;
mod scenery;
mod shapes;
