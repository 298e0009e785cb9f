//! Which bubble or body is seen at a place of a picture.

use bevy::prelude::*;

use super::stage::OrbitCamera;
use crate::snapshot::{ScenerySolid, Snapshot, f32_from_half};

/// How far beside a bubble a click still counts, as shares of the picture's height: small bubbles are hard to hit.
const NEAR: [f32; 3] = [0.0, 0.008, 0.016];
/// Ways around the place that was clicked.
const AROUND: usize = 8;
/// Refractive index of water.
const WATER: f32 = 1.333;

/// The trapped bubble seen at a place of a picture, given as shares of it; `cut` is where the cut plane stands, if it
/// cuts, in metres.
pub fn pick(
    snapshot: &Snapshot,
    camera: &OrbitCamera,
    at: Vec2,
    aspect: f32,
    cut: Option<f32>,
) -> Option<u64> {
    around(at, aspect).map(|at| camera.ray(at, aspect)).find_map(|ray| bubble_along(snapshot, ray, cut))
}

/// Places of a picture around one, the nearest first.
fn around(at: Vec2, aspect: f32) -> impl Iterator<Item = Vec2> {
    NEAR.into_iter().flat_map(move |reach| {
        (0..if reach > 0.0 { AROUND } else { 1 }).map(move |k| {
            let angle = k as f32 / AROUND as f32 * std::f32::consts::TAU;
            at + reach * Vec2::from_angle(angle) / Vec2::new(aspect, 1.0)
        })
    })
}

/// The first trapped bubble along a ray, which water bends.
fn bubble_along(snapshot: &Snapshot, ray: (Vec3, Vec3), cut: Option<f32>) -> Option<u64> {
    if snapshot.scenery.dimension == 2 {
        return trapped(snapshot, ray.0);
    }
    let mut found = None;
    walk(snapshot, ray, cut, &mut |x| {
        found = trapped(snapshot, x);
        found.is_some()
    });
    found
}

/// A straight piece of a ray: from where, its unit direction, and how long it is.
type Piece = (Vec3, Vec3, f32);

/// Follows a ray, which water bends, through the domain until `stop` is met. Returns its straight pieces.
fn walk(
    snapshot: &Snapshot,
    (from, mut along): (Vec3, Vec3),
    cut: Option<f32>,
    stop: &mut dyn FnMut(Vec3) -> bool,
) -> Vec<Piece> {
    let (size, dx) = (Vec3::from(snapshot.scenery.size), snapshot.scenery.dx);
    // What the cut takes away is not there.
    let high = Vec3::new(size.x, size.y, cut.unwrap_or(size.z));
    let Some((enter, side)) = entry(from, along, high) else { return Vec::new() };
    let mut x = from + along * (enter + 1e-3 * dx);
    let (mut start, mut dry, mut pieces) = (x, true, Vec::new());
    if depth(snapshot, x).is_some_and(|depth| depth > 0.0) {
        // The cut opens the water: nothing is bent there.
        let opened = cut.is_some() && side == Vec3::Z;
        along = if opened { along } else { refract(along, side) };
        dry = false;
    }
    let inside = |x: Vec3| x.cmpge(Vec3::ZERO).all() && x.cmple(high).all();
    while inside(x) && !stop(x) {
        if dry && depth(snapshot, x).is_some_and(|depth| depth > 0.0) {
            pieces.push((start, along, start.distance(x)));
            (start, along) = (x, refract(along, upward(snapshot, x)));
            dry = false;
        }
        x += along * 0.5 * dx;
    }
    pieces.push((start, along, start.distance(x)));
    pieces
}

/// A body that was hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BodyHit {
    /// Its number.
    pub body: usize,
    /// Where, metres.
    pub place: Vec3,
    /// Where in its first pose.
    pub at_rest: Vec3,
}

/// The body seen at a place of a picture, like [`pick`].
pub fn pick_body(
    snapshot: &Snapshot,
    camera: &OrbitCamera,
    at: Vec2,
    aspect: f32,
    cut: Option<f32>,
) -> Option<BodyHit> {
    around(at, aspect).map(|at| camera.ray(at, aspect)).find_map(|ray| match snapshot.scenery.dimension {
        2 => body_at(snapshot, ray.0.with_z(0.0)),
        _ => body_along(snapshot, &walk(snapshot, ray, cut, &mut |_| false)),
    })
}

/// The bodies that are there: numbers, what they look like, and from the scene to where they are.
fn bodies(snapshot: &Snapshot) -> impl Iterator<Item = (usize, &ScenerySolid, Mat3, Vec3)> {
    snapshot.report.bodies.iter().filter_map(|body| {
        let (solid, pose) = (snapshot.scenery.solids.get(body.id)?, snapshot.poses.get(body.id)?);
        let rotation = Mat3::from_cols_array_2d(&pose.rotation);
        pose.present.then_some((body.id, solid, rotation, Vec3::from(pose.translation)))
    })
}

/// The body around a place in 2D.
fn body_at(snapshot: &Snapshot, place: Vec3) -> Option<BodyHit> {
    bodies(snapshot).find_map(|(body, solid, rotation, translation)| {
        let at_rest = rotation.transpose() * (place - translation);
        // Inside, a ray to the right crosses the outline an odd number of times.
        let crosses = |piece: &&[[f32; 2]; 2]| {
            let [[x0, y0], [x1, y1]] = **piece;
            (y0 > at_rest.y) != (y1 > at_rest.y) && at_rest.x < x0 + (x1 - x0) * (at_rest.y - y0) / (y1 - y0)
        };
        let is_inside = solid.outline.iter().filter(crosses).count() % 2 == 1;
        is_inside.then_some(BodyHit { body, place, at_rest })
    })
}

