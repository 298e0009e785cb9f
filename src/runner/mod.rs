//! Drives a simulation frame by frame on a thread pool of its own, 2D or 3D chosen at run time.
//!
//! * [`Solver`]: what can be driven.
//! * [`Runner`]: a solver with its pool and its stop flag.
//! * [`Watch`]: who looks at every finished frame.

mod drive;
mod solver;

pub use drive::{AnySolver, Frame, Outcome, RunError, Runner, Watch};
pub use solver::{LinearSystem, RowKind, Solver, SolverError};
