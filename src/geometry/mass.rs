//! Volume, centre and second moments of shapes.
//!
//! Primitives, polygons and meshes have closed forms. Unions, intersections and differences are integrated over a tree of boxes
//! that is refined along the surface, to a few parts in a hundred thousand for shapes that are not much thinner than long.

use nalgebra::Vector3;

use crate::math::{Real, Vector, power, unflatten};

use super::Shape;
use super::rotation::Matrix;

/// What a body of density one weighs, and how that is spread.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments<const D: usize> {
    /// m³ (m² in 2D).
    pub volume: Real,
    /// Centre of mass.
    pub centre: Vector<D>,
    /// `∫ (x − c)(x − c)ᵀ dV`: the inertia tensor is its trace times one, less itself.
    pub spread: Matrix<D>,
}

impl<const D: usize> Moments<D> {
    /// Nothing.
    fn none() -> Self {
        Moments { volume: 0.0, centre: Vector::<D>::zeros(), spread: Matrix::<D>::zeros() }
    }

    /// From the means of squares along the axes of a shape that is its own mirror image along each of them.
    fn mirrored(volume: Real, centre: Vector<D>, squares: impl Fn(usize) -> Real) -> Self {
        let spread = Matrix::from_fn(|i, j| if i == j { volume * squares(i) } else { 0.0 });
        Moments { volume, centre, spread }
    }

    /// From the mean squares along an axis and across it, along each direction across.
    fn round(volume: Real, centre: Vector<D>, axis: &Vector<D>, along: Real, across: Real) -> Self {
        let outer = axis * axis.transpose();
        Moments {
            volume,
            centre,
            spread: (outer * (along - across) + Matrix::<D>::identity() * across) * volume,
        }
    }

    /// From integrals of 1, x and x xᵀ about some origin.
    fn from_sums(volume: Real, first: Vector<D>, second: Matrix<D>, origin: Vector<D>) -> Self {
        if volume == 0.0 {
            return Moments::none();
        }
        let mean = first / volume;
        Moments { volume, centre: origin + mean, spread: second - mean * mean.transpose() * volume }
    }
}

impl<const D: usize> Shape<D> {
    /// Volume, centre and second moments of a shape of finite size; `None` of one that goes on forever.
    pub fn moments(&self) -> Option<Moments<D>> {
        let [low, high] = self.bounds()?;
        Some(match self {
            Shape::Box { min, max } => rounded_box(min, max, 0.0),
            Shape::RoundedBox { min, max, radius } => rounded_box(min, max, *radius),
            Shape::Sphere { center, radius } => {
                let square = radius * radius / (D + 2) as Real;
                Moments::mirrored(ball_volume(D) * radius.powi(D as i32), *center, |_| square)
            }
            Shape::Capsule { from, to, radius } => capsule(from, to, *radius),
            Shape::Cylinder { center, axis, half_length, radius } => {
                let volume = 2.0 * half_length * ball_volume(D - 1) * radius.powi(D as i32 - 1);
                let across = radius * radius / (D + 1) as Real;
                Moments::round(volume, *center, axis, half_length * half_length / 3.0, across)
            }
            Shape::Cone { from, axis, length, from_radius, to_radius } => {
                cone(from, axis, *length, *from_radius, *to_radius)
            }
            Shape::Torus { center, axis, ring_radius, tube_radius } if D == 3 => {
                let (ring, tube) = (ring_radius * ring_radius, tube_radius * tube_radius);
                let volume = 2.0 * std::f64::consts::PI.powi(2) * ring_radius * tube;
                Moments::round(volume, *center, axis, 0.25 * tube, 0.5 * ring + 0.375 * tube)
            }
            Shape::Polygon(polygon) if D == 2 => polygon_moments(polygon.points()),
            Shape::Mesh(mesh) if D == 3 => mesh_moments(&mesh.corners()),
            Shape::Placed { shape, placement } => {
                let own = shape.moments()?;
                let turned = placement.rotation * own.spread * placement.rotation.transpose();
                Moments {
                    volume: own.volume * placement.scale.powi(D as i32),
                    centre: placement.rotation * own.centre * placement.scale + placement.translation,
                    spread: turned * placement.scale.powi(D as i32 + 2),
                }
            }
            _ => integrate(|x| self.distance(x), low, high),
        })
    }
}

