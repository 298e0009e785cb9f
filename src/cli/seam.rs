//! Where the command line meets scenes and simulations.

use super::Failure;
use super::args::SceneArguments;
use crate::runner::{Solver, SolverError, start_solver};
use crate::scene::{self, AnyScene, Overrides, library};

/// The built-in scenes' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    library().iter().map(|scene| scene.name)
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
