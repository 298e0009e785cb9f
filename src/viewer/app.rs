//! The parts of the app that the window and the offscreen twin share.

use std::time::Instant;

use bevy::asset::AssetEventSystems;
use bevy::light::cluster::GlobalClusterSettings;
use bevy::prelude::*;
use bevy::render::renderer::RenderAdapterInfo;
use bevy_egui::{
    EguiContexts, EguiGlobalSettings, EguiPlugin, EguiPostUpdateSet, EguiPrimaryContextPass,
    EguiTextureHandle, PrimaryEguiContext, egui,
};

use super::act::{Pending, act};
use super::entities::{Body, Bubble, DrawnEntities, EntitySync, Registry};
use super::measure::FrameTimings;
use super::panels::{self, BodyRow, BubbleRow, Card, Data};
use super::session::{Panes, Session};
use super::stage::{MaterialsPlugin, OrbitCamera, Pane, SceneAssets};
use super::theme;
use super::ui_state::UiState;
use crate::runner::Phase;
use crate::snapshot::Scenery;

/// The order of things in a frame.
#[derive(SystemSet, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ViewerSystems {
    /// Actions are carried out.
    Act,
    /// Snapshots are taken and entities follow them.
    Receive,
    /// Pictures follow the snapshots.
    Draw,
}

/// The pictures, one per pane.
#[derive(Resource, Default)]
pub struct Pictures(pub Vec<Pane>);

/// The gallery's cards, made when there is a context to make textures with.
#[derive(Resource, Default)]
pub struct Gallery(Option<Vec<Card>>);

/// What the look of the panels was last set to.
#[derive(Resource, Default)]
struct AppliedTheme(Option<(bool, f32)>);

/// Everything but the window.
pub struct ViewerPlugin;

impl Plugin for ViewerPlugin {
    fn build(&self, app: &mut App) {
        app.add_plugins((EguiPlugin::default(), MaterialsPlugin, SyncPlugin))
            .init_resource::<Pictures>()
            .init_resource::<Gallery>()
            .init_resource::<AppliedTheme>()
            // Letters drawn for the first time reach the renderer in the same frame.
            .configure_sets(PostUpdate, AssetEventSystems.after(EguiPostUpdateSet::PostProcessOutput))
            .add_systems(Startup, (start, sort_lights_on_the_processor))
            .add_systems(Update, draw.in_set(ViewerSystems::Draw))
            .add_systems(EguiPrimaryContextPass, show_panels);
    }
}

/// Keeps Bevy from sorting lights into clusters on the graphics card. There is one light, and a picture whose image has
/// just been replaced has no size for a moment: the card would be asked for a texture without pixels, and the window
/// would close.
fn sort_lights_on_the_processor(settings: Option<ResMut<GlobalClusterSettings>>) {
    if let Some(mut settings) = settings {
        settings.gpu_clustering = None;
    }
}

/// The part that needs no renderer: actions, snapshots, entities.
pub struct SyncPlugin;

impl Plugin for SyncPlugin {
    fn build(&self, app: &mut App) {
        app.init_resource::<Pending>()
            .init_resource::<Panes>()
            .init_resource::<UiState>()
            .init_resource::<OrbitCamera>()
            .init_resource::<Registry>()
            .init_resource::<FrameTimings>()
            .configure_sets(Update, (ViewerSystems::Act, ViewerSystems::Receive, ViewerSystems::Draw).chain())
            .add_systems(Update, (act.in_set(ViewerSystems::Act), receive.in_set(ViewerSystems::Receive)));
    }
}

fn start(
    mut commands: Commands,
    mut settings: ResMut<EguiGlobalSettings>,
    adapter: Option<Res<RenderAdapterInfo>>,
    mut ui_state: ResMut<UiState>,
    cameras: Query<(), With<PrimaryEguiContext>>,
) {
    settings.auto_create_primary_context = false;
    if cameras.is_empty() {
        commands.spawn((PrimaryEguiContext, Camera2d, Camera { order: 10, ..default() }));
    }
    if adapter.is_some_and(|adapter| adapter.device_type == wgpu::DeviceType::Cpu) && !ui_state.offscreen {
        // Drawn by the processor: rays go less far and pictures in space are coarser, so that the window stays quick.
        ui_state.steps = 26;
        ui_state.fineness = 0.6;
    }
}

/// Takes the newest snapshots and brings the entities in line with them.
pub fn receive(
    session: Option<ResMut<Session>>,
    mut panes: ResMut<Panes>,
    mut entities: EntitySync,
    mut ui_state: ResMut<UiState>,
    mut timings: ResMut<FrameTimings>,
    mut known: Local<Vec<Phase>>,
) {
    let Some(mut session) = session else { return };
    let start = Instant::now();
    let fresh = session.receive(&mut panes);
    for &pane in &fresh {
        if let Some(snapshot) = &panes.0[pane].snapshot {
            entities.sync(pane, snapshot);
        }
    }
    session.take_refused().into_iter().for_each(|reason| ui_state.say(in_a_sentence(&reason)));
    for pane in panes.0.len()..known.len() {
        entities.close(pane);
    }
    known.resize(panes.0.len(), Phase::Loading);
    for (shown, phase) in panes.0.iter().zip(known.iter_mut()) {
        if shown.phase != *phase {
            if let Phase::Failed(message) = &shown.phase {
                ui_state.alarm(format!("{} stopped: {message}", shown.model.title()));
            }
            *phase = shown.phase.clone();
        }
    }
    if let Some(cells) = session.offer(&panes, Instant::now()) {
        ui_state.offer(cells);
    }
    if !fresh.is_empty() {
        timings.begin_snapshot(start.elapsed());
    }
}

