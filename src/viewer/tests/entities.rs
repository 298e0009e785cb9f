//! Entities equal the snapshot's bubbles and tiles whatever happens.

use std::collections::BTreeSet;
use std::sync::Arc;

use bevy::ecs::system::SystemState;
use bevy::prelude::*;

use super::{bubble, small_snapshot, sync, tile};
use crate::math::hash_unit;
use crate::viewer::entities::{Bubble, DrawnEntities, EntitySync, Liquid, Registry, Tile};

fn bubbles(world: &mut World, pane: usize) -> BTreeSet<u64> {
    let mut query = world.query::<&Bubble>();
    query.iter(world).filter(|bubble| bubble.pane == pane).map(|bubble| bubble.report.id).collect()
}

fn tiles(world: &mut World, pane: usize) -> BTreeSet<u64> {
    let mut query = world.query::<&Tile>();
    query.iter(world).filter(|tile| tile.pane == pane).map(|tile| tile.view.id).collect()
}

/// Some are born, or one goes.
fn live(alive: &mut Vec<u64>, next: &mut u64, map: &mut impl FnMut() -> f32) {
    if map() < 0.55 {
        let born = 1 + (map() * 4.0) as u64;
        alive.extend(*next..*next + born);
        *next += born;
    } else if !alive.is_empty() {
        // Two become one; or one goes.
        let gone = (map() * alive.len() as f32) as usize % alive.len();
        alive.swap_remove(gone);
    }
}

#[test]
fn thousands_of_births_merges_and_deaths_leave_no_orphan() {
    let mut app = App::new();
    app.init_resource::<Registry>();
    let mut snapshot = small_snapshot();
    let mut alive: [[Vec<u64>; 2]; 2] = Default::default();
    let mut next = [1, 1];
    let mut dice = (0..).map(hash_unit);
    let mut map = move || dice.next().unwrap_or(0.5);
    for step in 0..3000u32 {
        let pane = (map() < 0.5) as usize;
        let [of_bubbles, of_tiles] = &mut alive[pane];
        if map() < 0.01 {
            // A run starts again: numbers do too.
            snapshot.run += 1;
            of_bubbles.clear();
            of_tiles.clear();
        }
        live(of_bubbles, &mut next[0], &mut map);
        live(of_tiles, &mut next[1], &mut map);
        snapshot.report.time = step as f64 * 0.01;
        snapshot.report.bubbles = of_bubbles.iter().map(|&id| bubble(id)).collect();
        snapshot.tiles = of_tiles.iter().map(|&id| tile(id)).collect();
        sync(app.world_mut(), pane, &Arc::new(snapshot.clone()));
        if step % 50 == 0 || step == 2999 {
            // A reset changes the run of both panes, but each hears of it with its own next snapshot.
            let [of_bubbles, of_tiles] = &alive[pane];
            let found = bubbles(app.world_mut(), pane);
            assert_eq!(found, of_bubbles.iter().copied().collect(), "pane {pane} after {step} steps");
            let found = tiles(app.world_mut(), pane);
            assert_eq!(found, of_tiles.iter().copied().collect(), "pane {pane} after {step} steps");
        }
    }
    assert!(next.iter().all(|born| *born > 3000), "{next:?} bubbles and tiles were born");
    let world = app.world_mut();
    let total = [world.query::<&Bubble>().iter(world).count(), world.query::<&Tile>().iter(world).count()];
    assert_eq!(total, world.resource::<Registry>().counts());
    assert_eq!(world.query::<&Liquid>().iter(world).count(), 2);
}

#[test]
fn a_pane_that_closes_takes_everything_with_it() {
    let mut app = App::new();
    app.init_resource::<Registry>();
    let mut snapshot = small_snapshot();
    snapshot.report.bubbles = (1..4).map(bubble).collect();
    snapshot.tiles = (1..9).map(tile).collect();
    let snapshot = Arc::new(snapshot);
    (0..2).for_each(|pane| sync(app.world_mut(), pane, &snapshot));
    assert_eq!(app.world().resource::<Registry>().counts(), [6, 16]);
    let mut state = SystemState::<EntitySync>::new(app.world_mut());
    state.get_mut(app.world_mut()).expect("the registry is there").close(1);
    state.apply(app.world_mut());
    assert_eq!(app.world().resource::<Registry>().counts(), [3, 8]);
    assert!(bubbles(app.world_mut(), 1).is_empty() && tiles(app.world_mut(), 1).is_empty());
    let mut state = SystemState::<DrawnEntities>::new(app.world_mut());
    let drawn = state.get(app.world()).expect("the registry is there");
    assert!(drawn.liquid(1).is_none() && drawn.tiles(1).is_empty(), "nothing is left to draw");
    assert!(drawn.liquid(0).is_some_and(|liquid| Arc::ptr_eq(liquid, &snapshot)));
    assert!(
        drawn.tiles(0).into_iter().eq(&snapshot.tiles),
        "drawn by number, whatever the order of entities"
    );
}

#[test]
fn a_tile_keeps_its_entity_while_it_changes() {
    let mut app = App::new();
    app.init_resource::<Registry>();
    let mut snapshot = small_snapshot();
    let mut known = None;
    for step in 0..20 {
        let mut changed = tile(5);
        changed.velocity[0] = step as f32;
        snapshot.tiles = vec![tile(100 + step), changed];
        sync(app.world_mut(), 0, &Arc::new(snapshot.clone()));
        let entity = app.world().resource::<Registry>().tile((0, 5)).expect("it lives");
        assert_eq!(*known.get_or_insert(entity), entity);
        assert_eq!(app.world().get::<Tile>(entity).expect("a tile").view.velocity[0], step as f32);
    }
}

#[test]
fn a_bubble_keeps_its_entity_and_its_history() {
    let mut app = App::new();
    app.init_resource::<Registry>();
    let mut snapshot = small_snapshot();
    let mut known = None;
    for step in 0..100 {
        snapshot.report.time = step as f64;
        snapshot.report.bubbles = vec![bubble(7), bubble(100 + step)];
        sync(app.world_mut(), 0, &Arc::new(snapshot.clone()));
        let entity = app.world().resource::<Registry>().bubble((0, 7)).expect("it lives");
        assert_eq!(*known.get_or_insert(entity), entity);
    }
    let bubble = app.world().get::<Bubble>(known.expect("an entity")).expect("a bubble");
    assert_eq!(bubble.history.moments.len(), 100);
}
