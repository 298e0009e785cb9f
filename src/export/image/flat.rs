//! A 2D frame as a picture: liquid coloured by its speed, threads along the flow, solids and air with smooth edges.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::Picture;
use super::haze::{self, Puff};
use super::vector::{V3, encode, mix, scale, smooth_step};
use crate::snapshot::{Snapshot, f32_from_half};

/// Pixels along the longer side of the domain.
const LONG_SIDE: f32 = 1200.0;
/// Pixels around the domain.
const FRAME: usize = 24;
/// Pixels between the threads' starting points.
const THREADS: usize = 22;
/// Steps of a thread each way, and pixels per step at the reference speed.
const STEPS: (usize, f32) = (12, 2.2);

const PAPER: V3 = [0.86, 0.89, 0.92];
const WALL: V3 = [0.10, 0.12, 0.15];
const SLOW: V3 = [0.010, 0.095, 0.30];
const MIDDLING: V3 = [0.03, 0.33, 0.66];
const FAST: V3 = [0.50, 0.86, 0.97];
const CREST: V3 = [0.80, 0.95, 1.0];
const SOOT: V3 = [0.105, 0.12, 0.145];
const ASH: V3 = [0.27, 0.30, 0.345];
const EMBER: V3 = [0.66, 0.30, 0.13];
const ICE: V3 = [0.16, 0.38, 0.66];
/// Extinction by a sheet of smoke of full density.
const SHEET: f32 = 2.6;
const SOLID: V3 = [0.34, 0.31, 0.29];

/// Values on a lattice over the domain, x fastest.
struct Lattice<T> {
    shape: [usize; 2],
    values: Vec<T>,
}

impl<T: Copy> Lattice<T> {
    /// The four values around a place, counted in steps from the first one, with their shares; beyond the outermost they
    /// stay the same.
    fn around(&self, x: f32, y: f32) -> [(T, f32); 4] {
        let (x0, y0) = (x.floor(), y.floor());
        let at = |value: f32, end: usize| (value.max(0.0) as usize).min(end - 1);
        std::array::from_fn(|corner| {
            let (i, j) = ((corner & 1) as f32, (corner >> 1) as f32);
            let share = (1.0 - (x - x0 - i).abs()) * (1.0 - (y - y0 - j).abs());
            let (column, row) = (at(x0 + i, self.shape[0]), at(y0 + j, self.shape[1]));
            (self.values[row * self.shape[0] + column], share)
        })
    }
}

impl Lattice<f32> {
    /// The value at a place, counted in steps from the first one.
    fn at(&self, x: f32, y: f32) -> f32 {
        self.around(x, y).iter().map(|(value, share)| value * share).sum()
    }
}

struct Sheet<'a> {
    snapshot: &'a Snapshot,
    /// Pixels of the domain.
    inner: [usize; 2],
    /// Cells per pixel.
    cells: f32,
    /// The liquid's signed distance at cell centres, pixels.
    distance: Lattice<f32>,
    /// Velocity at cell centres as a share of the reference speed, times the third entry.
    flow: Lattice<[f32; 3]>,
    /// Smoke at cell centres.
    smoke: Option<Lattice<Puff>>,
    /// The solids' signed distance, pixels, from corner to corner of the domain.
    solids: Lattice<f32>,
}

/// Draws the domain; nothing once the stop flag is up.
pub(super) fn draw(snapshot: &Snapshot, stop: &AtomicBool) -> Option<Picture> {
    let sheet = Sheet::new(snapshot);
    let (width, height) = (sheet.inner[0] + 2 * FRAME, sheet.inner[1] + 2 * FRAME);
    let threads = sheet.threads();
    let mut rgb = vec![0; width * height * 3];
    rgb.par_chunks_mut(width * 3).enumerate().for_each(|(row, pixels)| {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        for (column, out) in pixels.chunks_exact_mut(3).enumerate() {
            // Pixels from the domain's lower left corner.
            let x = column as f32 + 0.5 - FRAME as f32;
            let y = (height - row) as f32 - 0.5 - FRAME as f32;
            out.copy_from_slice(&encode(sheet.colour(x, y, &threads)));
        }
    });
    (!stop.load(Ordering::Relaxed)).then_some(Picture { width, height, rgb })
}

