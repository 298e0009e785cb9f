//! Tiles as triangles: soft colours on the picture in 2D and on the slice in 3D, with the boxes behind it as lines.

use bevy::asset::RenderAssetUsages;
use bevy::mesh::PrimitiveTopology;
use bevy::prelude::*;

use super::CUT_AXIS;
use crate::snapshot::{Scenery, TileView};
use crate::viewer::theme;

/// Above the page of a 2D scene, below its marks.
const LIFT: f32 = 0.005;
/// How opaque a tile's body and its border are where it is seen from the front.
const FRONT: [f32; 2] = [0.5, 0.9];
/// How opaque body and border are on the sides of boxes behind the slice: only their edges are drawn.
const BEHIND: [f32; 2] = [0.0, 0.45];
/// Boxes fade behind the slice; they are gone at this share of the domain.
const FADE: f32 = 0.6;

/// Rectangles: corners in metres, places on the rectangle from −1 to 1, a colour, and how opaque body and border are.
#[derive(Default)]
pub struct Tiles {
    positions: Vec<[f32; 3]>,
    places: Vec<[f32; 2]>,
    cover: Vec<[f32; 2]>,
    colours: Vec<[f32; 4]>,
}

impl Tiles {
    /// The tiles on a stage; in 3D those that reach behind a slice at `z` metres.
    pub fn of(stage: &Scenery, views: &[&TileView], z: f32) -> Self {
        let mut tiles = Tiles::default();
        let dx = stage.dx;
        for tile in views {
            let [low, high] = [tile.low, tile.high].map(|cell| Vec3::from(cell.map(|k| k as f32 * dx)));
            let colour = theme::bubble_linear(tile.id);
            if stage.dimension == 2 {
                tiles.face([low.with_z(LIFT), high.with_z(LIFT)], CUT_AXIS, colour, FRONT);
            } else if low[CUT_AXIS] < z {
                tiles.cut_box(low, high, z, FADE * stage.size[CUT_AXIS], colour);
            }
        }
        tiles
    }

    /// A box up to the slice, filled where that cuts it.
    fn cut_box(&mut self, low: Vec3, high: Vec3, z: f32, fade: f32, colour: Vec3) {
        let cut = high[CUT_AXIS] > z;
        let high = high.with_z(high.z.min(z));
        let strength = (1.0 - (z - high.z) / fade).clamp(0.0, 1.0);
        for axis in 0..3 {
            for at in [low[axis], high[axis]] {
                let mut corners = [low, high];
                corners.iter_mut().for_each(|corner| corner[axis] = at);
                let front = cut && axis == CUT_AXIS && at == z;
                let cover = if front { FRONT } else { BEHIND.map(|cover| cover * strength) };
                self.face(corners, axis, colour, cover);
            }
        }
    }

    /// A rectangle at right angles to an axis.
    fn face(&mut self, [low, high]: [Vec3; 2], axis: usize, colour: Vec3, cover: [f32; 2]) {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        for [a, b] in [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]] {
            let mut corner = low;
            corner[next] = if a > 0.0 { high[next] } else { low[next] };
            corner[last] = if b > 0.0 { high[last] } else { low[last] };
            self.positions.push(corner.to_array());
            self.places.push([a, b]);
            self.cover.push(cover);
            self.colours.push(colour.extend(1.0).to_array());
        }
    }

    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// As a mesh.
    pub fn into_mesh(self) -> Mesh {
        let normals = vec![[0.0, 0.0, 1.0]; self.positions.len()];
        Mesh::new(PrimitiveTopology::TriangleList, RenderAssetUsages::RENDER_WORLD)
            .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, self.positions)
            .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, normals)
            .with_inserted_attribute(Mesh::ATTRIBUTE_UV_0, self.places)
            .with_inserted_attribute(Mesh::ATTRIBUTE_UV_1, self.cover)
            .with_inserted_attribute(Mesh::ATTRIBUTE_COLOR, self.colours)
    }
}
