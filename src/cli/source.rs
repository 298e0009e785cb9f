//! Where the command line meets scenes and simulations.

use super::Failure;
use super::args::{RunArguments, SceneArguments};
use super::checkpoints::{self, Resumed};
use crate::runner::{Solver, SolverError, start_solver};
use crate::scene::{self, AnyScene, Overrides, SceneSource, library};

/// The built-in scenes' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    library().iter().map(|scene| scene.name)
}

/// What a run starts from.
pub enum Start {
    /// The first frame of a scene.
    Scene(Box<AnyScene>, SceneSource),
    /// A checkpoint, with changes to its parameters.
    Checkpoint(Box<Resumed>, Vec<(String, String)>),
}

impl Start {
    /// What the arguments of a run ask for, with `chosen` cells where they ask for no number.
    pub fn of(arguments: &RunArguments, chosen: Option<usize>) -> Result<Self, Failure> {
        let RunArguments { scene, cells, model, set, fps, resume, .. } = arguments;
        let mut set = changes(set)?;
        let Some(path) = resume else {
            let overrides = Overrides { cells: cells.or(chosen), model: model.clone(), set };
            let scene = scene.as_deref().unwrap_or_default();
            let (scene, source) = scene::load_with_source(scene, &overrides)
                .map_err(|error| Failure::Input(error.to_string()))?;
            return Ok(Start::Scene(Box::new(scene), source));
        };
        let taken = [
            (scene.is_some(), "the scene", scene.clone().unwrap_or_default()),
            (cells.is_some(), "the number of cells", "--cells".to_owned()),
            (fps.is_some(), "the frame rate", "--fps".to_owned()),
        ];
        if let Some((_, what, option)) = taken.iter().find(|(is_given, ..)| *is_given) {
            let message = format!("--resume takes {what} from the checkpoint: leave out `{option}`");
            return Err(Failure::Input(message));
        }
        set.splice(0..0, model.iter().map(|model| ("model".to_owned(), model.clone())));
        Ok(Start::Checkpoint(Box::new(checkpoints::open(path)?), set))
    }

    /// The scene.
    pub fn scene(&self) -> &AnyScene {
        match self {
            Start::Scene(scene, _) => scene,
            Start::Checkpoint(resumed, _) => &resumed.scene,
        }
    }

    /// What the scene was read from.
    pub fn source(&self) -> &SceneSource {
        match self {
            Start::Scene(_, source) => source,
            Start::Checkpoint(resumed, _) => &resumed.header.scene,
        }
    }

    /// Frames that are done.
    pub fn done(&self) -> Option<usize> {
        match self {
            Start::Scene(..) => None,
            Start::Checkpoint(resumed, _) => Some(resumed.header.frame),
        }
    }

    /// Frames of the whole run and per second, unless the command line says otherwise.
    pub fn pace(&self) -> (usize, f64) {
        match self {
            Start::Scene(scene, _) => (scene.frames(), scene.fps()),
            Start::Checkpoint(resumed, _) => (resumed.header.frames, resumed.header.fps),
        }
    }

    /// Starts the simulation, or reads it.
    pub fn begin(self) -> Result<Box<dyn Solver>, SolverError> {
        match self {
            Start::Scene(scene, _) => start(&scene),
            Start::Checkpoint(resumed, set) => resumed.load(&set).map_err(SolverError::Refused),
        }
    }
}

/// The scene that the arguments ask for.
pub fn load(arguments: &SceneArguments) -> Result<AnyScene, Failure> {
    let SceneArguments { scene, cells, model, set, .. } = arguments;
    load_named(scene, &Overrides { cells: *cells, model: model.clone(), set: changes(set)? })
}

/// The scene of that name or path.
pub fn load_named(scene: &str, overrides: &Overrides) -> Result<AnyScene, Failure> {
    scene::load(scene, overrides).map_err(|error| Failure::Input(error.to_string()))
}

/// The parameters that `--set` changes.
pub fn changes(set: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let pair = |change: &String| {
        let (name, value) = change.split_once('=').ok_or_else(|| {
            Failure::Input(format!("--set {change}: expected NAME=VALUE, for example `--set gravity=1.62`"))
        })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    set.iter().map(pair).collect()
}

/// Starts the simulation of a scene.
pub fn start(scene: &AnyScene) -> Result<Box<dyn Solver>, SolverError> {
    start_solver(scene, scene.params().clone())
}
