//! `glug run`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::args::RunArguments;
use super::outputs::Outputs;
use super::progress::Progress;
use super::seam;
use super::summary::Summary;
use super::{FRAMES, Failure, print, thread_count};
use crate::runner::{Frame, Outcome, Runner, Watch};

struct Watcher {
    outputs: Outputs,
    progress: Progress,
    summary: Summary,
}

impl Watch for Watcher {
    fn frame(&mut self, frame: &Frame<'_>) -> std::io::Result<Outcome> {
        let outcome = self.outputs.write(frame)?;
        if outcome == Outcome::Finished {
            self.summary.add(frame.report);
            FRAMES.store(self.summary.frames(), Ordering::Relaxed);
            self.progress.frame(frame.report);
        }
        Ok(outcome)
    }
}

/// Simulates a scene, writes what was asked for, and prints the closing table.
pub fn run(arguments: &RunArguments, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let scene = seam::load(&arguments.scene)?;
    let frames = arguments.frames.unwrap_or(scene.frames());
    let fps = arguments.fps.unwrap_or(scene.fps());
    let outputs = Outputs::prepare(arguments, &scene)?;
    let progress = Progress::new(scene.name(), frames, arguments.quiet);
    let mut watcher = Watcher { outputs, progress, summary: Summary::start() };

    let threads = thread_count(arguments.scene.threads);
    let mut runner = Runner::start(threads, Arc::clone(stop), move || seam::start(&scene))?;
    let outcome = runner.advance(frames, 1.0 / fps, &mut watcher);
    watcher.progress.finish();
    let outcome = outcome?;
    if !arguments.quiet && watcher.summary.frames() > 0 {
        print(&watcher.summary.table(threads, watcher.outputs.summary()).to_string())?;
    }
    match outcome {
        Outcome::Finished => Ok(()),
        Outcome::Stopped => Err(Failure::Stopped(watcher.summary.frames())),
    }
}