impl<const D: usize> Shape<D> {
    /// How deep below its surface its deepest point lies, as far as a lattice of points in it can tell: half of the thickness of a
    /// plate. Zero for shapes that go on forever.
    pub fn depth(&self) -> Real {
        const POINTS: usize = 31;
        let Some([low, high]) = self.bounds() else { return 0.0 };
        let place = |index: usize| {
            let cell = unflatten::<D>(index, POINTS);
            Vector::<D>::from_fn(|axis, _| {
                low[axis] + (high - low)[axis] * (cell[axis] as Real + 0.5) / POINTS as Real
            })
        };
        (0..power(POINTS, D)).map(|index| -self.distance(&place(index))).fold(0.0, Real::max)
    }
}

/// Volume of the unit ball.
fn ball_volume(dimension: usize) -> Real {
    match dimension {
        0 => 1.0,
        1 => 2.0,
        2 => std::f64::consts::PI,
        _ => 4.0 / 3.0 * std::f64::consts::PI,
    }
}

/// A box with rounded edges: an inner box, and around it parts of balls of every dimension, one for each choice of the axes along
/// which a point lies beyond the inner box.
fn rounded_box<const D: usize>(min: &Vector<D>, max: &Vector<D>, radius: Real) -> Moments<D> {
    let half = (max - min) * 0.5 - Vector::repeat(radius);
    let (mut volume, mut squares) = (0.0, [0.0; D]);
    for beyond in 0..power(2, D) {
        let is_beyond = |axis: usize| beyond >> axis & 1 == 1;
        let order = (0..D).filter(|&axis| is_beyond(axis)).count();
        let along: Real = (0..D).filter(|&axis| !is_beyond(axis)).map(|axis| 2.0 * half[axis]).product();
        let part = along * ball_volume(order) * radius.powi(order as i32);
        // Mean distance from the middle of a ball along one axis, and its mean square.
        let mean = [0.0, 0.5, 4.0 / (3.0 * std::f64::consts::PI), 0.375][order] * radius;
        let square = radius * radius / (order + 2) as Real;
        volume += part;
        for axis in 0..D {
            let h = half[axis];
            squares[axis] +=
                part * if is_beyond(axis) { h * h + 2.0 * h * mean + square } else { h * h / 3.0 };
        }
    }
    Moments::mirrored(volume, (min + max) * 0.5, |axis| squares[axis] / volume)
}

fn capsule<const D: usize>(from: &Vector<D>, to: &Vector<D>, radius: Real) -> Moments<D> {
    let (arm, centre) = (to - from, (from + to) * 0.5);
    let (length, half) = (arm.norm(), 0.5 * arm.norm());
    let axis = if length > 0.0 { arm / length } else { Vector::<D>::zeros() };
    let middle = length * ball_volume(D - 1) * radius.powi(D as i32 - 1);
    let ends = ball_volume(D) * radius.powi(D as i32);
    // Half a ball lies that far from its flat side, on average.
    let mean = [0.0, 0.5, 4.0 / (3.0 * std::f64::consts::PI), 0.375][D] * radius;
    let square = radius * radius / (D + 2) as Real;
    let along = middle * half * half / 3.0 + ends * (half * half + 2.0 * half * mean + square);
    let across = middle * radius * radius / (D + 1) as Real + ends * square;
    let volume = middle + ends;
    if length > 0.0 {
        Moments::round(volume, centre, &axis, along / volume, across / volume)
    } else {
        Moments::mirrored(volume, centre, |_| square)
    }
}

/// A cone, as an integral of polynomials of the radius; exact by Gauss's rule of three points.
fn cone<const D: usize>(
    from: &Vector<D>,
    axis: &Vector<D>,
    length: Real,
    first: Real,
    last: Real,
) -> Moments<D> {
    let node = (0.6 as Real).sqrt();
    let (mut volume, mut moment, mut along, mut across) = (0.0, 0.0, 0.0, 0.0);
    for (x, weight) in [(-node, 5.0 / 9.0), (0.0, 8.0 / 9.0), (node, 5.0 / 9.0)] {
        let share = 0.5 * (1.0 + x);
        let (height, radius) = (share * length, first + share * (last - first));
        let slice = 0.5 * weight * length * ball_volume(D - 1) * radius.powi(D as i32 - 1);
        volume += slice;
        moment += slice * height;
        along += slice * height * height;
        across += slice * radius * radius / (D + 1) as Real;
    }
    let mean = moment / volume;
    Moments::round(volume, from + axis * mean, axis, along / volume - mean * mean, across / volume)
}

