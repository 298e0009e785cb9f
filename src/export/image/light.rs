//! Sky, ground, sun, and what the liquid and the solids do to the light on the ground.

use super::haze::Haze;
use super::raster::{Camera, Triangles};
use super::vector::{V3, add, along, cross, dot, mix, scale, smooth_step, sub, times, unit};

/// Samples along a side of the shadow map.
const SHADOW: usize = 384;
/// Samples along the longest side of the tank's floor in the map of focused light.
const FLOOR: f32 = 160.0;

/// Everything around the tank.
pub(super) struct Surroundings {
    /// Towards the sun.
    pub sun: V3,
    pub size: V3,
    camera: Camera,
    /// How much liquid (first) and solid (second) the sun shines through, metres.
    shade: Vec<[f32; 2]>,
    focus: Caustics,
    pub haze: Option<Haze>,
}

impl Surroundings {
    pub fn new(size: V3, liquid: &Triangles, solids: &Triangles, haze: Option<Haze>) -> Self {
        let sun = unit([-0.35, 1.0, 0.28]);
        let camera = Camera::around([0.0; 3], size, sun, [SHADOW; 2], 0.96, false);
        let mut shade = vec![[0.0; 2]; SHADOW * SHADOW];
        for (kind, triangles) in [liquid, solids].into_iter().enumerate() {
            let spots: Vec<_> = triangles.positions.iter().map(|place| camera.project(*place)).collect();
            camera.cover(triangles, &spots, SHADOW, 0..SHADOW, |x, y, z, _, towards| {
                shade[y * SHADOW + x][kind] += if towards { -z } else { z };
            });
        }
        Surroundings { sun, size, camera, shade, focus: Caustics::new(size, sun, liquid), haze }
    }

    /// The largest length of the tank: what thickness is measured against.
    pub fn reach(&self) -> f32 {
        self.size.into_iter().fold(0.0, f32::max)
    }

    /// What is seen from a place in a direction, the liquid aside.
    pub fn seen(&self, from: V3, towards: V3) -> V3 {
        if towards[1] < -1e-4 && from[1] >= -1e-3 * self.reach() {
            let place = along(from, -from[1] / towards[1], towards);
            self.ground(place)
        } else {
            self.backdrop(towards)
        }
    }

    /// What stands behind the tank: a plain wall, lit from below.
    fn backdrop(&self, towards: V3) -> V3 {
        mix(HORIZON, BACKDROP, smooth_step(-0.02, 0.24, unit(towards)[1]))
    }

    /// The light that liquid and glass mirror: a bright sky with a broad lamp where the sun is.
    pub fn sky(&self, towards: V3) -> V3 {
        let towards = unit(towards);
        let height = towards[1].clamp(0.0, 1.0);
        let lamp = dot(towards, self.sun).max(0.0).powi(16);
        along(mix([0.62, 0.76, 0.92], [0.16, 0.36, 0.66], height.powf(0.7)), 1.1 * lamp, [1.0, 0.96, 0.88])
    }

    fn ground(&self, place: V3) -> V3 {
        let reach = self.reach();
        // Square tiles whose seams fade with distance, a tenth of the tank apart.
        let tile = reach / 10.0;
        let seam = |x: f32| {
            let off = (x / tile - (x / tile).round()).abs() * tile;
            1.0 - smooth_step(0.001 * reach, 0.005 * reach, off)
        };
        let middle = [self.size[0] / 2.0, 0.0, self.size[2] / 2.0];
        let off = [place[0] - middle[0], place[2] - middle[2]];
        let away = (off[0] * off[0] + off[1] * off[1]).sqrt() / reach;
        let seams = seam(place[0]).max(seam(place[2])) * (1.0 - smooth_step(0.5, 1.5, away));
        let plain = scale([0.60, 0.59, 0.57], 1.0 - 0.25 * seams);
        let clear = self.haze.as_ref().map_or(1.0, |haze| 0.4 + 0.6 * haze.shadow(place, self.sun));
        let lit = scale(times(plain, self.shadow(place)), clear * self.focus.at(place));
        mix(lit, HORIZON, smooth_step(0.45, 2.6, away))
    }

    /// How much light reaches the ground at a place.
    fn shadow(&self, place: V3) -> V3 {
        let spot = self.camera.project(place);
        let (x, y) = (spot.x - 0.5, spot.y - 0.5);
        let (x0, y0) = (x.floor(), y.floor());
        let at = |i: f32, j: f32| -> V3 {
            if i < 0.0 || j < 0.0 || i >= SHADOW as f32 || j >= SHADOW as f32 {
                return [1.0; 3];
            }
            let [liquid, solid] =
                self.shade[j as usize * SHADOW + i as usize].map(|t| t.max(0.0) / self.reach());
            let blocked = 1.0 - 0.6 * (1.0 - (-40.0 * solid).exp());
            [2.2f32, 1.0, 0.6].map(|k| blocked * (0.45 + 0.55 * (-k * 2.2 * liquid).exp()))
        };
        let row = |j: f32| mix(at(x0, j), at(x0 + 1.0, j), x - x0);
        mix(row(y0), row(y0 + 1.0), y - y0)
    }
}

