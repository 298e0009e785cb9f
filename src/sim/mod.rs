//! The simulation: state, parameters, scratch memory, the substep, and what it reports.

mod params;
mod report;
mod setup;

pub use params::{
    Model, ParamError, ParamInfo, ParamKind, ParamValue, Params, Preconditioner, param, params_table,
    set_param,
};
pub use report::{CellCounts, Divergence, FrameReport, LiquidReport, SolveReport, TileCounts, UnknownCounts};
pub use setup::{Drain, Flow, LiquidBody, Setup, Source};
