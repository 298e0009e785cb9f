//! Signed-distance shapes.
//!
//! A distance is negative inside and metres throughout. Primitives are exact. A union is exact outside and an
//! intersection or difference inside; elsewhere they may report less than the true distance, never more, so a caller
//! may skip everything within `|distance|` of a point.

use std::sync::Arc;

use crate::math::{Real, Vector};

use super::mesh::Mesh;
use super::polygon::Polygon;
use super::rotation::{Matrix, rotation};

/// A shape with a signed distance, negative inside. Its magnitude never exceeds the true distance.
///
/// ```
/// use glug::geometry::Shape;
/// use glug::math::Vector;
///
/// let ball = Shape::Sphere { center: Vector::from([0.0, 0.0]), radius: 1.0 };
/// let half = Shape::Box { min: Vector::from([-2.0, 0.0]), max: Vector::from([2.0, 2.0]) };
/// let lower = Shape::Difference(Box::new(ball), vec![half]);
/// assert!(lower.distance(&Vector::from([0.0, -0.5])) < 0.0);
/// assert!(lower.distance(&Vector::from([0.0, 0.5])) > 0.0);
/// ```
#[derive(Clone, Debug)]
pub enum Shape<const D: usize> {
    /// A box given by its corners.
    Box {
        /// Low corner.
        min: Vector<D>,
        /// High corner.
        max: Vector<D>,
    },
    /// A box with rounded edges.
    RoundedBox {
        /// Low corner.
        min: Vector<D>,
        /// High corner.
        max: Vector<D>,
        /// Radius of the edges; at most half the shortest side.
        radius: Real,
    },
    /// A ball (disc in 2D).
    Sphere {
        /// Centre.
        center: Vector<D>,
        /// Radius.
        radius: Real,
    },
    /// All points within `radius` of a segment.
    Capsule {
        /// One end of the segment.
        from: Vector<D>,
        /// The other end.
        to: Vector<D>,
        /// Radius.
        radius: Real,
    },
    /// A cylinder with flat ends (a turned rectangle in 2D). See [`Shape::cylinder`].
    Cylinder {
        /// Middle of the axis.
        center: Vector<D>,
        /// Direction of the axis, of unit length.
        axis: Vector<D>,
        /// Half the length along the axis.
        half_length: Real,
        /// Radius.
        radius: Real,
    },
    /// A cone, pointed or truncated. See [`Shape::cone`].
    Cone {
        /// Middle of the first end.
        from: Vector<D>,
        /// Direction to the other end, of unit length.
        axis: Vector<D>,
        /// Length along the axis.
        length: Real,
        /// Radius at the first end.
        from_radius: Real,
        /// Radius at the other end.
        to_radius: Real,
    },
    /// A ring.
    Torus {
        /// Centre.
        center: Vector<D>,
        /// Direction of the axis, of unit length.
        axis: Vector<D>,
        /// From the centre to the middle of the tube.
        ring_radius: Real,
        /// Radius of the tube.
        tube_radius: Real,
    },
    /// Everything on one side of a plane: `normal · x < offset`.
    HalfSpace {
        /// Points out of the material, of unit length.
        normal: Vector<D>,
        /// Where the plane crosses the normal, metres from the origin.
        offset: Real,
    },
    /// A polygon in the xy plane; in 3D an endless prism along z.
    Polygon(Arc<Polygon>),
    /// A closed triangle mesh; in 2D its cut at z = 0.
    Mesh(Arc<Mesh>),
    /// Everything in any of these.
    Union(Vec<Shape<D>>),
    /// Everything in all of these.
    Intersection(Vec<Shape<D>>),
    /// Everything in the first that is in none of the others.
    Difference(Box<Shape<D>>, Vec<Shape<D>>),
    /// Inside out: a container whose cavity is the shape.
    Inverted(Box<Shape<D>>),
    /// A shape moved, turned and scaled.
    Placed {
        /// What is placed.
        shape: Box<Shape<D>>,
        /// How.
        placement: Similarity<D>,
    },
}

