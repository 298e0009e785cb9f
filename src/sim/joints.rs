//! Joints as rows `N v = target` on the motions of bodies, like contacts.

use nalgebra::Vector3;

use crate::geometry::{Body, Joint, JointKind, MOST_MOTIONS, Motor, Pose, Twist, Walls};
use crate::math::{Real, Vector};

use super::contacts::tangents_of;

/// Share of what is out of place that is taken back in a step.
const TAKEN_BACK: Real = 0.8;

/// A row that a joint makes.
pub(super) struct JointRow {
    /// Its part of the motions of one body or two.
    pub parts: Vec<(usize, Twist)>,
    /// m/s or rad/s.
    pub target: Real,
    /// Least and most impulse.
    pub range: [Real; 2],
    /// A force against it that grows with how far and how fast it moves.
    pub spring: Option<Spring>,
}

/// A force along a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spring {
    /// N/m.
    pub stiffness: Real,
    /// N s/m.
    pub damping: Real,
    /// By how much it is too long, metres.
    pub stretch: Real,
}

/// The rows of all joints whose bodies are there. `dt`: the step in which what is out of place is taken back; `None` for a
/// projection that belongs to no step, where only what is rigid counts.
pub(super) fn joint_rows<const D: usize>(
    walls: &Walls<D>,
    joints: &[Joint<D>],
    time: Real,
    dt: Option<Real>,
) -> Vec<JointRow> {
    let is_there = |solid: usize| walls.solids[solid].is_present(time);
    let takes_part = |joint: &&Joint<D>| {
        is_there(joint.body)
            && joint.to.is_none_or(is_there)
            && walls.bodies(time).any(|(solid, _)| solid == joint.body)
    };
    joints.iter().filter(takes_part).flat_map(|joint| Tie::new(walls, joint, time, dt).rows()).collect()
}

/// A joint at a time.
struct Tie<'a, const D: usize> {
    joint: &'a Joint<D>,
    /// The body, and the other if it is one.
    body: &'a Body<D>,
    other: Option<(usize, &'a Body<D>)>,
    /// From the scene's pose to that of the other.
    pose: Pose<D>,
    /// The two points where they are.
    at: [Vector<D>; 2],
    dt: Option<Real>,
}

impl<'a, const D: usize> Tie<'a, D> {
    fn new(walls: &'a Walls<D>, joint: &'a Joint<D>, time: Real, dt: Option<Real>) -> Self {
        let body = walls.solids[joint.body].body.as_deref().expect("joints hold bodies");
        let to = joint.to.map(|to| (to, &walls.solids[to]));
        let pose = to.and_then(|(_, solid)| solid.pose(time)).unwrap_or_else(Pose::rest);
        let other = to.and_then(|(to, solid)| Some((to, solid.body.as_deref()?)));
        let at = [body.pose().from_rest(&joint.at[0]), pose.from_rest(&joint.at[1])];
        Tie { joint, body, other, pose, at, dt }
    }

    fn rows(&self) -> Vec<JointRow> {
        let axes = |list: &mut Vec<JointRow>| {
            list.extend((0..D).map(|axis| self.stop(&Vector::from_fn(|k, _| (k == axis) as u8 as Real))));
        };
        let mut rows = Vec::new();
        match &self.joint.kind {
            JointKind::Ball => axes(&mut rows),
            JointKind::Hinge { axis, motor } => {
                axes(&mut rows);
                let (own, other) = (self.body.pose().turn(*axis), self.pose.turn(*axis));
                if D == 3 {
                    // How far the body's axis is turned away from the other's.
                    let off = Vector3::from(other).cross(&Vector3::from(own));
                    let tangents = tangents_of::<3>(&Vector3::from(other));
                    rows.extend(tangents.iter().map(|tangent| self.stop_turning(tangent, off.dot(tangent))));
                }
                rows.extend(motor.map(|motor| self.drive(self.turning(&Vector3::from(other)), motor)));
            }
            JointKind::Slider { along, motor } => {
                let along = self.pose.rotation * along;
                rows.extend(tangents_of::<D>(&along).iter().map(|tangent| self.stop(tangent)));
                self.add_turning_rows(&mut rows);
                rows.extend(motor.map(|motor| self.drive(self.moving(&along), motor)));
            }
            JointKind::Weld => {
                axes(&mut rows);
                self.add_turning_rows(&mut rows);
            }
            JointKind::Spring { stiffness, damping, length } => {
                let spring = |stretch| Spring { stiffness: *stiffness, damping: *damping, stretch };
                rows.extend(self.line().map(|(Way { parts, script }, distance)| JointRow {
                    parts,
                    target: script,
                    range: [0.0; 2],
                    spring: Some(spring(distance - length)),
                }));
            }
            JointKind::Rope { length } => rows.extend(self.line().and_then(|(line, distance)| {
                let dt = self.dt?;
                let slack = length - distance;
                let share = if slack > 0.0 { 1.0 } else { TAKEN_BACK };
                let target = -share * slack / dt - line.script;
                let parts = line.parts.into_iter().map(|(body, part)| (body, part.map(|c| -c))).collect();
                Some(JointRow { parts, target, range: [0.0, Real::INFINITY], spring: None })
            })),
        }
        if self.dt.is_none() {
            rows.retain(|row| row.spring.is_none() && row.range[1] == Real::INFINITY && row.range[0] < 0.0);
        }
        rows
    }

