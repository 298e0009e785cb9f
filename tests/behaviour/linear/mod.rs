//! The linear solver.

mod domain;
mod exact;
mod hard;
mod krylov;
mod large;
mod materials;
mod scenery;
mod shapes;
