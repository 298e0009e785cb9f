//! Triangles to a picture: Fresnel reflection, refraction of the ground, absorption by thickness, glass.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::haze::{Haze, Veil, veiled};
use super::light::{Surroundings, bent};
use super::raster::{Camera, ScreenPoint, Triangles, box_corners};
use super::vector::{V3, add, along, dot, encode, mix, scale, times, unit};
use super::{HEIGHT, Picture, WIDTH};
use crate::math::hash_unit;

/// Samples along a side of a pixel.
const FINE: usize = 2;
/// Rows of pixels drawn at once by one thread.
const BAND: usize = 12;
/// Where the camera stands.
const FROM: V3 = [0.46, 0.36, 1.0];

/// What a sample sees.
#[derive(Clone, Copy)]
struct Sample {
    /// Depth and normal of the nearest liquid surface.
    liquid: (f32, V3),
    /// Depth and normal of the nearest surface that leads out of the liquid.
    exit: (f32, V3),
    /// Depth and normal of the nearest solid.
    solid: (f32, V3),
    /// Depth gained inside liquid, in front of any solid.
    through: f32,
    /// What passes through the glass in front of any solid without being mirrored.
    clear: f32,
    /// Glints on that glass.
    glint: f32,
}

const NOTHING: Sample = Sample {
    liquid: (f32::MAX, [0.0; 3]),
    exit: (f32::MAX, [0.0; 3]),
    solid: (f32::MAX, [0.0; 3]),
    through: 0.0,
    clear: 1.0,
    glint: 0.0,
};

/// What a sample's liquid lies on.
#[derive(Clone, Copy, PartialEq)]
enum Seat {
    /// No liquid is seen.
    None,
    /// The liquid's own surface.
    Free,
    /// A wall of the tank.
    Wall(usize),
}

/// What is drawn.
pub(super) struct Things {
    /// Size of the tank.
    pub size: V3,
    /// Which of its sides are open: `open[axis] = [low, high]`.
    pub open: [[bool; 2]; 3],
    pub liquid: Triangles,
    pub solids: Triangles,
    pub glass: Triangles,
    pub haze: Option<Haze>,
    /// What lies nearer than this to a wall lies on it.
    pub hair: f32,
}

struct Stage {
    camera: Camera,
    around: Surroundings,
    liquid: (Triangles, Vec<ScreenPoint>),
    solids: (Triangles, Vec<ScreenPoint>),
    glass: (Triangles, Vec<ScreenPoint>),
    edges: Vec<[ScreenPoint; 2]>,
    hair: f32,
}

/// Draws everything; nothing once the stop flag is up.
pub(super) fn draw(things: Things, stop: &AtomicBool) -> Option<Picture> {
    let Things { size, open, liquid, solids, glass, haze, hair } = things;
    let (columns, rows) = (WIDTH * FINE, HEIGHT * FINE);
    let camera = Camera::around([0.0; 3], size, FROM, [columns, rows], 0.88, true);
    let around = Surroundings::new(size, &liquid, &solids, haze);
    let project = |triangles: Triangles| {
        let spots = triangles.positions.par_iter().map(|place| camera.project(*place)).collect();
        (triangles, spots)
    };
    let corners = box_corners([0.0; 3], size).map(|corner| camera.project(corner));
    let edges = (0..8usize)
        .flat_map(|corner| (0..3).map(move |axis| (corner, axis)))
        .filter(|(corner, axis)| corner >> axis & 1 == 0)
        // An edge is where two sides meet; it shows unless both are open.
        .filter(|(corner, axis)| (0..3).any(|side| side != *axis && !open[side][corner >> side & 1]))
        .map(|(corner, axis)| [corners[corner], corners[corner | 1 << axis]])
        .collect();
    let (liquid, solids, glass) = (project(liquid), project(solids), project(glass));
    let stage = Stage { camera, around, liquid, solids, glass, edges, hair };

    let mut picture = Picture { width: WIDTH, height: HEIGHT, rgb: vec![0; WIDTH * HEIGHT * 3] };
    picture.rgb.par_chunks_mut(WIDTH * BAND * 3).enumerate().for_each(|(band, pixels)| {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let first = band * BAND * FINE;
        // One row more than is drawn: samples look at their neighbours.
        let samples = stage.sample(columns, first..first + pixels.len() / (WIDTH * 3) * FINE + 1);
        for (index, pixel) in pixels.chunks_exact_mut(3).enumerate() {
            let (x, y) = (index % WIDTH * FINE, index / WIDTH * FINE);
            let mut colour = [0.0; 3];
            let places: [_; FINE * FINE] = std::array::from_fn(|k| (x + k % FINE, y + k / FINE));
            let veils = stage.veils(places.map(|(i, j)| samples[j * columns + i]), x, first + y);
            for (place, veil) in veils.iter().enumerate() {
                let (i, j) = places[place];
                let seat = |i: usize, j: usize| stage.seat(&samples[j * columns + i], i, first + j);
                let seats = [seat(i, j), seat((i + 1).min(columns - 1), j), seat(i, j + 1)];
                colour = add(colour, stage.colour(&samples[j * columns + i], seats, *veil, i, first + j));
            }
            let shade = vignette(index % WIDTH, first / FINE + index / WIDTH);
            pixel.copy_from_slice(&encode(scale(colour, shade / (FINE * FINE) as f32)));
        }
    });
    (!stop.load(Ordering::Relaxed)).then_some(picture)
}

