//! Carries actions out.

use std::io;
use std::path::{Path, PathBuf};

use bevy::prelude::*;
use bevy::render::view::screenshot::{Screenshot, ScreenshotCaptured};

use super::action::Action;
use super::desk::Desk;
use super::entities::DrawnEntities;
use super::pick::pick;
use super::session::{Panes, Session};
use super::stage::{CUT_AXIS, Eye};
use super::theme;
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
    mut desk: ResMut<Desk>,
    mut eye: ResMut<Eye>,
    mut commands: Commands,
) {
    for action in pending.0.drain(..) {
        if let Some(session) = &mut session {
            steer(&action, session, &mut panes, &mut desk);
        }
        look(&action, &drawn, &mut desk, &mut eye);
        if let Action::Screenshot = action {
            commands.spawn(Screenshot::primary_window()).observe(save_screenshot);
        }
    }
    if let Some(session) = &mut session {
        let on = |bits: u32| desk.layers & bits != 0;
        session.want(Wanted {
            velocity: on(theme::ARROWS),
            scalars: on(theme::PRESSURE | theme::DIVERGENCE),
            particles: on(theme::PARTICLES),
            roles: on(theme::TILE_LAYERS),
        });
    }
}

/// Actions that the simulations hear of.
fn steer(action: &Action, session: &mut Session, panes: &mut Panes, desk: &mut Desk) {
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
            desk.toasts.retain(|toast| !toast.alarm);
            session.tell(Command::Reset);
            let playing = session.playing;
            session.set_playing(playing);
        }
        Action::Load(scene) => {
            desk.toasts.retain(|toast| !toast.alarm);
            desk.selected = None;
            session.load(scene, panes);
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
            desk.selected = desk.selected.filter(|(pane, _)| *pane == 0);
        }
        Action::ToggleCompare => {
            let first = panes.0.first().map_or(Model::default(), |shown| shown.model);
            // The interesting neighbour of the free surface is whatever comes behind it.
            if let Err(error) = session.compare(panes, next_model(first)) {
                desk.alarm(format!("A second simulation could not be started: {error}"));
            }
        }
        Action::Speed(speed) => session.set_speed(*speed),
        _ => {}
    }
}

fn next_model(model: Model) -> Model {
    model.solver().models().cycle().skip_while(|one| *one != model).nth(1).unwrap_or(model)
}

/// The next model, in the pane that is not compared with, or in both turned round.
fn cycle(session: &Session, panes: &mut Panes) {
    for (pane, shown) in panes.0.iter_mut().enumerate() {
        shown.model = next_model(shown.model);
        session.tell_one(pane, Command::Model(shown.model));
    }
}

/// Actions that only change what is seen.
fn look(action: &Action, drawn: &DrawnEntities, desk: &mut Desk, eye: &mut Eye) {
    let aspect = |pane: usize| {
        let area = desk.pictures.get(pane).map_or(Vec2::ONE, |area| area.size());
        area.x / area.y.max(1.0)
    };
    match action {
        Action::Layer(bit) => {
            desk.layers ^= bit;
            // Only one scale fits on the liquid.
            let both = theme::PRESSURE | theme::DIVERGENCE;
            if bit & both != 0 && desk.layers & both == both {
                desk.layers &= !(both & !bit);
            }
        }
        Action::Cut(cut) => desk.cut = cut.clamp(0.0, 1.0),
        Action::FrameAll => {
            if let Some(snapshot) = drawn.first_liquid() {
                *eye = Eye::framing(&snapshot.scenery, aspect(0));
            }
        }
        Action::Orbit(across, up) => eye.orbit(*across, *up),
        Action::Pan(across, up) => eye.pan(*across, *up),
        Action::Zoom(factor, pane, at) => {
            let about = eye.ray(*at, aspect(*pane)).0 * Vec3::new(1.0, 1.0, 0.0);
            eye.zoom(*factor, Some(about));
        }
        Action::Pick(pane, at) => {
            let id = drawn.liquid(*pane).and_then(|snapshot| {
                let cut = desk.choices(*pane).cut.map(|cut| cut * snapshot.scenery.size[CUT_AXIS]);
                pick(snapshot, eye, *at, aspect(*pane), cut)
            });
            desk.select(id.map(|id| (*pane, id)));
        }
        Action::Select(bubble) => desk.select(*bubble),
        Action::ToggleDark => desk.dark = !desk.dark,
        Action::Scale(scale) => desk.scale = scale.clamp(0.5, 3.0),
        Action::ToggleHelp => desk.help = !desk.help,
        Action::TogglePanels => desk.panels = !desk.panels,
        _ => {}
    }
}

/// Writes a screenshot, and says so.
fn save_screenshot(captured: On<ScreenshotCaptured>, mut desk: ResMut<Desk>) {
    let path = free_name();
    match write_screenshot(&captured.image, &path) {
        Ok(()) => desk.say(format!("Saved {}", path.display())),
        Err(error) => desk.alarm(format!("{} could not be written: {error}", path.display())),
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