    /// Keeps the points together along a direction.
    fn stop(&self, direction: &Vector<D>) -> JointRow {
        let way = self.moving(direction);
        let off = direction.dot(&(self.at[0] - self.at[1]));
        self.hold(way, off)
    }

    /// Keeps the body from turning about a direction, by which it is turned too far already.
    fn stop_turning(&self, direction: &Vector3<Real>, off: Real) -> JointRow {
        self.hold(self.turning(direction), off)
    }

    /// Keeps the body from turning against the other at all.
    fn add_turning_rows(&self, rows: &mut Vec<JointRow>) {
        let between = self.body.pose().rotation * self.pose.rotation.transpose();
        let entry = |i: usize, j: usize| between[(i.min(D - 1), j.min(D - 1))];
        if D == 2 {
            let off = entry(1, 0).atan2(entry(0, 0));
            rows.push(self.stop_turning(&Vector3::z(), off));
            return;
        }
        let off = 0.5
            * Vector3::new(entry(2, 1) - entry(1, 2), entry(0, 2) - entry(2, 0), entry(1, 0) - entry(0, 1));
        let axes = [Vector3::x(), Vector3::y(), Vector3::z()];
        rows.extend(axes.iter().map(|axis| self.stop_turning(axis, off.dot(axis))));
    }

    fn hold(&self, way: Way, off: Real) -> JointRow {
        let back = self.dt.map_or(0.0, |dt| TAKEN_BACK * off / dt);
        let range = [Real::NEG_INFINITY, Real::INFINITY];
        JointRow { parts: way.parts, target: way.script - back, range, spring: None }
    }

    fn drive(&self, way: Way, motor: Motor) -> JointRow {
        let most = motor.strength * self.dt.unwrap_or(0.0);
        JointRow { parts: way.parts, target: way.script + motor.speed, range: [-most, most], spring: None }
    }

    /// How fast the body's point moves against the other's material there, along a direction.
    fn moving(&self, direction: &Vector<D>) -> Way {
        let x = &self.at[0];
        let mut parts = vec![(self.joint.body, Body::motion_at(&(x - self.body.position()), direction))];
        let mut script = 0.0;
        match self.other {
            Some((other, body)) => {
                parts.push((other, Body::motion_at(&(x - body.position()), &-direction)));
            }
            None => script = direction.dot(&self.pose.velocity(x)),
        }
        Way { parts, script }
    }

    /// How fast the body turns against the other about a direction.
    fn turning(&self, direction: &Vector3<Real>) -> Way {
        let spin = |sign: Real| -> Twist {
            let mut twist = [0.0; MOST_MOTIONS];
            match D {
                2 => twist[2] = sign * direction[2],
                _ => twist[3..].copy_from_slice((direction * sign).as_slice()),
            }
            twist
        };
        let mut parts = vec![(self.joint.body, spin(1.0))];
        let mut script = 0.0;
        match self.other {
            Some((other, _)) => parts.push((other, spin(-1.0))),
            None => script = direction.dot(&Vector3::from(self.pose.spin())),
        }
        Way { parts, script }
    }

    /// How fast the two points part, and how far apart they are.
    fn line(&self) -> Option<(Way, Real)> {
        let way = self.at[0] - self.at[1];
        let distance = way.norm();
        let direction = way.try_normalize(1e-12)?;
        let arm = self.at[0] - self.body.position();
        let mut parts = vec![(self.joint.body, Body::motion_at(&arm, &direction))];
        if let Some((other, body)) = self.other {
            parts.push((other, Body::motion_at(&(self.at[1] - body.position()), &-direction)));
        }
        let script = if self.other.is_some() { 0.0 } else { direction.dot(&self.pose.velocity(&self.at[1])) };
        Some((Way { parts, script }, distance))
    }
}

/// A relative motion.
struct Way {
    parts: Vec<(usize, Twist)>,
    /// How fast a script moves the other along it.
    script: Real,
}
