//! The command line: reads arguments, checks everything that can be checked, then works.
//!
//! Exit codes: 0 done, 1 the simulation or a write failed, 2 bad input, 130 stopped by Ctrl-C.

mod args;
mod bench;
mod bench_scenes;
mod checkpoints;
#[cfg(feature = "viewer")]
mod figures;
mod outputs;
mod progress;
mod run;
mod scenes;
mod source;
#[cfg(any(test, feature = "viewer"))]
mod stairs;
mod summary;
mod system;
mod table;
mod variants;
#[cfg(feature = "viewer")]
mod view;

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use clap::Parser;
use clap::error::ErrorKind;

use crate::export::{exit_cleanly, on_interrupt};
use crate::runner::RunError;
use args::{Arguments, Command};

/// How long work may take to notice Ctrl-C before it is cut short.
const PATIENCE: Duration = Duration::from_millis(150);

/// Finished frames, for the closing words of a run that is cut short.
static FRAMES: AtomicUsize = AtomicUsize::new(0);
/// Someone has taken it on to say the closing words.
static CLOSING: AtomicBool = AtomicBool::new(false);

/// Why a command did not end well.
#[derive(Debug)]
enum Failure {
    /// The user can fix it.
    Input(String),
    /// The simulation or a write failed.
    Work(String),
    /// Ctrl-C, after this many frames.
    Stopped(usize),
    /// Ctrl-C, with a window open: there is nothing to say.
    #[cfg(feature = "viewer")]
    Closed,
    /// Nobody reads standard output any more.
    Unread,
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Failure::Work(error.to_string())
    }
}

/// Failures of writing to standard output; files have messages of their own.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Unread,
            _ => Failure::Work(format!("could not write to standard output: {error}")),
        }
    }
}

/// Runs the command that was asked for.
pub fn main() -> ExitCode {
    #[cfg(feature = "viewer")]
    view::hush_drivers();
    let done = match Arguments::try_parse() {
        Ok(arguments) => dispatch(arguments.command),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&error.render().to_string()),
            _ => Err(Failure::Input(one_line(&error))),
        },
    };
    if CLOSING.swap(true, Ordering::Relaxed) {
        // Ctrl-C came first and is about to end everything.
        std::thread::sleep(Duration::from_secs(60));
    }
    ExitCode::from(conclude(done))
}

/// Says how a command ended, and returns its exit code.
fn conclude(done: Result<(), Failure>) -> u8 {
    match done {
        Ok(()) | Err(Failure::Unread) => 0,
        Err(Failure::Input(message)) => complain(&message, 2),
        Err(Failure::Work(message)) => complain(&message, 1),
        #[cfg(feature = "viewer")]
        Err(Failure::Closed) => 130,
        Err(Failure::Stopped(frames)) => complain(&format!("stopped after frame {frames}"), 130),
    }
}

fn dispatch(command: Option<Command>) -> Result<(), Failure> {
    match command {
        Some(Command::Run(arguments)) => run::run(&arguments, &stop_on_interrupt()?),
        Some(Command::System(arguments)) => system::system(&arguments, &stop_on_interrupt()?),
        Some(Command::Bench(arguments)) => bench::bench(&arguments, &stop_on_interrupt()?),
        Some(Command::Scenes) => scenes::list(),
        Some(Command::Check { scene }) => scenes::check(&scene),
        #[cfg(feature = "viewer")]
        None => view::view(&Default::default()),
        #[cfg(feature = "viewer")]
        Some(Command::View(arguments)) => view::view(&arguments),
        #[cfg(feature = "viewer")]
        Some(Command::Render(arguments)) => view::render(&arguments, &*stop_on_interrupt()?),
        #[cfg(feature = "viewer")]
        Some(Command::Figures(arguments)) => figures::figures(&arguments, &stop_on_interrupt()?),
        #[cfg(not(feature = "viewer"))]
        None | Some(Command::View(_) | Command::Render(_) | Command::Figures(_)) => Err(Failure::Input(
            "this program was built without the window; `glug run SCENE` simulates without one, `glug scenes` lists \
             the scenes"
                .to_owned(),
        )),
    }
}

/// A flag that Ctrl-C (and a polite kill) raises. Work that is in the middle of something long, such as filling a large
/// grid for the first time, is cut short a moment later.
fn stop_on_interrupt() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&stop);
    let handler = move || {
        raised.store(true, Ordering::Relaxed);
        std::thread::sleep(PATIENCE);
        if !CLOSING.swap(true, Ordering::Relaxed) {
            exit_cleanly(130, || {
                if io::stderr().is_terminal() {
                    // The progress bar keeps its line.
                    let _ = writeln!(io::stderr());
                }
                complain(&format!("stopped after frame {}", FRAMES.load(Ordering::Relaxed)), 130);
            });
        }
    };
    on_interrupt(handler).map_err(|error| Failure::Work(format!("could not listen for Ctrl-C: {error}")))?;
    Ok(stop)
}

/// The number of threads asked for, or one per core.
fn thread_count(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Prints to standard output at once.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn complain(message: &str, code: u8) -> u8 {
    // When standard error is gone as well, the exit code still tells.
    let _ = writeln!(io::stderr(), "glug: {}", message.replace('\n', " "));
    code
}

/// The gist of a usage error: its first paragraph in one line.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let gist = text.split("\n\n").next().unwrap_or_default();
    let words: Vec<_> = gist.trim_start_matches("error: ").split_whitespace().collect();
    format!("{} (see `glug --help`)", words.join(" "))
}
