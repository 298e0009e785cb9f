//! The pointer on bodies: what it finds, what it pulls, and what it puts in.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bevy::prelude::*;

use super::sync;
use crate::runner::Run;
use crate::scene::{self, Overrides};
use crate::sim::{BodyReport, Form, Model};
use crate::snapshot::{Scenery, Snapshot, Wanted};
use crate::viewer::act::Pending;
use crate::viewer::action::Action;
use crate::viewer::app::SyncPlugin;
use crate::viewer::entities::{Body, Registry};
use crate::viewer::pick::{pick, pick_body};
use crate::viewer::session::{Opening, Panes, Session};
use crate::viewer::stage::OrbitCamera;
use crate::viewer::ui_state::{HandState, RightTab, UiState};

const ASPECT: f32 = 1.25;

fn overrides(cells: usize) -> Overrides {
    Overrides { cells: Some(cells), ..Overrides::default() }
}

/// A moment of a scene, that many frames after its start.
fn moment(name: &str, cells: usize, frames: usize) -> Snapshot {
    let scene = scene::load(name, &overrides(cells)).expect("a built-in scene");
    let stage = Arc::new(Scenery::of(&scene));
    let mut run = Run::new(&scene, stage, scene.params().clone(), 1).expect("a simulation");
    let stop = std::sync::atomic::AtomicBool::new(false);
    (0..frames).for_each(|_| assert!(run.advance(&stop, &mut |_| ()).expect("it goes on")));
    run.snapshot(Wanted::default(), 1.0)
}

fn place(body: &BodyReport) -> Vec3 {
    Vec3::from([0, 1, 2].map(|axis| body.position.get(axis).copied().unwrap_or(0.0) as f32))
}

#[test]
fn the_pointer_finds_bodies_in_2d() {
    let snapshot = moment("floating_boxes_2d", 48, 12);
    let camera = OrbitCamera::framing(&snapshot.scenery, ASPECT);
    for body in &snapshot.report.bodies {
        let at = camera.project(place(body), ASPECT).expect("in front of the camera");
        let hit = pick_body(&snapshot, &camera, at, ASPECT, None).expect("a body");
        assert_eq!(hit.body, body.id);
        assert!(hit.place.distance(place(body)) < 1e-4, "{hit:?}");
    }
    let corner = camera.project(Vec3::new(0.01, 0.01, 0.0), ASPECT).expect("in front of the camera");
    assert_eq!(pick_body(&snapshot, &camera, corner, ASPECT, None), None, "water is no body");
}

#[test]
fn the_pointer_finds_bodies_in_3d() {
    let snapshot = moment("floating_boxes", 24, 2);
    for body in &snapshot.report.bodies {
        // Level with it, nothing is between the camera and it but air.
        let camera = OrbitCamera {
            target: place(body),
            yaw: 0.0,
            pitch: 0.1,
            ..OrbitCamera::framing(&snapshot.scenery, ASPECT)
        };
        let hit = pick_body(&snapshot, &camera, Vec2::splat(0.5), ASPECT, None).expect("a body");
        let front = snapshot.report.bodies.iter().find(|other| other.id == hit.body).expect("it is listed");
        assert!(place(front).z >= place(body).z, "{} hides {}", front.name, body.name);
        let turned = Mat3::from_cols_array_2d(&snapshot.poses[hit.body].rotation);
        let back = turned * hit.at_rest + Vec3::from(snapshot.poses[hit.body].translation);
        assert!(back.distance(hit.place) < 1e-4 && hit.place.distance(place(front)) < 0.25, "{hit:?}");
    }
}

/// A window on two simulations, without the window.
struct Window {
    app: App,
}

