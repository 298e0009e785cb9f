//! Ties between bodies.

use crate::math::{Real, Vector};

/// What keeps a body at another solid, or at a place in the scene.
#[derive(Clone, Debug, PartialEq)]
pub struct Joint<const D: usize> {
    /// The body: its place among the solids.
    pub body: usize,
    /// What it is tied to: a place among the solids. `None`: to the scene itself.
    pub to: Option<usize>,
    /// Where it holds the body and the other, at the poses that the scene gives them.
    pub at: [Vector<D>; 2],
    /// What it leaves free.
    pub kind: JointKind<D>,
}

impl<const D: usize> Joint<D> {
    /// Whether the two may overlap there: what is built together does not collide.
    pub fn overlaps(&self) -> bool {
        !matches!(self.kind, JointKind::Spring { .. } | JointKind::Rope { .. })
    }

    /// Whether it ties two solids, in either order.
    pub fn ties(&self, a: usize, b: usize) -> bool {
        self.to.is_some_and(|to| [a, b] == [self.body, to] || [b, a] == [self.body, to])
    }
}

/// What a joint leaves free.
#[derive(Clone, Debug, PartialEq)]
pub enum JointKind<const D: usize> {
    /// Turning about an axis of unit length through the point; in 2D about z.
    Hinge {
        /// In the poses of the scene.
        axis: [Real; 3],
        /// Turns it.
        motor: Option<Motor>,
    },
    /// Moving along a direction of unit length, without turning.
    Slider {
        /// In the poses of the scene.
        along: Vector<D>,
        /// Pushes it.
        motor: Option<Motor>,
    },
    /// Turning about the point in every way.
    Ball,
    /// Nothing.
    Weld,
    /// All, against a force that grows with the distance of the two points.
    Spring {
        /// N/m.
        stiffness: Real,
        /// N s/m.
        damping: Real,
        /// Distance without force, metres.
        length: Real,
    },
    /// All but to be further apart than that.
    Rope {
        /// Metres.
        length: Real,
    },
}

/// Drives what a joint leaves free at a speed, as far as its strength reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motor {
    /// m/s or rad/s.
    pub speed: Real,
    /// N or N m.
    pub strength: Real,
}
