//! The projection and its labels.

mod bodies;
pub mod dense;
mod flow;
mod hydrostatics;
mod labels;
mod let_go;
