//! Particles, velocity arrows and the pins of affine fields as triangles.

use bevy::asset::RenderAssetUsages;
use bevy::mesh::PrimitiveTopology;
use bevy::prelude::*;

use crate::snapshot::{Snapshot, TileView, f32_from_half, region, role};

/// Arrows along the longer side of the picture.
const ARROWS: usize = 44;
/// Cells between two pins of a tile, about.
const PINS: f32 = 5.0;
/// Pins along each axis of a tile at most.
const MOST_PINS: f32 = 8.0;
/// Codes of marks in ink: their body and their hem.
const PALE: f32 = 0.0;
const DARK: f32 = 1.0;

/// Triangles with a corner code and a speed each; see `marks.wgsl`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    positions: Vec<[f32; 3]>,
    codes: Vec<[f32; 2]>,
}

impl Marks {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// As a mesh.
    pub fn into_mesh(self) -> Mesh {
        Mesh::new(PrimitiveTopology::TriangleList, RenderAssetUsages::RENDER_WORLD)
            .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, self.positions)
            .with_inserted_attribute(Mesh::ATTRIBUTE_UV_0, self.codes)
    }

    /// The particles of a snapshot, but for those in front of a cut at that many metres.
    pub fn particles(snapshot: &Snapshot, cut: Option<f32>) -> Self {
        let Some(particles) = &snapshot.particles else { return Marks::default() };
        let mut marks = Marks::default();
        marks.positions.reserve_exact(3 * particles.len());
        marks.codes.reserve_exact(3 * particles.len());
        let lift = lift(snapshot);
        let cut = cut.unwrap_or(f32::MAX);
        for &[x, y, z, speed] in particles.iter().filter(|particle| particle[2] <= cut) {
            let share = speed / snapshot.scenery.speed;
            for corner in 0..3 {
                marks.positions.push([x, y, z + lift]);
                marks.codes.push([corner as f32, share]);
            }
        }
        marks
    }

    /// Arrows along the velocity: over the whole picture in 2D, on the slice at `z` in 3D.
    pub fn arrows(snapshot: &Snapshot, z: f32) -> Self {
        let mut marks = Marks::default();
        let (stage, cells) = (&snapshot.scenery, &snapshot.cells);
        let Some(velocity) = &cells.velocity else { return marks };
        let [nx, ny, nz] = cells.cells;
        let step = nx.max(ny).div_ceil(ARROWS).max(1);
        let layer = ((z / stage.dx) as usize).min(nz - 1);
        let dx = stage.dx;
        for j in (step / 2..ny).step_by(step) {
            for i in (step / 2..nx).step_by(step) {
                let index = (layer * ny + j) * nx + i;
                // Where there is smoke, the air that carries it flows, too.
                let is_known = f32_from_half(velocity[index][3]) > 0.5;
                let is_smoky = cells.smoke.is_some() && cells.region[index] != region::SOLID && is_known;
                if cells.region[index] != region::LIQUID && !is_smoky {
                    continue;
                }
                let [u, v] = [0, 1].map(|axis| f32_from_half(velocity[index][axis]));
                let speed = (u * u + v * v).sqrt() / stage.speed;
                if speed < 0.01 {
                    continue;
                }
                let along = Vec2::new(u, v).normalize_or_zero();
                let length = step as f32 * dx * (0.35 + 0.75 * speed.min(1.0));
                let middle = Vec2::new((i as f32 + 0.5) * dx, (j as f32 + 0.5) * dx);
                marks.arrow(middle, along, length, if nz == 1 { lift(snapshot) } else { z }, speed);
            }
        }
        marks
    }

    /// The velocity field of every tile, on the slice at `z` in 3D: pins with a head where the velocity is taken and a
    /// point where it leads, and a square that is carried along by the field's gradient alone.
    pub fn pins(snapshot: &Snapshot, tiles: &[&TileView], z: f32) -> Self {
        let mut marks = Marks::default();
        let stage = &snapshot.scenery;
        let flat = stage.dimension == 2;
        let shown = |tile: &&TileView| flat || (tile.low[2]..tile.high[2]).contains(&((z / stage.dx) as i32));
        let tiles: Vec<_> = tiles.iter().copied().filter(shown).collect();
        let pins: Vec<_> = tiles.iter().flat_map(|tile| pins_of(tile, snapshot, z)).collect();
        // The fastest one is as long as the space between two, those with a quarter of its speed half as long; calm
        // water stays calm to look at.
        let fastest = pins.iter().map(|pin| pin.velocity.length()).fold(0.02 * stage.speed, f32::max);
        let height = if flat { lift(snapshot) } else { z };
        let seconds = Vec2::new(stage.size[0], stage.size[1]).max_element() / stage.speed;
        for tile in tiles {
            marks.carried(tile, seconds, stage.dx, height);
        }
        for Pin { place, velocity, apart } in pins {
            let length = apart * (velocity.length() / fastest).sqrt();
            marks.pin(place, velocity.normalize_or_zero() * length, 0.07 * apart, height);
        }
        marks
    }

    /// A square in a tile, carried along for some seconds by the gradient of its field.
    fn carried(&mut self, tile: &TileView, seconds: f32, dx: f32, z: f32) {
        let [centre, half] = middle_and_half(tile, dx);
        let gradient = tile.gradient;
        let stretch =
            |r: Vec2| seconds * Vec2::from([0, 1].map(|a| gradient[a][0] * r.x + gradient[a][1] * r.y));
        let corners =
            [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]].map(|r| 0.84 * half * Vec2::from(r));
        let most = corners.iter().map(|&r| stretch(r).length() / r.length().max(1e-9)).fold(0.0, f32::max);
        let tame = 1.0 / (1.0 + 2.0 * most);
        let corners = corners.map(|r| centre + r + tame * stretch(r));
        let width = (0.05 * half.min_element()).clamp(0.15 * dx, 0.4 * dx);
        for (wide, ink) in [(2.0 * width, DARK), (width, PALE)] {
            for k in 0..4 {
                self.line(corners[k], corners[(k + 1) % 4], wide, z, ink);
            }
        }
    }

    /// A line with square ends.
    fn line(&mut self, from: Vec2, to: Vec2, width: f32, z: f32, ink: f32) {
        let along = (to - from).normalize_or_zero() * width / 2.0;
        let (from, to, side) = (from - along, to + along, along.perp());
        let corners = [from - side, to - side, to + side, from + side];
        self.ink([0, 1, 2, 0, 2, 3].map(|k| corners[k]), z, ink);
    }

    /// A round head and a point.
    fn pin(&mut self, head: Vec2, along: Vec2, radius: f32, z: f32) {
        const SIDES: usize = 10;
        let rim = |k: usize, radius: f32| {
            head + radius * Vec2::from_angle(k as f32 * std::f32::consts::TAU / SIDES as f32)
        };
        let towards = along.normalize_or_zero();
        for (radius, more, ink) in [(1.6 * radius, radius, DARK), (radius, 0.0, PALE)] {
            for k in 0..SIDES {
                self.ink([head, rim(k, radius), rim(k + 1, radius)], z, ink);
            }
            if along.length() > radius {
                let side = 0.75 * radius * towards.perp();
                self.ink([head - side, head + side, head + along + towards * more], z, ink);
            }
        }
    }

    fn ink<const N: usize>(&mut self, corners: [Vec2; N], z: f32, ink: f32) {
        self.positions.extend(corners.map(|corner| [corner.x, corner.y, z]));
        self.codes.extend([[3.0, ink]; N]);
    }

    fn arrow(&mut self, middle: Vec2, along: Vec2, length: f32, z: f32, speed: f32) {
        let (tail, tip) = (middle - along * length / 2.0, middle + along * length / 2.0);
        let neck = tip - along * length * 0.4;
        let side = along.perp() * length;
        let shaft = [tail - side * 0.045, neck - side * 0.045, neck + side * 0.045, tail + side * 0.045];
        let head = [tip, neck + side * 0.17, neck - side * 0.17];
        for corner in [shaft[0], shaft[1], shaft[2], shaft[0], shaft[2], shaft[3]].into_iter().chain(head) {
            self.positions.push([corner.x, corner.y, z]);
            self.codes.push([3.0, speed]);
        }
    }
}

