//! A tank of liquid in perspective: Fresnel reflection, refraction of the ground, absorption by thickness.

use rayon::prelude::*;

use super::light::Surroundings;
use super::raster::{Camera, Spot, Triangles, box_corners};
use super::vector::{V3, add, along, dot, encode, mix, scale, times, unit};
use super::{HEIGHT, Picture, View, WIDTH};
use crate::geometry::{SurfaceMesh, extract_surface};
use crate::grid::{Blocks, Field, Grid, SIDE, block_cells};
use crate::math::{Real, Vector, unflatten};
use crate::sim::Setup;

/// Samples along a side of a pixel.
const FINE: usize = 2;
/// Rows of pixels drawn at once by one thread.
const BAND: usize = 12;
/// Cells along the longest side of the grid that solids are drawn from.
const SOLID_CELLS: Real = 96.0;

/// What a sample sees.
#[derive(Clone, Copy)]
struct Sample {
    /// Depth and normal of the nearest liquid surface.
    liquid: (f32, V3),
    /// Depth and normal of the nearest solid.
    solid: (f32, V3),
    /// Depth gained inside liquid, in front of any solid.
    through: f32,
}

const NOTHING: Sample = Sample { liquid: (f32::MAX, [0.0; 3]), solid: (f32::MAX, [0.0; 3]), through: 0.0 };

struct Stage {
    camera: Camera,
    around: Surroundings,
    liquid: (Triangles, Vec<Spot>),
    solids: (Triangles, Vec<Spot>),
    edges: Vec<[Spot; 2]>,
    /// What lies nearer than this to a wall lies on it.
    hair: f32,
}

/// Draws the tank.
pub(super) fn draw<const D: usize>(view: &View<'_, D>) -> Picture {
    let setup = view.setup;
    let size: V3 = std::array::from_fn(|axis| setup.size[axis] as f32);
    let (columns, rows) = (WIDTH * FINE, HEIGHT * FINE);
    let camera = Camera::around([0.0; 3], size, [0.42, 0.40, 1.0], [columns, rows], 0.86, true);
    let liquid = triangles(view.mesh, None);
    let solids = triangles(&solid_surface(setup, view.time), Some(size));
    let around = Surroundings::new(size, &liquid, &solids);
    let project = |triangles: Triangles| {
        let spots = triangles.positions.par_iter().map(|place| camera.project(*place)).collect();
        (triangles, spots)
    };
    let corners = box_corners([0.0; 3], size).map(|corner| camera.project(corner));
    let edges = (0..8usize)
        .flat_map(|corner| (0..3).map(move |axis| (corner, corner | 1 << axis)))
        .filter(|(from, to)| from != to)
        .map(|(from, to)| [corners[from], corners[to]])
        .collect();
    let (liquid, solids) = (project(liquid), project(solids));
    let hair = 0.05 * setup.grid.dx as f32;
    let stage = Stage { camera, around, liquid, solids, edges, hair };

    let mut picture = Picture { width: WIDTH, height: HEIGHT, rgb: vec![0; WIDTH * HEIGHT * 3] };
    picture.rgb.par_chunks_mut(WIDTH * BAND * 3).enumerate().for_each(|(band, pixels)| {
        let first = band * BAND * FINE;
        let samples = stage.sample(columns, first..first + pixels.len() / (WIDTH * 3) * FINE);
        for (index, pixel) in pixels.chunks_exact_mut(3).enumerate() {
            let (x, y) = (index % WIDTH * FINE, index / WIDTH * FINE);
            let mut colour = [0.0; 3];
            for (i, j) in (0..FINE * FINE).map(|k| (x + k % FINE, y + k / FINE)) {
                colour = add(colour, stage.colour(&samples[j * columns + i], i, first + j));
            }
            pixel.copy_from_slice(&encode(scale(colour, 1.0 / (FINE * FINE) as f32)));
        }
    });
    picture
}

impl Stage {
    /// Finds what the samples of some rows see.
    fn sample(&self, columns: usize, rows: std::ops::Range<usize>) -> Vec<Sample> {
        let first = rows.start;
        let mut samples = vec![NOTHING; columns * rows.len()];
        let (triangles, spots) = &self.solids;
        self.camera.cover(triangles, spots, columns, rows.clone(), |x, y, z, normal, _| {
            let sample = &mut samples[(y - first) * columns + x];
            if z < sample.solid.0 {
                sample.solid = (z, normal);
            }
        });
        let (triangles, spots) = &self.liquid;
        self.camera.cover(triangles, spots, columns, rows, |x, y, z, normal, towards| {
            let sample = &mut samples[(y - first) * columns + x];
            let reached = z.min(sample.solid.0);
            sample.through += if towards { -reached } else { reached };
            if towards && z < sample.liquid.0 {
                sample.liquid = (z, normal);
            }
        });
        samples
    }

    fn colour(&self, sample: &Sample, x: usize, y: usize) -> V3 {
        let (x, y) = (x as f32 + 0.5, y as f32 + 0.5);
        let ray = self.camera.ray(x, y);
        let (edge, edge_depth) = self.edge(x, y);
        let with_edge = |colour: V3| mix(colour, [0.25, 0.28, 0.32], 0.7 * edge);
        let (solid_depth, solid_normal) = sample.solid;
        let behind = |from: V3, towards: V3| {
            let plain = if solid_depth < f32::MAX {
                self.solid(solid_normal, ray)
            } else {
                self.around.seen(from, towards)
            };
            if edge_depth < solid_depth { with_edge(plain) } else { plain }
        };
        let (depth, normal) = sample.liquid;
        if depth >= solid_depth || depth == f32::MAX {
            return behind(self.camera.eye, ray);
        }
        let water = self.water(along(self.camera.eye, depth, ray), normal, ray, sample.through, behind);
        if edge_depth < depth { with_edge(water) } else { water }
    }

