//! A simulation that can be looked at: steps on one side, snapshots on the other.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::scene::AnyScene;
use crate::sim::{Edit, EditError, FrameReport, Params};
use crate::snapshot::{Scenery, Snapshot, Wanted};

use super::solver::{Rest, Solver, SolverError, start_solver};

/// A run of a scene: its simulation, and what it takes to show it.
pub struct Run {
    scenery: Arc<Scenery>,
    number: u64,
    solver: Box<dyn Solver>,
    report: FrameReport,
    start_volume: f64,
}

/// A snapshot that is yet to be finished; the simulation is not needed for that.
pub struct Sketch {
    snapshot: Snapshot,
    rest: Option<Rest>,
}

impl Sketch {
    /// Fills in what is left.
    pub fn finish(self) -> Snapshot {
        let start = Instant::now();
        let Sketch { mut snapshot, rest } = self;
        if let Some(rest) = rest {
            rest(&mut snapshot);
        }
        snapshot.draw_seconds = start.elapsed().as_secs_f64();
        snapshot
    }
}

impl Run {
    /// Starts a scene's simulation with the given parameters; `number` tells its snapshots from those of other runs.
    pub fn new(
        scene: &AnyScene,
        scenery: Arc<Scenery>,
        params: Params,
        number: u64,
    ) -> Result<Self, SolverError> {
        Ok(Run::of(start_solver(scene, params)?, scenery, number))
    }

    /// Goes on with a simulation as it is.
    pub fn of(mut solver: Box<dyn Solver>, scenery: Arc<Scenery>, number: u64) -> Self {
        let report = solver.survey();
        let start_volume = report.liquid.volume;
        Run { scenery, number, solver, report, start_volume }
    }

    /// A copy at this moment, to go its own way.
    pub fn branch(&self) -> Self {
        let (scenery, solver) = (Arc::clone(&self.scenery), self.solver.branch());
        Run { scenery, solver, report: self.report.clone(), ..*self }
    }

    /// Goes forward by one frame of the scene; false when `stop` was raised before its end.
    pub fn advance(
        &mut self,
        stop: &AtomicBool,
        between: &mut dyn FnMut(&mut Params),
    ) -> Result<bool, SolverError> {
        let report = self.solver.advance_frame(1.0 / self.scenery.fps, stop, between)?;
        Ok(report.map(|report| self.report = report).is_some())
    }

    /// Takes hold of bodies, puts some in or takes some out, between two frames. The report says at once what became of them.
    pub fn edit(&mut self, edit: &Edit) -> Result<(), EditError> {
        let done = self.solver.edit(edit);
        self.report.bodies = self.solver.bodies();
        done
    }

    /// The last frame's statistics.
    pub fn report(&self) -> &FrameReport {
        &self.report
    }

    /// The number of this run.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The scene.
    pub fn scenery(&self) -> &Arc<Scenery> {
        &self.scenery
    }

    /// The parameters in use.
    pub fn params_mut(&mut self) -> &mut Params {
        self.solver.params_mut()
    }

    /// This moment, with the costly parts that are wanted.
    pub fn snapshot(&mut self, wanted: Wanted, pace: f64) -> Snapshot {
        self.sketch(wanted, pace).finish()
    }

    /// This moment, as far as the simulation is needed for it.
    pub fn sketch(&mut self, wanted: Wanted, pace: f64) -> Sketch {
        let start = Instant::now();
        let (scenery, params) = (Arc::clone(&self.scenery), self.solver.params().clone());
        let mut snapshot = Snapshot::new(scenery, self.number, self.report.clone(), params);
        (snapshot.start_volume, snapshot.pace) = (self.start_volume, pace);
        let rest = self.solver.sketch(wanted, &mut snapshot);
        snapshot.pause_seconds = start.elapsed().as_secs_f64();
        Sketch { snapshot, rest }
    }
}
