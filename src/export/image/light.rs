//! Sky, ground, sun, and the shadow that liquid and solids cast on the ground.

use super::raster::{Camera, Triangles};
use super::vector::{V3, along, dot, mix, scale, smooth_step, times, unit};

/// Samples along a side of the shadow map.
const SHADOW: usize = 384;

/// Everything around the tank.
pub(super) struct Surroundings {
    /// Towards the sun.
    pub sun: V3,
    pub size: V3,
    camera: Camera,
    /// How much liquid (first) and solid (second) the sun shines through, metres.
    shade: Vec<[f32; 2]>,
}

impl Surroundings {
    pub fn new(size: V3, liquid: &Triangles, solids: &Triangles) -> Self {
        let sun = unit([-0.35, 1.0, 0.28]);
        let camera = Camera::around([0.0; 3], size, sun, [SHADOW; 2], 0.96, false);
        let mut shade = vec![[0.0; 2]; SHADOW * SHADOW];
        for (kind, triangles) in [liquid, solids].into_iter().enumerate() {
            let spots: Vec<_> = triangles.positions.iter().map(|place| camera.project(*place)).collect();
            camera.cover(triangles, &spots, SHADOW, 0..SHADOW, |x, y, z, _, towards| {
                shade[y * SHADOW + x][kind] += if towards { -z } else { z };
            });
        }
        Surroundings { sun, size, camera, shade }
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
            self.sky(towards)
        }
    }

    /// The sky, brighter towards the horizon, with a broad soft lamp where the sun is.
    pub fn sky(&self, towards: V3) -> V3 {
        let height = unit(towards)[1].clamp(0.0, 1.0);
        let lamp = dot(unit(towards), self.sun).max(0.0).powi(24);
        along(mix(HORIZON, ZENITH, height.powf(0.6)), 0.5 * lamp, [1.0, 0.95, 0.85])
    }

    fn ground(&self, place: V3) -> V3 {
        let reach = self.reach();
        // Square tiles whose seams fade with distance, a tenth of the tank apart.
        let tile = reach / 10.0;
        let seam = |x: f32| {
            let off = (x / tile - (x / tile).round()).abs() * tile;
            1.0 - smooth_step(0.0, 0.006 * reach, off)
        };
        let middle = [self.size[0] / 2.0, 0.0, self.size[2] / 2.0];
        let off = [place[0] - middle[0], place[2] - middle[2]];
        let away = (off[0] * off[0] + off[1] * off[1]).sqrt() / reach;
        let seams = seam(place[0]).max(seam(place[2])) * (1.0 - smooth_step(0.6, 1.6, away));
        let plain = scale([0.50, 0.49, 0.47], 1.0 - 0.22 * seams);
        let lit = times(plain, self.shadow(place));
        mix(lit, HORIZON, smooth_step(0.7, 4.5, away))
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
            let blocked = 1.0 - 0.55 * (1.0 - (-40.0 * solid).exp());
            [2.2f32, 1.3, 0.9].map(|k| blocked * (0.55 + 0.45 * (-k * 2.5 * liquid).exp()))
        };
        let row = |j: f32| mix(at(x0, j), at(x0 + 1.0, j), x - x0);
        mix(row(y0), row(y0 + 1.0), y - y0)
    }
}

const HORIZON: V3 = [0.70, 0.79, 0.88];
const ZENITH: V3 = [0.20, 0.40, 0.72];
