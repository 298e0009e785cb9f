//! The force of a hand: a damped spring from the place that it holds to where that should come to, which also carries the weight
//! that the liquid does not; and, if the hand is steady, one against turning.

use nalgebra::Vector3;

use crate::geometry::{Body, MOST_MOTIONS, Twist, Walls};
use crate::math::{Real, Vector};

use super::super::contacts::{ContactStep, wet_mass};
use super::{Grip, point};

/// The hand's acceleration of what it holds is never more than that, m/s².
const MOST_ACCELERATION: Real = 200.0;

/// A direction that a hand pulls along, or turns about.
pub(in crate::sim) struct Pull {
    /// Which hand.
    pub hand: usize,
    /// The body, and its motion along the direction.
    pub part: (usize, Twist),
    /// How far it is from where it should be, m or rad.
    pub off: Real,
    /// kg that the spring is made for; `None`: what is felt there.
    pub mass: Option<Real>,
    /// Frequency of the spring, 1/s, and its share of the damping with which it comes to rest the soonest.
    pub spring: [Real; 2],
    /// A force besides, N.
    pub carried: Real,
}

impl Pull {
    /// The impulse in a step of `dt` seconds on what moves at `speed` along it, and answers an impulse with a velocity.
    pub fn impulse(&self, speed: Real, answer: Real, dt: Real) -> Real {
        let mass = self.mass.unwrap_or(1.0 / answer);
        let [frequency, damping] = self.spring;
        let stiffness = mass * frequency * frequency;
        // By where it will be at the end of the step: strong hands do not swing up.
        let rate = 2.0 * damping * mass * frequency + stiffness * dt;
        let force = (self.carried - stiffness * self.off - rate * speed) / (1.0 + rate * dt * answer);
        let most = MOST_ACCELERATION * mass;
        force.clamp(-most, most) * dt
    }
}

/// What hands do in a step.
pub(in crate::sim) fn pull_rows<const D: usize>(
    grips: &[Grip],
    walls: &Walls<D>,
    step: &ContactStep,
) -> Vec<Pull> {
    let mut pulls = Vec::new();
    for (hand, grip) in grips.iter().enumerate() {
        let solid = &walls.solids[grip.body];
        let Some(body) = solid.body.as_deref().filter(|_| solid.is_present(step.time)) else { continue };
        let at: Vector<D> = body.pose().from_rest(&point(&grip.at));
        let off = at - point::<D>(&grip.target);
        // A steady hand takes up what its pull would turn.
        let arm = if grip.hold.steady { Vector::zeros() } else { at - body.position() };
        let spring = [grip.hold.strength, grip.hold.damping];
        let mass = body.material.mass + wet_mass(body, step);
        let weight =
            (body.material.mass - step.density * body.volume * body.state().submerged) * step.gravity;
        for axis in 0..D {
            let direction = Vector::<D>::from_fn(|k, _| if k == axis { 1.0 } else { 0.0 });
            pulls.push(Pull {
                hand,
                part: (grip.body, Body::motion_at(&arm, &direction)),
                off: off[axis],
                mass: Some(mass),
                spring,
                carried: if axis == 1 { weight } else { 0.0 },
            });
        }
        if grip.hold.steady {
            let turned = turned_since(body, grip);
            let spins = if D == 2 { 2..3 } else { 0..3 };
            pulls.extend(spins.map(|axis| {
                let mut motion = [0.0; MOST_MOTIONS];
                motion[if D == 2 { 2 } else { 3 + axis }] = 1.0;
                Pull { hand, part: (grip.body, motion), off: turned[axis], mass: None, spring, carried: 0.0 }
            }));
        }
    }
    pulls
}

/// How far a body has turned since it was taken: along the axis, by its angle; in 2D about z.
fn turned_since<const D: usize>(body: &Body<D>, grip: &Grip) -> [Real; 3] {
    let (before, angle) = grip.turned;
    if D == 2 {
        return [0.0, 0.0, body.state().angle - angle];
    }
    let quaternion = |[x, y, z, w]: [Real; 4]| nalgebra::Quaternion::new(w, x, y, z);
    let between = quaternion(body.state().quaternion) * quaternion(before).conjugate();
    // The shorter way round.
    let sign = if between.scalar() < 0.0 { -1.0 } else { 1.0 };
    let axis: Vector3<Real> = between.vector() * sign;
    let length = axis.norm();
    let angle = 2.0 * length.atan2(between.scalar() * sign);
    if length > 1e-12 { (axis * (angle / length)).into() } else { [0.0; 3] }
}
