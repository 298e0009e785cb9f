//! The projection and its labels.

pub mod dense;
mod flow;
mod hydrostatics;
mod labels;
