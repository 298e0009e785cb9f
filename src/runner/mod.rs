//! Drives a simulation frame by frame on a thread pool of its own, 2D or 3D chosen at run time.
//!
//! * [`Solver`]: what can be driven.
//! * [`Runner`]: a solver with its pool and its stop flag, for runs from the command line; [`Watch`]: who looks at
//!   every finished frame.
//! * [`Exhibit`]: a simulation that makes [`Snapshot`]s of itself.
//! * [`Worker`]: an exhibit on a thread of its own, [`Command`]s in, the newest snapshot out; [`Pace`] keeps several
//!   on one clock.

mod command;
mod drive;
mod exhibit;
mod fields;
mod half;
mod pace;
mod roles;
mod shore;
mod snapshot;
mod solver;
mod stage;
mod worker;

pub use command::{Adoption, Branch, Command, Phase};
pub use drive::{AnySolver, Frame, Outcome, RunError, Runner, Watch};
pub use exhibit::Exhibit;
pub use half::{half, whole};
pub use pace::Pace;
pub use roles::role;
pub use snapshot::{
    CellFields, Mote, Snapshot, SolidField, TileView, Triangles, Wanted, bubble_region, region,
};
pub use solver::{LinearSystem, RowKind, Solver, SolverError};
pub use stage::{SolidPose, Stage, StageSolid};
pub use worker::Worker;
