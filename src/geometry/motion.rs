//! Scripted motion.

use crate::math::{Real, Vector};

/// A rigid motion given by a script.
#[derive(Clone, Debug, Default)]
pub struct Motion<const D: usize> {}

impl<const D: usize> Motion<D> {
    /// The point of the rest pose that is at `x` at that time.
    pub fn to_rest(&self, x: &Vector<D>, _time: Real) -> Vector<D> {
        *x
    }

    /// Velocity of the material point at `x`.
    pub fn velocity(&self, _x: &Vector<D>, _time: Real) -> Vector<D> {
        Vector::zeros()
    }

    /// Whether it ever moves.
    pub fn is_moving(&self) -> bool {
        false
    }
}
