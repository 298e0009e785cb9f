//! The simulation: state, parameters, scratch memory, the substep, and what it reports.

mod clock;
mod params;
mod report;
mod setup;
mod simulation;
mod state;
mod step;
mod survey;
mod volume;

pub use clock::StageTimes;
pub use params::{
    Model, ParamError, ParamInfo, ParamKind, ParamValue, Params, Preconditioner, param, params_table,
    set_param,
};
pub use report::{
    BubbleReport, CellCounts, Divergence, FrameReport, LiquidReport, SolveReport, TileCounts, UnknownCounts,
};
pub use setup::{Drain, Flow, LiquidBody, Setup, Source};
pub use simulation::{MemoryReport, SimError, Simulation};
pub use state::{Scratch, State};
pub use step::{StepReport, prepare, substep};
pub use volume::VolumeTarget;
