//! `glug run`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::args::RunArguments;
use super::checkpoints::Checkpoints;
use super::outputs::Outputs;
use super::progress::Progress;
use super::source::Start;
use super::summary::Summary;
use super::{FRAMES, Failure, print, source, thread_count};
use crate::realtime::{Choice, KeepUpError, Memory, Question, keep_up};
use crate::runner::{Frame, Outcome, RunError, Runner, SolverError, Watch};
use crate::scene::Overrides;

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
    let choice = if arguments.realtime { keep_real_time(arguments, stop)? } else { None };
    let start = Start::of(arguments, choice.map(|choice| choice.cells))?;
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
        let mut table = watcher.summary.table(threads, watcher.outputs.summary());
        if let Some(choice) = choice {
            table.row(["resolution".to_owned(), in_words(&choice)]);
        }
        print(&table.to_string())?;
    }
    match outcome {
        Outcome::Finished => Ok(()),
        Outcome::Stopped => Err(Failure::Stopped(FRAMES.load(Ordering::Relaxed))),
    }
}

/// The resolution that keeps up with the clock; `None` where another one is asked for.
fn keep_real_time(arguments: &RunArguments, stop: &AtomicBool) -> Result<Option<Choice>, Failure> {
    let RunArguments { scene, cells, model, set, threads, .. } = arguments;
    if cells.is_some() {
        return Ok(None);
    }
    let question = Question {
        scene: scene.clone().unwrap_or_default(),
        overrides: Overrides { cells: None, model: model.clone(), set: source::changes(set)? },
        models: Vec::new(),
        threads: thread_count(*threads),
        in_turns: false,
        anew: false,
    };
    match keep_up(&question, Memory::of_user().as_ref(), stop) {
        Ok(choice) => Ok(Some(choice)),
        Err(KeepUpError::Stopped) => Err(Failure::Stopped(0)),
        Err(KeepUpError::Scene(error)) => Err(Failure::Input(error.to_string())),
        Err(error) => Err(Failure::Work(format!("--realtime: {error}"))),
    }
}

/// What was chosen, and what to expect of it.
fn in_words(choice: &Choice) -> String {
    let Choice { own, cells, pace } = *choice;
    let expected = match choice.keeps_up() {
        true => "to keep real time".to_owned(),
        false => format!("the coarsest, though {:.1}× slower than real time is expected", 1.0 / pace),
    };
    if cells == own {
        format!("the scene's own: {expected}")
    } else {
        format!("{cells} of {own} cells, {expected}")
    }
}

/// Starts the simulation, or reads it, on threads of its own.
fn begin(start: Start, threads: usize, stop: &Arc<AtomicBool>) -> Result<Runner, Failure> {
    Runner::start(threads, Arc::clone(stop), move || start.begin()).map_err(|error| match error {
        RunError::Simulation(SolverError::Refused(reason)) => Failure::Input(reason),
        error => error.into(),
    })
}
