//! Solids that liquid and gravity move: what they weigh, where they are, and how they move.

use nalgebra::{Matrix3, Vector3};
use serde::{Deserialize, Serialize};

use crate::math::{Real, Vector};

use super::rotation::{Matrix, cross_matrix, rotation};
use super::{Pose, Shape};

/// Motions of a rigid body: along each axis, then about each (about z alone in 2D).
pub const fn motions(dimension: usize) -> usize {
    if dimension == 2 { 3 } else { 6 }
}

/// Most motions of a rigid body.
pub const MOST_MOTIONS: usize = motions(3);

/// A number for each of a body's [`motions`]: m/s along axes and rad/s about them, or what belongs to these.
pub type Twist = [Real; MOST_MOTIONS];

/// What a body is made of and may do.
#[derive(Clone, Debug, PartialEq)]
pub struct Material {
    /// kg (kg per metre of depth in 2D).
    pub mass: Real,
    /// Friction against what it slides on: the largest tangential force over the normal one.
    pub friction: Real,
    /// Share of the speed of an impact with which it bounces back.
    pub restitution: Real,
    /// Which of its motions it does not have.
    pub fixed: [bool; MOST_MOTIONS],
}

/// Where a body is and how it moves: all that changes of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BodyState {
    /// Centre of mass, metres; zeros beyond the last axis.
    pub position: [Real; 3],
    /// Unit quaternion x, y, z, w from the pose in the scene; in 2D the identity.
    pub quaternion: [Real; 4],
    /// In 2D, radians since the start.
    pub angle: Real,
    /// Velocity of the centre of mass, m/s, and angular velocity, rad/s.
    pub velocity: Twist,
    /// The same one substep ago.
    pub earlier: Twist,
    /// Force of the liquid on it in the last substep, N, and torque about its centre, N m.
    pub force: Twist,
    /// Share of its volume that was under liquid.
    pub submerged: Real,
    /// How fast pressure grew downwards around it, over what it does in liquid at rest: zero where all falls freely; not yet known
    /// if it is negative.
    pub rest: Real,
}

/// A solid that moves by forces.
#[derive(Clone, Debug, PartialEq)]
pub struct Body<const D: usize> {
    /// What it is made of.
    pub material: Material,
    /// m³ (m² in 2D).
    pub volume: Real,
    /// Centre of mass in the pose of the scene.
    pub centre_at_rest: Vector<D>,
    /// `∫ ρ (x − c)(x − c)ᵀ dV` in that pose, kg m².
    spread: Matrix<D>,
    /// No point of it is further than that from its centre of mass, metres.
    pub radius: Real,
    /// How deep its deepest point lies below its surface, metres.
    depth: Real,
    state: BodyState,
    pose: Pose<D>,
}

impl<const D: usize> Body<D> {
    /// A body of that shape, where the scene puts it, with these velocities; `None` if the shape goes on forever or is nothing.
    pub fn new(shape: &Shape<D>, material: Material, velocity: Twist) -> Option<Self> {
        let moments = shape.moments().filter(|moments| moments.volume > 0.0)?;
        let centre = moments.centre;
        let radius = reach_of(shape, &centre)?;
        let mut state = BodyState {
            position: padded(&centre),
            quaternion: [0.0, 0.0, 0.0, 1.0],
            angle: 0.0,
            velocity,
            earlier: [0.0; MOST_MOTIONS],
            force: [0.0; MOST_MOTIONS],
            submerged: 0.0,
            rest: -1.0,
        };
        for (value, fixed) in state.velocity.iter_mut().zip(material.fixed) {
            *value = if fixed { 0.0 } else { *value };
        }
        state.earlier = state.velocity;
        let mut body = Body {
            spread: moments.spread * (material.mass / moments.volume),
            volume: moments.volume,
            centre_at_rest: centre,
            radius,
            depth: shape.depth(),
            material,
            pose: Pose::rest(),
            state,
        };
        body.set_state(state);
        Some(body)
    }

    /// Where it is and how it moves.
    pub fn state(&self) -> &BodyState {
        &self.state
    }

