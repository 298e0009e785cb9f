//! Shapes and what can be measured of them: signed distances, scripted motion, open fractions, surface meshes.

mod motion;
mod shape;
mod surface;

pub use motion::Motion;
pub use shape::Shape;
pub use surface::{SurfaceMesh, extract_surface};

use crate::math::{Real, Vector};

/// A named obstacle that may move by a script.
#[derive(Clone, Debug)]
pub struct Solid<const D: usize> {
    /// How messages and panels call it.
    pub name: String,
    /// Its shape at the motion's rest pose.
    pub shape: Shape<D>,
    /// How it moves.
    pub motion: Motion<D>,
}

impl<const D: usize> Solid<D> {
    /// Signed distance at a time, negative inside.
    pub fn distance(&self, x: &Vector<D>, time: Real) -> Real {
        self.shape.distance(&self.motion.to_rest(x, time))
    }

    /// Velocity of the material point at `x`.
    pub fn velocity(&self, x: &Vector<D>, time: Real) -> Vector<D> {
        self.motion.velocity(x, time)
    }

    /// Whether it ever moves.
    pub fn is_moving(&self) -> bool {
        self.motion.is_moving()
    }
}