/// Pictures darken a little towards their corners.
fn vignette(x: usize, y: usize) -> f32 {
    let off = |at: usize, end: usize| 2.0 * (at as f32 + 0.5) / end as f32 - 1.0;
    let (x, y) = (off(x, WIDTH), off(y, HEIGHT));
    1.08 - 0.16 * (x * x + y * y)
}

impl Stage {
    /// Finds what the samples of some rows see.
    fn sample(&self, columns: usize, rows: std::ops::Range<usize>) -> Vec<Sample> {
        let first = rows.start;
        let mut samples = vec![NOTHING; columns * rows.len()];
        let (triangles, spots) = &self.solids;
        self.camera.cover(triangles, spots, columns, rows.clone(), |x, y, z, normal, towards| {
            let sample = &mut samples[(y - first) * columns + x];
            if z < sample.solid.0 {
                // Hollow solids cut off by a wall are seen from inside as well.
                sample.solid = (z, scale(normal, if towards { 1.0 } else { -1.0 }));
            }
        });
        let (triangles, spots) = &self.glass;
        self.camera.cover(triangles, spots, columns, rows.clone(), |x, y, z, normal, towards| {
            let sample = &mut samples[(y - first) * columns + x];
            if z < sample.solid.0 {
                let towards_eye = unit(self.camera.ray(x as f32 + 0.5, y as f32 + 0.5));
                let normal = scale(unit(normal), if towards { 1.0 } else { -1.0 });
                let facing = -dot(normal, towards_eye);
                sample.clear *= 1.0 - mirrored(facing);
                let reflected = along(towards_eye, 2.0 * facing, normal);
                sample.glint += 0.35 * dot(reflected, self.around.sun).max(0.0).powi(60);
            }
        });
        let (triangles, spots) = &self.liquid;
        self.camera.cover(triangles, spots, columns, rows, |x, y, z, normal, towards| {
            let sample = &mut samples[(y - first) * columns + x];
            let reached = z.min(sample.solid.0);
            sample.through += if towards { -reached } else { reached };
            let nearest = if towards { &mut sample.liquid } else { &mut sample.exit };
            if z < nearest.0 {
                *nearest = (z, normal);
            }
        });
        samples
    }

    /// What is seen of smoke in front of the samples of one pixel, which starts at a sample.
    fn veils(&self, samples: [Sample; FINE * FINE], x: usize, y: usize) -> [Option<Veil>; FINE * FINE] {
        let Some(haze) = &self.around.haze else { return [None; FINE * FINE] };
        let ends = samples.map(|sample| sample.liquid.0.min(sample.solid.0));
        let ray = self.camera.ray((x + FINE / 2) as f32, (y + FINE / 2) as f32);
        let share = hash_unit((y * WIDTH * FINE + x) as u64);
        haze.veils(self.camera.eye, ray, ends, share).map(Some)
    }

