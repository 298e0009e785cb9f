//! Exact signed distance to a simple polygon.

use nalgebra::Vector2;

use crate::math::Real;

/// A closed polygon that does not cross itself, in either orientation.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    points: Vec<Vector2<Real>>,
    edges: Vec<Edge>,
}

#[derive(Clone, Debug, PartialEq)]
struct Edge {
    start: Vector2<Real>,
    along: Vector2<Real>,
    inverse_length_squared: Real,
}

/// Why a list of points is not a polygon.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolygonError {
    /// Fewer than three points.
    #[error("a polygon needs at least 3 points, found {0}")]
    TooFewPoints(usize),
    /// Two neighbours coincide.
    #[error("points {0} and {1} coincide")]
    RepeatedPoint(usize, usize),
    /// The outline touches or crosses itself.
    #[error("the edge from point {0} meets the edge from point {1}; an outline must not touch itself")]
    SelfIntersection(usize, usize),
}

impl Polygon {
    /// A polygon from its corners in order; the last is joined to the first.
    pub fn new(points: &[[Real; 2]]) -> Result<Self, PolygonError> {
        let count = points.len();
        if count < 3 {
            return Err(PolygonError::TooFewPoints(count));
        }
        let points: Vec<Vector2<Real>> = points.iter().map(|&point| Vector2::from(point)).collect();
        let edges: Vec<Edge> = (0..count)
            .map(|i| {
                let along = points[(i + 1) % count] - points[i];
                Edge { start: points[i], along, inverse_length_squared: 1.0 / along.norm_squared() }
            })
            .collect();
        if let Some(i) = edges.iter().position(|edge| !edge.inverse_length_squared.is_finite()) {
            return Err(PolygonError::RepeatedPoint(i, (i + 1) % count));
        }
        for i in 0..count {
            for j in i + 1..count {
                let adjacent = j == i + 1 || (i == 0 && j == count - 1);
                let meets = if !adjacent {
                    edges[i].meets(&edges[j])
                } else if j == i + 1 {
                    edges[i].folds_back(&edges[j])
                } else {
                    edges[j].folds_back(&edges[i])
                };
                if meets {
                    return Err(PolygonError::SelfIntersection(i, j));
                }
            }
        }
        Ok(Polygon { points, edges })
    }

    /// The corners in order.
    pub fn points(&self) -> &[Vector2<Real>] {
        &self.points
    }

    /// Signed distance, negative inside.
    pub fn distance(&self, x: Real, y: Real) -> Real {
        let point = Vector2::new(x, y);
        let (mut nearest_squared, mut inside) = (Real::INFINITY, false);
        for edge in &self.edges {
            let arm = point - edge.start;
            let share = (arm.dot(&edge.along) * edge.inverse_length_squared).clamp(0.0, 1.0);
            nearest_squared = nearest_squared.min((arm - edge.along * share).norm_squared());
            // A ray towards +x crosses this edge if the edge spans the point's height to the right of it.
            let (starts_below, ends_below) = (arm.y >= 0.0, arm.y >= edge.along.y);
            if starts_below != ends_below && (edge.along.perp(&arm) > 0.0) == starts_below {
                inside = !inside;
            }
        }
        let distance = nearest_squared.sqrt();
        if inside { -distance } else { distance }
    }
}

impl Edge {
    fn meets(&self, other: &Edge) -> bool {
        let side = |edge: &Edge, point: Vector2<Real>| edge.along.perp(&(point - edge.start));
        let (a, b) = (side(self, other.start), side(self, other.start + other.along));
        let (c, d) = (side(other, self.start), side(other, self.start + self.along));
        if a * b < 0.0 && c * d < 0.0 {
            return true;
        }
        let touches = |edge: &Edge, point: Vector2<Real>| {
            let arm = point - edge.start;
            let share = (arm.dot(&edge.along) * edge.inverse_length_squared).clamp(0.0, 1.0);
            (arm - edge.along * share).norm_squared() <= 1e-24 * edge.along.norm_squared()
        };
        touches(self, other.start)
            || touches(self, other.start + other.along)
            || touches(other, self.start)
            || touches(other, self.start + self.along)
    }

    /// Whether the next edge runs back over this one.
    fn folds_back(&self, next: &Edge) -> bool {
        let turn = self.along.perp(&next.along);
        let scale = self.along.norm() * next.along.norm();
        turn.abs() <= 1e-12 * scale && self.along.dot(&next.along) < 0.0
    }
}
