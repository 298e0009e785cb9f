//! The window.

use std::time::Duration;

use bevy::prelude::*;
use bevy::window::{PresentMode, WindowCloseRequested, WindowResolution};
use bevy::winit::{UpdateMode, WinitSettings};

use crate::export::{ctrl_c_is_ignored, on_interrupt};

use super::app::{ViewerPlugin, ViewerSystems};
use super::measure::{Measurement, measure};
use super::platform::{Missing, find_adapter, find_display, give_memory_back};
use super::session::{Opening, Session};
use super::ui_state::UiState;

/// Why the viewer did not open.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// Something the machine lacks.
    #[error("{0}")]
    Missing(#[from] Missing),
    /// No threads.
    #[error("could not start the simulation's thread: {0}")]
    Threads(#[from] std::io::Error),
    /// The window ended badly.
    #[error("the window closed with an error")]
    Window,
    /// Ctrl-C in the terminal.
    #[error("the window was closed from the terminal")]
    Interrupted,
}

/// What ends the process.
#[derive(Resource)]
struct Leave(fn(Result<(), ViewError>) -> !);

/// Opens the window. When it is closed, or on Ctrl-C in the terminal, `leave` ends the process.
///
/// Nothing is taken down before that, and no exit handler runs. A driver that draws on the processor compiles shaders on a
/// thread of its own, even after the last frame was handed over; LLVM's exit handlers would free what that thread is
/// reading, and the window end in a crash.
pub fn view(
    opening: &Opening,
    measure_seconds: Option<f64>,
    leave: fn(Result<(), ViewError>) -> !,
) -> Result<(), ViewError> {
    // At once, even when the window hangs or is yet to open. Where Ctrl-C is ignored, as in the background of a shell, it
    // stays so.
    if !ctrl_c_is_ignored() {
        let _ = on_interrupt(move || leave(Err(ViewError::Interrupted)));
    }
    find_display()?;
    find_adapter()?;
    give_memory_back();
    // The simulations start while the window opens.
    let (session, panes) = Session::open(opening)?;
    let mut app = App::new();
    let window = Window {
        title: "Glug".into(),
        name: Some("glug".into()),
        resolution: WindowResolution::new(1440, 860),
        present_mode: PresentMode::AutoVsync,
        ..default()
    };
    app.add_plugins(
        plugins()
            .set(WindowPlugin { primary_window: Some(window), ..default() })
            .disable::<bevy::app::TerminalCtrlCHandlerPlugin>(),
    );
    app.insert_resource(ClearColor(Color::BLACK))
        .insert_resource(WinitSettings {
            // As often as a screen shows, even when the driver does not wait for it.
            focused_mode: UpdateMode::reactive(Duration::from_micros(16_600)),
            unfocused_mode: UpdateMode::reactive_low_power(Duration::from_millis(33)),
        })
        .add_plugins(ViewerPlugin)
        .insert_resource(session)
        .insert_resource(panes)
        .insert_resource(UiState::default())
        .insert_resource(Leave(leave))
        .add_systems(First, leave_when_closed)
        .add_systems(Last, leave_when_done);
    if let Some(seconds) = measure_seconds {
        app.insert_resource(Measurement::new(seconds))
            .add_systems(Update, measure.after(ViewerSystems::Draw));
    }
    ended(&app.run())
}

/// How the window ended.
fn ended(exit: &AppExit) -> Result<(), ViewError> {
    match exit {
        AppExit::Success => Ok(()),
        AppExit::Error(_) => Err(ViewError::Window),
    }
}

/// The window's cross was clicked. There is one window: the rest need not hear of it.
fn leave_when_closed(mut closed: MessageReader<WindowCloseRequested>, leave: Res<Leave>) {
    if closed.read().next().is_some() {
        (leave.0)(Ok(()));
    }
}

/// The end of a measurement, or a renderer that gave up.
fn leave_when_done(mut exits: MessageReader<AppExit>, leave: Res<Leave>) {
    if let Some(exit) = exits.read().next() {
        (leave.0)(ended(exit));
    }
}

/// Bevy's plugins, quiet about what is not the user's business.
pub fn plugins() -> bevy::app::PluginGroupBuilder {
    DefaultPlugins.build().set(bevy::log::LogPlugin {
        level: bevy::log::Level::WARN,
        filter: "warn,wgpu=error,naga=error,bevy_render::renderer=error,bevy_egui=error,winit=error".into(),
        ..default()
    })
}
