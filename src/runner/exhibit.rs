//! A simulation that can be looked at: steps on one side, snapshots on the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::geometry::extract_surface;
use crate::scene::{AnyScene, Scene};
use crate::sim::{FrameReport, Params, Setup, Simulation};

use super::snapshot::{Snapshot, SolidField, Triangles, Wanted};
use super::stage::{Stage, pose_of, solid_field};
use super::{Solver, SolverError};

/// A simulation of either dimension with what it takes to show it.
pub struct Exhibit {
    stage: Arc<Stage>,
    run: u64,
    driven: Driven,
    report: FrameReport,
    start_volume: f64,
}

enum Driven {
    TwoD(Pair<2>),
    ThreeD(Pair<3>),
}

struct Pair<const D: usize> {
    setup: Setup<D>,
    solver: Box<dyn Solver<D>>,
    solids: Arc<SolidField>,
}

/// Takes the same expression from a simulation of either dimension.
macro_rules! either {
    ($driven:expr, $pair:ident => $value:expr) => {
        match $driven {
            Driven::TwoD($pair) => $value,
            Driven::ThreeD($pair) => $value,
        }
    };
}

impl Exhibit {
    /// Starts a scene's simulation with the given parameters; `run` tells its snapshots from those of other runs.
    pub fn new(scene: &AnyScene, stage: Arc<Stage>, params: Params, run: u64) -> Result<Self, SolverError> {
        let mut driven = match scene {
            AnyScene::TwoD(scene) => Driven::TwoD(Pair::new(scene, params)?),
            AnyScene::ThreeD(scene) => Driven::ThreeD(Pair::new(scene, params)?),
        };
        let report = either!(&mut driven, pair => pair.solver.survey());
        let start_volume = report.liquid.volume;
        Ok(Exhibit { stage, run, driven, report, start_volume })
    }

    /// The same simulation at the same moment, to go its own way.
    pub fn branch(&self) -> Self {
        let driven = match &self.driven {
            Driven::TwoD(pair) => Driven::TwoD(pair.branch()),
            Driven::ThreeD(pair) => Driven::ThreeD(pair.branch()),
        };
        Exhibit { stage: Arc::clone(&self.stage), driven, report: self.report.clone(), ..*self }
    }

    /// Goes forward by one frame of the scene; false when `stop` was raised before its end.
    pub fn advance(
        &mut self,
        stop: &AtomicBool,
        between: &mut dyn FnMut(&mut Params),
    ) -> Result<bool, SolverError> {
        let seconds = 1.0 / self.stage.fps;
        let report =
            either!(&mut self.driven, pair => pair.solver.advance_frame_with(seconds, stop, between))?;
        Ok(report.map(|report| self.report = report).is_some())
    }

    /// The last frame's statistics.
    pub fn report(&self) -> &FrameReport {
        &self.report
    }

    /// The number of its run.
    pub fn run(&self) -> u64 {
        self.run
    }

    /// The scene.
    pub fn stage(&self) -> &Arc<Stage> {
        &self.stage
    }

    /// The parameters in use.
    pub fn params_mut(&mut self) -> &mut Params {
        either!(&mut self.driven, pair => pair.solver.params_mut())
    }

    /// This moment, with the costly parts that are wanted.
    pub fn snapshot(&mut self, wanted: Wanted, pace: f64) -> Snapshot {
        let start = Instant::now();
        let params = self.params_mut().clone();
        let mut snapshot = Snapshot {
            stage: Arc::clone(&self.stage),
            run: self.run,
            report: self.report.clone(),
            start_volume: self.start_volume,
            params,
            surface: Triangles::default(),
            cells: Default::default(),
            motes: None,
            tiles: Vec::new(),
            poses: Vec::new(),
            solids: Arc::default(),
            pace,
            seconds: 0.0,
        };
        either!(&mut self.driven, pair => pair.fill(&mut snapshot, wanted));
        snapshot.seconds = start.elapsed().as_secs_f64();
        snapshot
    }
}

impl<const D: usize> Pair<D> {
    fn new(scene: &Scene<D>, params: Params) -> Result<Self, SolverError> {
        let setup = Setup { params, ..scene.setup.clone() };
        let solver = Box::new(Simulation::new(&setup)?);
        let solids = Arc::new(solid_field(&setup, 0.0));
        Ok(Pair { setup, solver, solids })
    }

    fn branch(&self) -> Self {
        let Pair { setup, solver, solids } = self;
        Pair { setup: setup.clone(), solver: solver.branch(), solids: Arc::clone(solids) }
    }

    fn fill(&mut self, snapshot: &mut Snapshot, wanted: Wanted) {
        let (setup, solver, time) = (&self.setup, &self.solver, snapshot.report.time);
        if setup.solids.iter().any(|solid| solid.is_moving()) && time > 0.0 {
            self.solids = Arc::new(solid_field(setup, time));
        }
        // The flow is part of the picture in 2D, and small.
        let shown = solver.shown_surface();
        snapshot.cells = solver.cell_fields(&shown, Wanted { velocity: wanted.velocity || D == 2, ..wanted });
        snapshot.motes = wanted.particles.then(|| solver.motes());
        snapshot.tiles = solver.tiles();
        snapshot.poses = setup.solids.iter().map(|solid| pose_of(solid, time)).collect();
        snapshot.solids = Arc::clone(&self.solids);
        if D == 3 {
            snapshot.surface = Triangles::from(&extract_surface(solver.blocks(), &shown));
        }
    }
}
