//! What the layers of tiles draw.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bevy::mesh::{Mesh, VertexAttributeValues};

use crate::runner::Run;
use crate::scene::{self, Overrides};
use crate::snapshot::{Scenery, Snapshot, TileView, Wanted, role};
use crate::viewer::stage::Marks;

/// A scene with tiles after a few frames.
fn tiled(name: &str, cells: usize, frames: usize) -> Snapshot {
    let overrides = Overrides { cells: Some(cells), ..Overrides::default() };
    let scene = scene::load(name, &overrides).expect("a built-in scene");
    let stage = Arc::new(Scenery::of(&scene));
    let mut run = Run::new(&scene, stage, scene.params().clone(), 1).expect("a simulation");
    for _ in 0..frames {
        assert!(run.advance(&AtomicBool::new(false), &mut |_| ()).expect("a frame"));
    }
    run.snapshot(Wanted { roles: true, ..Wanted::default() }, 1.0)
}

fn count(snapshot: &Snapshot, role: u8) -> usize {
    let roles = snapshot.cells.roles.as_ref().expect("there are tiles");
    roles.iter().filter(|one| **one == role).count()
}

#[test]
fn every_unknown_cell_has_a_role() {
    let snapshot = tiled("pool_tiles_2d", 128, 2);
    let (report, params) = (&snapshot.report, &snapshot.params);
    assert_eq!(count(&snapshot, role::TILE), report.tiles.cells);
    let bands = [role::SURFACE, role::WALL, role::SEAM].map(|role| count(&snapshot, role));
    assert_eq!(bands.iter().sum::<usize>(), report.unknowns.pressure, "{bands:?}");
    assert_eq!(count(&snapshot, role::TILE) + report.unknowns.pressure, report.cells.liquid);
    // A pool with a flat surface: its band is as deep as asked for, all the way across; so are those of its walls.
    let across = snapshot.cells.cells[0];
    assert!(bands[0] >= params.surface_band as usize * across, "{bands:?}");
    assert!(bands.iter().all(|&cells| cells > across), "{bands:?}");
}

#[test]
fn air_has_roles_of_its_own() {
    let snapshot = tiled("neutral_bubble", 32, 1);
    assert_eq!(count(&snapshot, role::GAS + role::TILE), snapshot.report.tiles.cells);
    assert!(count(&snapshot, role::GAS + role::SURFACE) > 0);
    assert_eq!(count(&snapshot, role::SURFACE) + count(&snapshot, role::TILE), 0, "the liquid has no tiles");
}

#[test]
fn without_tiles_there_are_no_roles() {
    assert!(tiled("ball_in_circle_2d", 32, 0).cells.roles.is_none());
}

fn corners(mesh: &Mesh) -> Vec<[f32; 3]> {
    match mesh.attribute(Mesh::ATTRIBUTE_POSITION) {
        Some(VertexAttributeValues::Float32x3(corners)) => corners.clone(),
        other => panic!("no corners but {other:?}"),
    }
}

fn pins(snapshot: &Snapshot, z: f32) -> Marks {
    Marks::pins(snapshot, &snapshot.tiles.iter().collect::<Vec<_>>(), z)
}

#[test]
fn pins_stand_in_every_tile_and_lead_where_its_field_does() {
    let mut snapshot = tiled("pool_tiles_2d", 128, 2);
    let tile = snapshot.tiles[0].clone();
    snapshot.tiles = vec![TileView { velocity: [0.0; 3], gradient: [[0.0; 3]; 3], ..tile.clone() }];
    let still = corners(&pins(&snapshot, 0.0).into_mesh());
    let dx = snapshot.scenery.dx;
    for corner in &still {
        let inside = (0..2).all(|k| {
            let cells = tile.low[k] as f32 * dx..=tile.high[k] as f32 * dx;
            cells.contains(&corner[k])
        });
        assert!(inside, "{corner:?} in {tile:?}");
    }
    snapshot.tiles[0].velocity = [snapshot.scenery.speed, 0.0, 0.0];
    let moving = corners(&pins(&snapshot, 0.0).into_mesh());
    assert!(moving.len() > still.len(), "points come with motion");
    let reach = |corners: &[[f32; 3]], k: usize| corners.iter().map(|corner| corner[k]).fold(0.0, f32::max);
    assert!(reach(&moving, 0) > reach(&still, 0) + 2.0 * dx && reach(&moving, 1) <= reach(&still, 1) + dx);
    // Turning: the square turns with it, the pins lead round.
    snapshot.tiles[0].velocity = [0.0; 3];
    snapshot.tiles[0].gradient = [[0.0, -2.0, 0.0], [2.0, 0.0, 0.0], [0.0; 3]];
    assert_ne!(corners(&pins(&snapshot, 0.0).into_mesh()), still);
}

#[test]
fn in_space_pins_stand_on_the_slice() {
    let snapshot = tiled("neutral_bubble", 48, 0);
    let z = 0.5 * snapshot.scenery.size[2];
    let marks = corners(&pins(&snapshot, z).into_mesh());
    assert!(!marks.is_empty() && marks.iter().all(|corner| corner[2] == z));
    assert!(pins(&snapshot, 0.0).is_empty(), "no tile reaches the wall");
}
