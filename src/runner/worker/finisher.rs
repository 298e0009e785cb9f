//! Where snapshots are finished: a thread beside the simulation's.
//!
//! The simulation leaves a sketch and goes on. The newest one is finished when the window has taken the snapshot before:
//! when nobody looks, nothing is drawn, and when drawing takes longer than a frame, frames are left out.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::{Shared, panic_text, stand_back};
use crate::runner::run::Sketch;

/// The simulation's end of it; the thread ends when it is dropped.
pub struct Finisher {
    shared: Arc<Shared>,
}

/// The newest sketch that waits to be finished.
#[derive(Default)]
pub struct PendingSketch {
    pending: Mutex<Pending>,
    changed: Condvar,
}

#[derive(Default)]
struct Pending {
    newest: Option<Sketch>,
    closed: bool,
    /// Why drawing failed, until someone asks.
    error: Option<String>,
}

impl PendingSketch {
    /// A panic elsewhere cannot leave it half-filled.
    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Someone has taken the last snapshot: the next one may be drawn.
    pub fn wake(&self) {
        // With the lock held, or the thread could miss it between looking and falling asleep.
        let _pending = self.lock();
        self.changed.notify_one();
    }
}

impl Finisher {
    /// Starts the thread, with a quarter of the simulation's threads to draw with.
    pub fn open(shared: &Arc<Shared>, simulation_threads: usize) -> std::io::Result<Self> {
        let threads = (simulation_threads / 4).clamp(1, 4);
        let own = Arc::clone(shared);
        std::thread::Builder::new().name("glug-draw".into()).spawn(move || {
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|index| format!("glug-draw-{index}"))
                .start_handler(|_| stand_back())
                .build();
            match pool {
                Ok(pool) => draw(&own, &pool),
                Err(error) => own.sketch.lock().error = Some(format!("no threads: {error}")),
            }
        })?;
        Ok(Finisher { shared: Arc::clone(shared) })
    }

    /// Leaves a sketch to be finished and shown, instead of one that still waits.
    pub fn submit(&self, sketch: Sketch) {
        let before = self.shared.sketch.lock().newest.replace(sketch);
        self.shared.sketch.changed.notify_one();
        // Dropped without the lock held: it is large.
        drop(before);
    }

    /// What went wrong since it was asked last.
    pub fn take_error(&self) -> Option<String> {
        self.shared.sketch.lock().error.take()
    }
}

impl Drop for Finisher {
    fn drop(&mut self) {
        self.shared.sketch.lock().closed = true;
        self.shared.sketch.changed.notify_one();
    }
}

/// Finishes sketches until there will be no more.
fn draw(shared: &Shared, pool: &ThreadPool) {
    loop {
        let mut pending = shared.sketch.lock();
        let sketch = loop {
            if pending.closed {
                return;
            }
            let next = if shared.is_seen() { pending.newest.take() } else { None };
            match next {
                Some(sketch) => break sketch,
                None => pending = shared.sketch.changed.wait(pending).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(pending);
        match catch_unwind(AssertUnwindSafe(|| pool.install(|| sketch.finish()))) {
            Ok(snapshot) => shared.publish(Arc::new(snapshot)),
            Err(panic) => shared.sketch.lock().error = Some(panic_text(&*panic)),
        }
    }
}