impl<'a> Sheet<'a> {
    fn new(snapshot: &'a Snapshot) -> Self {
        let (scenery, fields) = (&snapshot.scenery, &snapshot.cells);
        let pixel = scenery.size[0].max(scenery.size[1]) / LONG_SIDE;
        let inner = [0, 1].map(|axis| (scenery.size[axis] / pixel).round().max(1.0) as usize);
        let shape = [fields.cells[0], fields.cells[1]];
        let cells = pixel / scenery.dx;
        let in_pixels = |half: &u16| f32_from_half(*half) / cells;
        let distance = fields.distance.iter().map(in_pixels).collect();
        let velocity = fields.velocity.as_deref().unwrap_or_default();
        let flow = velocity.iter().map(|velocity| {
            let [u, v, _, known] = velocity.map(f32_from_half);
            [u / scenery.speed, v / scenery.speed, known]
        });
        let solids = snapshot.solids.distance.iter().map(in_pixels).collect();
        Sheet {
            snapshot,
            inner,
            cells,
            distance: Lattice { shape, values: distance },
            flow: Lattice { shape, values: flow.collect() },
            smoke: haze::puffs(fields).map(|values| Lattice { shape, values }),
            solids: Lattice { shape: [0, 1].map(|axis| snapshot.solids.corners[axis]), values: solids },
        }
    }

    fn colour(&self, x: f32, y: f32, threads: &[f32]) -> V3 {
        let end = self.inner.map(|pixels| pixels as f32);
        let out = (-x).max(x - end[0]).max(-y).max(y - end[1]);
        if out > 0.0 {
            // A dark rim where a side is closed, paper beyond and at open sides.
            let open = self.snapshot.scenery.open;
            let closed = [x, y].into_iter().enumerate().all(|(axis, value)| {
                let [low, high] = open[axis];
                !(low && value < 0.0 || high && value > end[axis])
            });
            return if closed && out < 5.0 { WALL } else { PAPER };
        }
        let height = y / end[1];
        let air = scale([0.98, 0.985, 0.99], 0.96 + 0.04 * height);
        let depth = -self.distance.at(x * self.cells - 0.5, y * self.cells - 0.5);
        let inside = (0.5 + depth).clamp(0.0, 1.0);
        let mut colour = self.smoky(air, x, y);
        if inside > 0.0 {
            let [u, v] = self.velocity(x, y).unwrap_or([0.0; 2]);
            let speed = (u * u + v * v).sqrt();
            let body = mix(SLOW, MIDDLING, smooth_step(0.0, 0.55, speed));
            let body = mix(body, FAST, smooth_step(0.4, 1.5, speed));
            let body = mix(body, scale(body, 1.15), height);
            let thread = threads[y as usize * self.inner[0] + x as usize];
            let body = mix(body, CREST, 0.32 * thread);
            let crest = 1.0 - smooth_step(0.8, 3.2, depth);
            colour = mix(colour, mix(body, CREST, 0.6 * crest), inside);
        }
        let corner = |axis: usize, at: f32| at / end[axis] * (self.solids.shape[axis] - 1) as f32;
        let solid = self.solids.at(corner(0, x), corner(1, y));
        let rim = 1.0 - smooth_step(0.5, 3.0, -solid);
        mix(colour, mix(SOLID, WALL, rim), (0.5 - solid).clamp(0.0, 1.0))
    }

