//! The simulation: state, parameters, scratch memory, the substep, and what it reports.

mod affine_cells;
mod air;
mod bodies;
mod bubbles;
mod clock;
mod contacts;
mod hands;
mod joints;
mod narrow_band;
mod params;
mod report;
mod save;
mod setup;
mod simulation;
mod state;
mod step;
mod survey;

pub use air::{Air, ComponentRoles};
pub use bodies::{BodyReport, PullReport, Rotation};
pub use clock::{FrameTimes, Stage, StageTimes};
pub use contacts::ContactScratch;
pub use hands::{DENSITIES, Edit, EditError, Form, Grip, Hands, Hold, LEAST_CELLS, NewBody, STRENGTHS};
pub use params::{
    Bubbles, Group, Level, Model, ParamError, ParamInfo, ParamKind, ParamValue, Params, SolverKind,
    WallCells, param, params_table, set_param,
};
pub use report::{
    BubbleReport, CellCounts, Divergence, FrameReport, LiquidReport, SmokeReport, SolveReport, TileCounts,
    UnknownCounts,
};
pub use setup::{AirSource, Drain, Flow, LiquidBody, Setup, SmokeBody, SmokeSource, Source};
pub use simulation::{MemoryReport, SimError, Simulation};
pub use state::{Scratch, State};
pub use step::{StepLength, StepReport, prepare, substep};
