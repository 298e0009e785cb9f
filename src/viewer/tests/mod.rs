//! Tests of the viewer that need no window: panels, entities, layers, command storms, pictures, clicks.

mod entities;
mod hands;
mod keeping_up;
mod layers;
mod panels;
mod pictures;
mod selecting;
mod storm;

use std::sync::Arc;

use bevy::ecs::system::SystemState;
use bevy::prelude::World;

use crate::runner::Run;
use crate::scene::{self, Overrides};
use crate::sim::BubbleReport;
use crate::snapshot::{Scenery, Snapshot, TileView, Wanted};
use crate::viewer::entities::EntitySync;

/// The first moment of a small 2D scene.
fn small_snapshot() -> Snapshot {
    snapshot_of("ball_in_circle_2d")
}

/// The first moment of a scene with few cells.
fn snapshot_of(name: &str) -> Snapshot {
    let overrides = Overrides { cells: Some(32), ..Overrides::default() };
    let scene = scene::load(name, &overrides).expect("a built-in scene");
    let stage = Arc::new(Scenery::of(&scene));
    let mut run = Run::new(&scene, stage, scene.params().clone(), 1).expect("a simulation");
    run.snapshot(Wanted::default(), 1.0)
}

/// Brings a pane's entities in line with a snapshot.
fn sync(world: &mut World, pane: usize, snapshot: &Arc<Snapshot>) {
    let mut state = SystemState::<EntitySync>::new(world);
    state.get_mut(world).expect("the registry is there").sync(pane, snapshot);
    state.apply(world);
}

/// A bubble of that number.
fn bubble(id: u64) -> BubbleReport {
    BubbleReport {
        id,
        volume: 1e-3 * (1.0 + id as f64),
        rest_volume: 1e-3,
        centroid: vec![0.5, 0.5],
        velocity: vec![0.0, 0.1],
        pressure: 10.0 * id as f64,
        constrained: true,
        ..BubbleReport::default()
    }
}

/// A tile of that number: one of many squares of four cells side by side.
fn tile(id: u64) -> TileView {
    let place = [4 * (id % 8) as i32, 4 * (id / 8 % 8) as i32, 0];
    let centre = [0, 1].map(|axis| (place[axis] as f32 + 2.0) / 32.0);
    TileView {
        id,
        low: place,
        high: [place[0] + 4, place[1] + 4, 1],
        centre: [centre[0], centre[1], 0.0],
        ..TileView::default()
    }
}
