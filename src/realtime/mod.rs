//! The resolution at which a scene keeps up with the clock on this machine.
//!
//! * [`choose`]: from timings of a coarse run and a few short ones to a number of cells; knows no simulation.
//! * [`keep_up`]: measures a scene and chooses; [`Search`]: the same on a thread of its own.
//! * [`Memory`]: what was found before, in a small file in the user's cache folder.
//!
//! Nothing here changes a simulation: whoever asks starts the scene with the number of cells that comes out.

mod choose;
mod memory;
mod probe;

pub use choose::{Choice, Limits, choose, coarser, resolutions};
pub use memory::{Key, Memory};
pub use probe::{KeepUpError, Question, Search, keep_up};
