//! Rigid bodies in a substep: moved with the liquid, kept apart from it, and changed by what the projection found.

use serde::Serialize;

use crate::archive::{ArchiveError, Reader, Writer};
use crate::geometry::{Body, BodyState, Walls};
use crate::math::{Real, Vector};
use crate::pressure::{Hold, RigidMotion};

use super::Hands;

/// One rigid body in the statistics.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BodyReport {
    /// Its place among the scene's solids.
    pub id: usize,
    /// Its name in the scene.
    pub name: String,
    /// kg (kg per metre of depth in 2D).
    pub mass: f64,
    /// m³ (m² in 2D).
    pub volume: f64,
    /// Centre of mass, metres.
    pub position: Vec<f64>,
    /// Since the start.
    pub rotation: Rotation,
    /// m/s.
    pub velocity: Vec<f64>,
    /// rad/s; in 2D one number, counter-clockwise.
    pub angular_velocity: Vec<f64>,
    /// From the liquid, N (N per metre of depth in 2D).
    pub force: Vec<f64>,
    /// Share of its volume under liquid.
    pub submerged: f64,
    /// How a hand pulls it, if one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull: Option<PullReport>,
}

/// How a hand pulls a body.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PullReport {
    /// The place that is held, metres.
    pub at: Vec<f64>,
    /// Where that should come to, metres.
    pub target: Vec<f64>,
    /// N (N per metre of depth in 2D).
    pub force: Vec<f64>,
}

/// How far a body has turned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Rotation {
    /// In 2D: radians, counter-clockwise.
    Angle(f64),
    /// In 3D: a unit quaternion x, y, z, w.
    Quaternion([f64; 4]),
}

/// What the statistics say about bodies.
pub(super) fn survey_bodies<const D: usize>(walls: &Walls<D>, hands: &Hands) -> Vec<BodyReport> {
    let all = walls.solids.iter().enumerate().filter(|(id, _)| !hands.is_gone(walls.solids.len(), *id));
    let report = |id: usize, name: &str, body: &Body<D>| {
        let state = body.state();
        let spins = if D == 2 { 2..3 } else { 3..6 };
        BodyReport {
            id,
            name: name.to_owned(),
            mass: body.material.mass,
            volume: body.volume,
            position: state.position[..D].to_vec(),
            rotation: match D {
                2 => Rotation::Angle(state.angle),
                _ => Rotation::Quaternion(state.quaternion),
            },
            velocity: state.velocity[..D].to_vec(),
            angular_velocity: state.velocity[spins].to_vec(),
            force: state.force[..D].to_vec(),
            submerged: state.submerged,
            pull: hands.grip(id).map(|grip| PullReport {
                at: body
                    .pose()
                    .from_rest(&Vector::from_fn(|axis, _| grip.at[axis]))
                    .iter()
                    .copied()
                    .collect(),
                target: grip.target[..D].to_vec(),
                force: grip.force[..D].to_vec(),
            }),
        }
    };
    all.filter_map(|(id, solid)| Some(report(id, &solid.name, solid.body.as_deref()?))).collect()
}

/// Moves bodies for `dt` seconds, up to `time`, with the velocity of the middle of the step: as `share` of its last change
/// continues it, by at most `most` m/s.
pub(super) fn advance_bodies<const D: usize>(
    walls: &mut Walls<D>,
    time: Real,
    dt: Real,
    share: Real,
    most: Real,
) {
    let moving: Vec<usize> = walls.bodies(time).map(|(solid, _)| solid).collect();
    for solid in moving {
        if let Some(body) = &mut walls.solids[solid].body {
            body.advance(dt, share, most);
        }
    }
}

/// Gives bodies the motions that a projection for `dt` seconds found; `None` for one that belongs to no step. Those that touch
/// something stop being carried on by how their velocity changed.
pub(super) fn take_motions<const D: usize>(
    walls: &mut Walls<D>,
    motions: &[RigidMotion],
    holds: &[Hold],
    dt: Option<Real>,
) {
    for &RigidMotion { solid, velocity, push, submerged, rest } in motions {
        let touches = || holds.iter().any(|hold| hold.parts.iter().any(|(held, _)| *held == solid));
        if let Some(body) = &mut walls.solids[solid].body {
            let state = *body.state();
            let earlier = if dt.is_none() || touches() { velocity } else { state.earlier };
            let force = dt.map_or(state.force, |dt| push.map(|push| push / dt));
            body.set_state(BodyState { velocity, earlier, force, submerged, rest, ..state });
        }
    }
}

/// Writes where bodies are, if there are any.
pub(super) fn save_bodies<const D: usize>(
    walls: &Walls<D>,
    out: &mut Writer<'_>,
) -> Result<(), ArchiveError> {
    let states: Vec<BodyState> =
        walls.solids.iter().filter_map(|solid| Some(*solid.body.as_ref()?.state())).collect();
    if states.is_empty() { Ok(()) } else { out.value("bodies", &states) }
}

/// Reads what [`save_bodies`] wrote, for the bodies of the same scene.
pub(super) fn load_bodies<const D: usize>(
    walls: &mut Walls<D>,
    from: &mut Reader<'_>,
) -> Result<(), ArchiveError> {
    if !walls.has_bodies() {
        return Ok(());
    }
    let states: Vec<BodyState> = from.value("bodies")?;
    let bodies = walls.solids.iter_mut().filter_map(|solid| solid.body.as_deref_mut());
    let bodies: Vec<&mut Body<D>> = bodies.collect();
    let is_sane = states.len() == bodies.len() && states.iter().all(Body::<D>::is_sane);
    ArchiveError::unless(is_sane, "bodies", "is about other bodies than there are")?;
    bodies.into_iter().zip(states).for_each(|(body, state)| body.set_state(state));
    Ok(())
}
