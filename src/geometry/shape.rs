//! Signed-distance shapes.

use crate::math::{Real, Vector};

/// A shape with a signed distance, negative inside. Its magnitude never exceeds the true distance.
#[derive(Clone, Debug)]
pub enum Shape<const D: usize> {
    /// A box given by its corners.
    Box {
        /// Low corner.
        min: Vector<D>,
        /// High corner.
        max: Vector<D>,
    },
    /// A ball (disc in 2D).
    Sphere {
        /// Centre.
        center: Vector<D>,
        /// Radius.
        radius: Real,
    },
}

impl<const D: usize> Shape<D> {
    /// Signed distance, negative inside.
    pub fn distance(&self, x: &Vector<D>) -> Real {
        match self {
            Shape::Box { min, max } => {
                let q = (x - (min + max) * 0.5).abs() - (max - min) * 0.5;
                q.map(|v| v.max(0.0)).norm() + q.max().min(0.0)
            }
            Shape::Sphere { center, radius } => (x - center).norm() - radius,
        }
    }
}
