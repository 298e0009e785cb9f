//! Shapes and what can be measured of them: signed distances, scripted motion, open fractions, surface meshes.

mod boundary;
pub mod fraction;
mod keyframes;
mod label;
mod mesh;
mod motion;
mod polygon;
mod rotation;
mod shape;
mod surface;

pub use boundary::{Boundary, CellBits, FAR, Nearness, WallBits, Walls, block_is_solid};
pub use keyframes::{Interpolation, Keyframes, Placement};
pub use label::{Label, Settled, label_cells};
pub use mesh::{Mesh, MeshError};
pub use motion::{Motion, Move, Pose};
pub use polygon::{Polygon, PolygonError};
pub use rotation::{Matrix, OUT_OF_PLANE, cross_matrix, rotation, unit_axis};
pub use shape::{Shape, Similarity};
pub use surface::{SurfaceMesh, extract_surface, mesh_distance};

use crate::math::{Real, Vector};

/// A named obstacle that may move by a script, appear and vanish.
#[derive(Clone, Debug)]
pub struct Solid<const D: usize> {
    /// How messages and panels call it.
    pub name: String,
    /// Its shape at the motion's rest pose.
    pub shape: Shape<D>,
    /// How it moves.
    pub motion: Motion<D>,
    /// From when until when it is there, seconds.
    pub present: [Real; 2],
}

impl<const D: usize> Solid<D> {
    /// A solid that is always there.
    pub fn new(name: impl Into<String>, shape: Shape<D>, motion: Motion<D>) -> Self {
        Solid { name: name.into(), shape, motion, present: [0.0, Real::INFINITY] }
    }

    /// The solid at one time. Asking this for many points is cheaper than asking the solid.
    pub fn at(&self, time: Real) -> PosedSolid<'_, D> {
        PosedSolid {
            shape: &self.shape,
            pose: self.motion.is_moving().then(|| self.motion.pose(time)),
            present: self.is_present(time),
        }
    }

    /// Whether it is there at a time.
    pub fn is_present(&self, time: Real) -> bool {
        (self.present[0]..self.present[1]).contains(&time)
    }

    /// Signed distance at a time, negative inside.
    pub fn distance(&self, x: &Vector<D>, time: Real) -> Real {
        if self.is_present(time) {
            self.shape.distance(&self.motion.to_rest(x, time))
        } else {
            Real::INFINITY
        }
    }

    /// Velocity of the material point at `x`.
    pub fn velocity(&self, x: &Vector<D>, time: Real) -> Vector<D> {
        self.motion.velocity(x, time)
    }

    /// Whether it ever moves, appears or vanishes.
    pub fn is_moving(&self) -> bool {
        self.motion.is_moving() || self.present != [0.0, Real::INFINITY]
    }
}

/// A solid at one time.
#[derive(Clone, Copy, Debug)]
pub struct PosedSolid<'a, const D: usize> {
    shape: &'a Shape<D>,
    pose: Option<Pose<D>>,
    present: bool,
}

impl<const D: usize> PosedSolid<'_, D> {
    /// Signed distance, negative inside.
    pub fn distance(&self, x: &Vector<D>) -> Real {
        match &self.pose {
            _ if !self.present => Real::INFINITY,
            Some(pose) => self.shape.distance(&pose.to_rest(x)),
            None => self.shape.distance(x),
        }
    }

    /// Velocity of the material point at `x`.
    pub fn velocity(&self, x: &Vector<D>) -> Vector<D> {
        self.pose.as_ref().map_or_else(Vector::zeros, |pose| pose.velocity(x))
    }
}