    /// Smoke over the air at a pixel: darker than paper, brighter where light reaches it, warm where it is hot.
    fn smoky(&self, air: V3, x: f32, y: f32) -> V3 {
        let Some(smoke) = &self.smoke else { return air };
        let around = smoke.around(x * self.cells - 0.5, y * self.cells - 0.5);
        let puff = around
            .iter()
            .fold([0.0; 4], |sum: Puff, (puff, share)| std::array::from_fn(|k| sum[k] + puff[k] * share));
        let [density, heat, sun, sky] = puff;
        let light = 0.5 * (sun + sky);
        // By how hot the smoke itself is, so that its rims have the same hue.
        let warmth = 0.45 * (heat / density.max(0.2)).clamp(-1.0, 1.0);
        let tint = scale(if warmth > 0.0 { EMBER } else { ICE }, 0.35 + 0.75 * light);
        let ink = mix(mix(SOOT, ASH, light), tint, warmth.abs());
        mix(air, ink, 0.94 * (1.0 - (-SHEET * haze::thickness(puff)).exp()))
    }

    /// The velocity at a pixel, as a share of the reference speed.
    fn velocity(&self, x: f32, y: f32) -> Option<[f32; 2]> {
        if self.flow.values.is_empty() {
            return None;
        }
        let around = self.flow.around(x * self.cells - 0.5, y * self.cells - 0.5);
        let sum = around.iter().fold([0.0; 3], |sum, (value, share)| {
            std::array::from_fn::<f32, 3, _>(|i| sum[i] + value[i] * share)
        });
        (sum[2] > 0.02).then(|| [sum[0] / sum[2], sum[1] / sum[2]])
    }

    /// Threads along the flow: they start at places that stay, and are as long as the liquid is fast.
    fn threads(&self) -> Vec<f32> {
        let [width, height] = self.inner;
        let mut cover = vec![0.0f32; width * height];
        let mut dab = |x: f32, y: f32, strength: f32| {
            let (x0, y0) = ((x - 0.5).floor(), (y - 0.5).floor());
            for (i, j) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)] {
                let (column, row) = (x0 + i, y0 + j);
                if column >= 0.0 && row >= 0.0 && column < width as f32 && row < height as f32 {
                    let share = (1.0 - (x - 0.5 - column).abs()) * (1.0 - (y - 0.5 - row).abs());
                    let pixel = &mut cover[row as usize * width + column as usize];
                    *pixel = pixel.max(strength * share.sqrt());
                }
            }
        };
        for (row, column) in
            (0..height.div_ceil(THREADS)).flat_map(|j| (0..width.div_ceil(THREADS)).map(move |i| (j, i)))
        {
            // Every other row is shifted, and each place a little more, so that no grid shows.
            let stray = |seed: usize| (seed.wrapping_mul(2_654_435_761) >> 7 & 1023) as f32 / 1023.0 - 0.5;
            let seed = row * 4099 + column;
            let start = [
                (column as f32 + 0.25 + 0.5 * (row % 2) as f32 + 0.4 * stray(seed)) * THREADS as f32,
                (row as f32 + 0.5 + 0.4 * stray(seed + 77_777)) * THREADS as f32,
            ];
            for direction in [1.0, -1.0] {
                let [mut x, mut y] = start;
                for step in 0..STEPS.0 {
                    let Some([u, v]) = self.velocity(x, y) else { break };
                    let fade = 1.0 - step as f32 / STEPS.0 as f32;
                    let length = STEPS.1 * direction;
                    let dabs = ((u * u + v * v).sqrt() * STEPS.1 * 1.5).ceil().clamp(1.0, 12.0) as usize;
                    for k in 0..dabs {
                        let share = k as f32 / dabs as f32 * length;
                        dab(x + u * share, y + v * share, fade);
                    }
                    // The middle of the step decides where it leads, so that circles close.
                    let Some([u, v]) = self.velocity(x + u * length / 2.0, y + v * length / 2.0) else {
                        break;
                    };
                    (x, y) = (x + u * length, y + v * length);
                }
            }
        }
        cover
    }
}
