//! Meshes of what stands around the liquid: tank walls, edges, ground, slices.

use bevy::asset::RenderAssetUsages;
use bevy::mesh::{Indices, PrimitiveTopology};
use bevy::prelude::*;

use crate::snapshot::{Scenery, Triangles};

/// A mesh that lives on the graphics card alone.
pub fn mesh_of(triangles: &Triangles) -> Mesh {
    Mesh::new(PrimitiveTopology::TriangleList, RenderAssetUsages::RENDER_WORLD)
        .with_inserted_attribute(Mesh::ATTRIBUTE_POSITION, triangles.positions.clone())
        .with_inserted_attribute(Mesh::ATTRIBUTE_NORMAL, triangles.normals.clone())
        .with_inserted_indices(Indices::U32(triangles.corners.clone()))
}

fn quad(triangles: &mut Triangles, corners: [Vec3; 4]) {
    let normal = (corners[1] - corners[0]).cross(corners[2] - corners[0]).normalize_or(Vec3::Y);
    let first = triangles.positions.len() as u32;
    triangles.positions.extend(corners.map(|corner| corner.to_array()));
    triangles.normals.extend([normal.to_array(); 4]);
    triangles.corners.extend([0, 1, 2, 0, 2, 3].map(|corner| first + corner));
}

fn cuboid(triangles: &mut Triangles, low: Vec3, high: Vec3) {
    for axis in 0..3 {
        for side in [0, 1] {
            let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
            let corner = |a: usize, b: usize| {
                let mut x = low;
                x[axis] = [low, high][side][axis];
                x[next] = [low, high][a][next];
                x[last] = [low, high][b][last];
                x
            };
            let around = [corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)];
            let around = if side == 1 { around } else { [around[0], around[3], around[2], around[1]] };
            quad(triangles, around);
        }
    }
}

/// All sides of the domain, seen from outside.
pub fn whole(stage: &Scenery) -> Triangles {
    let mut whole = Triangles::default();
    cuboid(&mut whole, Vec3::ZERO, Vec3::from(stage.size));
    whole
}

/// The closed sides of the domain, but for the floor, which lies on the ground.
pub fn tank_walls(stage: &Scenery) -> Triangles {
    let mut walls = Triangles::default();
    let size = Vec3::from(stage.size);
    for axis in 0..3 {
        for side in [0, 1] {
            if stage.open[axis][side] || (axis, side) == (1, 0) {
                continue;
            }
            let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
            let corner = |a: f32, b: f32| {
                let mut x = Vec3::ZERO;
                x[axis] = side as f32 * size[axis];
                x[next] = a * size[next];
                x[last] = b * size[last];
                x
            };
            quad(&mut walls, [corner(0.0, 0.0), corner(1.0, 0.0), corner(1.0, 1.0), corner(0.0, 1.0)]);
        }
    }
    walls
}

/// Rods along the edges where two closed sides meet.
pub fn tank_edges(stage: &Scenery) -> Triangles {
    let mut edges = Triangles::default();
    let size = Vec3::from(stage.size);
    let half = 0.0028 * size.max_element();
    for axis in 0..3 {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        for (a, b) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            // Rods on the floor show where a tank without walls ends.
            let floor = (next, a) == (1, 0) || (last, b) == (1, 0);
            if !floor && (stage.open[next][a] || stage.open[last][b]) {
                continue;
            }
            let mut middle = Vec3::ZERO;
            middle[next] = a as f32 * size[next];
            middle[last] = b as f32 * size[last];
            let mut end = middle;
            end[axis] = size[axis];
            cuboid(&mut edges, middle - half, end + half);
        }
    }
    edges
}

/// A large square on which the tank stands.
pub fn ground(stage: &Scenery) -> Triangles {
    let mut ground = Triangles::default();
    let size = Vec3::from(stage.size);
    let reach = 4.0 * size.max_element();
    let y = -0.003 * size.max_element();
    let corner = |x: f32, z: f32| Vec3::new(size.x / 2.0 + x * reach, y, size.z / 2.0 + z * reach);
    quad(&mut ground, [corner(-1.0, 1.0), corner(1.0, 1.0), corner(1.0, -1.0), corner(-1.0, -1.0)]);
    ground
}

/// The page of a 2D scene, some way beyond the domain.
pub fn page(stage: &Scenery) -> Triangles {
    let mut page = Triangles::default();
    let (size, more) = (Vec3::from(stage.size), 0.5);
    let corner = |x: f32, y: f32| Vec3::new(size.x * x, size.y * y, 0.0);
    let (low, high) = (-more, 1.0 + more);
    quad(&mut page, [corner(low, low), corner(high, low), corner(high, high), corner(low, high)]);
    page
}

/// The domain's cross-section at right angles to an axis, at the origin of that axis.
pub fn cross_section(stage: &Scenery, axis: usize) -> Triangles {
    let mut section = Triangles::default();
    let size = Vec3::from(stage.size);
    let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
    let corner = |a: f32, b: f32| {
        let mut x = Vec3::ZERO;
        x[next] = a * size[next];
        x[last] = b * size[last];
        x
    };
    quad(&mut section, [corner(0.0, 0.0), corner(1.0, 0.0), corner(1.0, 1.0), corner(0.0, 1.0)]);
    section
}