/// With a capital and a full stop.
fn in_a_sentence(reason: &str) -> String {
    let mut letters = reason.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

/// Brings the pictures in line with the entities and the options.
pub fn draw(
    panes: Res<Panes>,
    drawn: DrawnEntities,
    ui_state: Res<UiState>,
    mut camera: ResMut<OrbitCamera>,
    mut pictures: ResMut<Pictures>,
    mut assets: SceneAssets,
    mut timings: ResMut<FrameTimings>,
    mut framed: Local<Option<(String, [f32; 3], usize)>>,
    window: Query<&Window>,
) {
    let start = Instant::now();
    while pictures.0.len() > panes.0.len() {
        if let Some(pane) = pictures.0.pop() {
            pane.close(&mut assets);
        }
    }
    while pictures.0.len() < panes.0.len() {
        let index = pictures.0.len();
        let multisample = if ui_state.fineness < 1.0 { Msaa::Off } else { Msaa::Sample4 };
        pictures.0.push(Pane::new(&mut assets, index, multisample, ui_state.dark));
    }
    let density = window.iter().next().map_or(1.0, |window| window.scale_factor()) * ui_state.scale;
    for index in 0..panes.0.len() {
        let (Some(area), Some(snapshot)) = (ui_state.pictures.get(index), drawn.liquid(index)) else {
            continue;
        };
        // Flat pictures are cheaper: they lose less.
        let fineness =
            if snapshot.scenery.dimension == 3 { ui_state.fineness } else { ui_state.fineness.sqrt() };
        let size = area.size() * density * fineness;
        pictures.0[index].resize(size.round().as_uvec2(), &mut assets);
        let scene = scene_key(&snapshot.scenery, panes.0.len());
        if index == 0 && framed.as_ref() != Some(&scene) {
            *camera = OrbitCamera::framing(&snapshot.scenery, size.x / size.y.max(1.0));
            *framed = Some(scene);
        }
        if snapshot.scenery.dimension == camera.dimension {
            let tiles = || drawn.tiles(index);
            pictures.0[index].show(snapshot, tiles, &ui_state.options(index), &camera, &mut assets);
        }
    }
    timings.end_snapshot(start.elapsed());
}

/// The view is set anew when another scene comes, or another number of panes.
fn scene_key(stage: &Scenery, panes: usize) -> (String, [f32; 3], usize) {
    (stage.name.clone(), stage.size, panes)
}

#[allow(clippy::too_many_arguments, reason = "a system asks for what it needs")]
fn show_panels(
    mut contexts: EguiContexts,
    pictures: Res<Pictures>,
    panes: Res<Panes>,
    session: Option<Res<Session>>,
    bubbles: Query<&Bubble>,
    bodies: Query<&Body>,
    camera: Res<OrbitCamera>,
    time: Res<Time<Real>>,
    mut gallery: ResMut<Gallery>,
    mut applied: ResMut<AppliedTheme>,
    mut ui_state: ResMut<UiState>,
    mut pending: ResMut<Pending>,
) -> Result {
    let ctx = contexts.ctx_mut()?.clone();
    if applied.0 != Some((ui_state.dark, ui_state.scale)) {
        theme::apply(&ctx, ui_state.dark);
        ctx.set_zoom_factor(ui_state.scale);
        applied.0 = Some((ui_state.dark, ui_state.scale));
    }
    let cards = match &mut gallery.0 {
        _ if ui_state.bare => &Vec::new(),
        Some(cards) => &*cards,
        none => &*none.insert(panels::cards(Some(&ctx))),
    };
    let ids: Vec<_> =
        pictures.0.iter().map(|pane| contexts.add_image(EguiTextureHandle::Weak(pane.image.id()))).collect();
    let rows: Vec<_> = bubbles
        .iter()
        .map(|bubble| BubbleRow {
            key: (bubble.pane, bubble.report.id),
            report: bubble.report.clone(),
            history: bubble.history.clone(),
            trapped: bubble.trapped,
        })
        .collect();
    let mut bodies: Vec<_> = bodies
        .iter()
        .map(|body| BodyRow { key: (body.pane, body.report.id as u64), report: body.report.clone() })
        .collect();
    bodies.sort_unstable_by_key(|row| row.key);
    let data = Data {
        panes: &panes.0,
        pictures: &ids,
        playing: session.as_ref().is_some_and(|session| session.playing),
        speed: session.as_ref().map_or(1.0, |session| session.speed),
        scene: session.as_ref().map_or("", |session| session.scene()),
        resolution: session.as_ref().map(|session| session.resolution()).unwrap_or_default(),
        bubbles: &rows,
        bodies: &bodies,
        cards,
        camera: *camera,
        frame_seconds: if ui_state.offscreen { 0.0 } else { time.delta_secs() },
    };
    pending.0.extend(panels::key_actions(&ctx, &ui_state, &data));
    let layer = egui::LayerId::background();
    let builder = egui::UiBuilder::new().layer_id(layer).max_rect(ctx.viewport_rect());
    let mut ui = egui::Ui::new(ctx.clone(), "glug".into(), builder);
    pending.0.extend(panels::show(&mut ui, &mut ui_state, &data));
    Ok(())
}