/// Sums over the triangles between an origin and the edges.
fn polygon_moments<const D: usize>(points: &[nalgebra::Vector2<Real>]) -> Moments<D> {
    let origin = points[0];
    let lifted = |point: &nalgebra::Vector2<Real>| Vector::<D>::from_fn(|axis, _| point[axis] - origin[axis]);
    let (mut volume, mut first, mut second) = (0.0, Vector::<D>::zeros(), Matrix::<D>::zeros());
    for (i, point) in points.iter().enumerate() {
        let (a, b) = (lifted(point), lifted(&points[(i + 1) % points.len()]));
        let area = 0.5 * (a[0] * b[1] - a[1] * b[0]);
        volume += area;
        first += (a + b) * (area / 3.0);
        let sum = a + b;
        second += (a * a.transpose() + b * b.transpose() + sum * sum.transpose()) * (area / 12.0);
    }
    let sign = volume.signum();
    let origin = Vector::<D>::from_fn(|axis, _| origin[axis]);
    Moments::from_sums(volume * sign, first * sign, second * sign, origin)
}

/// Sums over the tetrahedra between an origin and the triangles.
fn mesh_moments<const D: usize>(triangles: &[[Vector3<Real>; 3]]) -> Moments<D> {
    let origin = triangles[0][0];
    let lifted = |point: &Vector3<Real>| Vector::<D>::from_fn(|axis, _| point[axis] - origin[axis]);
    let (mut volume, mut first, mut second) = (0.0, Vector::<D>::zeros(), Matrix::<D>::zeros());
    for triangle in triangles {
        let [a, b, c] = triangle.map(|point| point - origin);
        let part = a.dot(&b.cross(&c)) / 6.0;
        let corners = triangle.each_ref().map(lifted);
        let sum = corners[0] + corners[1] + corners[2];
        let squares = corners
            .iter()
            .fold(Matrix::<D>::zeros(), |all: Matrix<D>, corner| all + corner * corner.transpose());
        volume += part;
        first += sum * (part / 4.0);
        second += (squares + sum * sum.transpose()) * (part / 20.0);
    }
    Moments::from_sums(volume, first, second, Vector::<D>::from_fn(|axis, _| origin[axis]))
}

/// How often boxes are halved along the surface.
const DEPTH: [usize; 4] = [0, 0, 11, 7];