/// A translation, rotation and uniform scaling: `x = scale · R X + translation`.
#[derive(Clone, Debug, PartialEq)]
pub struct Similarity<const D: usize> {
    /// `R`.
    pub rotation: Matrix<D>,
    /// Metres.
    pub translation: Vector<D>,
    /// Above zero.
    pub scale: Real,
}

impl<const D: usize> Similarity<D> {
    /// This, then another on top.
    pub fn then(&self, next: &Similarity<D>) -> Self {
        Similarity {
            rotation: next.rotation * self.rotation,
            translation: next.rotation * self.translation * next.scale + next.translation,
            scale: next.scale * self.scale,
        }
    }
}

impl<const D: usize> Shape<D> {
    /// A cylinder between two points.
    pub fn cylinder(from: Vector<D>, to: Vector<D>, radius: Real) -> Self {
        let (axis, length) = direction(&(to - from));
        Shape::Cylinder { center: (from + to) * 0.5, axis, half_length: 0.5 * length, radius }
    }

    /// A cone between two points, with a radius at each; one may be zero.
    pub fn cone(from: Vector<D>, to: Vector<D>, from_radius: Real, to_radius: Real) -> Self {
        let (axis, length) = direction(&(to - from));
        Shape::Cone { from, axis, length, from_radius, to_radius }
    }

    /// A ring about an axis of any length.
    pub fn torus(center: Vector<D>, axis: Vector<D>, ring_radius: Real, tube_radius: Real) -> Self {
        Shape::Torus { center, axis: direction(&axis).0, ring_radius, tube_radius }
    }

    /// Everything behind the plane through `point`; `normal`, of any length, points away from it.
    pub fn half_space(point: Vector<D>, normal: Vector<D>) -> Self {
        let normal = direction(&normal).0;
        Shape::HalfSpace { offset: normal.dot(&point), normal }
    }

    /// Inside out.
    pub fn inverted(self) -> Self {
        match self {
            Shape::Inverted(shape) => *shape,
            shape => Shape::Inverted(Box::new(shape)),
        }
    }

    /// Moved.
    pub fn translated(self, by: Vector<D>) -> Self {
        self.placed(Similarity { rotation: Matrix::identity(), translation: by, scale: 1.0 })
    }

    /// Turned by `angle` radians about an axis (z in 2D) through `center`.
    pub fn rotated(self, axis: [Real; 3], angle: Real, center: Vector<D>) -> Self {
        let rotation = rotation(axis, angle);
        self.placed(Similarity { translation: center - rotation * center, rotation, scale: 1.0 })
    }

    /// Scaled about a point. The factor must be above zero.
    pub fn scaled(self, factor: Real, center: Vector<D>) -> Self {
        let translation = center * (1.0 - factor);
        self.placed(Similarity { rotation: Matrix::identity(), translation, scale: factor })
    }

    /// Moved, turned and scaled.
    pub fn placed(self, placement: Similarity<D>) -> Self {
        match self {
            Shape::Placed { shape, placement: first } => {
                Shape::Placed { shape, placement: first.then(&placement) }
            }
            shape => Shape::Placed { shape: Box::new(shape), placement },
        }
    }

