//! Scripted rigid motion: `x(t) = R(t) X + p(t)` for a point `X` of the rest pose.
//!
//! A script is a list of moves applied one after the other. Each knows its pose and the exact time derivative of
//! that pose, so the velocity handed to the solver is the derivative of the positions it sees.

use crate::math::{Real, Vector};

use super::keyframes::Keyframes;
use super::rotation::{Matrix, cross_matrix, rotation, unit_axis};

/// Where a rigid thing is at one instant, and how that changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pose<const D: usize> {
    /// `R` of `x = R X + p`.
    pub rotation: Matrix<D>,
    /// `p` of `x = R X + p`, metres.
    pub translation: Vector<D>,
    /// Time derivative of `rotation`, 1/s.
    pub rotation_rate: Matrix<D>,
    /// Time derivative of `translation`, m/s.
    pub translation_rate: Vector<D>,
}

impl<const D: usize> Pose<D> {
    /// The rest pose, not moving.
    pub fn rest() -> Self {
        Pose {
            rotation: Matrix::identity(),
            translation: Vector::zeros(),
            rotation_rate: Matrix::zeros(),
            translation_rate: Vector::zeros(),
        }
    }

    fn shifted(translation: Vector<D>, translation_rate: Vector<D>) -> Self {
        Pose { translation, translation_rate, ..Pose::rest() }
    }

    /// Turned by `angle` about an axis through `center`, at `rate` rad/s.
    fn turned(axis: [Real; 3], center: &Vector<D>, angle: Real, rate: Real) -> Self {
        let rotation = rotation(axis, angle);
        let rotation_rate = cross_matrix::<D>(unit_axis(axis)) * rotation * rate;
        Pose {
            rotation,
            translation: center - rotation * center,
            rotation_rate,
            translation_rate: -(rotation_rate * center),
        }
    }

    /// This pose, then another one on top.
    pub fn then(&self, next: &Pose<D>) -> Self {
        Pose {
            rotation: next.rotation * self.rotation,
            translation: next.rotation * self.translation + next.translation,
            rotation_rate: next.rotation_rate * self.rotation + next.rotation * self.rotation_rate,
            translation_rate: next.rotation_rate * self.translation
                + next.rotation * self.translation_rate
                + next.translation_rate,
        }
    }

    /// Where a point of the rest pose is now.
    #[inline]
    pub fn from_rest(&self, x_rest: &Vector<D>) -> Vector<D> {
        self.rotation * x_rest + self.translation
    }

    /// The point of the rest pose that is now at `x`.
    #[inline]
    pub fn to_rest(&self, x: &Vector<D>) -> Vector<D> {
        self.rotation.tr_mul(&(x - self.translation))
    }

    /// Velocity of the material point now at `x`.
    #[inline]
    pub fn velocity(&self, x: &Vector<D>) -> Vector<D> {
        self.rotation_rate * self.to_rest(x) + self.translation_rate
    }

    /// A direction of the rest pose as it is turned now; in 2D the third axis is z, which stays.
    pub fn turn(&self, direction: [Real; 3]) -> [Real; 3] {
        let turned = self.rotation * Vector::<D>::from_fn(|k, _| direction[k]);
        std::array::from_fn(|k| if k < D { turned[k] } else { direction[k] })
    }

    /// Angular velocity, rad/s; in 2D only about z.
    pub fn spin(&self) -> [Real; 3] {
        let rate = self.rotation_rate * self.rotation.transpose();
        match D {
            2 => [0.0, 0.0, rate[(1, 0)]],
            _ => [rate[(2, 1)], rate[(0, 2)], rate[(1, 0)]],
        }
    }
}