/// Integrates over what lies inside of a signed distance that is never larger than the true one.
fn integrate<const D: usize>(
    distance: impl Fn(&Vector<D>) -> Real,
    low: Vector<D>,
    high: Vector<D>,
) -> Moments<D> {
    let (centre, half) = ((low + high) * 0.5, 0.5 * (high - low).max());
    let (mut volume, mut first, mut second) = (0.0, Vector::<D>::zeros(), Matrix::<D>::zeros());
    let mut add = |x: &Vector<D>, half: Real, share: Real| {
        let (arm, part) = (x - centre, share * (2.0 * half).powi(D as i32));
        volume += part;
        first += arm * part;
        second += (arm * arm.transpose() + Matrix::<D>::identity() * (half * half / 3.0)) * part;
    };
    let mut open = vec![(centre, half, 0)];
    while let Some((x, half, depth)) = open.pop() {
        let d = distance(&x);
        let reach = half * (D as Real).sqrt();
        if d <= -reach {
            add(&x, half, 1.0);
        } else if d < reach {
            if depth == DEPTH[D] {
                add(&x, half, (0.5 - 0.5 * d / half).clamp(0.0, 1.0));
                continue;
            }
            for corner in 0..power(2, D) {
                let side = |axis: usize| if corner >> axis & 1 == 1 { 0.5 } else { -0.5 };
                open.push((x + Vector::<D>::from_fn(|axis, _| side(axis) * half), 0.5 * half, depth + 1));
            }
        }
    }
    Moments::from_sums(volume, first, second, centre)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::geometry::{Mesh, Polygon};

    /// Closed forms against the integral over boxes.
    fn closed_form_is_the_integral<const D: usize>(shape: &Shape<D>, tolerance: Real) {
        let exact = shape.moments().expect("a finite shape");
        let [low, high] = shape.bounds().expect("a finite shape");
        let found = integrate(|x| shape.distance(x), low, high);
        let size = (high - low).norm();
        let volume = (found.volume / exact.volume - 1.0).abs();
        let centre = (found.centre - exact.centre).norm() / size;
        let spread = (found.spread - exact.spread).norm() / exact.spread.norm();
        assert!(
            volume.max(centre).max(spread) < tolerance,
            "{D}D {shape:?}: volume {volume:.1e}, centre {centre:.1e}, spread {spread:.1e}"
        );
    }

    #[test]
    fn closed_forms_are_the_integrals_2d() {
        let at = |x: Real, y: Real| Vector::from([x, y]);
        let polygon =
            Polygon::new(&[[0.2, 0.1], [1.3, 0.3], [0.9, 1.1], [0.7, 0.6], [0.1, 0.9]]).expect("simple");
        let shapes = [
            Shape::Box { min: at(0.1, 0.2), max: at(1.0, 0.7) },
            Shape::RoundedBox { min: at(0.1, 0.2), max: at(1.0, 0.7), radius: 0.2 },
            Shape::Sphere { center: at(0.3, 0.4), radius: 0.7 },
            Shape::Capsule { from: at(0.1, 0.2), to: at(0.9, 0.5), radius: 0.2 },
            Shape::Polygon(Arc::new(polygon)),
        ];
        for shape in shapes {
            closed_form_is_the_integral(&shape, 5e-5);
            let turned = shape.rotated([0.0, 0.0, 1.0], 0.6, at(2.0, 0.0)).scaled(1.7, at(0.0, 1.0));
            closed_form_is_the_integral(&turned, 5e-5);
        }
    }

    #[test]
    fn closed_forms_are_the_integrals_3d() {
        let at = |x: Real, y: Real, z: Real| Vector::from([x, y, z]);
        let points = [[0.0, 0.0, 0.0], [1.0, 0.1, 0.2], [0.2, 1.1, 0.0], [0.1, 0.3, 0.9]];
        let mesh = Mesh::new(&points, &[[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]).expect("closed");
        let shapes = [
            Shape::Box { min: at(0.1, 0.2, 0.0), max: at(1.0, 0.7, 0.4) },
            Shape::RoundedBox { min: at(0.1, 0.2, 0.0), max: at(1.0, 0.8, 0.7), radius: 0.2 },
            Shape::Sphere { center: at(0.3, 0.4, 0.5), radius: 0.7 },
            Shape::Capsule { from: at(0.1, 0.2, 0.0), to: at(0.9, 0.5, 0.3), radius: 0.3 },
            Shape::cylinder(at(0.1, 0.2, 0.0), at(0.9, 0.5, 0.3), 0.4),
            Shape::cone(at(0.1, 0.2, 0.0), at(0.9, 0.5, 0.3), 0.5, 0.2),
            Shape::torus(at(0.0, 0.0, 0.0), at(0.1, 1.0, 0.3), 0.6, 0.3),
            Shape::Mesh(Arc::new(mesh)),
        ];
        for shape in shapes {
            closed_form_is_the_integral(&shape, 2e-3);
        }
    }

    #[test]
    fn a_plate_is_as_deep_as_half_its_thickness() {
        let plate = Shape::Box { min: Vector::from([0.0, 0.0]), max: Vector::from([1.0, 0.02]) };
        assert!((plate.depth() - 0.01).abs() < 1e-12, "{}", plate.depth());
        let ball = Shape::Sphere { center: Vector::from([0.2, 0.0, 0.1]), radius: 0.3 };
        assert!((ball.depth() - 0.3).abs() < 1e-12, "{}", ball.depth());
    }

    #[test]
    fn what_goes_on_forever_has_no_moments() {
        let ball = Shape::Sphere { center: Vector::from([0.0, 0.0]), radius: 1.0 };
        assert_eq!(ball.clone().inverted().moments(), None);
        let plane = Shape::half_space(Vector::zeros(), Vector::from([0.0, 1.0]));
        assert_eq!(plane.moments(), None);
        let half = Shape::Intersection(vec![ball, plane]).moments().expect("half a disc");
        assert!((half.volume - std::f64::consts::FRAC_PI_2).abs() < 1e-4, "{half:?}");
        assert!((half.centre[1] + 4.0 / (3.0 * std::f64::consts::PI)).abs() < 1e-4, "{half:?}");
    }
}
