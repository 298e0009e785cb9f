//! A click in a picture selects the bubble that is seen there, and the table follows; and the other way round.

use std::sync::Arc;

use bevy::prelude::*;

use super::sync;
use crate::runner::Run;
use crate::scene::{self, Overrides};
use crate::sim::Model;
use crate::snapshot::{Scenery, Snapshot, Wanted};
use crate::viewer::act::Pending;
use crate::viewer::action::Action;
use crate::viewer::app::SyncPlugin;
use crate::viewer::pick::pick;
use crate::viewer::session::{Panes, Shown};
use crate::viewer::stage::OrbitCamera;
use crate::viewer::ui_state::{RightTab, UiState};

const ASPECT: f32 = 1.25;

/// The first moment of a scene with bubbles in it.
fn bubbly(name: &str, cells: usize) -> Snapshot {
    let scene = scene::load(name, &Overrides { cells: Some(cells), ..Overrides::default() });
    let scene = scene.expect("a built-in scene");
    let stage = Arc::new(Scenery::of(&scene));
    let mut run = Run::new(&scene, stage, scene.params().clone(), 1).expect("a simulation");
    run.snapshot(Wanted::default(), 1.0)
}

/// The trapped bubbles with their centres.
fn trapped(snapshot: &Snapshot) -> Vec<(u64, Vec3)> {
    let bubbles = snapshot.report.bubbles.iter().filter(|bubble| snapshot.is_trapped(bubble));
    let centre = |at: &[f64]| Vec3::from([0, 1, 2].map(|axis| at.get(axis).copied().unwrap_or(0.0) as f32));
    bubbles.map(|bubble| (bubble.id, centre(&bubble.centroid))).collect()
}

#[test]
fn a_click_on_a_bubble_finds_it_in_2d() {
    let snapshot = bubbly("rising_bubble_2d", 96);
    let camera = OrbitCamera::framing(&snapshot.scenery, ASPECT);
    let bubbles = trapped(&snapshot);
    assert!(!bubbles.is_empty());
    for (id, centre) in bubbles {
        let at = camera.project(centre, ASPECT).expect("in front of the camera");
        assert_eq!(pick(&snapshot, &camera, at, ASPECT, None), Some(id), "at {at}");
    }
    let corner = camera.project(Vec3::new(0.02, 0.02, 0.0), ASPECT).expect("in front of the camera");
    assert_eq!(pick(&snapshot, &camera, corner, ASPECT, None), None, "water is no bubble");
}

#[test]
fn a_click_on_a_bubble_finds_it_in_3d() {
    let snapshot = bubbly("rising_bubbles", 32);
    let bubbles = trapped(&snapshot);
    assert!(bubbles.len() > 1, "{bubbles:?}");
    let mut found = 0;
    for (id, centre) in &bubbles {
        // Straight through the pane nothing is bent, and the middle of the picture is the bubble's middle.
        let camera = OrbitCamera {
            target: *centre,
            yaw: 0.0,
            pitch: 0.0,
            ..OrbitCamera::framing(&snapshot.scenery, ASPECT)
        };
        let middle = Vec2::splat(0.5);
        let seen = pick(&snapshot, &camera, middle, ASPECT, None).expect("a bubble");
        let front = bubbles.iter().find(|(of, _)| *of == seen).expect("it is trapped").1;
        assert!(front.z >= centre.z, "bubble {seen} hides bubble {id}");
        found += (seen == *id) as usize;
        // What the cut takes away cannot be hit; what it opens can.
        let behind = pick(&snapshot, &camera, middle, ASPECT, Some(centre.z));
        assert_eq!(behind, Some(*id));
        assert_ne!(pick(&snapshot, &camera, middle, ASPECT, Some(0.02 * centre.z)), Some(*id));
    }
    assert!(found > 1, "{found} of {} bubbles were found", bubbles.len());
}

#[test]
fn water_shifts_what_is_seen_and_clicks_follow() {
    let snapshot = bubbly("rising_bubbles", 32);
    let camera = OrbitCamera::framing(&snapshot.scenery, ASPECT);
    // Seen at an angle through the pane, a bubble appears nearer than it is: its places on the picture surround
    // another middle than the one that a straight line would give.
    let hits: Vec<(u64, Vec2)> = (0..120 * 90)
        .map(|k| Vec2::new((k % 120) as f32 / 119.0, (k / 120) as f32 / 89.0))
        .filter_map(|at| pick(&snapshot, &camera, at, ASPECT, None).map(|id| (id, at)))
        .collect();
    for (id, centre) in trapped(&snapshot) {
        let places: Vec<_> = hits.iter().filter(|(of, _)| *of == id).map(|(_, at)| *at).collect();
        assert!(!places.is_empty(), "bubble {id} is nowhere to be seen");
        let middle = places.iter().sum::<Vec2>() / places.len() as f32;
        let straight = camera.project(centre, ASPECT).expect("in front of the camera");
        assert!(middle.distance(straight) < 0.15, "bubble {id} is seen at {middle}, far from {straight}");
    }
}

#[test]
fn a_click_selects_here_and_in_the_table() {
    let snapshot = Arc::new(bubbly("rising_bubble_2d", 96));
    let (id, centre) = trapped(&snapshot)[0];
    let mut app = App::new();
    app.add_plugins(SyncPlugin);
    let mut shown = Shown::new(Model::default());
    shown.take(Arc::clone(&snapshot));
    app.insert_resource(Panes(vec![shown]));
    sync(app.world_mut(), 0, &snapshot);
    let camera = OrbitCamera::framing(&snapshot.scenery, ASPECT);
    app.insert_resource(camera);
    let picture = Rect { min: Vec2::ZERO, max: Vec2::new(100.0 * ASPECT, 100.0) };
    app.insert_resource(UiState { pictures: vec![picture], ..UiState::default() });
    let at = camera.project(centre, ASPECT).expect("in front of the camera");
    app.world_mut().resource_mut::<Pending>().0.push(Action::Pick(0, at));
    app.update();
    let ui_state = app.world().resource::<UiState>();
    assert_eq!(ui_state.selected, Some((0, id)));
    assert_eq!(ui_state.right, RightTab::Bubbles);
    assert_eq!(ui_state.options(0).selected, Some(id), "the picture marks it");
    // Beside all bubbles, nothing is selected any more.
    app.world_mut().resource_mut::<Pending>().0.push(Action::Pick(0, Vec2::ZERO));
    app.update();
    assert_eq!(app.world().resource::<UiState>().selected, None);
}
