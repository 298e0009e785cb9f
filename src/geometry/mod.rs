//! Shapes and what can be measured of them: signed distances, scripted motion, open fractions, surface meshes.

mod body;
mod boundary;
pub mod fraction;
mod joint;
mod keyframes;
mod label;
mod mass;
mod mesh;
mod motion;
mod polygon;
mod rotation;
mod shape;
mod surface;
mod touch;

pub use body::{Body, BodyState, MOST_MOTIONS, Material, Response, Twist, motions, spin_of};
pub use boundary::{
    BodyShare, Boundary, CellBits, FAR, Nearness, SolidsNear, WallBits, Walls, block_is_solid, free_shares,
};
pub use joint::{Joint, JointKind, Motor};
pub use keyframes::{Interpolation, Keyframes, Placement};
pub use label::{Label, Settled, label_cells};
pub use mass::Moments;
pub use mesh::{Mesh, MeshError};
pub use motion::{Motion, Move, Pose};
pub use polygon::{Polygon, PolygonError};
pub use rotation::{Matrix, OUT_OF_PLANE, cross_matrix, rotation, unit_axis};
pub use shape::{Shape, Similarity};
pub use surface::{SurfaceMesh, extract_surface, mesh_distance};
pub use touch::TouchPoint;

use crate::math::{Real, Vector};

/// A named obstacle that may move by a script or by forces, appear and vanish.
#[derive(Clone, Debug)]
pub struct Solid<const D: usize> {
    /// How messages and panels call it.
    pub name: String,
    /// Its shape at the motion's rest pose.
    pub shape: Shape<D>,
    /// How it moves by a script.
    pub motion: Motion<D>,
    /// From when until when it is there, seconds.
    pub present: [Real; 2],
    /// What moves it instead of a script, if anything does.
    pub body: Option<Box<Body<D>>>,
    /// Whether liquid never leaves it, even where it may leave walls.
    pub sticky: bool,
    /// Whether viscous liquid slips along it; otherwise it sticks.
    pub slip: bool,
}

impl<const D: usize> Solid<D> {
    /// A solid that is always there.
    pub fn new(name: impl Into<String>, shape: Shape<D>, motion: Motion<D>) -> Self {
        Solid {
            name: name.into(),
            shape,
            motion,
            present: [0.0, Real::INFINITY],
            body: None,
            sticky: false,
            slip: false,
        }
    }

    /// A solid that moves by forces; `None` if its shape goes on forever or is nothing.
    pub fn with_body(
        name: impl Into<String>,
        shape: Shape<D>,
        material: Material,
        velocity: Twist,
    ) -> Option<Self> {
        let body = Some(Box::new(Body::new(&shape, material, velocity)?));
        Some(Solid { body, ..Solid::new(name, shape, Motion::default()) })
    }

    /// The solid at one time. Asking this for many points is cheaper than asking the solid.
    pub fn at(&self, time: Real) -> PosedSolid<'_, D> {
        PosedSolid { shape: &self.shape, pose: self.pose(time), present: self.is_present(time) }
    }

    /// Where it is at a time, and how that changes; nothing if it always stays where the scene puts it. Where a body is does not
    /// depend on the time that is asked for.
    pub fn pose(&self, time: Real) -> Option<Pose<D>> {
        match &self.body {
            Some(body) => Some(*body.pose()),
            None => self.motion.is_moving().then(|| self.motion.pose(time)),
        }
    }

    /// Whether it is there at a time.
    pub fn is_present(&self, time: Real) -> bool {
        (self.present[0]..self.present[1]).contains(&time)
    }

    /// Signed distance at a time, negative inside.
    pub fn distance(&self, x: &Vector<D>, time: Real) -> Real {
        match &self.body {
            _ if !self.is_present(time) => Real::INFINITY,
            Some(body) => self.shape.distance(&body.pose().to_rest(x)),
            None => self.shape.distance(&self.motion.to_rest(x, time)),
        }
    }

    /// Whether it may come within a distance of a point. Quick, for bodies.
    pub fn may_reach(&self, x: &Vector<D>, distance: Real) -> bool {
        self.body.as_ref().is_none_or(|body| (body.position() - x).norm() <= body.radius + distance)
    }

    /// Velocity of the material point at `x`.
    pub fn velocity(&self, x: &Vector<D>, time: Real) -> Vector<D> {
        match &self.body {
            Some(body) => body.pose().velocity(x),
            None => self.motion.velocity(x, time),
        }
    }

    /// Whether it ever moves, appears or vanishes.
    pub fn is_moving(&self) -> bool {
        self.has_pose() || self.present != [0.0, Real::INFINITY]
    }

    /// Whether it is ever anywhere else than where the scene puts it.
    pub fn has_pose(&self) -> bool {
        self.motion.is_moving() || self.body.is_some()
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

    /// Direction in which the distance grows the fastest, from its differences over `step`.
    pub fn normal(&self, x: &Vector<D>, step: Real) -> Vector<D> {
        let slope = Vector::<D>::from_fn(|axis, _| {
            let arm = Vector::<D>::from_fn(|k, _| if k == axis { step } else { 0.0 });
            self.distance(&(x + arm)) - self.distance(&(x - arm))
        });
        let norm = slope.norm();
        if norm > 0.0 { slope / norm } else { Vector::from_fn(|k, _| if k == 1 { 1.0 } else { 0.0 }) }
    }

    /// Velocity of the material point at `x`.
    pub fn velocity(&self, x: &Vector<D>) -> Vector<D> {
        self.pose.as_ref().map_or_else(Vector::zeros, |pose| pose.velocity(x))
    }
}
