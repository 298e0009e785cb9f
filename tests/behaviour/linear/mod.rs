//! The linear solver.

mod domain;
mod large;
