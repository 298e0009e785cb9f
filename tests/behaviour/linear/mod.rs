//! The linear solver.

mod domain;
mod exact;
mod hard;
mod krylov;
mod materials;
mod scenery;
mod shapes;
