//! What the runner asks of a simulation, whatever its method.

use std::sync::atomic::AtomicBool;

use crate::archive::{ArchiveError, Writer};
use crate::scene::{AnyScene, SceneError};
use crate::sim::{BodyReport, Edit, EditError, FrameReport, Params, SimError, SolverKind};
use crate::snapshot::{Snapshot, Wanted};

use super::grid::{AnyGrid, GridSolver};

/// Why a simulation could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SolverError {
    /// There is no such scene, or it cannot be read.
    #[error(transparent)]
    Scene(#[from] SceneError),
    /// A checkpoint cannot be gone on from, or not in the way that was asked for.
    #[error("{0}")]
    Refused(String),
    /// The simulation gave up.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// Everything ran out of the domain.
    #[error("no liquid is left")]
    NoLiquidLeft,
    /// The statistics of a frame are no numbers.
    #[error("a value became infinite or not a number; a smaller `cfl` may help")]
    NonFinite,
    /// A solve went nowhere.
    #[error("the pressure solve failed (relative residual {residual:.1e})")]
    SolveFailed {
        /// The worst one of the frame.
        residual: f64,
    },
}

/// What is left to be filled in of a snapshot.
pub type Rest = Box<dyn FnOnce(&mut Snapshot) + Send>;

/// A simulation that goes forward frame by frame.
///
/// Nothing here knows of cells, particles or pressures. What only some methods have is an ability that others lack, such
/// as [`Solver::grid`].
pub trait Solver: Send + Sync {
    /// Goes forward by one frame; `None` when `stop` was raised before its end. Before every step of the solver `between`
    /// may change the parameters, or take its time.
    fn advance_frame(
        &mut self,
        frame_seconds: f64,
        stop: &AtomicBool,
        between: &mut dyn FnMut(&mut Params),
    ) -> Result<Option<FrameReport>, SolverError>;

    /// The parameters in use.
    fn params(&self) -> &Params;

    /// The parameters in use, to be changed between two frames.
    fn params_mut(&mut self) -> &mut Params;

    /// Takes hold of bodies, puts some in or takes some out, between two frames.
    fn edit(&mut self, _edit: &Edit) -> Result<(), EditError> {
        Err(EditError::NoBodies)
    }

    /// The bodies of this moment.
    fn bodies(&self) -> Vec<BodyReport> {
        Vec::new()
    }

    /// The statistics of this moment, without those of a frame.
    fn survey(&mut self) -> FrameReport;

    /// Fills in what there is to see, with the costly parts that are wanted.
    fn show(&mut self, wanted: Wanted, snapshot: &mut Snapshot);

    /// Like [`Solver::show`] in two parts: fills in what is quickly had, and returns the rest, which is done without the
    /// simulation, while that goes on.
    fn sketch(&mut self, wanted: Wanted, snapshot: &mut Snapshot) -> Option<Rest> {
        self.show(wanted, snapshot);
        None
    }

    /// A copy at this moment, to go its own way.
    fn branch(&self) -> Box<dyn Solver>;

    /// Writes all that is needed to go on from here later. A method that cannot do that refuses.
    fn save(&self, _out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        Err(ArchiveError::invalid("solver", "cannot be saved"))
    }

    /// What a solver on the grid can do besides: linear systems, surfaces, particles, memory by cell.
    fn grid(&self) -> Option<AnyGrid<'_>> {
        None
    }
}

/// Starts the simulation of a scene with the given parameters, by the solver that their model belongs to.
pub fn start_solver(scene: &AnyScene, params: Params) -> Result<Box<dyn Solver>, SolverError> {
    match params.model.solver() {
        SolverKind::Grid => Ok(match scene {
            AnyScene::TwoD(scene) => Box::new(GridSolver::new(&scene.setup, params)?),
            AnyScene::ThreeD(scene) => Box::new(GridSolver::new(&scene.setup, params)?),
        }),
    }
}