    /// Puts it somewhere else, or makes it move otherwise.
    pub fn set_state(&mut self, state: BodyState) {
        self.state = state;
        let turned: Matrix<D> = match D {
            2 => rotation([0.0, 0.0, 1.0], state.angle),
            _ => {
                let full = quaternion_matrix(state.quaternion);
                Matrix::from_fn(|row, column| full[(row, column)])
            }
        };
        let rate = cross_matrix::<D>(self.spin()) * turned;
        self.pose = Pose {
            rotation: turned,
            translation: self.position() - turned * self.centre_at_rest,
            rotation_rate: rate,
            translation_rate: self.velocity() - rate * self.centre_at_rest,
        };
    }

    /// Whether the numbers can be those of a body.
    pub fn is_sane(state: &BodyState) -> bool {
        let BodyState { position, quaternion, angle, velocity, earlier, force, submerged, rest } = state;
        let all = position.iter().chain(quaternion).chain(velocity).chain(earlier).chain(force);
        let length = quaternion.iter().map(|q| q * q).sum::<Real>();
        all.chain([angle, submerged, rest]).all(|number| number.is_finite()) && (length - 1.0).abs() < 1e-6
    }

    /// From its shape's pose in the scene to now, and how that changes.
    pub fn pose(&self) -> &Pose<D> {
        &self.pose
    }

    /// Centre of mass.
    pub fn position(&self) -> Vector<D> {
        Vector::from_fn(|axis, _| self.state.position[axis])
    }

    /// Velocity of its centre of mass, m/s.
    pub fn velocity(&self) -> Vector<D> {
        Vector::from_fn(|axis, _| self.state.velocity[axis])
    }

    /// Angular velocity, rad/s; in 2D only about z.
    pub fn spin(&self) -> [Real; 3] {
        spin_of::<D>(&self.state.velocity)
    }

    /// By how much its surface is moved outwards where it closes faces of cells that wide: a plate thinner than a cell's diagonal
    /// leaks, as a cell may have corners on either side of it.
    pub fn padding(&self, dx: Real) -> Real {
        let half_diagonal = 0.5 * (D as Real).sqrt();
        (1.01 * half_diagonal * dx - self.depth).max(0.0)
    }

    /// Largest speed of any of its points, m/s.
    pub fn max_speed(&self) -> Real {
        self.speed_of(&self.state.velocity)
    }

    /// Largest speed of any of its points if it moved like that, m/s.
    pub fn speed_of(&self, velocity: &Twist) -> Real {
        let norm = |values: &[Real]| values.iter().map(|value| value * value).sum::<Real>().sqrt();
        norm(&velocity[..D]) + norm(&spin_of::<D>(velocity)) * self.radius
    }

    /// The velocity along `direction`, at a place `arm` from its centre of mass, of each of its motions at a unit of it.
    pub fn motion_at(arm: &Vector<D>, direction: &Vector<D>) -> Twist {
        let mut motion = [0.0; MOST_MOTIONS];
        motion[..D].copy_from_slice(direction.as_slice());
        if D == 2 {
            motion[2] = arm[0] * direction[1] - arm[1] * direction[0];
        } else {
            // ω · (r × n).
            let turn = lifted(arm).cross(&lifted(direction));
            motion[3..].copy_from_slice(turn.as_slice());
        }
        motion
    }

    /// Inverse of its inertia tensor as it lies now, 1/(kg m²); in 2D only the entry about z.
    fn inverse_inertia(&self) -> Matrix3<Real> {
        if self.material.fixed[D] {
            return Matrix3::zeros();
        }
        let turned = self.pose.rotation * self.spread * self.pose.rotation.transpose();
        let trace = turned.trace();
        if D == 2 {
            let mut inverse = Matrix3::zeros();
            inverse[(2, 2)] = 1.0 / trace;
            return inverse;
        }
        let inertia = Matrix3::from_fn(|i, j| if i == j { trace } else { 0.0 } - turned[(i, j)]);
        let inertia = (inertia + inertia.transpose()) * 0.5;
        inertia.try_inverse().map_or_else(Matrix3::zeros, |inverse| (inverse + inverse.transpose()) * 0.5)
    }

