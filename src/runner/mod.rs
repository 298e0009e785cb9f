//! Drives a simulation frame by frame on a thread pool of its own; its method and dimension are chosen at run time.
//!
//! * [`Solver`]: what can be driven; [`GridSolver`]: the solver on the grid, with what it alone can do.
//! * [`Runner`]: a solver with its pool and its stop flag, for runs from the command line; [`Watch`]: who looks at
//!   every finished frame.
//! * [`Run`]: a simulation that makes snapshots of itself, at once or as a [`Sketch`] that is finished elsewhere.
//! * [`Worker`]: a run on a thread of its own, [`Command`]s in, the newest snapshot out; [`Pace`] keeps several on one
//!   clock.

mod command;
mod drive;
mod grid;
mod pace;
mod run;
mod solver;
mod worker;

pub use command::{Adoption, Branch, Command, Phase};
pub use drive::{Frame, Outcome, RunError, Runner, Watch};
pub use grid::{AnyGrid, GridSolver, LinearSystem, RowKind};
pub use pace::Pace;
pub use run::{Run, Sketch};
pub use solver::{Rest, Solver, SolverError, start_solver};
pub use worker::Worker;
