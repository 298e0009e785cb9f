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
pub struct Studio {
    shared: Arc<Shared>,
}

/// What waits to be finished.
#[derive(Default)]
pub struct Desk {
    tray: Mutex<Tray>,
    bell: Condvar,
}

#[derive(Default)]
struct Tray {
    newest: Option<Sketch>,
    closed: bool,
    /// Why drawing failed, until someone asks.
    trouble: Option<String>,
}

impl Desk {
    /// A panic elsewhere cannot leave the tray half-filled.
    fn tray(&self) -> MutexGuard<'_, Tray> {
        self.tray.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Someone has taken the last snapshot: the next one may be drawn.
    pub fn ring(&self) {
        // With the tray in hand, or the thread could miss it between looking and falling asleep.
        let _tray = self.tray();
        self.bell.notify_one();
    }
}

impl Studio {
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
                Err(error) => own.desk.tray().trouble = Some(format!("no threads: {error}")),
            }
        })?;
        Ok(Studio { shared: Arc::clone(shared) })
    }

    /// Leaves a sketch to be finished and shown, instead of one that still waits.
    pub fn leave(&self, sketch: Sketch) {
        let before = self.shared.desk.tray().newest.replace(sketch);
        self.shared.desk.bell.notify_one();
        // Given up without the tray in hand: it is large.
        drop(before);
    }

    /// What went wrong since it was asked last.
    pub fn trouble(&self) -> Option<String> {
        self.shared.desk.tray().trouble.take()
    }
}

impl Drop for Studio {
    fn drop(&mut self) {
        self.shared.desk.tray().closed = true;
        self.shared.desk.bell.notify_one();
    }
}

/// Finishes sketches until there will be no more.
fn draw(shared: &Shared, pool: &ThreadPool) {
    loop {
        let mut tray = shared.desk.tray();
        let sketch = loop {
            if tray.closed {
                return;
            }
            let next = if shared.is_seen() { tray.newest.take() } else { None };
            match next {
                Some(sketch) => break sketch,
                None => tray = shared.desk.bell.wait(tray).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(tray);
        match catch_unwind(AssertUnwindSafe(|| pool.install(|| sketch.finish()))) {
            Ok(snapshot) => shared.publish(Arc::new(snapshot)),
            Err(panic) => shared.desk.tray().trouble = Some(panic_text(&*panic)),
        }
    }
}
