//! What the pointer does to bodies. All panes get the same: the same body is pulled to the same place, and what is put in is put in
//! everywhere.

use bevy::prelude::*;

use super::action::Action;
use super::entities::DrawnEntities;
use super::pick::{BodyHit, pick_body};
use super::session::Session;
use super::stage::{CUT_AXIS, OrbitCamera};
use super::ui_state::{Grabbed, UiState};
use crate::runner::Command;
use crate::sim::{Edit, Form, LEAST_CELLS, NewBody};
use crate::snapshot::{Scenery, Snapshot};

/// Carries out what belongs to hands.
pub fn handle(
    action: &Action,
    session: &Session,
    drawn: &DrawnEntities,
    ui_state: &mut UiState,
    camera: &OrbitCamera,
) {
    let tell = |edit: Edit| session.tell(Command::Edit(edit));
    match action {
        Action::Grab(pane, at) => {
            let Some(snapshot) = drawn.liquid(*pane) else { return };
            let aspect = aspect_of(ui_state, *pane);
            let cut = ui_state.options(*pane).cut.map(|cut| cut * snapshot.scenery.size[CUT_AXIS]);
            let Some(hit) = pick_body(snapshot, camera, *at, aspect, cut) else { return };
            let grabbed = grab(*pane, &hit, camera, *at, aspect);
            ui_state.hands.grabbed = Some(grabbed);
            ui_state.select_body(Some((*pane, hit.body as u64)));
            tell(Edit::Grab {
                body: hit.body,
                at: hit.at_rest.to_array().map(f64::from),
                hold: ui_state.hands.hold,
            });
        }
        Action::Pull(at) => {
            let Some(grabbed) = ui_state.hands.grabbed else { return };
            let aspect = aspect_of(ui_state, grabbed.pane);
            if let Some(to) = grabbed.target(camera.ray(*at, aspect)) {
                tell(Edit::Move { body: grabbed.body, to: to.to_array().map(f64::from) });
            }
        }
        Action::LetGo { keep } => {
            if let Some(grabbed) = ui_state.hands.grabbed.take().filter(|_| !keep) {
                tell(Edit::Release { body: grabbed.body });
            }
        }
        Action::Release(body) => tell(Edit::Release { body: *body }),
        Action::PutIn(at) => {
            let (Some(snapshot), Some(form)) = (drawn.first_liquid(), ui_state.hands.form) else { return };
            tell(Edit::Add(new_body(form, snapshot, ui_state, camera, *at)));
        }
        Action::TakeOut => {
            if let Some((_, body)) = ui_state.selected_body.take() {
                tell(Edit::Remove { body: body as usize });
            }
        }
        // What follows the pointer belongs to the run that ends.
        Action::Reset | Action::Load(_) | Action::Cells(_) | Action::Coarser(_) => {
            ui_state.hands.grabbed = None
        }
        _ => {}
    }
}

/// Width over height of a pane's picture.
fn aspect_of(ui_state: &UiState, pane: usize) -> f32 {
    let size = ui_state.pictures.get(pane).map_or(Vec2::ONE, |area| area.size());
    size.x / size.y.max(1.0)
}

/// Takes hold of a body that was hit.
fn grab(pane: usize, hit: &BodyHit, camera: &OrbitCamera, at: Vec2, aspect: f32) -> Grabbed {
    let normal = camera.transform().rotation * Vec3::Z;
    let pointer = meet(camera.ray(at, aspect), hit.place, normal).unwrap_or(hit.place);
    Grabbed { pane, body: hit.body, place: hit.place, pointer, normal }
}

impl Grabbed {
    /// Where the place that is held should come to when the pointer's ray is this.
    fn target(&self, ray: (Vec3, Vec3)) -> Option<Vec3> {
        meet(ray, self.place, self.normal).map(|pointer| self.place + pointer - self.pointer)
    }
}

/// Where a ray meets the plane through a place.
fn meet((from, along): (Vec3, Vec3), place: Vec3, normal: Vec3) -> Option<Vec3> {
    let slope = along.dot(normal);
    let distance = (place - from).dot(normal) / slope;
    (slope.abs() > 1e-6 && distance.is_finite()).then(|| from + along * distance)
}

/// The body that a click puts in: in space, on the plane through the middle of the domain that faces the camera.
fn new_body(form: Form, snapshot: &Snapshot, ui_state: &UiState, camera: &OrbitCamera, at: Vec2) -> NewBody {
    let stage = &snapshot.scenery;
    let (from, along) = camera.ray(at, aspect_of(ui_state, 0));
    let domain = Vec3::from(stage.size);
    let normal = (camera.transform().rotation * Vec3::Z).with_y(0.0).normalize_or(Vec3::Z);
    let place = match stage.dimension {
        2 => from.with_z(0.0),
        _ => meet((from, along), 0.5 * domain, normal).unwrap_or(0.5 * domain),
    };
    // Smaller ones are refused.
    let size =
        (ui_state.hands.size * f64::from(narrowest(stage))).max(1.01 * LEAST_CELLS * f64::from(stage.dx));
    let inset = Vec3::from([0, 1, 2].map(|k| if k < stage.dimension { 0.5 * size as f32 } else { 0.0 }));
    let place = place.clamp(inset.min(0.5 * domain), (domain - inset).max(0.5 * domain));
    let position = place.to_array().map(f64::from);
    NewBody { form, size, density: ui_state.hands.density, position, velocity: [0.0; 3] }
}

/// The domain's shortest side, metres.
fn narrowest(stage: &Scenery) -> f32 {
    stage.size[..stage.dimension].iter().copied().fold(f32::INFINITY, f32::min)
}