    /// Signed distance, negative inside.
    pub fn distance(&self, x: &Vector<D>) -> Real {
        match self {
            Shape::Box { min, max } => box_distance(x, min, max, 0.0),
            Shape::RoundedBox { min, max, radius } => box_distance(x, min, max, *radius) - radius,
            Shape::Sphere { center, radius } => (x - center).norm() - radius,
            Shape::Capsule { from, to, radius } => {
                let (arm, along) = (x - from, to - from);
                let length_squared = along.norm_squared();
                let share = if length_squared > 0.0 {
                    (arm.dot(&along) / length_squared).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                (arm - along * share).norm() - radius
            }
            Shape::Cylinder { center, axis, half_length, radius } => {
                let (along, across) = split(&(x - center), axis);
                let (q_along, q_across) = (along.abs() - half_length, across - radius);
                length(q_along.max(0.0), q_across.max(0.0)) + q_along.max(q_across).min(0.0)
            }
            Shape::Cone { from, axis, length, from_radius, to_radius } => {
                let (along, across) = split(&(x - from), axis);
                cone_distance(along, across, *length, *from_radius, *to_radius)
            }
            Shape::Torus { center, axis, ring_radius, tube_radius } => {
                let (along, across) = split(&(x - center), axis);
                length(along, across - ring_radius) - tube_radius
            }
            Shape::HalfSpace { normal, offset } => normal.dot(x) - offset,
            Shape::Polygon(polygon) => polygon.distance(x[0], x[1]),
            Shape::Mesh(mesh) => mesh.distance([x[0], x[1], if D > 2 { x[2] } else { 0.0 }]),
            Shape::Union(parts) => {
                parts.iter().fold(Real::INFINITY, |least, part| least.min(part.distance(x)))
            }
            Shape::Intersection(parts) => {
                parts.iter().fold(Real::NEG_INFINITY, |most, part| most.max(part.distance(x)))
            }
            Shape::Difference(from, cuts) => {
                cuts.iter().fold(from.distance(x), |most, cut| most.max(-cut.distance(x)))
            }
            Shape::Inverted(shape) => -shape.distance(x),
            Shape::Placed { shape, placement } => {
                let x_rest = placement.rotation.tr_mul(&(x - placement.translation)) / placement.scale;
                shape.distance(&x_rest) * placement.scale
            }
        }
    }

    /// Corners of a box that holds the shape, or nothing if it goes on forever. Tight for primitives.
    pub fn bounds(&self) -> Option<[Vector<D>; 2]> {
        let [min, max] = self.extent();
        min.iter().chain(max.iter()).all(|bound| bound.is_finite()).then_some([min, max])
    }

    /// Like [`Self::bounds`], with infinite entries where the shape goes on forever.
    pub fn extent(&self) -> [Vector<D>; 2] {
        let around = |center: &Vector<D>, reach: Vector<D>| [center - reach, center + reach];
        match self {
            Shape::Box { min, max } | Shape::RoundedBox { min, max, .. } => [*min, *max],
            Shape::Sphere { center, radius } => around(center, Vector::repeat(*radius)),
            Shape::Capsule { from, to, radius } => {
                let reach = Vector::repeat(*radius);
                [from.inf(to) - reach, from.sup(to) + reach]
            }
            Shape::Cylinder { center, axis, half_length, radius } => {
                around(center, axis.abs() * *half_length + disc_reach(axis) * *radius)
            }
            Shape::Cone { from, axis, length, from_radius, to_radius } => {
                let [a_min, a_max] = around(from, disc_reach(axis) * *from_radius);
                let [b_min, b_max] = around(&(from + axis * *length), disc_reach(axis) * *to_radius);
                [a_min.inf(&b_min), a_max.sup(&b_max)]
            }
            Shape::Torus { center, axis, ring_radius, tube_radius } => {
                around(center, (disc_reach(axis) * *ring_radius).add_scalar(*tube_radius))
            }
            Shape::HalfSpace { normal, offset } => {
                let mut extent = everywhere();
                for axis in 0..D {
                    if normal[axis].abs() > 1.0 - 1e-12 {
                        let side = if normal[axis] > 0.0 { 1 } else { 0 };
                        extent[side][axis] = offset * normal[axis].signum();
                    }
                }
                extent
            }
            Shape::Polygon(polygon) => {
                let mut extent = everywhere();
                for axis in 0..2 {
                    let along = || polygon.points().iter().map(|point| point[axis]);
                    extent[0][axis] = along().fold(Real::INFINITY, Real::min);
                    extent[1][axis] = along().fold(Real::NEG_INFINITY, Real::max);
                }
                extent
            }
            Shape::Mesh(mesh) => mesh.bounds().map(|corner| Vector::from_fn(|axis, _| corner[axis])),
            Shape::Union(parts) => {
                let nowhere = [Vector::repeat(Real::INFINITY), Vector::repeat(Real::NEG_INFINITY)];
                parts
                    .iter()
                    .map(Shape::extent)
                    .fold(nowhere, |sum, part| [sum[0].inf(&part[0]), sum[1].sup(&part[1])])
            }
            Shape::Intersection(parts) => {
                let [min, max] =
                    parts.iter().map(Shape::extent).fold(everywhere(), |common: [Vector<D>; 2], part| {
                        [common[0].sup(&part[0]), common[1].inf(&part[1])]
                    });
                [min, max.sup(&min)]
            }
            Shape::Difference(from, _) => from.extent(),
            Shape::Inverted(shape) => match shape.as_ref() {
                Shape::HalfSpace { normal, offset } => {
                    Shape::HalfSpace { normal: -normal, offset: -offset }.extent()
                }
                _ => everywhere(),
            },
            Shape::Placed { shape, placement } => place_extent(&shape.extent(), placement),
        }
    }
}

fn everywhere<const D: usize>() -> [Vector<D>; 2] {
    [Vector::repeat(Real::NEG_INFINITY), Vector::repeat(Real::INFINITY)]
}

/// Unit direction and length; the direction of a zero vector is up.
fn direction<const D: usize>(along: &Vector<D>) -> (Vector<D>, Real) {
    let length = along.norm();
    if length > 0.0 {
        (along / length, length)
    } else {
        (Vector::from_fn(|axis, _| if axis == 1 { 1.0 } else { 0.0 }), 0.0)
    }
}

/// Like `hypot`, without its care for numbers near the ends of the range, which costs more than all the rest.
#[inline]
fn length(x: Real, y: Real) -> Real {
    (x * x + y * y).sqrt()
}

/// Coordinate along a unit axis and distance from it.
fn split<const D: usize>(arm: &Vector<D>, axis: &Vector<D>) -> (Real, Real) {
    let along = arm.dot(axis);
    (along, (arm - axis * along).norm())
}

/// How far a unit disc with this normal reaches along each coordinate.
fn disc_reach<const D: usize>(normal: &Vector<D>) -> Vector<D> {
    normal.map(|n| (1.0 - n * n).max(0.0).sqrt())
}

/// Distance to a box whose sides are drawn in by `inset`.
fn box_distance<const D: usize>(x: &Vector<D>, min: &Vector<D>, max: &Vector<D>, inset: Real) -> Real {
    let (mut outside_squared, mut nearest) = (0.0, Real::NEG_INFINITY);
    for axis in 0..D {
        let beyond = (min[axis] - x[axis]).max(x[axis] - max[axis]) + inset;
        let out = beyond.max(0.0);
        outside_squared += out * out;
        nearest = nearest.max(beyond);
    }
    if nearest > 0.0 { outside_squared.sqrt() } else { nearest }
}

/// Distance to a truncated cone in the half-plane of its axis.
fn cone_distance(along: Real, across: Real, length: Real, from_radius: Real, to_radius: Real) -> Real {
    let to_disc = |height: Real, radius: Real| {
        let beyond = (across - radius).max(0.0);
        (along - height) * (along - height) + beyond * beyond
    };
    let widening = to_radius - from_radius;
    let share =
        (along * length + (across - from_radius) * widening) / (length * length + widening * widening);
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let (side_along, side_across) = (along - share * length, across - from_radius - share * widening);
    let to_side = side_along * side_along + side_across * side_across;
    let distance = to_disc(0.0, from_radius).min(to_disc(length, to_radius)).min(to_side).sqrt();
    let inside = along > 0.0 && along < length && (across - from_radius) * length < widening * along;
    if inside { -distance } else { distance }
}

/// The box around a placed box, which may be infinite.
fn place_extent<const D: usize>(extent: &[Vector<D>; 2], placement: &Similarity<D>) -> [Vector<D>; 2] {
    let [low, high] = extent;
    let (mut min, mut max) = (placement.translation, placement.translation);
    for row in 0..D {
        for column in 0..D {
            let factor = placement.rotation[(row, column)] * placement.scale;
            // A quarter turn leaves 1e-17 where zero is meant, and zero times infinity is not a number.
            if factor.abs() > 1e-12 * placement.scale {
                let (a, b) = (factor * low[column], factor * high[column]);
                min[row] += a.min(b);
                max[row] += a.max(b);
            }
        }
    }
    [min, max]
}
