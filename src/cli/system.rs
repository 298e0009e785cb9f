//! `glug system`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::args::SystemArguments;
use super::outputs::{named, prepare_folder};
use super::progress::Progress;
use super::source;
use super::table::grouped;
use super::{FRAMES, Failure, print, thread_count};
use crate::export::{SystemMeta, write_system};
use crate::runner::{AnyGrid, Frame, Outcome, Runner, Watch};
use crate::sim::FrameReport;

struct Last {
    report: FrameReport,
    progress: Progress,
}

impl Watch for Last {
    fn frame(&mut self, frame: &Frame<'_>) -> std::io::Result<Outcome> {
        self.report = frame.report.clone();
        FRAMES.store(self.report.frame, Ordering::Relaxed);
        self.progress.frame(frame.report);
        Ok(Outcome::Finished)
    }
}

/// Simulates up to a frame and writes the system of its last projection.
pub fn system(arguments: &SystemArguments, stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let scene = source::load(&arguments.scene)?;
    prepare_folder(&arguments.out)?;
    let (name, fps, tolerance) = (scene.name().to_owned(), scene.fps(), scene.params().tolerance);
    let threads = thread_count(arguments.scene.threads);
    let mut runner = Runner::start(threads, Arc::clone(stop), move || source::start(&scene))?;
    let progress = Progress::new(&name, arguments.frame, false);
    let mut last = Last { report: FrameReport::default(), progress };
    let outcome = runner.advance(arguments.frame, 1.0 / fps, &mut last);
    last.progress.finish();
    if outcome? == Outcome::Stopped {
        return Err(Failure::Stopped(last.report.frame));
    }
    let system = runner.install(|solver| solver.grid().and_then(AnyGrid::system));
    let (Some(system), Some(solve)) = (system, last.report.solve.last()) else {
        return Err(Failure::Work(format!("frame {} has no projection: no liquid is left", arguments.frame)));
    };
    let meta = SystemMeta {
        unknowns: last.report.unknowns,
        tolerance,
        iterations: system.info.iterations,
        relative_residual: system.info.relative_residual,
        seconds_setup: system.info.seconds_setup,
        seconds_solve: system.info.seconds_solve,
        method: solve.method.to_owned(),
        threads,
        scene: name,
        frame: arguments.frame,
    };
    let files = write_system(&arguments.out, &system, &meta)
        .map_err(|error| Failure::Work(named(error, &arguments.out).to_string()))?;
    print(&format!(
        "{} unknowns, {} entries: {} in {}\n",
        grouped(system.rhs.len()),
        grouped(system.entries.len()),
        files.join(", "),
        arguments.out.display()
    ))
}