    fn water(&self, place: V3, normal: V3, ray: V3, through: f32, behind: impl Fn(V3, V3) -> V3) -> V3 {
        let towards = unit(ray);
        let mut normal = self.wall_normal(place).unwrap_or(unit(normal));
        if dot(normal, towards) > -0.02 {
            // A smooth normal may lean over the silhouette; bring it back to where it can be seen.
            normal = unit(along(normal, -0.02 - dot(normal, towards), towards));
        }
        let facing = -dot(normal, towards);
        let reflected = along(towards, 2.0 * facing, normal);
        let fresnel = 0.02 + 0.98 * (1.0 - facing).clamp(0.0, 1.0).powi(5);
        let ratio = 1.0 / 1.33;
        let bend = ratio * facing - (1.0 - ratio * ratio * (1.0 - facing * facing)).sqrt();
        let refracted = along(scale(towards, ratio), bend, normal);

        let path = (through.max(0.0) * dot(ray, ray).sqrt()) / self.around.reach();
        let kept = [4.2f32, 1.15, 0.55].map(|loss| (-loss * path).exp());
        let glow = 1.0 - (-2.2 * path).exp();
        let light = 0.65 + 0.35 * dot(normal, self.around.sun).max(0.0);
        let inside = add(times(behind(place, refracted), kept), scale([0.005, 0.10, 0.17], glow * light));
        let glint = dot(reflected, self.around.sun).max(0.0).powi(220);
        let mirrored = if reflected[1] > 0.0 {
            self.around.sky(reflected)
        } else {
            scale(self.around.sky([reflected[0], -reflected[1], reflected[2]]), 0.6)
        };
        along(mix(inside, mirrored, fresnel), 0.8 * glint, [1.0, 0.97, 0.9])
    }

    /// The normal of the wall that a place lies on, if any: there the liquid is as flat as the glass.
    fn wall_normal(&self, place: V3) -> Option<V3> {
        let near = self.hair;
        (0..3).find_map(|axis| {
            let outward = |sign: f32| Some(std::array::from_fn(|a| if a == axis { sign } else { 0.0 }));
            match place[axis] {
                low if low < near => outward(-1.0),
                high if high > self.around.size[axis] - near => outward(1.0),
                _ => None,
            }
        })
    }

    fn solid(&self, normal: V3, ray: V3) -> V3 {
        let normal = unit(normal);
        let sun = dot(normal, self.around.sun).max(0.0);
        let sky = 0.5 + 0.5 * normal[1];
        let rim = (1.0 + dot(normal, unit(ray))).clamp(0.0, 1.0).powi(3);
        scale([0.52, 0.46, 0.42], 0.25 + 0.35 * sky + 0.5 * sun + 0.15 * rim)
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

/// A mesh as triangles; those that lie in the walls of a tank of `open` size are left out.
fn triangles<const D: usize>(mesh: &SurfaceMesh<D>, open: Option<V3>) -> Triangles {
    let padded = |values: &Vec<[f32; D]>| values.iter().map(super::super::mesh::padded).collect::<Vec<V3>>();
    let positions = padded(&mesh.positions);
    let in_wall = |corners: &[u32; 3]| {
        open.is_some_and(|size| {
            (0..3).any(|axis| {
                let near = |end: f32| {
                    corners.iter().all(|&c| (positions[c as usize][axis] - end).abs() < 0.02 * size[axis])
                };
                near(0.0) || near(size[axis])
            })
        })
    };
    let corners = mesh.elements.iter().map(|element| std::array::from_fn(|i| element[i]));
    let corners = corners.filter(|corners| !in_wall(corners)).collect();
    Triangles { normals: padded(&mesh.normals), corners, positions }
}

/// The solids' surface at a time, meshed on a grid just fine enough for a picture.
fn solid_surface<const D: usize>(setup: &Setup<D>, time: Real) -> SurfaceMesh<D> {
    if setup.solids.is_empty() {
        return SurfaceMesh::default();
    }
    let longest = setup.size.into_iter().fold(0.0, Real::max);
    let cells = (SOLID_CELLS * setup.size[0] / longest).ceil().max(8.0) as usize;
    let blocks = Blocks::all(Grid::covering(setup.size, cells));
    let mut field = Field::new(block_cells(D), f32::MAX);
    field.resize(blocks.slot_count());
    // Every block is active, so that all slots but the void one hold cells.
    field.as_mut_slice().par_chunks_mut(block_cells(D)).enumerate().skip(1).for_each(|(slot, values)| {
        let first = blocks.first_cell(slot);
        for (local, value) in values.iter_mut().enumerate() {
            let offset = unflatten::<D>(local, SIDE);
            let centre = std::array::from_fn(|axis| (first[axis] + offset[axis] as i32) as Real + 0.5);
            let x: Vector<D> = blocks.grid().world_from_grid(centre);
            let nearest = setup.solids.iter().map(|solid| solid.distance(&x, time));
            *value = nearest.fold(Real::MAX, Real::min) as f32;
        }
    });
    extract_surface(&blocks, &field)
}
