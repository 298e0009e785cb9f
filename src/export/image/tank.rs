//! A tank of liquid in perspective.

use std::sync::atomic::AtomicBool;

use super::Picture;
use super::haze::Haze;
use super::raster::Triangles;
use super::stage::{self, Things};
use super::vector::{V3, add, along, scale};
use crate::snapshot::{self, Scenery, Snapshot, SolidPose};

/// What lies this share of a cell from a wall lies on it.
const HAIR: f32 = 0.05;

/// Draws the tank; nothing once the stop flag is up.
pub(super) fn draw(snapshot: &Snapshot, stop: &AtomicBool) -> Option<Picture> {
    let scenery = &*snapshot.scenery;
    let [glass, solids] = [true, false].map(|clear| {
        let mut all = Triangles::default();
        for (solid, pose) in scenery.solids.iter().zip(&snapshot.poses) {
            if solid.glass == clear && pose.present {
                add_solid(&mut all, &solid.surface, pose, scenery);
            }
        }
        all
    });
    let surface = &snapshot.surface;
    let liquid = Triangles {
        positions: surface.positions.clone(),
        normals: surface.normals.clone(),
        corners: surface.corners.as_chunks().0.to_vec(),
    };
    let (size, open) = (scenery.size, scenery.open);
    let haze = Haze::of(scenery, &snapshot.cells);
    stage::draw(Things { size, open, liquid, solids, glass, haze, hair: HAIR * scenery.dx }, stop)
}

/// Adds a solid where it is now, but for what lies in the closed walls of the tank.
fn add_solid(all: &mut Triangles, rest: &snapshot::Triangles, pose: &SolidPose, scenery: &Scenery) {
    let [x, y, z] = pose.rotation;
    let turned = |v: V3| add(along(scale(x, v[0]), v[1], y), scale(z, v[2]));
    let first = all.positions.len() as u32;
    all.positions.extend(rest.positions.iter().map(|&place| add(turned(place), pose.translation)));
    all.normals.extend(rest.normals.iter().map(|&normal| turned(normal)));
    let positions = &all.positions;
    let in_wall = |corners: &[u32; 3]| {
        (0..3).any(|axis| {
            let (length, [low, high]) = (scenery.size[axis], scenery.open[axis]);
            let near =
                |end: f32| corners.iter().all(|&c| (positions[c as usize][axis] - end).abs() < 0.02 * length);
            (!low && near(0.0)) || (!high && near(length))
        })
    };
    let corners = rest.corners.as_chunks::<3>().0.iter().map(|corners| corners.map(|corner| first + corner));
    let kept: Vec<_> = corners.filter(|corners| !in_wall(corners)).collect();
    all.corners.extend(kept);
}
