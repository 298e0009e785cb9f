//! Triangles to samples.

use super::vector::{V3, add, cross, dot, scale, sub, unit};

/// Triangles with normals at their vertices.
#[derive(Debug, Default)]
pub(super) struct Triangles {
    pub positions: Vec<V3>,
    pub normals: Vec<V3>,
    pub corners: Vec<[u32; 3]>,
}

/// A place on the screen: samples from the left, samples from the top, and depth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScreenPoint {
    pub x: f32,
    pub y: f32,
    pub z: f32,
}

/// A pinhole (or, with `pinhole` off, a parallel) camera.
#[derive(Clone, Debug)]
pub(super) struct Camera {
    pub eye: V3,
    right: V3,
    up: V3,
    forward: V3,
    /// Samples per unit of `x / z` (or of `x`).
    zoom: f32,
    centre: [f32; 2],
    pinhole: bool,
}

impl Camera {
    /// Looks from the direction `from` at a box, so that all of it fills `share` of a screen.
    pub fn around(low: V3, high: V3, from: V3, screen: [usize; 2], share: f32, pinhole: bool) -> Self {
        let forward = scale(unit(from), -1.0);
        let right = unit(cross(forward, [0.0, 1.0, 0.0]));
        let up = cross(right, forward);
        let middle = scale(add(low, high), 0.5);
        let reach = dot(sub(high, low), sub(high, low)).sqrt();
        let eye = sub(middle, scale(forward, 1.6 * reach));
        let centre = screen.map(|samples| samples as f32 / 2.0);
        let mut camera = Camera { eye, right, up, forward, zoom: 1.0, centre: [0.0; 2], pinhole };
        let (mut least, mut most) = ([f32::MAX; 2], [f32::MIN; 2]);
        for corner in box_corners(low, high) {
            let spot = camera.project(corner);
            for (axis, value) in [spot.x, spot.y].into_iter().enumerate() {
                least[axis] = least[axis].min(value);
                most[axis] = most[axis].max(value);
            }
        }
        let fit = |axis: usize| share * 2.0 * centre[axis] / (most[axis] - least[axis]);
        camera.zoom = fit(0).min(fit(1));
        let shift = |axis: usize| centre[axis] - camera.zoom * (least[axis] + most[axis]) / 2.0;
        camera.centre = [shift(0), shift(1)];
        camera
    }

    /// Where a place appears.
    pub fn project(&self, place: V3) -> ScreenPoint {
        let arm = sub(place, self.eye);
        let z = dot(arm, self.forward);
        let zoom = if self.pinhole { self.zoom / z } else { self.zoom };
        ScreenPoint {
            x: self.centre[0] + zoom * dot(arm, self.right),
            y: self.centre[1] - zoom * dot(arm, self.up),
            z,
        }
    }

    /// The direction seen at a sample; it advances depth by one. Only for a pinhole.
    pub fn ray(&self, x: f32, y: f32) -> V3 {
        let across = scale(self.right, (x - self.centre[0]) / self.zoom);
        let down = scale(self.up, (y - self.centre[1]) / self.zoom);
        sub(add(self.forward, across), down)
    }

    /// Calls `visit(sample x, sample y, depth, normal, towards)` for every sample of the given rows that a triangle
    /// covers; `towards` is whether the triangle faces the camera.
    pub fn cover(
        &self,
        triangles: &Triangles,
        spots: &[ScreenPoint],
        columns: usize,
        rows: std::ops::Range<usize>,
        mut visit: impl FnMut(usize, usize, f32, V3, bool),
    ) {
        for corners in &triangles.corners {
            let [a, b, c] = corners.map(|corner| spots[corner as usize]);
            let span = |low: f32, high: f32, end: usize| {
                (low - 0.5).ceil().max(0.0) as usize
                    ..((high - 0.5).floor() + 1.0).clamp(0.0, end as f32) as usize
            };
            let tall = span(a.y.min(b.y).min(c.y), a.y.max(b.y).max(c.y), rows.end);
            if tall.end <= rows.start || tall.is_empty() {
                continue;
            }
            let wide = span(a.x.min(b.x).min(c.x), a.x.max(b.x).max(c.x), columns);
            let area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
            if wide.is_empty() || area == 0.0 {
                continue;
            }
            let depth = |z: f32| if self.pinhole { 1.0 / z } else { 1.0 };
            let weights = [depth(a.z), depth(b.z), depth(c.z)];
            let normals = corners.map(|corner| triangles.normals[corner as usize]);
            for y in tall.start.max(rows.start)..tall.end {
                for x in wide.clone() {
                    let (px, py) = (x as f32 + 0.5, y as f32 + 0.5);
                    let share = |p: ScreenPoint, q: ScreenPoint| {
                        ((q.x - p.x) * (py - p.y) - (q.y - p.y) * (px - p.x)) / area
                    };
                    let flat = [share(b, c), share(c, a), share(a, b)];
                    if flat.iter().all(|share| *share >= 0.0) {
                        // Perspective: shares are linear on the screen only when divided by depth.
                        let total: f32 = (0..3).map(|i| flat[i] * weights[i]).sum();
                        let true_share: V3 = std::array::from_fn(|i| flat[i] * weights[i] / total);
                        let z = dot(true_share, [a.z, b.z, c.z]);
                        let normal =
                            (0..3).fold([0.0; 3], |sum, i| add(sum, scale(normals[i], true_share[i])));
                        // The screen's y points down, so that what faces the camera turns clockwise.
                        visit(x, y, z, normal, area < 0.0);
                    }
                }
            }
        }
    }
}

/// The corners of a box, x fastest.
pub(super) fn box_corners(low: V3, high: V3) -> [V3; 8] {
    std::array::from_fn(|corner| {
        std::array::from_fn(|axis| if corner >> axis & 1 == 1 { high[axis] } else { low[axis] })
    })
}
