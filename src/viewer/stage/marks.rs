//! Particles and velocity arrows as triangles.

use bevy::asset::RenderAssetUsages;
use bevy::mesh::PrimitiveTopology;
use bevy::prelude::*;

use crate::runner::{Snapshot, region, whole};

/// Arrows along the longer side of the picture.
const ARROWS: usize = 44;

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
        let Some(motes) = &snapshot.motes else { return Marks::default() };
        let mut marks = Marks::default();
        marks.positions.reserve_exact(3 * motes.len());
        marks.codes.reserve_exact(3 * motes.len());
        let lift = lift(snapshot);
        let cut = cut.unwrap_or(f32::MAX);
        for &[x, y, z, speed] in motes.iter().filter(|mote| mote[2] <= cut) {
            let share = speed / snapshot.stage.speed;
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
        let (stage, cells) = (&snapshot.stage, &snapshot.cells);
        let Some(velocity) = &cells.velocity else { return marks };
        let [nx, ny, nz] = cells.cells;
        let step = nx.max(ny).div_ceil(ARROWS).max(1);
        let layer = ((z / stage.dx) as usize).min(nz - 1);
        let dx = stage.dx;
        for j in (step / 2..ny).step_by(step) {
            for i in (step / 2..nx).step_by(step) {
                let index = (layer * ny + j) * nx + i;
                if cells.region[index] != region::LIQUID {
                    continue;
                }
                let [u, v] = [0, 1].map(|axis| whole(velocity[index][axis]));
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

/// Marks of a 2D scene lie a little above its page.
fn lift(snapshot: &Snapshot) -> f32 {
    if snapshot.stage.dimension == 2 { 0.01 } else { 0.0 }
}
