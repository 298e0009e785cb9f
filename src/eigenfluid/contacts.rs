//! Contacts of bodies with each other and with walls, by impulses that act on bodies and fluid together.
//!
//! A body's core is a point, a line or a polygon, and its surface lies a rounding away from that. Corners of one core meet
//! the core of another. Impulses go through the response of all bodies in their fluid, `(m + A)⁻¹`, so that a light body
//! is as heavy in a collision as its added mass makes it. Contacts count before they touch: two bodies may close the gap
//! between them within a step, but not more.

use super::bodies::Body;
use crate::math::{Real, Vector};

/// Sweeps over all contacts.
const SWEEPS: usize = 30;

/// Share of an overlap that a step takes away.
const RECOVERY: Real = 0.2;

/// Gaps that bodies keep, per second: no overlap is taken away faster, however short the step.
const SLOWLY: Real = 10.0;

/// Approaching slower than this, bodies do not bounce, m/s.
const BOUNCE: Real = 0.02;

#[derive(Clone, Debug)]
struct Contact {
    /// Bodies; the second may be a wall.
    bodies: [Option<usize>; 2],
    /// Normal, from the second to the first, and the direction of friction.
    directions: [Vector<2>; 2],
    point: Vector<2>,
    /// Least normal velocity after the step, m/s.
    least: Real,
    friction: Real,
    impulses: [Real; 2],
    /// How fast it goes apart, and along, by an impulse of 1.
    yields: [Real; 2],
}

/// Memory for contacts.
#[derive(Clone, Debug, Default)]
pub(super) struct Contacts {
    found: Vec<Contact>,
    /// Velocities of all bodies by an impulse of 1, for every direction of every contact.
    responses: Vec<Real>,
}

/// How bodies answer to impulses: velocities by column, for an impulse on each motion.
pub(super) struct Response<'a> {
    pub values: &'a [Real],
    /// Motions of all bodies.
    pub size: usize,
}

impl Contacts {
    /// Changes velocities (three for every body) so that no contact is crossed within `dt`. Returns how many contacts there are.
    pub fn resolve(
        &mut self,
        bodies: &[Body],
        size: [Real; 2],
        velocities: &mut [Real],
        response: &Response<'_>,
        dt: Real,
    ) -> usize {
        self.find(bodies, size, velocities, dt);
        let Contacts { found, responses } = self;
        let count = response.size;
        responses.clear();
        responses.resize(2 * found.len() * count, 0.0);
        for (contact, answers) in found.iter_mut().zip(responses.chunks_exact_mut(2 * count)) {
            for (direction, answer) in answers.chunks_exact_mut(count).enumerate() {
                contact.each_lever(bodies, direction, |motion, lever| {
                    let column = &response.values[motion * count..][..count];
                    answer.iter_mut().zip(column).for_each(|(sum, value)| *sum += lever * value);
                });
                let mut yields = 0.0;
                contact.each_lever(bodies, direction, |motion, lever| yields += lever * answer[motion]);
                contact.yields[direction] = yields;
            }
        }
        for _ in 0..SWEEPS {
            for (contact, answers) in found.iter_mut().zip(responses.chunks_exact(2 * count)) {
                for (direction, answer) in answers.chunks_exact(count).enumerate() {
                    if contact.yields[direction] <= 0.0 {
                        continue;
                    }
                    let mut speed = 0.0;
                    contact
                        .each_lever(bodies, direction, |motion, lever| speed += lever * velocities[motion]);
                    let before = contact.impulses[direction];
                    let least = if direction == 0 { contact.least } else { 0.0 };
                    let wanted = before + (least - speed) / contact.yields[direction];
                    let holds = contact.friction * contact.impulses[0];
                    let after = if direction == 0 { wanted.max(0.0) } else { wanted.clamp(-holds, holds) };
                    contact.impulses[direction] = after;
                    velocities.iter_mut().zip(answer).for_each(|(v, answer)| *v += (after - before) * answer);
                }
            }
        }
        found.len()
    }

