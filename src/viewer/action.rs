//! What can be done in the viewer, whether by a key, a click or a script.

use bevy::prelude::Vec2;

use crate::sim::{Form, Model, ParamInfo, ParamValue};

/// Something to do.
#[derive(Clone)]
pub enum Action {
    /// Play or pause.
    TogglePlay,
    /// One frame.
    Step,
    /// From the beginning.
    Reset,
    /// Another scene.
    Load(String),
    /// Start again with so many cells along x, or with as many as the scene and this machine ask for.
    Cells(Option<usize>),
    /// Start again with fewer cells, as was offered.
    Coarser(usize),
    /// Measure once more which resolution keeps up with the clock, and start again with it.
    MeasureAgain,
    /// Whether scenes are opened at a resolution that keeps up with the clock.
    KeepRealTime(bool),
    /// Change a parameter of all simulations.
    Set(&'static ParamInfo, ParamValue),
    /// Change a pane's model.
    Model(usize, Model),
    /// The next model.
    CycleModel,
    /// Two simulations side by side, or one.
    ToggleCompare,
    /// Simulated seconds per second at most.
    Speed(f64),
    /// Switch a layer, given by its bit.
    Layer(u32),
    /// Place of the cut, as a share of the domain.
    Cut(f32),
    /// Show the whole domain.
    FrameAll,
    /// Turn the view, in radians.
    Orbit(f32, f32),
    /// Shift the view, in shares of its height.
    Pan(f32, f32),
    /// Come closer, keeping the place under the pointer in 2D: pane and place as shares of the picture.
    Zoom(f32, usize, Vec2),
    /// Select the body or the bubble at a place of a pane, if there is one.
    Pick(usize, Vec2),
    /// Select a bubble of a pane, or none.
    Select(Option<(usize, u64)>),
    /// Select a body of a pane, or none.
    SelectBody(Option<BodyKey>),
    /// Take hold of the body at a place of a pane, if there is one.
    Grab(usize, Vec2),
    /// Pull the body that is held to a place of a pane.
    Pull(Vec2),
    /// Let go of the body that follows the pointer, or leave it held where it is.
    LetGo {
        /// Whether it stays held.
        keep: bool,
    },
    /// Let go of a body by its number.
    Release(usize),
    /// What a click puts in, if anything.
    Arm(Option<Form>),
    /// Put a body in at a place of a pane.
    PutIn(Vec2),
    /// Take the selected body out.
    TakeOut,
    /// Dark or light.
    ToggleDark,
    /// Size of text and widgets.
    Scale(f32),
    /// The shortcut sheet.
    ToggleHelp,
    /// Side panels on or off.
    TogglePanels,
    /// A picture of the window.
    Screenshot,
}

/// A bubble of a pane.
pub type BubbleKey = (usize, u64);

/// A body of a pane.
pub type BodyKey = (usize, u64);
