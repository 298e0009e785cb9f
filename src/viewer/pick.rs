//! Which bubble is seen at a place of a picture.

use bevy::prelude::*;

use super::stage::OrbitCamera;
use crate::snapshot::{Snapshot, f32_from_half};

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
    NEAR.into_iter().find_map(|reach| {
        let around = (0..if reach > 0.0 { AROUND } else { 1 }).map(|k| {
            let angle = k as f32 / AROUND as f32 * std::f32::consts::TAU;
            at + reach * Vec2::from_angle(angle) / Vec2::new(aspect, 1.0)
        });
        around.map(|at| camera.ray(at, aspect)).find_map(|ray| along(snapshot, ray, cut))
    })
}

/// The first trapped bubble along a ray, which water bends.
fn along(snapshot: &Snapshot, (from, mut along): (Vec3, Vec3), cut: Option<f32>) -> Option<u64> {
    if snapshot.scenery.dimension == 2 {
        return trapped(snapshot, from);
    }
    let (size, dx) = (Vec3::from(snapshot.scenery.size), snapshot.scenery.dx);
    // What the cut takes away is not there.
    let high = Vec3::new(size.x, size.y, cut.unwrap_or(size.z));
    let (enter, side) = entry(from, along, high)?;
    let mut x = from + along * (enter + 1e-3 * dx);
    let mut dry = true;
    if depth(snapshot, x).is_some_and(|depth| depth > 0.0) {
        // The cut opens the water: nothing is bent there.
        let opened = cut.is_some() && side == Vec3::Z;
        along = if opened { along } else { refract(along, side) };
        dry = false;
    }
    let inside = |x: Vec3| x.cmpge(Vec3::ZERO).all() && x.cmple(high).all();
    while inside(x) {
        if let Some(id) = trapped(snapshot, x) {
            return Some(id);
        }
        if dry && depth(snapshot, x).is_some_and(|depth| depth > 0.0) {
            along = refract(along, upward(snapshot, x));
            dry = false;
        }
        x += along * 0.5 * dx;
    }
    None
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
    fn a_ray_enters_a_box_by_the_side_that_faces_it() {
        let (from, along) = (Vec3::new(-1.0, 0.6, 0.5), Vec3::new(1.0, -0.1, 0.0).normalize());
        let (distance, side) = entry(from, along, Vec3::ONE).expect("it meets the box");
        assert_eq!(side, Vec3::NEG_X);
        assert!((from + along * distance).x.abs() < 1e-6);
        assert_eq!(entry(from, -along, Vec3::ONE), None, "the box lies behind");
        assert_eq!(entry(from + 2.0 * Vec3::Y, along, Vec3::ONE), None, "the ray goes past");
    }
}
