//! The window.

use std::time::Duration;

use bevy::prelude::*;
use bevy::window::{PresentMode, WindowResolution};
use bevy::winit::{UpdateMode, WinitSettings};

use super::app::{ViewerPlugin, ViewerSystems};
use super::desk::Desk;
use super::measure::{Measurement, measure};
use super::session::{Opening, Session};
use super::surroundings::{Missing, find_adapter, find_display, give_memory_back};

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

/// How Bevy reports an end that was asked for from the terminal.
const INTERRUPTED: u8 = 130;

/// Opens the window; returns when it is closed.
pub fn view(opening: &Opening, measure_seconds: Option<f64>) -> Result<(), ViewError> {
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
    app.add_plugins(plugins().set(WindowPlugin { primary_window: Some(window), ..default() }));
    app.insert_resource(ClearColor(Color::BLACK))
        .insert_resource(WinitSettings {
            // As often as a screen shows, even when the driver does not wait for it.
            focused_mode: UpdateMode::reactive(Duration::from_micros(16_600)),
            unfocused_mode: UpdateMode::reactive_low_power(Duration::from_millis(33)),
        })
        .add_plugins(ViewerPlugin)
        .insert_resource(session)
        .insert_resource(panes)
        .insert_resource(Desk::default());
    if let Some(seconds) = measure_seconds {
        app.insert_resource(Measurement::new(seconds))
            .add_systems(Update, measure.after(ViewerSystems::Draw));
    }
    match app.run() {
        AppExit::Success => Ok(()),
        AppExit::Error(code) if code.get() == INTERRUPTED => Err(ViewError::Interrupted),
        AppExit::Error(_) => Err(ViewError::Window),
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