    /// How its motions answer impulses: the inverse of its mass matrix, with nothing for what is fixed.
    pub fn response(&self) -> Response {
        let mut response = [[0.0; MOST_MOTIONS]; MOST_MOTIONS];
        let fixed = &self.material.fixed;
        for (axis, row) in response.iter_mut().enumerate().take(D) {
            row[axis] = if fixed[axis] { 0.0 } else { 1.0 / self.material.mass };
        }
        let inverse = self.inverse_inertia();
        if D == 2 {
            response[2][2] = inverse[(2, 2)];
        } else {
            for i in 0..3 {
                for j in 0..3 {
                    response[3 + i][3 + j] = inverse[(i, j)];
                }
            }
        }
        response
    }

    /// Kinetic energy, J.
    pub fn kinetic_energy(&self) -> Real {
        let turned = self.pose.rotation * self.spread * self.pose.rotation.transpose();
        let spin = Vector3::from(self.spin());
        // ½ ω·(tr S − S) ω.
        let full = Matrix3::from_fn(|i, j| if i < D && j < D { turned[(i, j)] } else { 0.0 });
        let turning = turned.trace() * spin.norm_squared() - spin.dot(&(full * spin));
        0.5 * self.material.mass * self.velocity().norm_squared() + 0.5 * turning
    }

    /// Moves it for `dt` seconds with the velocity of the middle of that time, as `share` of the last change continues it, by at
    /// most `most` m/s. Its angular momentum stays what it is.
    pub fn advance(&mut self, dt: Real, share: Real, most: Real) {
        let mut state = self.state;
        let limit = |motion: usize| if motion < D { most } else { most / self.radius };
        let middle: Twist = std::array::from_fn(|motion| {
            let more = share * (state.velocity[motion] - state.earlier[motion]);
            state.velocity[motion] + more.clamp(-limit(motion), limit(motion))
        });
        for (position, velocity) in state.position.iter_mut().zip(middle).take(D) {
            *position += velocity * dt;
        }
        let spin = spin_of::<D>(&middle);
        state.earlier = state.velocity;
        if D == 2 {
            state.angle += spin[2] * dt;
        } else if spin != [0.0; 3] {
            let before = self.inverse_inertia().try_inverse();
            state.quaternion = turned(state.quaternion, spin, dt);
            self.set_state(state);
            if let Some(before) = before {
                let momentum = before * Vector3::from(spin_of::<D>(&state.velocity));
                let after = self.inverse_inertia() * momentum;
                state.velocity[3..].copy_from_slice(after.as_slice());
            }
        }
        self.set_state(state);
    }
}

/// How a body's motions answer impulses on them, 1/kg and 1/(kg m²).
pub type Response = [[Real; MOST_MOTIONS]; MOST_MOTIONS];

/// The angular part of a body's motions; in 2D only about z.
pub fn spin_of<const D: usize>(motion: &Twist) -> [Real; 3] {
    if D == 2 { [0.0, 0.0, motion[2]] } else { [motion[3], motion[4], motion[5]] }
}

/// A distance from a point within which all of a shape lies; `None` if it goes on forever.
fn reach_of<const D: usize>(shape: &Shape<D>, from: &Vector<D>) -> Option<Real> {
    match shape {
        Shape::Sphere { center, radius } => Some((center - from).norm() + radius),
        Shape::Capsule { from: start, to, radius } => {
            Some((start - from).norm().max((to - from).norm()) + radius)
        }
        Shape::Placed { shape, placement } => {
            let from = placement.rotation.tr_mul(&(from - placement.translation)) / placement.scale;
            Some(placement.scale * reach_of(shape, &from)?)
        }
        _ => {
            let [low, high] = shape.bounds()?;
            Some((low - from).abs().sup(&(high - from).abs()).norm())
        }
    }
}

/// Three numbers, zeros beyond the last axis.
fn padded<const D: usize>(x: &Vector<D>) -> [Real; 3] {
    std::array::from_fn(|axis| if axis < D { x[axis] } else { 0.0 })
}

fn lifted<const D: usize>(x: &Vector<D>) -> Vector3<Real> {
    Vector3::from(padded(x))
}

