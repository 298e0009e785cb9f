//! The linear solver.

mod coupling;
mod domain;
mod exact;
mod hard;
mod krylov;
mod materials;
mod scenery;
mod shapes;