    /// What a sample looks like; `seats` are those of the sample, its right and its lower neighbour.
    fn colour(&self, sample: &Sample, seats: [Seat; 3], veil: Option<Veil>, x: usize, y: usize) -> V3 {
        let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
        let ray = self.camera.ray(x, y);
        let (edge, edge_depth) = self.edge(x, y);
        let with_edge = |colour: V3| mix(colour, [0.55, 0.62, 0.68], 0.75 * edge);
        let (solid_depth, solid_normal) = sample.solid;
        let behind = |from: V3, towards: V3| {
            let plain = if solid_depth < f32::MAX {
                self.solid(solid_normal, ray)
            } else {
                self.around.seen(from, towards)
            };
            if edge_depth < solid_depth { with_edge(plain) } else { plain }
        };
        let seat = seats[0];
        let mut colour = if seat == Seat::None {
            behind(self.camera.eye, ray)
        } else {
            let water = self.water(sample, seat, ray, behind);
            if edge_depth < sample.liquid.0 { with_edge(water) } else { water }
        };
        if let (Some(haze), Some(veil)) = (&self.around.haze, veil) {
            colour = veiled(colour, veil);
            // The edges in front stand where the tank begins.
            if edge_depth < haze.span(self.camera.eye, ray)[0] + self.hair {
                colour = with_edge(colour);
            }
        }
        // The waterline: a bright thread where liquid on the glass begins.
        let on_glass = seats.map(|seat| matches!(seat, Seat::Wall(_)));
        let line = seats.contains(&Seat::Free) || seats.contains(&Seat::None);
        if line && on_glass.contains(&true) && sample.solid.0 == f32::MAX {
            colour = mix(colour, [0.75, 0.92, 1.0], 0.42);
        }
        if sample.clear < 1.0 {
            let glass = times(colour, [0.97, 0.985, 0.98]);
            colour = mix([0.72, 0.82, 0.88], glass, sample.clear);
            colour = along(colour, sample.glint, [1.0, 0.98, 0.95]);
        }
        colour
    }

    fn seat(&self, sample: &Sample, x: usize, y: usize) -> Seat {
        let depth = sample.liquid.0;
        if depth == f32::MAX || depth >= sample.solid.0 {
            return Seat::None;
        }
        let ray = self.camera.ray(x as f32 + 0.5, y as f32 + 0.5);
        self.wall(along(self.camera.eye, depth, ray)).map_or(Seat::Free, Seat::Wall)
    }

    fn water(&self, sample: &Sample, seat: Seat, ray: V3, behind: impl Fn(V3, V3) -> V3) -> V3 {
        let towards = unit(ray);
        let place = along(self.camera.eye, sample.liquid.0, ray);
        let mut normal = match seat {
            Seat::Wall(side) => outward(side),
            _ => unit(sample.liquid.1),
        };
        if dot(normal, towards) > -0.02 {
            // A smooth normal may lean over the silhouette; bring it back to where it can be seen.
            normal = unit(along(normal, -0.02 - dot(normal, towards), towards));
        }
        let facing = -dot(normal, towards);
        let reflected = along(towards, 2.0 * facing, normal);
        let inward = bent(towards, normal);

        let path = (sample.through.max(0.0) * dot(ray, ray).sqrt()) / self.around.reach();
        let kept = [5.2f32, 1.35, 0.75].map(|loss| (-loss * path).exp());
        let glow = 1.0 - (-2.6 * path).exp();
        // Light from above fades with depth.
        let depth = (place[1] / self.around.reach()).clamp(0.0, 1.0);
        let light = (0.55 + 0.5 * depth) * (0.6 + 0.5 * dot(normal, self.around.sun).max(0.0));
        let body = scale([0.004, 0.11, 0.20], light);
        let mut inside = add(times(behind(place, inward), kept), scale(body, glow));

        // Where the way out is the liquid's own surface, that mirrors from below, wholly at shallow angles.
        if sample.exit.0 < sample.solid.0 {
            let out = along(self.camera.eye, sample.exit.0, ray);
            if self.wall(out).is_none() {
                let cosine = dot(unit(sample.exit.1), inward).clamp(0.0, 1.0);
                let sine = (1.0 - cosine * cosine).sqrt() * 1.33;
                let mirror = 0.02 + 0.6 * ((sine - 0.55) / 0.45).clamp(0.0, 1.0).powi(3);
                inside = mix(inside, [0.10, 0.36, 0.48], mirror * (0.35 + 0.65 * glow.sqrt()));
            }
        }
        let fresnel = match seat {
            // Behind glass: the mirror image is that of the glass, kept faint.
            Seat::Wall(_) => 0.5 * mirrored(facing),
            _ => mirrored(facing),
        };
        let image = if reflected[1] > 0.0 {
            self.around.sky(reflected)
        } else {
            scale(self.around.sky([reflected[0], -reflected[1], reflected[2]]), 0.45)
        };
        let glint = match seat {
            Seat::Free => dot(reflected, self.around.sun).max(0.0).powi(180),
            _ => 0.0,
        };
        along(mix(inside, image, fresnel), 1.6 * glint, [1.0, 0.97, 0.9])
    }

