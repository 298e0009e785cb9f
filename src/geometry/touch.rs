//! Where shapes touch others first: corners, edges, and the cores of round ones.

use crate::math::{Real, Vector, power};

use super::Shape;

/// A place on a shape, or inside of it: all within `radius` of it is part of the shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TouchPoint<const D: usize> {
    /// Where.
    pub at: Vector<D>,
    /// Metres.
    pub radius: Real,
}

/// Points along a circle.
const AROUND: usize = 24;
/// Parts of an edge.
const PARTS: usize = 4;
/// Most points of a mesh.
const MOST_CORNERS: usize = 2000;
/// Cells along the longest side of a shape whose surface has to be searched.
const SEARCHED: usize = 24;

impl<const D: usize> Shape<D> {
    /// Places with which the shape can touch a plane, and enough others for it to touch uneven things with; none if it goes on
    /// forever.
    pub fn touch_points(&self) -> Vec<TouchPoint<D>> {
        let mut points = Vec::new();
        if self.bounds().is_some() {
            self.add_touch_points(&mut points);
        }
        points
    }

    fn add_touch_points(&self, to: &mut Vec<TouchPoint<D>>) {
        match self {
            Shape::Box { min, max } => add_box(min, max, 0.0, to),
            Shape::RoundedBox { min, max, radius } => {
                let inset = Vector::repeat(*radius);
                add_box(&(min + inset), &(max - inset), *radius, to);
            }
            Shape::Sphere { center, radius } => to.push(TouchPoint { at: *center, radius: *radius }),
            Shape::Capsule { from, to: end, radius } => {
                let parts = ((end - from).norm() / radius).ceil().clamp(1.0, 32.0) as usize;
                add_edge(from, end, parts, *radius, to);
            }
            Shape::Cylinder { center, axis, half_length, radius } => {
                for side in [-1.0, 1.0] {
                    add_circle(&(center + axis * (side * half_length)), axis, *radius, 0.0, to);
                }
            }
            Shape::Cone { from, axis, length, from_radius, to_radius } => {
                add_circle(from, axis, *from_radius, 0.0, to);
                add_circle(&(from + axis * *length), axis, *to_radius, 0.0, to);
            }
            Shape::Torus { center, axis, ring_radius, tube_radius } => {
                add_circle(center, axis, *ring_radius, *tube_radius, to);
            }
            Shape::Polygon(polygon) if D == 2 => {
                let corner = |i: usize| {
                    let points = polygon.points();
                    Vector::<D>::from_fn(|axis, _| points[i % points.len()][axis])
                };
                for i in 0..polygon.points().len() {
                    add_edge(&corner(i), &corner(i + 1), PARTS, 0.0, to);
                    // The next edge begins where this one ends.
                    to.pop();
                }
            }
            Shape::Mesh(mesh) if D == 3 => {
                let corners = mesh.points();
                let step = corners.len().div_ceil(MOST_CORNERS).max(1);
                to.extend(corners.iter().step_by(step).map(|corner| TouchPoint {
                    at: Vector::<D>::from_fn(|axis, _| corner[axis]),
                    radius: 0.0,
                }));
            }
            Shape::Placed { shape, placement } => {
                let first = to.len();
                shape.add_touch_points(to);
                for point in &mut to[first..] {
                    point.at = placement.rotation * point.at * placement.scale + placement.translation;
                    point.radius *= placement.scale;
                }
            }
            Shape::Union(parts) => {
                let first = to.len();
                parts.iter().for_each(|part| part.add_touch_points(to));
                // Those inside of other parts touch nothing.
                let found = to.split_off(first);
                let is_outside = |point: &TouchPoint<D>| {
                    parts.iter().filter(|part| part.distance(&point.at) < -point.radius - 1e-9).count() == 0
                };
                to.extend(found.into_iter().filter(is_outside));
            }
            _ => self.search_surface(to),
        }
    }

    /// Points all over the surface.
    fn search_surface(&self, to: &mut Vec<TouchPoint<D>>) {
        let Some([low, high]) = self.bounds() else { return };
        let step = (high - low).max() / SEARCHED as Real;
        let cells: [usize; D] = std::array::from_fn(|axis| ((high - low)[axis] / step).ceil() as usize + 1);
        let most = cells.into_iter().max().unwrap_or(1);
        for index in 0..power(most, D) {
            let mut rest = index;
            let cell: [usize; D] = std::array::from_fn(|_| {
                let own = rest % most;
                rest /= most;
                own
            });
            if (0..D).any(|axis| cell[axis] >= cells[axis]) {
                continue;
            }
            let mut x = Vector::<D>::from_fn(|axis, _| low[axis] + (cell[axis] as Real + 0.5) * step);
            if self.distance(&x).abs() > 0.6 * step {
                continue;
            }
            for _ in 0..4 {
                let slope = Vector::<D>::from_fn(|axis, _| {
                    let arm = Vector::<D>::from_fn(|k, _| if k == axis { 1e-3 * step } else { 0.0 });
                    (self.distance(&(x + arm)) - self.distance(&(x - arm))) / (2e-3 * step)
                });
                x -= slope * (self.distance(&x) / slope.norm_squared().max(1e-6));
            }
            if self.distance(&x).abs() < 1e-3 * step {
                to.push(TouchPoint { at: x, radius: 0.0 });
            }
        }
    }
}

