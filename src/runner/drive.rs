//! The loop over frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use super::{Solver, SolverError};
use crate::sim::FrameReport;

/// A finished frame, to be looked at.
pub struct Frame<'a> {
    /// The simulation at the end of the frame.
    pub solver: &'a dyn Solver,
    /// The frame's statistics.
    pub report: &'a FrameReport,
    /// Raised when everyone should come to an end.
    pub stop: &'a AtomicBool,
}

/// Someone who looks at every finished frame, on the simulation's threads.
pub trait Watch: Send {
    /// Looks at a frame. [`Outcome::Stopped`] says that the stop flag cut it short: the frame does not count. An
    /// error ends the run.
    fn frame(&mut self, frame: &Frame<'_>) -> std::io::Result<Outcome>;
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
    #[error(transparent)]
    Simulation(#[from] SolverError),
    /// Someone watching could not keep up, for example because the disk is full.
    #[error("{0}")]
    Watch(#[from] std::io::Error),
    /// No threads.
    #[error("could not start the simulation's threads: {0}")]
    Threads(#[from] ThreadPoolBuildError),
}

/// A simulation with threads of its own.
pub struct Runner {
    solver: Box<dyn Solver>,
    pool: ThreadPool,
    stop: Arc<AtomicBool>,
}

impl Runner {
    /// Starts `threads` threads and builds the simulation on them.
    pub fn start(
        threads: usize,
        stop: Arc<AtomicBool>,
        build: impl FnOnce() -> Result<Box<dyn Solver>, SolverError> + Send,
    ) -> Result<Self, RunError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("glug-sim-{index}"))
            .build()?;
        let solver = pool.install(build)?;
        Ok(Runner { solver, pool, stop })
    }

    /// Goes forward by `frames` frames of `frame_seconds` each, showing every one to `watch`.
    pub fn advance(
        &mut self,
        frames: usize,
        frame_seconds: f64,
        watch: &mut impl Watch,
    ) -> Result<Outcome, RunError> {
        let (stop, solver) = (&*self.stop, &mut *self.solver);
        self.pool.install(|| advance(solver, frames, frame_seconds, stop, watch))
    }

    /// The simulation.
    pub fn solver(&self) -> &dyn Solver {
        &*self.solver
    }

    /// Runs something on the simulation's threads.
    pub fn install<R: Send>(&self, job: impl FnOnce(&dyn Solver) -> R + Send) -> R {
        self.pool.install(|| job(&*self.solver))
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }
}

fn advance(
    solver: &mut dyn Solver,
    frames: usize,
    frame_seconds: f64,
    stop: &AtomicBool,
    watch: &mut impl Watch,
) -> Result<Outcome, RunError> {
    for _ in 0..frames {
        if stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Stopped);
        }
        let Some(report) = solver.advance_frame(frame_seconds, stop, &mut |_| ())? else {
            return Ok(Outcome::Stopped);
        };
        if watch.frame(&Frame { solver, report: &report, stop })? == Outcome::Stopped {
            return Ok(Outcome::Stopped);
        }
    }
    Ok(Outcome::Finished)
}
