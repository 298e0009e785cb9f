//! The loop over frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::{Solver, SolverError};
use crate::sim::{FrameReport, Setup};

/// A solver of either dimension, with what it started from.
pub enum AnySolver {
    /// Two dimensions.
    TwoD(Setup<2>, Box<dyn Solver<2>>),
    /// Three dimensions.
    ThreeD(Setup<3>, Box<dyn Solver<3>>),
}

/// A finished frame, to be looked at.
pub struct Frame<'a, const D: usize> {
    /// What the simulation started from.
    pub setup: &'a Setup<D>,
    /// The simulation at the end of the frame.
    pub solver: &'a dyn Solver<D>,
    /// The frame's statistics.
    pub report: &'a FrameReport,
    /// Raised when everyone should come to an end.
    pub stop: &'a AtomicBool,
}

/// Someone who looks at every finished frame, on the simulation's threads.
pub trait Watch: Send {
    /// Looks at a frame. [`Outcome::Stopped`] says that the stop flag cut it short: the frame does not count. An
    /// error ends the run.
    fn frame<const D: usize>(&mut self, frame: &Frame<'_, D>) -> std::io::Result<Outcome>;
}

/// How a run ended, when nothing went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All frames are done.
    Finished,
    /// The stop flag was raised.
    Stopped,
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The simulation gave up.
    #[error("{0}")]
    Simulation(SolverError),
    /// Someone watching could not keep up, for example because the disk is full.
    #[error("{0}")]
    Watch(#[from] std::io::Error),
    /// No threads.
    #[error("could not start the simulation's threads: {0}")]
    Threads(#[from] ThreadPoolBuildError),
}

/// A simulation with threads of its own.
pub struct Runner {
    solver: AnySolver,
    pool: ThreadPool,
    stop: Arc<AtomicBool>,
}

impl Runner {
    /// Starts `threads` threads and builds the simulation on them.
    pub fn start<E: Into<SolverError> + Send>(
        threads: usize,
        stop: Arc<AtomicBool>,
        build: impl FnOnce() -> Result<AnySolver, E> + Send,
    ) -> Result<Self, RunError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("glug-sim-{index}"))
            .build()?;
        let solver = pool.install(build).map_err(|error| RunError::Simulation(error.into()))?;
        Ok(Runner { solver, pool, stop })
    }

    /// Goes forward by `frames` frames of `frame_seconds` each, showing every one to `watch`.
    pub fn advance(
        &mut self,
        frames: usize,
        frame_seconds: f64,
        watch: &mut impl Watch,
    ) -> Result<Outcome, RunError> {
        let stop = &*self.stop;
        match &mut self.solver {
            AnySolver::TwoD(setup, solver) => {
                self.pool.install(|| advance(setup, solver.as_mut(), frames, frame_seconds, stop, watch))
            }
            AnySolver::ThreeD(setup, solver) => {
                self.pool.install(|| advance(setup, solver.as_mut(), frames, frame_seconds, stop, watch))
            }
        }
    }

    /// The simulation.
    pub fn solver(&self) -> &AnySolver {
        &self.solver
    }

    /// Runs something on the simulation's threads.
    pub fn install<R: Send>(&self, job: impl FnOnce(&AnySolver) -> R + Send) -> R {
        self.pool.install(|| job(&self.solver))
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }
}

fn advance<const D: usize>(
    setup: &Setup<D>,
    solver: &mut dyn Solver<D>,
    frames: usize,
    frame_seconds: f64,
    stop: &AtomicBool,
    watch: &mut impl Watch,
) -> Result<Outcome, RunError> {
    for _ in 0..frames {
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Stopped);
        }
        let Some(report) = solver.advance_frame(frame_seconds, stop).map_err(RunError::Simulation)? else {
            return Ok(Outcome::Stopped);
        };
        if watch.frame(&Frame { setup, solver, report: &report, stop })? == Outcome::Stopped {
            return Ok(Outcome::Stopped);
        }
    }
    Ok(Outcome::Finished)
}
