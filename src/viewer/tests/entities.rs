//! Entities equal the snapshot's bubbles whatever happens.

use std::collections::BTreeSet;
use std::sync::Arc;

use bevy::ecs::system::SystemState;
use bevy::prelude::*;

use super::{bubble, small_snapshot};
use crate::math::hash_unit;
use crate::runner::Snapshot;
use crate::viewer::entities::{Bubble, Liquid, Registry};

fn sync(world: &mut World, pane: usize, snapshot: &Arc<Snapshot>) {
    let mut state = SystemState::<(ResMut<Registry>, Commands, Query<&mut Bubble>)>::new(world);
    {
        let (mut registry, mut commands, mut bubbles) = state.get_mut(world).expect("the registry is there");
        registry.sync(pane, snapshot, &mut commands, &mut bubbles);
    }
    state.apply(world);
}

fn entities(world: &mut World, pane: usize) -> BTreeSet<u64> {
    let mut query = world.query::<&Bubble>();
    query.iter(world).filter(|bubble| bubble.pane == pane).map(|bubble| bubble.report.id).collect()
}

#[test]
fn thousands_of_births_merges_and_deaths_leave_no_orphan() {
    let mut app = App::new();
    app.init_resource::<Registry>();
    let mut snapshot = small_snapshot();
    let mut alive: [Vec<u64>; 2] = Default::default();
    let (mut next, mut births) = (1, 0);
    let mut dice = (0..).map(hash_unit);
    let mut roll = move || dice.next().unwrap_or(0.5);
    for step in 0..3000u32 {
        let pane = (roll() < 0.5) as usize;
        let bubbles = &mut alive[pane];
        match roll() {
            // A run starts again: numbers do too.
            luck if luck < 0.01 => {
                snapshot.run += 1;
                bubbles.clear();
            }
            luck if luck < 0.55 => {
                let born = 1 + (roll() * 4.0) as u64;
                bubbles.extend(next..next + born);
                (next, births) = (next + born, births + born);
            }
            // Two become one; or one goes.
            _ if !bubbles.is_empty() => {
                let gone = (roll() * bubbles.len() as f32) as usize % bubbles.len();
                bubbles.swap_remove(gone);
            }
            _ => {}
        }
        snapshot.report.time = step as f64 * 0.01;
        snapshot.report.bubbles = bubbles.iter().map(|&id| bubble(id)).collect();
        sync(app.world_mut(), pane, &Arc::new(snapshot.clone()));
        if step % 50 == 0 || step == 2999 {
            // A reset changes the run of both panes, but each hears of it with its own next snapshot.
            let found = entities(app.world_mut(), pane);
            assert_eq!(found, alive[pane].iter().copied().collect(), "pane {pane} after {step} steps");
        }
    }
    assert!(births > 3000, "{births} bubbles were born");
    let world = app.world_mut();
    let total = world.query::<&Bubble>().iter(world).count();
    assert_eq!(total, world.resource::<Registry>().len());
    assert_eq!(world.query::<&Liquid>().iter(world).count(), 2);
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