/// Sunlight on the floor, gathered and spread by the liquid's surface above: 1 is unchanged.
struct Caustics {
    /// Samples per metre.
    fine: f32,
    shape: [usize; 2],
    bright: Vec<f32>,
}

impl Caustics {
    fn new(size: V3, sun: V3, liquid: &Triangles) -> Self {
        let fine = FLOOR / size[0].max(size[1]).max(size[2]);
        let shape = [size[0], size[2]].map(|length| (length * fine).ceil().max(1.0) as usize);
        // What arrives with the surface as it is (first) and what would arrive were it level (second).
        let mut light = vec![[0.0f32; 2]; shape[0] * shape[1]];
        let mut splat = |place: V3, down: V3, power: f32, kind: usize| {
            let spot = along(place, -place[1] / down[1], down);
            // The walls throw light back into the tank.
            let inside = |x: f32, end: f32| if x < 0.0 { -x } else { end - (end - x).abs() };
            let (x, z) = (inside(spot[0], size[0]) * fine - 0.5, inside(spot[2], size[2]) * fine - 0.5);
            for (i, j) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
                let (column, row) = (x.floor() + i, z.floor() + j);
                if column >= 0.0 && row >= 0.0 && column < shape[0] as f32 && row < shape[1] as f32 {
                    let share = (1.0 - (x - column).abs()) * (1.0 - (z - row).abs());
                    light[row as usize * shape[0] + column as usize][kind] += power * share;
                }
            }
        };
        let level = bent(scale(sun, -1.0), [0.0, 1.0, 0.0]);
        for corners in &liquid.corners {
            let [a, b, c] = corners.map(|corner| liquid.positions[corner as usize]);
            let power = 0.5 * dot(cross(sub(b, a), sub(c, a)), sun);
            let sum = |values: &[V3]| corners.iter().fold([0.0; 3], |s, c| add(s, values[*c as usize]));
            let middle = scale(sum(&liquid.positions), 1.0 / 3.0);
            let on_wall = [0, 2].into_iter().any(|axis| {
                let near = 1e-3 * size[axis];
                middle[axis] < near || middle[axis] > size[axis] - near
            });
            let down = bent(scale(sun, -1.0), unit(sum(&liquid.normals)));
            if power > 0.0 && !on_wall && down[1] < -0.2 {
                splat(middle, down, power, 0);
                splat(middle, level, power, 1);
            }
        }
        // The mean over a few neighbours takes out the grain; light that is missing altogether counts as level.
        let least = 0.4 / (fine * fine);
        let bright = (0..light.len())
            .map(|index| {
                let (x, z) = (index % shape[0], index / shape[0]);
                let around = |at: usize, end: usize| at.saturating_sub(2)..(at + 3).min(end);
                let mut sum = [0.0; 2];
                let mut count = 0.0;
                for (i, j) in around(z, shape[1]).flat_map(|j| around(x, shape[0]).map(move |i| (i, j))) {
                    sum = [0, 1].map(|kind| sum[kind] + light[j * shape[0] + i][kind]);
                    count += 1.0;
                }
                let ratio = (sum[0] + count * least) / (sum[1] + count * least);
                (0.5 + 0.5 * ratio).min(1.8)
            })
            .collect();
        Caustics { fine, shape, bright }
    }

    fn at(&self, place: V3) -> f32 {
        let (x, z) = (place[0] * self.fine - 0.5, place[2] * self.fine - 0.5);
        let value = |i: f32, j: f32| {
            let inside = i >= 0.0 && j >= 0.0 && i < self.shape[0] as f32 && j < self.shape[1] as f32;
            if inside { self.bright[j as usize * self.shape[0] + i as usize] } else { 1.0 }
        };
        let (x0, z0) = (x.floor(), z.floor());
        let row = |j: f32| value(x0, j) + (x - x0) * (value(x0 + 1.0, j) - value(x0, j));
        row(z0) + (z - z0) * (row(z0 + 1.0) - row(z0))
    }
}

/// The direction of light that enters water through a surface.
pub(super) fn bent(towards: V3, normal: V3) -> V3 {
    let facing = -dot(normal, towards);
    let ratio = 1.0 / 1.33;
    let bend = ratio * facing - (1.0 - ratio * ratio * (1.0 - facing * facing)).max(0.0).sqrt();
    along(scale(towards, ratio), bend, normal)
}

const HORIZON: V3 = [0.26, 0.31, 0.37];
const BACKDROP: V3 = [0.035, 0.05, 0.075];