impl Window {
    fn open(scene: &str, cells: usize) -> Self {
        let opening = Opening {
            scene: scene.to_owned(),
            overrides: overrides(cells),
            models: vec![Model::Constraint, Model::FreeSurface],
            threads: Some(2),
            keep_real_time: false,
            memory: None,
        };
        let (session, panes) = Session::open(&opening).expect("threads");
        let mut app = App::new();
        app.add_plugins(SyncPlugin).insert_resource(session).insert_resource(panes);
        let picture = Rect { min: Vec2::ZERO, max: Vec2::new(100.0 * ASPECT, 100.0) };
        let hands = HandState { size: 0.1, ..HandState::default() };
        app.insert_resource(UiState { pictures: vec![picture; 2], hands, ..UiState::default() });
        let mut window = Window { app };
        let scenery = window.wait_for("both panes", |bodies, app| {
            let snapshot = bodies[1].first().and(app.world().resource::<Panes>().0[0].snapshot.clone());
            snapshot.map(|snapshot| Arc::clone(&snapshot.scenery))
        });
        window.app.insert_resource(OrbitCamera::framing(&scenery, ASPECT));
        window
    }

    fn act(&mut self, action: Action) {
        self.app.world_mut().resource_mut::<Pending>().0.push(action);
        self.app.update();
    }

    /// Where a place is seen.
    fn at(&self, place: Vec3) -> Vec2 {
        self.app.world().resource::<OrbitCamera>().project(place, ASPECT).expect("in front of the camera")
    }

    /// The bodies of both panes.
    fn bodies(&mut self) -> [Vec<BodyReport>; 2] {
        let world = self.app.world_mut();
        let mut query = world.query::<&Body>();
        [0, 1].map(|pane| {
            let own = query.iter(world).filter(|body| body.pane == pane);
            let mut own: Vec<_> = own.map(|body| body.report.clone()).collect();
            own.sort_unstable_by_key(|body| body.id);
            own
        })
    }