/// Corners and edges of a box.
fn add_box<const D: usize>(min: &Vector<D>, max: &Vector<D>, radius: Real, to: &mut Vec<TouchPoint<D>>) {
    let corner = |index: usize| Vector::<D>::from_fn(|axis, _| [min, max][index >> axis & 1][axis]);
    for index in 0..power(2, D) {
        to.push(TouchPoint { at: corner(index), radius });
        for axis in (0..D).filter(|axis| index >> axis & 1 == 0) {
            let (from, end) = (corner(index), corner(index | 1 << axis));
            for part in 1..PARTS {
                let at = from + (end - from) * (part as Real / PARTS as Real);
                to.push(TouchPoint { at, radius });
            }
        }
    }
}

fn add_edge<const D: usize>(
    from: &Vector<D>,
    end: &Vector<D>,
    parts: usize,
    radius: Real,
    to: &mut Vec<TouchPoint<D>>,
) {
    let place = |part: usize| from + (end - from) * (part as Real / parts as Real);
    to.extend((0..=parts).map(|part| TouchPoint { at: place(part), radius }));
}

/// Points along a circle about an axis; in 2D, where it meets the plane.
fn add_circle<const D: usize>(
    center: &Vector<D>,
    axis: &Vector<D>,
    circle: Real,
    radius: Real,
    to: &mut Vec<TouchPoint<D>>,
) {
    if circle == 0.0 {
        return to.push(TouchPoint { at: *center, radius });
    }
    // Two directions across the axis.
    let least = axis.iamin();
    let unit = Vector::<D>::from_fn(|k, _| if k == least { 1.0 } else { 0.0 });
    let first = (unit - axis * axis[least]).normalize();
    if D == 2 {
        return to
            .extend([-1.0, 1.0].map(|side| TouchPoint { at: center + first * (side * circle), radius }));
    }
    let cross = |a: &Vector<D>, b: &Vector<D>| {
        Vector::<D>::from_fn(|k, _| a[(k + 1) % D] * b[(k + 2) % D] - a[(k + 2) % D] * b[(k + 1) % D])
    };
    let second = cross(axis, &first);
    to.extend((0..AROUND).map(|k| {
        let (sin, cos) = (k as Real / AROUND as Real * std::f64::consts::TAU).sin_cos();
        TouchPoint { at: center + (first * cos + second * sin) * circle, radius }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the points reach along every direction is what the shape does.
    fn points_reach_as_far_as_the_shape<const D: usize>(shape: &Shape<D>, tolerance: Real) {
        let points = shape.touch_points();
        let [low, high] = shape.bounds().expect("a finite shape");
        for axis in 0..D {
            let ends =
                points.iter().map(|point| [point.at[axis] - point.radius, point.at[axis] + point.radius]);
            let [least, most] = ends.fold([Real::INFINITY, Real::NEG_INFINITY], |all, end| {
                [all[0].min(end[0]), all[1].max(end[1])]
            });
            let error = (least - low[axis]).abs().max((most - high[axis]).abs());
            assert!(error < tolerance, "{D}D {shape:?}: {least} to {most} along axis {axis}");
        }
        for point in &points {
            let distance = shape.distance(&point.at) + point.radius;
            assert!(distance < tolerance, "{D}D {shape:?}: {point:?} is {distance} away");
        }
    }

    #[test]
    fn points_reach_as_far_as_their_shapes() {
        let at = |x: Real, y: Real, z: Real| Vector::from([x, y, z]);
        let ball = Shape::Sphere { center: at(0.3, 0.4, 0.5), radius: 0.7 };
        let brick = Shape::Box { min: at(0.1, 0.2, 0.0), max: at(1.0, 0.7, 0.4) };
        points_reach_as_far_as_the_shape(&ball, 1e-9);
        points_reach_as_far_as_the_shape(&brick, 1e-9);
        points_reach_as_far_as_the_shape(
            &brick.clone().rotated([0.1, 1.0, 0.2], 0.7, at(0.0, 0.1, 0.0)),
            0.4,
        );
        points_reach_as_far_as_the_shape(&Shape::cylinder(at(0.1, 0.2, 0.0), at(0.9, 0.5, 0.3), 0.4), 0.01);
        points_reach_as_far_as_the_shape(&Shape::cone(at(0.1, 0.2, 0.0), at(0.9, 0.5, 0.3), 0.4, 0.0), 0.01);
        points_reach_as_far_as_the_shape(&Shape::torus(at(0.1, 0.2, 0.0), at(0.9, 0.5, 0.3), 0.6, 0.1), 0.01);
        let holed = Shape::Difference(
            Box::new(brick),
            vec![Shape::Sphere { center: at(0.5, 0.4, 0.4), radius: 0.2 }],
        );
        points_reach_as_far_as_the_shape(&holed, 0.03);
    }

    #[test]
    fn points_inside_of_other_parts_are_left_out() {
        let disc = |x: Real, radius: Real| Shape::Sphere { center: Vector::from([x, 0.0]), radius };
        let points = Shape::Union(vec![disc(0.0, 1.0), disc(0.2, 0.1), disc(1.0, 0.5)]).touch_points();
        assert_eq!(points.len(), 2, "{points:?}");
    }
}
