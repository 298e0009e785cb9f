//! The viewer's picture without a window: the same stage and captions, drawn into a texture and read back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bevy::camera::RenderTarget;
use bevy::ecs::system::SystemState;
use bevy::prelude::*;
use bevy::render::pipelined_rendering::PipelinedRenderingPlugin;
use bevy::render::render_asset::RenderAssets;
use bevy::render::render_resource::{
    BufferDescriptor, BufferUsages, CommandEncoderDescriptor, Extent3d, MapMode, PipelineCache, PollType,
    TexelCopyBufferInfo, TexelCopyBufferLayout, TextureFormat, TextureUsages,
};
use bevy::render::renderer::{RenderDevice, RenderQueue};
use bevy::render::texture::GpuImage;
use bevy::render::{RenderApp, RenderPlugin};
use bevy::window::ExitCondition;
use bevy::winit::WinitPlugin;
use bevy_egui::PrimaryEguiContext;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::app::ViewerPlugin;
use super::entities::EntitySync;
use super::platform::Missing;
use super::session::{Panes, Shown};
use super::ui_state::UiState;
use super::window::plugins;
use crate::export::Picture;
use crate::runner::{Phase, Run, SolverError};
use crate::scene::AnyScene;
use crate::sim::{Model, Params};
use crate::snapshot::{Scenery, Snapshot, Wanted};

/// Updates after which pipelines must be there: they are compiled while it waits.
const PATIENCE: usize = 600;

/// What to render.
pub struct OffscreenSetup {
    /// The scene.
    pub scene: AnyScene,
    /// A model per pane.
    pub models: Vec<Model>,
    /// Pixels.
    pub size: (u32, u32),
    /// What the panels are set to.
    pub ui_state: UiState,
    /// Threads of the simulations.
    pub threads: usize,
}

/// Why rendering ended early.
#[derive(Debug, thiserror::Error)]
pub enum OffscreenError {
    /// Something the machine lacks.
    #[error("{0}")]
    Missing(#[from] Missing),
    /// A simulation gave up.
    #[error("{0}")]
    Simulation(SolverError),
    /// No threads.
    #[error("could not start the simulation's threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The renderer did not deliver.
    #[error("the renderer did not deliver a picture: {0}")]
    Renderer(String),
}

/// Simulations and a renderer, driven frame by frame.
pub struct OffscreenViewer {
    app: App,
    screen: Handle<Image>,
    size: (u32, u32),
    runs: Vec<Run>,
    pool: ThreadPool,
    wanted: Wanted,
}

impl OffscreenViewer {
    /// Starts the simulations and warms the renderer up on their first moment.
    pub fn open(setup: OffscreenSetup) -> Result<Self, OffscreenError> {
        super::find_adapter()?;
        let pool = ThreadPoolBuilder::new().num_threads(setup.threads.max(1)).build()?;
        let stage = Arc::new(Scenery::of(&setup.scene));
        let runs = setup.models.iter().map(|&model| {
            let params = Params { model, ..setup.scene.params().clone() };
            pool.install(|| Run::new(&setup.scene, Arc::clone(&stage), params, 1))
        });
        let runs = runs.collect::<Result<Vec<_>, _>>().map_err(OffscreenError::Simulation)?;
        let (mut app, screen) = build(setup.size, setup.ui_state);
        app.insert_resource(Panes(setup.models.iter().map(|&model| Shown::new(model)).collect()));
        let on = |bits: u32| app.world().resource::<UiState>().layers & bits != 0;
        let wanted = Wanted {
            velocity: on(super::theme::ARROWS),
            scalars: on(super::theme::PRESSURE | super::theme::DIVERGENCE),
            particles: on(super::theme::PARTICLES),
            roles: on(super::theme::TILE_LAYERS),
        };
        let mut viewer = OffscreenViewer { app, screen, size: setup.size, runs, pool, wanted };
        viewer.show();
        viewer.warm_up()?;
        Ok(viewer)
    }

    /// Goes forward by one frame; false when told to stop.
    pub fn advance(&mut self, stop: &AtomicBool) -> Result<bool, OffscreenError> {
        for run in &mut self.runs {
            let done = self.pool.install(|| run.advance(stop, &mut |_| ()));
            if !done.map_err(OffscreenError::Simulation)? || stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
        self.show();
        Ok(true)
    }

    /// The picture of this moment.
    pub fn picture(&mut self) -> Result<Picture, OffscreenError> {
        self.app.update();
        read_back(&self.app, &self.screen, self.size)
    }

    /// The moment that a pane shows.
    pub fn moment(&self, pane: usize) -> Option<Arc<Snapshot>> {
        self.app.world().resource::<Panes>().0.get(pane)?.snapshot.clone()
    }

    /// Changes what is drawn.
    pub fn ui_state(&mut self) -> Mut<'_, UiState> {
        self.app.world_mut().resource_mut::<UiState>()
    }

