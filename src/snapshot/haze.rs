//! What smoke looks like: its shares of the full scales, and the light that reaches it.
//!
//! Light passes as much smoke as `exp(−∫ σ dl)` says (Beer and Lambert). It is followed through the grid from the top layer
//! down, each layer looking at the one above it: along one line towards the sun, and from a cone towards the sky. That is one
//! sweep for all cells; looking at each picture's points anew would take many.

use rayon::prelude::*;

use super::data::{Smoke, region};
use super::half::{f32_from_half, half_from_f32};

/// Extinction along the longest side of the domain by smoke of full density; the shaders know the same number.
pub const OPTICAL_DEPTH: f32 = 6.5;
/// Smoke throws some of the light that it meets forward: this share of it is lost on the way.
const LOST: f32 = 0.75;
/// Towards the sun, per cell up: cells along x and, in space, along z. The shaders' sun stands there.
const SLOPE: [f32; 2] = [-0.36 / 0.86, 0.36 / 0.86];
/// Layers of cells beyond the air into which values are continued: as far as smooth interpolation looks.
const MARGIN: usize = 2;
/// The share of the sky's light that finds its way around a solid.
const AROUND: f32 = 0.3;

/// What `smoke` looks like in every cell; `region` tells where the air is.
///
/// Four numbers each: density and heat as shares of the full ones, and the shares of the sun's and the sky's light that
/// arrive. Density and heat reach a little into solids and liquid, so that interpolation does not thin smoke along them.
pub fn appearance(cells: [usize; 3], region: &[u16], smoke: &Smoke) -> Vec<[u16; 4]> {
    let share = |half: u16, full: f32| if full > 0.0 { f32_from_half(half) / full } else { 0.0 };
    let mut values: Vec<[f32; 2]> = smoke
        .values
        .par_iter()
        .zip(region)
        .map(|(&[density, heat], &region)| match region {
            region::SOLID | region::LIQUID => UNKNOWN,
            _ => [share(density, smoke.full_density), share(heat, smoke.full_heat)],
        })
        .collect();
    for _ in 0..MARGIN {
        values = continued(cells, &values);
    }
    let light = light(cells, region, &values);
    values
        .par_iter()
        .zip(light)
        .map(|(&[density, heat], [sun, sky])| {
            // Cells far inside are still unknown.
            let known = |value: f32| if value.is_nan() { 0.0 } else { value };
            [known(density), known(heat), sun, sky].map(half_from_f32)
        })
        .collect()
}

const UNKNOWN: [f32; 2] = [f32::NAN; 2];

/// Unknown values become the mean of their known neighbours.
fn continued([nx, ny, nz]: [usize; 3], values: &[[f32; 2]]) -> Vec<[f32; 2]> {
    let mean = |index: usize| {
        let (i, j, k) = (index % nx, index / nx % ny, index / (nx * ny));
        let beside = [
            (i > 0).then(|| index - 1),
            (i + 1 < nx).then(|| index + 1),
            (j > 0).then(|| index - nx),
            (j + 1 < ny).then(|| index + nx),
            (k > 0).then(|| index - nx * ny),
            (k + 1 < nz).then(|| index + nx * ny),
        ];
        let known = beside.into_iter().flatten().map(|at| values[at]).filter(|value| !value[0].is_nan());
        let (sum, count) =
            known.fold(([0.0; 2], 0.0), |([a, b], count), [c, d]| ([a + c, b + d], count + 1.0));
        if count > 0.0 { sum.map(|sum| sum / count) } else { UNKNOWN }
    };
    values
        .par_iter()
        .enumerate()
        .map(|(index, &value)| if value[0].is_nan() { mean(index) } else { value })
        .collect()
}

