//! What a worker can be told, and what it says it is doing.

use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex};

use super::Worker;
use super::run::Run;
use crate::scene::{AnyScene, Overrides};
use crate::sim::{Edit, Model, ParamInfo, ParamValue, Params};
use crate::snapshot::{Scenery, Snapshot, Wanted};

/// What a worker can be told.
#[derive(Clone)]
pub enum Command {
    /// Go on.
    Play,
    /// Stop before the next substep.
    Pause,
    /// Go to the end of the next frame, then pause.
    Step,
    /// Start the scene again, with the parameters as they are.
    Reset,
    /// Change to another scene; it brings its own parameters, the model among them, but for the overrides.
    Load {
        /// Built-in name or path.
        scene: String,
        /// Changes to it.
        overrides: Overrides,
    },
    /// Build the scene anew with other changes, its number of cells for example. Parameters and model stay as they are.
    Rebuild {
        /// Built-in name or path.
        scene: String,
        /// Changes to it.
        overrides: Overrides,
    },
    /// At the end of the current frame, send copies of the simulation and pause.
    Branch(Vec<Sender<Branch>>),
    /// Go on with a copy of another worker's simulation.
    Adopt(Adoption),
    /// Change a parameter. One that is not live starts the scene again.
    Set(&'static ParamInfo, ParamValue),
    /// Treat air differently from the next substep on.
    Model(Model),
    /// Before the next frame, take hold of a body, pull or release it, put one in or take one out.
    Edit(Edit),
    /// Simulated seconds per second of the wall clock, at most.
    Speed(f64),
    /// Which costly parts snapshots should have.
    Wanted(Wanted),
    /// Panic, to see that it does no harm.
    #[doc(hidden)]
    Panic,
}

/// A copy of a simulation with all that its worker knew about it.
pub struct Branch {
    pub(super) run: Run,
    pub(super) scene: (AnyScene, Arc<Scenery>),
    /// The first moment of its run.
    pub(super) first: Option<Arc<Snapshot>>,
    pub(super) params: Params,
}

/// Where a worker gets its simulation from.
#[derive(Clone)]
pub struct Adoption {
    /// The other end of what the parent was given with [`Command::Branch`].
    pub from: Arc<Mutex<Receiver<Branch>>>,
    /// Kept alive until it has sent its copy.
    pub parent: Arc<Worker>,
    /// How to treat air from here on.
    pub model: Model,
    /// What to load when the parent has nothing to give.
    pub otherwise: (String, Overrides),
}

/// What a worker is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Phase {
    /// Reading and building a scene.
    #[default]
    Loading,
    /// Going on.
    Playing,
    /// Waiting.
    Paused,
    /// Given up, for this reason; reset or load to go on.
    Failed(String),
}
