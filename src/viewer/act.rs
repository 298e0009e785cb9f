//! Carries actions out.

use std::io;
use std::path::{Path, PathBuf};

use bevy::prelude::*;
use bevy::render::view::screenshot::{Screenshot, ScreenshotCaptured};

use super::action::Action;
use super::entities::DrawnEntities;
use super::hands::handle;
use super::pick::{pick, pick_body};
use super::session::{Panes, Session, Shown};
use super::stage::{CUT_AXIS, OrbitCamera};
use super::theme;
use super::ui_state::UiState;
use crate::export::{AtomicFile, Picture};
use crate::runner::Command;
use crate::sim::Model;
use crate::snapshot::Wanted;

/// Actions waiting to be carried out.
#[derive(Resource, Default)]
pub struct Pending(pub Vec<Action>);

/// Carries out what the last frame's keys and clicks asked for.
pub fn act(
    mut pending: ResMut<Pending>,
    mut session: Option<ResMut<Session>>,
    mut panes: ResMut<Panes>,
    drawn: DrawnEntities,
    mut ui_state: ResMut<UiState>,
    mut camera: ResMut<OrbitCamera>,
    mut commands: Commands,
) {
    for action in pending.0.drain(..) {
        if let Some(session) = &mut session {
            steer(&action, session, &mut panes, &mut ui_state);
            handle(&action, session, &drawn, &mut ui_state, &camera);
        }
        look(&action, &drawn, &mut ui_state, &mut camera);
        if let Action::Screenshot = action {
            commands.spawn(Screenshot::primary_window()).observe(save_screenshot);
        }
    }
    if let Some(session) = &mut session {
        let on = |bits: u32| ui_state.layers & bits != 0;
        session.want(Wanted {
            velocity: on(theme::ARROWS),
            scalars: on(theme::PRESSURE | theme::DIVERGENCE),
            particles: on(theme::PARTICLES),
            roles: on(theme::TILE_LAYERS),
        });
    }
}

/// Actions that the simulations hear of.
fn steer(action: &Action, session: &mut Session, panes: &mut Panes, ui_state: &mut UiState) {
    match action {
        Action::TogglePlay => {
            let playing = !session.playing;
            session.set_playing(playing);
        }
        Action::Step => {
            session.playing = false;
            session.tell(Command::Step);
        }
        Action::Reset => {
            ui_state.forget_troubles();
            session.tell(Command::Reset);
            let playing = session.playing;
            session.set_playing(playing);
        }
        Action::Load(scene) => {
            ui_state.forget_troubles();
            (ui_state.selected, ui_state.selected_body) = (None, None);
            session.load(scene, panes);
        }
        Action::Cells(cells) => {
            ui_state.forget_troubles();
            session.set_cells(*cells, panes);
        }
        Action::Coarser(cells) => {
            ui_state.forget_troubles();
            session.settle_for(*cells, panes);
        }
        Action::MeasureAgain => {
            ui_state.forget_troubles();
            session.measure_again(panes);
        }
        Action::KeepRealTime(keep) => {
            ui_state.forget_troubles();
            session.set_keep_real_time(*keep, panes);
        }
        Action::Set(info, value) => session.set(info, value.clone()),
        Action::Model(pane, model) => {
            session.tell_one(*pane, Command::Model(*model));
            if let Some(shown) = panes.0.get_mut(*pane) {
                shown.model = *model;
            }
        }
        Action::CycleModel => cycle(session, panes),
        Action::ToggleCompare if panes.0.len() > 1 => {
            session.compare_no_more(panes);
            ui_state.selected = ui_state.selected.filter(|(pane, _)| *pane == 0);
            ui_state.selected_body = ui_state.selected_body.filter(|(pane, _)| *pane == 0);
        }
        Action::ToggleCompare => {
            // The interesting neighbour of the free surface is whatever comes behind it.
            let next = panes.0.first().map_or(Model::default().next(), Shown::next_model);
            if let Err(error) = session.compare(panes, next) {
                ui_state.alarm(format!("A second simulation could not be started: {error}"));
            }
        }
        Action::Speed(speed) => session.set_speed(*speed),
        _ => {}
    }
}

