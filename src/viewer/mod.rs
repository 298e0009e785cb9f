//! The viewer: a window on running simulations, and the same pictures without one.
//!
//! * `session`: the simulations behind the panes.
//! * `entities`: bubbles, bodies and tiles as entities.
//! * `stage`: the pictures.
//! * `panels`: everything around them, as plain functions.
//! * `act`: what keys and clicks do; `hands`: what the pointer does to bodies.

mod act;
mod action;
mod app;
mod entities;
mod hands;
mod measure;
mod offscreen;
mod panels;
mod pick;
mod platform;
mod session;
mod stage;
#[cfg(test)]
mod tests;
mod theme;
mod ui_state;
mod window;

pub use entities::{Body, Bubble, History, Liquid, Registry, Tile};
pub use offscreen::{OffscreenError, OffscreenSetup, OffscreenViewer};
pub use platform::{Missing, find_adapter};
pub use session::Opening;
pub use ui_state::UiState;
pub use window::{ViewError, view};

use crate::scene::opening_scene;
use crate::sim::{Model, SolverKind};

/// The scene that opens when none is asked for.
pub fn default_scene() -> &'static str {
    opening_scene()
}

/// The names of a solver's layers as the command line spells them, and their bits.
pub fn layer_names(solver: SolverKind) -> impl Iterator<Item = (String, u32)> {
    theme::layers_of(solver).map(|layer| (layer.name.to_lowercase().replace(' ', "-"), layer.bit))
}

/// The models that are compared when none are asked for: the free surface and what follows it.
pub fn default_models() -> Vec<Model> {
    SolverKind::Grid.models().take(2).collect()
}