/// The shares of the sun's and the sky's light that arrive at every cell's centre.
fn light([nx, ny, nz]: [usize; 3], region: &[u16], values: &[[f32; 2]]) -> Vec<[f32; 2]> {
    let depth = LOST * OPTICAL_DEPTH / nx.max(ny).max(nz) as f32;
    let aslant = |slope: f32, count: usize| if count > 1 { slope } else { 0.0 };
    let [dx, dz] = [aslant(SLOPE[0], nx), aslant(SLOPE[1], nz)];
    let way = (1.0 + dx * dx + dz * dz).sqrt();
    let mut light = vec![[0.0; 2]; nx * ny * nz];
    // What comes out of the bottom of the layer above; there is no smoke beyond the sides and the top.
    let mut above = vec![[1.0f32; 2]; nx * nz];
    let mut layer = vec![([0.0f32; 2], [0.0f32; 2]); nx * nz];
    for j in (0..ny).rev() {
        let out_of = |i: i64, k: i64| {
            let inside = (0..nx as i64).contains(&i) && (0..nz as i64).contains(&k);
            if inside { above[k as usize * nx + i as usize] } else { [1.0; 2] }
        };
        layer.par_iter_mut().enumerate().for_each(|(at, cell)| {
            let (i, k) = (at % nx, at / nx);
            let (x, z) = (i as f32 + dx, k as f32 + dz);
            let (x0, z0) = (x.floor(), z.floor());
            let mut sun = 0.0;
            for corner in 0..if nz > 1 { 4 } else { 2 } {
                let (a, b) = ((corner & 1) as f32, (corner >> 1) as f32);
                let share = (1.0 - (x - x0 - a).abs()) * (1.0 - (z - z0 - b).abs());
                sun += share * out_of((x0 + a) as i64, (z0 + b) as i64)[0];
            }
            // Wider and wider from layer to layer: a cone.
            let across = if nz > 1 { -1..=1 } else { 0..=0 };
            let (mut sky, mut count) = (0.0, 0.0);
            for (a, b) in across.flat_map(|b| (-1..=1).map(move |a| (a, b))) {
                sky += out_of(i as i64 + a, k as i64 + b)[1];
                count += 1.0;
            }
            let index = (k * ny + j) * nx + i;
            let arrives = [sun, sky / count];
            *cell = match region[index] {
                region::SOLID => (arrives, [0.0, AROUND * arrives[1]]),
                _ => {
                    let lost = depth * values[index][0].max(0.0);
                    let passes = [(-lost * way).exp(), (-lost).exp()];
                    // In the middle of the cell half of it is passed.
                    let here = [0, 1].map(|kind| arrives[kind] * passes[kind].sqrt());
                    (here, [0, 1].map(|kind| arrives[kind] * passes[kind]))
                }
            };
        });
        for (at, (here, leaves)) in layer.iter().enumerate() {
            light[(at / nx * ny + j) * nx + at % nx] = *here;
            above[at] = *leaves;
        }
    }
    light
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELLS: [usize; 3] = [8, 16, 8];

    fn at([i, j, k]: [usize; 3]) -> usize {
        (k * CELLS[1] + j) * CELLS[0] + i
    }

    /// Smoke of full density below a height, and a solid cell in the middle of it.
    fn layer(height: usize, solid: Option<[usize; 3]>) -> (Vec<u16>, Smoke) {
        let count = CELLS.iter().product::<usize>();
        let mut region = vec![region::AIR; count];
        let full = [half_from_f32(0.1), half_from_f32(-20.0)];
        let low = |index: usize| index / CELLS[0] % CELLS[1] < height;
        let mut values: Vec<_> = (0..count).map(|index| if low(index) { full } else { [0; 2] }).collect();
        if let Some(place) = solid {
            (region[at(place)], values[at(place)]) = (region::SOLID, [0; 2]);
        }
        (region, Smoke { values, full_density: 0.1, full_heat: 20.0, ..Smoke::default() })
    }

    #[test]
    fn light_fades_with_depth_as_beer_and_lambert_say() {
        let (region, smoke) = layer(12, None);
        let seen = appearance(CELLS, &region, &smoke);
        let sky = |j: usize| f32_from_half(seen[at([4, j, 4])][3]);
        assert_eq!(sky(13), 1.0, "clear air");
        let passed = (-LOST * OPTICAL_DEPTH / 16.0).exp();
        // Near the top no light comes from the sides yet.
        for j in [11, 10] {
            let expected = passed.powf(11.5 - j as f32);
            assert!((sky(j) - expected).abs() < 0.01, "{j}: {} instead of {expected}", sky(j));
        }
        let sun = |place: [usize; 3]| f32_from_half(seen[at(place)][2]);
        assert!(sun([0, 2, 7]) > 1.5 * sun([7, 2, 0]), "the sun stands to the left and in front");
        assert!((0..11).all(|j| sky(j) < sky(j + 1)));
    }

    #[test]
    fn solids_cast_shadows_and_do_not_thin_the_smoke_along_them() {
        let place = [4, 10, 4];
        let (region, smoke) = layer(12, Some(place));
        let seen = appearance(CELLS, &region, &smoke);
        let [density, heat, ..] = seen[at(place)].map(f32_from_half);
        assert!((density - 1.0).abs() < 1e-3 && (heat + 1.0).abs() < 1e-3, "{density} {heat}");
        let free = appearance(CELLS, &layer(12, None).0, &smoke);
        let sun = |seen: &[[u16; 4]]| f32_from_half(seen[at([4, 9, 4])][2]);
        assert!(sun(&seen) < 0.7 * sun(&free), "{} {}", sun(&seen), sun(&free));
    }

    #[test]
    fn a_scene_of_heat_alone_has_no_density() {
        let (region, smoke) = layer(12, None);
        let smoke = Smoke { full_density: 0.0, ..smoke };
        let seen = appearance(CELLS, &region, &smoke);
        assert_eq!(seen[at([4, 4, 4])].map(f32_from_half), [0.0, -1.0, 1.0, 1.0]);
    }
}