/// One entry of a motion script.
#[derive(Clone, Debug, PartialEq)]
pub enum Move<const D: usize> {
    /// A steady glide.
    Glide {
        /// m/s.
        velocity: Vector<D>,
        /// Second it starts.
        from: Real,
        /// Second it stops; may be infinite.
        until: Real,
    },
    /// A steady turn.
    Spin {
        /// Axis; z in 2D.
        axis: [Real; 3],
        /// A point on the axis.
        center: Vector<D>,
        /// rad/s, counter-clockwise when the axis points at the viewer.
        rate: Real,
        /// Second it starts.
        from: Real,
        /// Second it stops; may be infinite.
        until: Real,
    },
    /// To and fro along a line: `amplitude · sin(2π (frequency t + phase))`.
    Swing {
        /// Direction and amplitude in one, metres.
        amplitude: Vector<D>,
        /// Hz.
        frequency: Real,
        /// Share of a period, 0 to 1.
        phase: Real,
    },
    /// To and fro about an axis: `angle · sin(2π (frequency t + phase))`.
    Rock {
        /// Axis; z in 2D.
        axis: [Real; 3],
        /// A point on the axis.
        center: Vector<D>,
        /// Largest angle, radians.
        angle: Real,
        /// Hz.
        frequency: Real,
        /// Share of a period, 0 to 1.
        phase: Real,
    },
    /// From key to key.
    Keyframes(Keyframes<D>),
}

impl<const D: usize> Move<D> {
    /// The pose at a time.
    pub fn pose(&self, time: Real) -> Pose<D> {
        match self {
            Move::Glide { velocity, from, until } => {
                let (elapsed, running) = elapsed(time, *from, *until);
                Pose::shifted(velocity * elapsed, velocity * running)
            }
            Move::Spin { axis, center, rate, from, until } => {
                let (elapsed, running) = elapsed(time, *from, *until);
                Pose::turned(*axis, center, rate * elapsed, rate * running)
            }
            Move::Swing { amplitude, frequency, phase } => {
                let (value, rate) = wave(*frequency, *phase, time);
                Pose::shifted(amplitude * value, amplitude * rate)
            }
            Move::Rock { axis, center, angle, frequency, phase } => {
                let (value, rate) = wave(*frequency, *phase, time);
                Pose::turned(*axis, center, angle * value, angle * rate)
            }
            Move::Keyframes(track) => {
                let (at, rate) = track.sample(time);
                let turn = Pose::turned(track.axis, &track.center, at.angle, rate.angle);
                turn.then(&Pose::shifted(at.translation, rate.translation))
            }
        }
    }
}

/// Seconds a move has run at a time, and 1 while it runs or 0 while it does not.
fn elapsed(time: Real, from: Real, until: Real) -> (Real, Real) {
    let running = if (from..until).contains(&time) { 1.0 } else { 0.0 };
    ((time.min(until) - from).max(0.0), running)
}

/// A sine of unit amplitude and its time derivative.
fn wave(frequency: Real, phase: Real, time: Real) -> (Real, Real) {
    let pulse = std::f64::consts::TAU * frequency;
    let (sin, cos) = (pulse * time + std::f64::consts::TAU * phase).sin_cos();
    (sin, pulse * cos)
}

/// A rigid motion given by a script. The empty script is at rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Motion<const D: usize> {
    /// Applied one after the other, first to last.
    pub moves: Vec<Move<D>>,
}

impl<const D: usize> Motion<D> {
    /// A motion made of these moves, applied first to last.
    pub fn new(moves: Vec<Move<D>>) -> Self {
        Motion { moves }
    }

    /// Where it is at a time. Take this once per time rather than ask for every point.
    pub fn pose(&self, time: Real) -> Pose<D> {
        self.moves.iter().fold(Pose::rest(), |pose, next| pose.then(&next.pose(time)))
    }

    /// The point of the rest pose that is at `x` at that time.
    pub fn to_rest(&self, x: &Vector<D>, time: Real) -> Vector<D> {
        if self.moves.is_empty() { *x } else { self.pose(time).to_rest(x) }
    }

    /// Velocity of the material point at `x`.
    pub fn velocity(&self, x: &Vector<D>, time: Real) -> Vector<D> {
        if self.moves.is_empty() { Vector::zeros() } else { self.pose(time).velocity(x) }
    }

    /// Whether it ever moves.
    pub fn is_moving(&self) -> bool {
        !self.moves.is_empty()
    }
}