    fn find(&mut self, bodies: &[Body], size: [Real; 2], velocities: &[Real], dt: Real) {
        self.found.clear();
        let speed = |body: usize| {
            let [x, y, spin] = [0, 1, 2].map(|motion| velocities[3 * body + motion]);
            x.hypot(y) + spin.abs() * bodies[body].outline.reach
        };
        for (first, body) in bodies.iter().enumerate() {
            let (rounding, gap_kept) = (body.outline.rounding, body.gap_kept());
            for &corner in &body.outline.core {
                let corner = body.to_world(corner);
                for axis in 0..2 {
                    for (wall, sign) in [(0.0, 1.0), (size[axis], -1.0)] {
                        let gap = sign * (corner[axis] - wall) - rounding - gap_kept;
                        if gap < gap_kept + 2.0 * dt * speed(first) {
                            let mut normal = Vector::zeros();
                            normal[axis] = sign;
                            let contact = [Some(first), None];
                            self.add(
                                bodies,
                                contact,
                                normal,
                                corner - normal * rounding,
                                (gap, dt),
                                velocities,
                            );
                        }
                    }
                }
                for (second, other) in bodies.iter().enumerate() {
                    let twice =
                        body.outline.core.len() == 1 && other.outline.core.len() == 1 && second < first;
                    let kept = gap_kept.max(other.gap_kept());
                    let within = kept * 2.0 + 2.0 * dt * (speed(first) + speed(second));
                    let apart =
                        (body.position - other.position).norm() - body.outline.reach - other.outline.reach;
                    if second == first || twice || apart > within {
                        continue;
                    }
                    let (distance, normal) = other.off_core(corner);
                    let gap = distance - rounding - other.outline.rounding - kept;
                    if gap < within {
                        let point = corner - normal * rounding;
                        self.add(bodies, [Some(first), Some(second)], normal, point, (gap, dt), velocities);
                    }
                }
            }
        }
    }

    fn add(
        &mut self,
        all: &[Body],
        bodies: [Option<usize>; 2],
        normal: Vector<2>,
        point: Vector<2>,
        (gap, dt): (Real, Real),
        velocities: &[Real],
    ) {
        let of = |value: fn(&Body) -> Real| bodies.map(|body| body.map(|body| value(&all[body])));
        let friction = match of(|body| body.friction) {
            [Some(a), Some(b)] => (a * b).sqrt(),
            [a, b] => a.or(b).unwrap_or(0.0),
        };
        let restitution = of(|body| body.restitution).into_iter().flatten().fold(0.0, Real::max);
        let mut contact = Contact {
            bodies,
            directions: [normal, Vector::from([-normal[1], normal[0]])],
            point,
            least: 0.0,
            friction,
            impulses: [0.0; 2],
            yields: [0.0; 2],
        };
        let mut speed = 0.0;
        contact.each_lever(all, 0, |motion, lever| speed += lever * velocities[motion]);
        let kept = of(Body::gap_kept).into_iter().flatten().fold(0.0, Real::max);
        let closing = if gap > 0.0 { -gap / dt } else { (-RECOVERY * gap / dt).min(SLOWLY * kept) };
        let bounces = speed < closing.min(0.0) && speed < -BOUNCE;
        contact.least = if bounces { closing.max(-restitution * speed) } else { closing };
        self.found.push(contact);
    }
}

impl Contact {
    /// Calls `each` with the motions that a contact acts on, and how.
    fn each_lever(&self, all: &[Body], direction: usize, mut each: impl FnMut(usize, Real)) {
        let along = self.directions[direction];
        for (body, sign) in self.bodies.into_iter().zip([1.0, -1.0]) {
            if let Some(body) = body {
                each(3 * body, sign * along[0]);
                each(3 * body + 1, sign * along[1]);
                each(3 * body + 2, sign * (self.point - all[body].position).perp(&along));
            }
        }
    }
}