/// The next model, in the pane that is not compared with, or in both turned round.
fn cycle(session: &Session, panes: &mut Panes) {
    for (pane, shown) in panes.0.iter_mut().enumerate() {
        shown.model = shown.next_model();
        session.tell_one(pane, Command::Model(shown.model));
    }
}

/// Actions that only change what is seen.
fn look(action: &Action, drawn: &DrawnEntities, ui_state: &mut UiState, camera: &mut OrbitCamera) {
    let aspect = |pane: usize| {
        let area = ui_state.pictures.get(pane).map_or(Vec2::ONE, |area| area.size());
        area.x / area.y.max(1.0)
    };
    match action {
        Action::Layer(bit) => {
            ui_state.layers ^= bit;
            // Only one scale fits on the liquid.
            let both = theme::PRESSURE | theme::DIVERGENCE;
            if bit & both != 0 && ui_state.layers & both == both {
                ui_state.layers &= !(both & !bit);
            }
        }
        Action::Cut(cut) => ui_state.cut = cut.clamp(0.0, 1.0),
        Action::FrameAll => {
            if let Some(snapshot) = drawn.first_liquid() {
                *camera = OrbitCamera::framing(&snapshot.scenery, aspect(0));
            }
        }
        Action::Orbit(across, up) => camera.orbit(*across, *up),
        Action::Pan(across, up) => camera.pan(*across, *up),
        Action::Zoom(factor, pane, at) => {
            let about = camera.ray(*at, aspect(*pane)).0 * Vec3::new(1.0, 1.0, 0.0);
            camera.zoom(*factor, Some(about));
        }
        Action::Pick(pane, at) => {
            let Some(snapshot) = drawn.liquid(*pane) else { return };
            let cut = ui_state.options(*pane).cut.map(|cut| cut * snapshot.scenery.size[CUT_AXIS]);
            let aspect = aspect(*pane);
            match pick_body(snapshot, camera, *at, aspect, cut) {
                Some(hit) => ui_state.select_body(Some((*pane, hit.body as u64))),
                None => {
                    let id = pick(snapshot, camera, *at, aspect, cut);
                    ui_state.select(id.map(|id| (*pane, id)));
                }
            }
        }
        Action::Select(bubble) => ui_state.select(*bubble),
        Action::SelectBody(body) => ui_state.select_body(*body),
        Action::Arm(form) => ui_state.hands.form = *form,
        Action::ToggleDark => ui_state.dark = !ui_state.dark,
        Action::Scale(scale) => ui_state.scale = scale.clamp(0.5, 3.0),
        Action::ToggleHelp => ui_state.help = !ui_state.help,
        Action::TogglePanels => ui_state.panels = !ui_state.panels,
        _ => {}
    }
}

/// Writes a screenshot, and says so.
fn save_screenshot(captured: On<ScreenshotCaptured>, mut ui_state: ResMut<UiState>) {
    let path = free_name();
    match write_screenshot(&captured.image, &path) {
        Ok(()) => ui_state.say(format!("Saved {}", path.display())),
        Err(error) => ui_state.alarm(format!("{} could not be written: {error}", path.display())),
    }
}

/// Writes an image, whole or not at all.
fn write_screenshot(image: &Image, path: &Path) -> io::Result<()> {
    let pixels = image.clone().try_into_dynamic().map_err(io::Error::other)?.to_rgb8();
    let (width, height) = (pixels.width() as usize, pixels.height() as usize);
    let picture = Picture { width, height, rgb: pixels.into_raw() };
    let mut file = AtomicFile::create(path)?;
    picture.write_png(&mut file)?;
    file.commit()
}

/// A file name that nothing has yet.
fn free_name() -> PathBuf {
    let name = |number: usize| PathBuf::from(format!("glug-{number:03}.png"));
    (1..).map(name).find(|path| !path.exists()).unwrap_or_else(|| name(0))
}