    fn wait_for<T>(&mut self, what: &str, found: impl Fn(&[Vec<BodyReport>; 2], &App) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            self.app.update();
            let bodies = self.bodies();
            if let Some(found) = found(&bodies, &self.app) {
                return found;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}; {bodies:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// In both panes the same body is pulled to the same place, and lets go when the pointer does.
#[test]
fn both_panes_get_the_same_pull() {
    let mut window = Window::open("floating_boxes_2d", 96);
    window.act(Action::Arm(Some(Form::Ball)));
    let drop = Vec3::new(0.48, 1.05, 0.0);
    let at = window.at(drop);
    window.act(Action::PutIn(at));
    window.act(Action::Arm(None));
    let id = window.wait_for("a ball", |bodies, _| {
        let ids =
            [0, 1].map(|pane| bodies[pane].iter().find(|body| body.name == "ball 1").map(|body| body.id));
        ids[0].filter(|_| ids[0] == ids[1])
    });
    // It falls: the pointer takes it where it is.
    let here = window.bodies()[0].iter().find(|body| body.id == id).map(place).expect("it is there");
    let at = window.at(here);
    window.act(Action::Grab(0, at));
    let ui_state = window.app.world().resource::<UiState>();
    assert_eq!((ui_state.selected_body, ui_state.right), (Some((0, id as u64)), RightTab::Bodies));
    let target = Vec3::new(0.5, 0.2, 0.0);
    let to = window.at(target);
    window.act(Action::Pull(to));
    let pulls = |bodies: &[Vec<BodyReport>; 2]| {
        [0, 1].map(|pane| bodies[pane].iter().find(|body| body.id == id).and_then(|body| body.pull.clone()))
    };
    window.wait_for("the same pull", |bodies, _| match pulls(bodies) {
        [Some(a), Some(b)] => (a.target == b.target && (a.target[0] - 0.5).abs() < 0.02).then_some(()),
        _ => None,
    });
    window.wait_for("it follows", |bodies, _| {
        let near = |pane: usize| {
            let body = bodies[pane].iter().find(|body| body.id == id).expect("it is there");
            place(body).distance(target) < 0.06 && body.submerged > 0.9
        };
        (near(0) && near(1)).then_some(())
    });
    window.act(Action::LetGo { keep: false });
    window.wait_for("it is let go", |bodies, _| (pulls(bodies) == [None, None]).then_some(()));
    // A light ball comes up again.
    window.wait_for("it comes up", |bodies, _| {
        let up = |pane: usize| bodies[pane].iter().any(|body| body.id == id && body.submerged < 0.9);
        (up(0) && up(1)).then_some(())
    });
    window.act(Action::TakeOut);
    window.wait_for("it is gone", |bodies, _| {
        bodies.iter().all(|own| own.iter().all(|body| body.id != id)).then_some(())
    });
    assert_eq!(window.app.world().resource::<Registry>().body((0, id as u64)), None);
}

/// Models whose air weighs nothing would refuse the scene; what hands pull there is surrounded by air alone.
#[test]
fn smoke_opens_in_both_panes_and_hands_reach_into_it() {
    let mut window = Window::open("floating_boxes_2d", 36);
    window.act(Action::Load("paddle_smoke_2d".to_owned()));
    let (scenery, models) = window.wait_for("smoke in both panes", |bodies, app| {
        let panes = &app.world().resource::<Panes>().0;
        let shown: Vec<_> = panes.iter().filter_map(|pane| pane.snapshot.as_ref()).collect();
        let smoky = shown.len() == 2 && shown.iter().all(|snapshot| snapshot.cells.smoke.is_some());
        let is_there = smoky && bodies.iter().all(|own| own.iter().any(|body| body.name == "wheel"));
        is_there.then(|| (Arc::clone(&shown[0].scenery), [0, 1].map(|pane| shown[pane].params.model)))
    });
    assert_eq!(models, [Model::TwoPhase, Model::AffineBubbles]);
    window.app.insert_resource(OrbitCamera::framing(&scenery, ASPECT));
    window.act(Action::Arm(Some(Form::Ball)));
    let at = window.at(Vec3::new(0.8, 0.3, 0.0));
    window.act(Action::PutIn(at));
    window.act(Action::Arm(None));
    let named = |own: &[BodyReport]| own.iter().find(|body| body.name == "ball 1").cloned();
    let here = window.wait_for("a ball", |bodies, _| named(&bodies[0]).and(named(&bodies[1])));
    let at = window.at(place(&here));
    window.act(Action::Grab(0, at));
    let to = window.at(Vec3::new(0.8, 0.5, 0.0));
    window.act(Action::Pull(to));
    window.wait_for("the same pull", |bodies, _| {
        let pulls = [0, 1].map(|pane| named(&bodies[pane]).and_then(|ball| ball.pull));
        matches!(&pulls, [Some(a), Some(b)] if a.target == b.target).then_some(())
    });
}

#[test]
fn the_pointer_finds_bodies_in_smoke() {
    let snapshot = moment("stirred_smoke", 24, 1);
    assert_eq!(snapshot.report.bodies.len(), 2);
    for body in &snapshot.report.bodies {
        let camera = OrbitCamera {
            target: place(body),
            yaw: 0.0,
            pitch: 0.3,
            ..OrbitCamera::framing(&snapshot.scenery, ASPECT)
        };
        let hit = pick_body(&snapshot, &camera, Vec2::splat(0.5), ASPECT, None).expect("a body");
        assert_eq!(hit.body, body.id, "nothing bends the ray, and smoke does not stop it");
        assert_eq!(pick(&snapshot, &camera, Vec2::splat(0.5), ASPECT, None), None, "the room is no bubble");
    }
}

#[test]
fn a_body_keeps_its_entity() {
    let mut app = App::new();
    app.init_resource::<Registry>();
    let mut snapshot = moment("floating_boxes_2d", 36, 0);
    let id = snapshot.report.bodies[1].id as u64;
    let mut known = None;
    for step in 0..5 {
        snapshot.report.bodies[1].submerged = 0.1 * f64::from(step);
        sync(app.world_mut(), 0, &Arc::new(snapshot.clone()));
        let entity = app.world().resource::<Registry>().body((0, id)).expect("it is there");
        assert_eq!(*known.get_or_insert(entity), entity);
        assert_eq!(app.world().get::<Body>(entity).expect("a body").report, snapshot.report.bodies[1]);
    }
    snapshot.report.bodies.remove(1);
    sync(app.world_mut(), 0, &Arc::new(snapshot));
    assert_eq!(app.world().resource::<Registry>().body((0, id)), None);
}
