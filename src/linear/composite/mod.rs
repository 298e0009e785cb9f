//! Systems in which *bodies* of many cells move as a whole (CBAR §5 and §6).
//!
//! `A = L + Σ_b J_bᵀ K_b J_b`: the network `L` of a [`super::System`] between the cells outside of bodies, and for each
//! body the response `K_b` of its few degrees of freedom to the pressures around it. Cells inside bodies are no unknowns.
//!
//! * [`Body`], [`BodyFace`], [`Response`]: what a solve is told about bodies.
//! * `list`: the cells left over lie in thin sheets, so they are listed one by one, with their neighbours, red ones first.
//! * `product`: sweeps over lists; `surfaces`: what bodies add to them.
//! * `coarse`, `cycle`: the preconditioner. Levels whose cells are smaller than half a body carry listed cells and bodies;
//!   deeper ones are those of the network with all cells, bodies forgotten.
//! * [`CompositeSolver`]: conjugate gradients in f64.

mod assemble;
mod body;
mod coarse;
mod components;
mod cycle;
mod list;
mod product;
mod solver;
mod surfaces;

pub use assemble::assemble_with_bodies;
pub use body::{Bodies, Body, BodyFace, Moments, Response};
pub use solver::CompositeSolver;