/// The first body along the pieces of a ray.
fn body_along(snapshot: &Snapshot, pieces: &[Piece]) -> Option<BodyHit> {
    pieces.iter().find_map(|&(from, along, length)| {
        let hits = bodies(snapshot).filter_map(|(body, solid, rotation, translation)| {
            let back = rotation.transpose();
            let (from, along) = (back * (from - translation), back * along);
            let surface = &solid.surface;
            let corner = |at: u32| Vec3::from(surface.positions[at as usize]);
            let triangles =
                surface.corners.chunks_exact(3).map(|corners| [0, 1, 2].map(|k| corner(corners[k])));
            let distances = triangles.filter_map(|triangle| hit(from, along, triangle));
            let nearest = distances.min_by(f32::total_cmp).filter(|distance| *distance <= length)?;
            let at_rest = from + along * nearest;
            Some((nearest, BodyHit { body, place: rotation * at_rest + translation, at_rest }))
        });
        hits.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, hit)| hit)
    })
}

/// How far along a ray it meets a triangle (Möller and Trumbore).
fn hit(from: Vec3, along: Vec3, [a, b, c]: [Vec3; 3]) -> Option<f32> {
    let (ab, ac) = (b - a, c - a);
    let across = along.cross(ac);
    let volume = ab.dot(across);
    if volume.abs() < 1e-20 {
        return None;
    }
    let arm = from - a;
    let u = arm.dot(across) / volume;
    let turned = arm.cross(ab);
    let v = along.dot(turned) / volume;
    let distance = ac.dot(turned) / volume;
    (u >= 0.0 && v >= 0.0 && u + v <= 1.0 && distance >= 0.0).then_some(distance)
}

/// How far a ray goes before it enters a box from the origin to `high`, and the side it enters by; `None` beside it.
fn entry(from: Vec3, along: Vec3, high: Vec3) -> Option<(f32, Vec3)> {
    let (a, b) = (-from / along, (high - from) / along);
    let (near, far) = (a.min(b), a.max(b));
    let enter = near.max_element();
    if enter.max(0.0) >= far.min_element() {
        return None;
    }
    if enter <= 0.0 {
        return Some((0.0, Vec3::ZERO));
    }
    let axis = near.max_position();
    let mut side = Vec3::ZERO;
    side[axis] = -along[axis].signum();
    Some((enter, side))
}

/// The trapped bubble whose cell holds a place.
fn trapped(snapshot: &Snapshot, place: Vec3) -> Option<u64> {
    let bubble = snapshot.bubble_at(place.to_array())?;
    snapshot.is_trapped(bubble).then_some(bubble.id)
}

/// How deep in the liquid the cell at a place lies, in cells; negative outside.
fn depth(snapshot: &Snapshot, place: Vec3) -> Option<f32> {
    snapshot.cell_at(place.to_array()).map(|cell| -f32_from_half(snapshot.cells.distance[cell]))
}

/// The direction out of the liquid at its surface.
fn upward(snapshot: &Snapshot, place: Vec3) -> Vec3 {
    let step = 1.5 * snapshot.scenery.dx;
    let here = depth(snapshot, place).unwrap_or(0.0);
    let slope = [Vec3::X, Vec3::Y, Vec3::Z].map(|axis| {
        let at = |place: Vec3| depth(snapshot, place).unwrap_or(here);
        at(place - axis * step) - at(place + axis * step)
    });
    Vec3::from(slope).normalize_or_zero()
}

/// A unit direction behind the surface of water with that normal; unbent where there is none.
fn refract(along: Vec3, normal: Vec3) -> Vec3 {
    let cosine = -along.dot(normal);
    if cosine <= 0.0 {
        return along;
    }
    let ratio = 1.0 / WATER;
    let inner = (1.0 - ratio * ratio * (1.0 - cosine * cosine)).sqrt();
    (ratio * along + (ratio * cosine - inner) * normal).normalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn water_bends_rays_by_the_law_of_refraction() {
        let along = Vec3::new(0.6, -0.8, 0.0);
        let bent = refract(along, Vec3::Y);
        assert!((bent.x * WATER - along.x).abs() < 1e-6, "{bent}");
        assert_eq!(refract(along, Vec3::ZERO), along);
    }

    #[test]
    fn a_ray_meets_a_triangle_in_front_of_it() {
        let triangle = [Vec3::new(0.0, 0.0, 1.0), Vec3::new(1.0, 0.0, 1.0), Vec3::new(0.0, 1.0, 2.0)];
        let found = hit(Vec3::new(0.25, 0.25, 0.0), Vec3::Z, triangle).expect("it meets it");
        assert!((found - 1.25).abs() < 1e-6, "{found}");
        assert_eq!(hit(Vec3::new(0.25, 0.25, 0.0), Vec3::NEG_Z, triangle), None, "it lies behind");
        assert_eq!(hit(Vec3::new(0.75, 0.75, 0.0), Vec3::Z, triangle), None, "the ray goes past");
    }

    #[test]
    fn a_ray_enters_a_box_by_the_side_that_faces_it() {
        let (from, along) = (Vec3::new(-1.0, 0.6, 0.5), Vec3::new(1.0, -0.1, 0.0).normalize());
        let (distance, side) = entry(from, along, Vec3::ONE).expect("it meets the box");
        assert_eq!(side, Vec3::NEG_X);
        assert!((from + along * distance).x.abs() < 1e-6);
        assert_eq!(entry(from, -along, Vec3::ONE), None, "the box lies behind");
        assert_eq!(entry(from + 2.0 * Vec3::Y, along, Vec3::ONE), None, "the ray goes past");
    }
}
