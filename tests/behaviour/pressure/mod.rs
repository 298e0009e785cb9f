//! The projection and its labels.

mod dense;
mod flow;
mod hydrostatics;
mod labels;