    /// The wall that a place lies on, if any: there the liquid is as flat as the glass. Twice the axis, and one more
    /// for the high side.
    fn wall(&self, place: V3) -> Option<usize> {
        (0..3).find_map(|axis| match place[axis] {
            low if low < self.hair => Some(2 * axis),
            high if high > self.around.size[axis] - self.hair => Some(2 * axis + 1),
            _ => None,
        })
    }

    fn solid(&self, normal: V3, ray: V3) -> V3 {
        let normal = unit(normal);
        let sun = dot(normal, self.around.sun).max(0.0);
        let sky = 0.5 + 0.5 * normal[1];
        let facing = -dot(normal, unit(ray));
        let reflected = along(unit(ray), 2.0 * facing, normal);
        let shine = 0.05 + 0.4 * (1.0 - facing).clamp(0.0, 1.0).powi(4);
        let glint = dot(reflected, self.around.sun).max(0.0).powi(40);
        let matt = scale([0.62, 0.36, 0.20], 0.12 + 0.30 * sky + 0.65 * sun);
        along(mix(matt, self.around.sky(reflected), shine), 0.35 * glint, [1.0; 3])
    }

    /// How much of a sample the tank's nearest edge covers, and its depth.
    fn edge(&self, x: f32, y: f32) -> (f32, f32) {
        let mut found = (0.0, f32::MAX);
        for [from, to] in &self.edges {
            let (ex, ey) = (to.x - from.x, to.y - from.y);
            let off_line = (x - from.x) * ey - (y - from.y) * ex;
            if off_line * off_line > 16.0 * (ex * ex + ey * ey) {
                continue; // More than four samples away.
            }
            let share = (((x - from.x) * ex + (y - from.y) * ey) / (ex * ex + ey * ey)).clamp(0.0, 1.0);
            let (dx, dy) = (x - from.x - share * ex, y - from.y - share * ey);
            let cover = (FINE as f32 * 0.9 - (dx * dx + dy * dy).sqrt() + 0.5).clamp(0.0, 1.0);
            // Perspective: the inverse of depth is linear on the screen.
            let depth = 1.0 / ((1.0 - share) / from.z + share / to.z);
            if cover > 0.0 && depth < found.1 {
                found = (cover, depth);
            }
        }
        found
    }
}

/// How much a surface mirrors, from the cosine at which it is seen.
fn mirrored(facing: f32) -> f32 {
    0.03 + 0.97 * (1.0 - facing).clamp(0.0, 1.0).powi(5)
}

/// The outward normal of a wall of the tank.
fn outward(side: usize) -> V3 {
    std::array::from_fn(|axis| match side {
        _ if axis != side / 2 => 0.0,
        side if side % 2 == 1 => 1.0,
        _ => -1.0,
    })
}
