//! A simulation on a thread of its own: commands in, the newest snapshot out; nobody waits.
//!
//! Commands take effect between two substeps. A failure of any kind, panics included, stops the simulation and is
//! reported; the last good snapshot stays. Snapshots are finished on a third thread.

mod control;
mod finisher;
mod run;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use rayon::ThreadPoolBuilder;

use super::command::{Command, Phase};
use super::pace::Pace;
use crate::snapshot::Snapshot;
use finisher::{Finisher, PendingSketch};
use run::Loop;

/// What the viewer holds of a worker.
pub struct Worker {
    commands: Sender<Command>,
    shared: Arc<Shared>,
}

struct Shared {
    newest: ArcSwapOption<Snapshot>,
    /// Whether someone has taken the newest snapshot.
    seen: AtomicBool,
    sketch: PendingSketch,
    /// The first moment of the current run, as long as a reset leads back to it.
    first: ArcSwapOption<Snapshot>,
    /// The number of the last run.
    runs: AtomicU64,
    phase: ArcSwap<Phase>,
    /// Why edits were refused, until someone asks.
    refused: Mutex<Vec<String>>,
    /// Raised to cut the current frame short.
    interrupt: AtomicBool,
    quit: AtomicBool,
}

impl Worker {
    /// Starts a thread with a pool of `threads` threads; it waits for a scene to load. Workers of one [`Pace`] go
    /// forward together.
    pub fn start(threads: usize, pace: &Arc<Pace>) -> std::io::Result<Self> {
        let (commands, inbox) = channel();
        let shared = Arc::new(Shared {
            newest: ArcSwapOption::empty(),
            seen: AtomicBool::new(true),
            sketch: PendingSketch::default(),
            first: ArcSwapOption::empty(),
            runs: AtomicU64::new(0),
            phase: ArcSwap::default(),
            refused: Mutex::default(),
            interrupt: AtomicBool::new(false),
            quit: AtomicBool::new(false),
        });
        let (own, place) = (Arc::clone(&shared), pace.join());
        let finisher = Finisher::open(&shared, threads)?;
        std::thread::Builder::new().name("glug-sim".into()).spawn(move || {
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads.max(1))
                .thread_name(|index| format!("glug-sim-{index}"))
                .start_handler(|_| stand_back())
                .build();
            match pool {
                Ok(pool) => pool.install(|| Loop::new(inbox, own, place, finisher).run()),
                Err(error) => own.phase.store(Arc::new(Phase::Failed(format!("no threads: {error}")))),
            }
        })?;
        Ok(Worker { commands, shared })
    }

    /// Tells the worker something; returns at once.
    pub fn send(&self, command: Command) {
        let anew = matches!(&command, Command::Load { .. } | Command::Rebuild { .. } | Command::Adopt(_))
            || matches!(&command, Command::Set(info, _) if !info.live);
        if anew {
            self.shared.first.store(None);
        }
        // First the flag, then the command: the other way round the flag could be raised after the command was obeyed,
        // and stop what came of it.
        if anew || matches!(&command, Command::Reset) {
            self.shared.interrupt.store(true, Ordering::Relaxed);
        }
        if matches!(&command, Command::Reset) {
            self.shared.show_first();
        }
        // The receiver is gone only when its thread is: then there is nobody to tell.
        let _ = self.commands.send(command);
    }

    /// The newest snapshot.
    pub fn newest(&self) -> Option<Arc<Snapshot>> {
        let newest = self.shared.newest.load_full();
        if newest.is_some() && !self.shared.seen.swap(true, Ordering::Relaxed) {
            self.shared.sketch.wake();
        }
        newest
    }

    /// Why edits were refused since this was asked last.
    pub fn take_refused(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.refused())
    }

    /// What the worker is doing.
    pub fn phase(&self) -> Arc<Phase> {
        self.shared.phase.load_full()
    }
}

/// Where processors are scarce the window goes first: there, simulated time had better slow down than the picture
/// stutter. On Linux a thread's niceness is its own; this leaves it a quarter of what a drawing thread gets.
fn stand_back() {
    #[cfg(all(target_os = "linux", feature = "viewer"))]
    // SAFETY: a plain system call. If it is refused, nothing changes.
    unsafe {
        libc::nice(6);
    }
}

/// What a panic said.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
    format!("the simulation stumbled over a bug: {text}")
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::Relaxed);
        self.shared.interrupt.store(true, Ordering::Relaxed);
        // Wakes it up. It ends by itself after the substep it is in; nobody waits for that.
        let _ = self.commands.send(Command::Pause);
    }
}

impl Shared {
    /// Numbers a run.
    fn next_run(&self) -> u64 {
        self.runs.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// A panic elsewhere cannot leave the list half-written.
    fn refused(&self) -> MutexGuard<'_, Vec<String>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps why an edit was refused.
    fn refuse(&self, why: String) {
        self.refused().push(why);
    }

    /// Whether someone has taken the newest snapshot.
    fn is_seen(&self) -> bool {
        self.seen.load(Ordering::Relaxed)
    }

    /// Shows a moment, unless a later run has begun to show itself.
    fn publish(&self, snapshot: Arc<Snapshot>) {
        self.newest.rcu(|old| match old {
            Some(old) if old.run > snapshot.run => Some(Arc::clone(old)),
            _ => Some(Arc::clone(&snapshot)),
        });
        // Afterwards: whoever takes the one before in between has not seen this one.
        self.seen.store(false, Ordering::Relaxed);
    }

    /// Shows how the run will start again. Whoever asked for it sees that before the substep under way has ended.
    fn show_first(&self) {
        if let (Some(first), Some(newest)) = (self.first.load_full(), self.newest.load_full()) {
            let params = newest.params.clone();
            self.publish(Arc::new(Snapshot { run: self.next_run(), params, ..Snapshot::clone(&first) }));
        }
    }
}
