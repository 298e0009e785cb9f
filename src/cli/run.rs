//! `glug run`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::args::RunArguments;
use super::checkpoints::Checkpoints;
use super::outputs::Outputs;
use super::progress::Progress;
use super::seam::Start;
use super::summary::Summary;
use super::{FRAMES, Failure, print, thread_count};
use crate::runner::{Frame, Outcome, RunError, Runner, SolverError, Watch};

struct Watcher {
    outputs: Outputs,
    checkpoints: Option<Checkpoints>,
    progress: Progress,
    summary: Summary,
}

impl Watch for Watcher {
    fn frame(&mut self, frame: &Frame<'_>) -> std::io::Result<Outcome> {
        let outcome = self.outputs.write(frame)?;
        if outcome == Outcome::Finished {
            // Last of all: whoever goes on from it finds the frame's other files.
            if let Some(checkpoints) = &self.checkpoints {
                checkpoints.write(frame)?;
            }
            self.summary.add(frame.report);
            FRAMES.store(frame.report.frame, Ordering::Relaxed);
            self.progress.frame(frame.report);
        }
        Ok(outcome)
    }
}

/// Simulates a scene, or goes on from a checkpoint, writes what was asked for, and prints the closing table.
pub fn run(arguments: &RunArguments, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let start = Start::of(arguments)?;
    let (frames, fps) = start.pace();
    let (frames, fps) = (arguments.frames.unwrap_or(frames), arguments.fps.unwrap_or(fps));
    let done = start.done();
    let left = frames.saturating_sub(done.unwrap_or(0));
    if left == 0 {
        return Err(Failure::Input(format!(
            "nothing is left to do: the checkpoint is of frame {}, and the run ends with frame {frames}; --frames N goes \
             on to frame N",
            done.unwrap_or(0)
        )));
    }
    FRAMES.store(done.unwrap_or(0), Ordering::Relaxed);
    let progress = Progress::new(start.scene().name(), frames, arguments.quiet);
    progress.skip(done.unwrap_or(0));
    let checkpoints = arguments.checkpoint_every.zip(arguments.out.as_ref()).map(|(every, folder)| {
        Checkpoints::new(
            folder,
            every,
            arguments.keep_checkpoints,
            start.scene().dimension(),
            start.source().clone(),
            frames,
            fps,
        )
    });
    let (threads, scene) = (thread_count(arguments.threads), start.scene().clone());
    // A checkpoint that is refused must leave the files of its run alone.
    let (mut runner, outputs) = match done {
        None => {
            let outputs = Outputs::prepare(arguments, &scene, done)?;
            (begin(start, threads, stop)?, outputs)
        }
        Some(_) => (begin(start, threads, stop)?, Outputs::prepare(arguments, &scene, done)?),
    };
    let mut watcher = Watcher { outputs, checkpoints, progress, summary: Summary::start() };
    let outcome = runner.advance(left, 1.0 / fps, &mut watcher);
    watcher.progress.finish();
    let outcome = outcome?;
    if !arguments.quiet && watcher.summary.frames() > 0 {
        print(&watcher.summary.table(threads, watcher.outputs.summary()).to_string())?;
    }
    match outcome {
        Outcome::Finished => Ok(()),
        Outcome::Stopped => Err(Failure::Stopped(FRAMES.load(Ordering::Relaxed))),
    }
}

/// Starts the simulation, or reads it, on threads of its own.
fn begin(start: Start, threads: usize, stop: &Arc<AtomicBool>) -> Result<Runner, Failure> {
    Runner::start(threads, Arc::clone(stop), move || start.begin()).map_err(|error| match error {
        RunError::Simulation(SolverError::Refused(reason)) => Failure::Input(reason),
        error => error.into(),
    })
}