/// The rotation that a unit quaternion x, y, z, w stands for.
fn quaternion_matrix([x, y, z, w]: [Real; 4]) -> Matrix3<Real> {
    Matrix3::new(
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - z * w),
        2.0 * (x * z + y * w),
        2.0 * (x * y + z * w),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - x * w),
        2.0 * (x * z - y * w),
        2.0 * (y * z + x * w),
        1.0 - 2.0 * (x * x + y * y),
    )
}

/// A unit quaternion, turned on for `dt` seconds by an angular velocity.
fn turned([x, y, z, w]: [Real; 4], spin: [Real; 3], dt: Real) -> [Real; 4] {
    let speed = spin.iter().map(|w| w * w).sum::<Real>().sqrt();
    let (sin, cos) = (0.5 * speed * dt).sin_cos();
    let [a, b, c] = spin.map(|component| component / speed * sin);
    let product = [
        cos * x + a * w + b * z - c * y,
        cos * y - a * z + b * w + c * x,
        cos * z + a * y - b * x + c * w,
        cos * w - a * x - b * y - c * z,
    ];
    let length = product.iter().map(|q| q * q).sum::<Real>().sqrt();
    product.map(|q| q / length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn material(mass: Real) -> Material {
        Material { mass, friction: 0.3, restitution: 0.0, fixed: [false; MOST_MOTIONS] }
    }

    /// A box with three different sides.
    fn brick() -> Body<3> {
        let shape = Shape::Box { min: Vector::from([0.0, 0.0, 0.0]), max: Vector::from([0.1, 0.3, 0.2]) };
        Body::new(&shape, material(2.0), [0.3, 0.0, -0.1, 3.0, 0.4, 0.1]).expect("finite")
    }

    fn angular_momentum(body: &Body<3>) -> Vector3<Real> {
        body.inverse_inertia().try_inverse().expect("it may turn") * Vector3::from(body.spin())
    }

    #[test]
    fn a_tumbling_body_keeps_its_angular_momentum_and_nearly_its_energy() {
        let mut body = brick();
        let (momentum, energy) = (angular_momentum(&body), body.kinetic_energy());
        for _ in 0..2000 {
            body.advance(1e-3, 0.5, 10.0);
        }
        let drift = (angular_momentum(&body) - momentum).norm() / momentum.norm();
        assert!(drift < 1e-12, "angular momentum by {drift:.1e}");
        let drift = (body.kinetic_energy() / energy - 1.0).abs();
        assert!(drift < 2e-3, "energy by {drift:.1e}");
        assert!((body.position() - Vector::from([0.05 + 0.6, 0.15, 0.1 - 0.2])).norm() < 1e-9);
        let rotation = body.pose().rotation;
        assert!((rotation.tr_mul(&rotation) - Matrix::identity()).norm() < 1e-12);
    }

    #[test]
    fn the_pose_says_how_its_points_move() {
        let mut body = brick();
        body.advance(0.2, 0.0, 0.0);
        let rest = Vector::from([0.1, 0.3, 0.0]);
        let (before, h) = (body.pose().from_rest(&rest), 1e-6);
        let speed = body.pose().velocity(&before);
        let arm = before - body.position();
        for axis in 0..3 {
            let direction = Vector::from_fn(|k, _| if k == axis { 1.0 } else { 0.0 });
            let motion = Body::<3>::motion_at(&arm, &direction);
            let sum: Real = motion.iter().zip(body.state().velocity).map(|(c, v)| c * v).sum();
            assert!((sum - speed[axis]).abs() < 1e-12, "axis {axis}: {sum} {}", speed[axis]);
        }
        body.advance(h, 0.0, 0.0);
        let moved = (body.pose().from_rest(&rest) - before) / h;
        assert!((moved - speed).norm() < 1e-4, "{moved} {speed}");
    }

    #[test]
    fn fixed_motions_answer_nothing() {
        let shape = Shape::Sphere { center: Vector::from([0.5, 0.5]), radius: 0.1 };
        let fixed = [true, false, true, false, false, false];
        let body = Body::new(&shape, Material { fixed, ..material(1.0) }, [1.0; 6]).expect("finite");
        let response = body.response();
        assert_eq!([response[0][0], response[1][1], response[2][2]], [0.0, 1.0, 0.0]);
        assert_eq!(body.state().velocity[..3], [0.0, 1.0, 0.0]);
    }
}