/// Where a tile's velocity is taken, what it is, and how far away the next such place is.
struct Pin {
    place: Vec2,
    velocity: Vec2,
    apart: f32,
}

/// Places spread evenly over a tile, or over its cut at `z`.
fn pins_of(tile: &TileView, snapshot: &Snapshot, z: f32) -> Vec<Pin> {
    let dx = snapshot.scenery.dx;
    let [centre, half] = middle_and_half(tile, dx);
    let count = (2.0 * half / (PINS * dx)).round().clamp(Vec2::splat(2.0), Vec2::splat(MOST_PINS));
    let apart = 2.0 * half / count;
    let depth = if snapshot.scenery.dimension == 2 { 0.0 } else { z - tile.centre[2] };
    let mut pins = Vec::new();
    for j in 0..count.y as usize {
        for i in 0..count.x as usize {
            let place = centre - half + apart * (Vec2::new(i as f32, j as f32) + 0.5);
            // A tile need not fill its box.
            let cell = snapshot.cell_at([place.x, place.y, z]);
            let is_inside = match (&snapshot.cells.roles, cell) {
                (Some(roles), Some(cell)) => roles[cell] % role::GAS == role::TILE,
                (_, cell) => cell.is_some(),
            };
            if is_inside {
                let r = place - centre;
                let velocity = [0, 1].map(|axis| {
                    let [x, y, z] = tile.gradient[axis];
                    tile.velocity[axis] + x * r.x + y * r.y + z * depth
                });
                pins.push(Pin { place, velocity: velocity.into(), apart: apart.min_element() });
            }
        }
    }
    pins
}

/// The middle of a tile's box and half its size, metres.
fn middle_and_half(tile: &TileView, dx: f32) -> [Vec2; 2] {
    let [low, high] = [tile.low, tile.high].map(|cell| Vec2::new(cell[0] as f32, cell[1] as f32) * dx);
    [0.5 * (low + high), 0.5 * (high - low)]
}

/// Marks of a 2D scene lie a little above its page.
fn lift(snapshot: &Snapshot) -> f32 {
    if snapshot.scenery.dimension == 2 { 0.01 } else { 0.0 }
}
