//! Smoke as it is seen: what it throws back of the light that reaches it, what shines of itself by heat, what it hides.

use super::vector::{V3, add, along, dot, mix, scale, times};
use crate::snapshot::{CellFields, OPTICAL_DEPTH, Scenery, f32_from_half};

/// Cells per step of a ray.
const STEP: f32 = 0.9;
/// Steps of a ray towards the sun.
const SHADOW_STEPS: usize = 14;
/// Heat can be seen without smoke, but hardly: it hides this share of what as much smoke does.
const SHIMMER: f32 = 0.12;

/// Light that arrives, and what the hottest smoke shines by itself.
const SUNSHINE: V3 = [0.72, 0.69, 0.64];
const SKYLIGHT: V3 = [0.095, 0.13, 0.18];
const GLOW: V3 = [1.0, 0.30, 0.06];
/// What heat and cold do to the light that smoke throws back.
const EMBER: V3 = [1.0, 0.72, 0.45];
const FROST: V3 = [0.55, 0.78, 1.0];

/// Smoke at a place: density and heat as shares of the full ones, the sun's and the sky's light that arrive.
pub(super) type Puff = [f32; 4];

/// All smoke as numbers, in the order of the grid's cells; none where there is none.
pub(super) fn puffs(cells: &CellFields) -> Option<Vec<Puff>> {
    let smoke = cells.smoke.as_ref()?;
    Some(smoke.appearance.iter().map(|halves| halves.map(f32_from_half)).collect())
}

/// How much a puff hides, as a share of smoke of full density.
pub(super) fn thickness([density, heat, ..]: Puff) -> f32 {
    density.max(0.0) + SHIMMER * heat.abs()
}

/// The colour of a puff.
pub(super) fn colour([_, heat, sun, sky]: Puff) -> V3 {
    let lit = along(scale(SUNSHINE, sun), sky, SKYLIGHT);
    let [hot, cold] = [heat, -heat].map(|share| share.clamp(0.0, 1.0));
    let warm = along(times(lit, mix([1.0; 3], EMBER, hot)), 0.55 * hot, GLOW);
    times(warm, mix([1.0; 3], FROST, cold))
}

/// What is seen of smoke along a ray.
#[derive(Clone, Copy)]
pub(super) struct Veil {
    /// Its own light.
    pub light: V3,
    /// The share of what stands behind it that is still seen.
    pub left: f32,
}

/// Smoke in a tank.
pub(super) struct Haze {
    size: V3,
    dx: f32,
    cells: [usize; 3],
    puffs: Vec<Puff>,
}

impl Haze {
    pub fn of(scenery: &Scenery, cells: &CellFields) -> Option<Self> {
        let puffs = puffs(cells)?;
        Some(Haze { size: scenery.size, dx: scenery.dx, cells: cells.cells, puffs })
    }

    /// The smoke at a place, between the centres of cells.
    fn at(&self, place: V3) -> Puff {
        let mut first = [0; 3];
        let mut share = [0.0; 3];
        for axis in 0..3 {
            let last = self.cells[axis] - 1;
            let x = (place[axis] / self.dx - 0.5).clamp(0.0, last as f32);
            first[axis] = (x as usize).min(last.saturating_sub(1));
            share[axis] = x - first[axis] as f32;
        }
        let [nx, ny, _] = self.cells;
        let strides = [1, nx, nx * ny];
        let base = (0..3).map(|axis| first[axis] * strides[axis]).sum::<usize>();
        let mut puff = [0.0; 4];
        for corner in 0..8 {
            let (mut index, mut weight) = (base, 1.0);
            for axis in 0..3 {
                let high = corner >> axis & 1 == 1;
                weight *= if high { share[axis] } else { 1.0 - share[axis] };
                index += if high { strides[axis] } else { 0 };
            }
            if weight > 0.0 {
                let value = &self.puffs[index];
                (0..4).for_each(|k| puff[k] += weight * value[k]);
            }
        }
        puff
    }

    /// How far along a ray the tank begins and ends.
    pub fn span(&self, from: V3, ray: V3) -> [f32; 2] {
        let mut span = [0.0f32, f32::MAX];
        for axis in 0..3 {
            let inverse = 1.0 / if ray[axis].abs() < 1e-9 { 1e-9 } else { ray[axis] };
            let (a, b) = (-from[axis] * inverse, (self.size[axis] - from[axis]) * inverse);
            span = [span[0].max(a.min(b)), span[1].min(a.max(b))];
        }
        span
    }

    /// Extinction along the length of a ray's direction by smoke of full density.
    fn depth(&self, ray: V3) -> f32 {
        OPTICAL_DEPTH * dot(ray, ray).sqrt() / self.size.into_iter().fold(0.0, f32::max)
    }

    /// What is seen of the smoke up to each of some depths. The first step is a `share` of a whole one: rays beside each other
    /// take different ones, so that steps do not show as stripes.
    pub fn veils<const N: usize>(&self, from: V3, ray: V3, ends: [f32; N], share: f32) -> [Veil; N] {
        let mut veils = [Veil { light: [0.0; 3], left: 1.0 }; N];
        let [enter, leave] = self.span(from, ray);
        let step = STEP * self.dx / dot(ray, ray).sqrt();
        let depth = self.depth(ray);
        let end = ends.into_iter().fold(0.0, f32::max).min(leave);
        let mut start = enter;
        let mut next = enter + share.max(0.05) * step;
        while start < end && veils.iter().any(|veil| veil.left > 0.01) {
            let puff = self.at(along(from, 0.5 * (start + next), ray));
            let thickness = thickness(puff);
            if thickness > 1e-3 {
                let colour = colour(puff);
                for (veil, end) in veils.iter_mut().zip(ends) {
                    let length = (next.min(end).min(leave) - start).max(0.0);
                    let passed = (-depth * thickness * length).exp();
                    veil.light = along(veil.light, veil.left * (1.0 - passed), colour);
                    veil.left *= passed;
                }
            }
            (start, next) = (next, next + step);
        }
        veils
    }

    /// The share of the sun's light that comes through to a place.
    pub fn shadow(&self, place: V3, sun: V3) -> f32 {
        let [enter, leave] = self.span(place, sun);
        if leave <= enter {
            return 1.0;
        }
        let step = (leave - enter) / SHADOW_STEPS as f32;
        let places = (0..SHADOW_STEPS).map(|k| along(place, enter + (k as f32 + 0.5) * step, sun));
        let thick: f32 = places.map(|place| thickness(self.at(place))).sum();
        // Most light goes on forward.
        (-0.5 * self.depth(sun) * thick * step).exp()
    }
}

/// What stands behind smoke, with the smoke in front.
pub(super) fn veiled(behind: V3, veil: Veil) -> V3 {
    add(scale(behind, veil.left), veil.light)
}