    /// Puts the simulations' newest moments on the stage.
    fn show(&mut self) {
        let wanted = self.wanted;
        let runs = &mut self.runs;
        let snapshots = self
            .pool
            .install(|| runs.iter_mut().map(|run| Arc::new(run.snapshot(wanted, 0.0))).collect::<Vec<_>>());
        let world = self.app.world_mut();
        for (shown, snapshot) in world.resource_mut::<Panes>().0.iter_mut().zip(&snapshots) {
            shown.take(Arc::clone(snapshot));
            shown.phase = Phase::Paused;
        }
        let mut state = SystemState::<EntitySync>::new(world);
        for (pane, snapshot) in snapshots.iter().enumerate() {
            if let Ok(mut entities) = state.get_mut(world) {
                entities.sync(pane, snapshot);
            }
            state.apply(world);
        }
    }

    /// Draws until every shader is compiled and the panels have found their places.
    fn warm_up(&mut self) -> Result<(), OffscreenError> {
        let mut quiet = 0;
        for _ in 0..PATIENCE {
            self.app.update();
            let render = self.app.sub_app(RenderApp).world();
            let waiting = render.resource::<PipelineCache>().waiting_pipelines().count();
            quiet = if waiting == 0 { quiet + 1 } else { 0 };
            if quiet >= 5 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Err(OffscreenError::Renderer("its shaders did not compile in time".into()))
    }
}

fn build(size: (u32, u32), ui_state: UiState) -> (App, Handle<Image>) {
    /// Who writes the log is settled once for the whole process.
    static LOGGING: AtomicBool = AtomicBool::new(false);
    let mut app = App::new();
    let mut plugins = plugins();
    if LOGGING.swap(true, Ordering::Relaxed) {
        plugins = plugins.disable::<bevy::log::LogPlugin>();
    }
    app.add_plugins(
        plugins
            .set(WindowPlugin { primary_window: None, exit_condition: ExitCondition::DontExit, ..default() })
            .set(RenderPlugin { synchronous_pipeline_compilation: true, ..default() })
            .disable::<WinitPlugin>()
            .disable::<bevy::app::TerminalCtrlCHandlerPlugin>()
            // One update, one picture: nothing is drawn behind its back.
            .disable::<PipelinedRenderingPlugin>(),
    );
    let mut image = Image::new_target_texture(size.0, size.1, TextureFormat::Rgba8UnormSrgb, None);
    image.texture_descriptor.usage |= TextureUsages::COPY_SRC;
    let screen = app.world_mut().resource_mut::<Assets<Image>>().add(image);
    let camera = (PrimaryEguiContext, Camera2d, Camera { order: 10, ..default() });
    app.world_mut().spawn((camera, RenderTarget::Image(screen.clone().into())));
    app.add_plugins(ViewerPlugin).insert_resource(UiState { offscreen: true, ..ui_state });
    app.finish();
    app.cleanup();
    (app, screen)
}

/// Copies a texture from the graphics card, waiting for it.
fn read_back(app: &App, handle: &Handle<Image>, size: (u32, u32)) -> Result<Picture, OffscreenError> {
    let lost = |what: &str| OffscreenError::Renderer(what.to_owned());
    let world = app.sub_app(RenderApp).world();
    let image = world.resource::<RenderAssets<GpuImage>>().get(handle).ok_or_else(|| lost("no texture"))?;
    let (device, queue) = (world.resource::<RenderDevice>(), world.resource::<RenderQueue>());
    let (width, height) = (size.0 as usize, size.1 as usize);
    let row = RenderDevice::align_copy_bytes_per_row(4 * width);
    let buffer = device.create_buffer(&BufferDescriptor {
        label: Some("picture"),
        size: (row * height) as u64,
        usage: BufferUsages::COPY_DST | BufferUsages::MAP_READ,
        mapped_at_creation: false,
    });
    let mut encoder = device.create_command_encoder(&CommandEncoderDescriptor::default());
    let layout = TexelCopyBufferLayout { offset: 0, bytes_per_row: Some(row as u32), rows_per_image: None };
    encoder.copy_texture_to_buffer(
        image.texture.as_image_copy(),
        TexelCopyBufferInfo { buffer: &buffer, layout },
        Extent3d { width: size.0, height: size.1, depth_or_array_layers: 1 },
    );
    queue.submit([encoder.finish()]);
    let (send, receive) = std::sync::mpsc::channel();
    buffer.slice(..).map_async(MapMode::Read, move |done| drop(send.send(done)));
    device.poll(PollType::wait_indefinitely()).map_err(|error| lost(&error.to_string()))?;
    receive.recv().map_err(|_| lost("no answer"))?.map_err(|error| lost(&error.to_string()))?;
    let bytes = buffer.slice(..).get_mapped_range();
    let mut rgb = Vec::with_capacity(3 * width * height);
    for line in bytes.chunks_exact(row) {
        rgb.extend(line[..4 * width].chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]));
    }
    Ok(Picture { width, height, rgb })
}
