//! Sessions that choose their resolution, and the notice that they fall behind.

use std::time::{Duration, Instant};

use crate::realtime::{Choice, Key, Memory};
use crate::runner::Command;
use crate::scene::{self, Overrides};
use crate::sim::{Model, ParamValue, param};
use crate::viewer::session::{LagWatch, Opening, Panes, Session};

const SCENE: &str = "ball_in_circle_2d";
const MODELS: [Model; 2] = [Model::FreeSurface, Model::Constraint];

/// A memory that knows what two models on two threads can do.
fn knowing(path: &std::path::Path, cells: [usize; 2]) -> (Memory, usize, [Key; 2]) {
    let memory = Memory::at(path.join("resolutions.json"));
    let (scene, source) = scene::load_with_source(SCENE, &Overrides::default()).expect("a built-in scene");
    let own = scene.own_cells();
    let keys = MODELS.map(|model| Key::new(&source, model, 1, 1));
    for (key, cells) in keys.iter().zip(cells) {
        memory.remember(key, SCENE, &Choice { own, cells, pace: 1.5 });
    }
    (memory, own, keys)
}

fn opening(memory: &Memory) -> Opening {
    Opening {
        scene: SCENE.to_owned(),
        overrides: Overrides::default(),
        models: MODELS.to_vec(),
        threads: Some(2),
        keep_real_time: true,
        memory: Some(memory.clone()),
    }
}

/// Waits until both panes show so many cells.
fn wait_for(session: &mut Session, panes: &mut Panes, cells: usize) {
    let start = Instant::now();
    loop {
        session.receive(panes);
        let shown = panes.0.iter().filter_map(|pane| pane.snapshot.as_ref()).map(|s| s.scenery.cells[0]);
        if shown.filter(|one| *one == cells).count() == panes.0.len() {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {cells} cells");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_scene_opens_at_what_is_remembered_and_leads_to_its_own_and_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (memory, own, keys) = knowing(folder.path(), [40, 32]);
    let (mut session, mut panes) = Session::open(&opening(&memory)).expect("threads");
    assert!(session.resolution().is_measuring);
    wait_for(&mut session, &mut panes, 32);
    assert_eq!(session.resolution().chosen.map(|choice| (choice.own, choice.cells)), Some((own, 32)));
    session.tell(Command::Set(param("gravity").expect("a parameter"), ParamValue::Number(1.62)));
    session.set_cells(Some(48), &panes);
    wait_for(&mut session, &mut panes, 48);
    assert_eq!((session.resolution().asked, session.resolution().chosen), (Some(48), None));
    for pane in &panes.0 {
        let snapshot = pane.snapshot.as_ref().expect("a snapshot");
        assert_eq!(snapshot.params.gravity, 1.62, "what was changed stays");
    }
    assert_eq!(panes.0.iter().map(|pane| pane.model).collect::<Vec<_>>(), MODELS);
    session.set_cells(None, &panes);
    wait_for(&mut session, &mut panes, 32);
    session.set_keep_real_time(false, &panes);
    wait_for(&mut session, &mut panes, own);
    session.set_keep_real_time(true, &panes);
    wait_for(&mut session, &mut panes, 32);
    // What was offered and taken is what this machine can do, from now on.
    session.settle_for(24, &panes);
    wait_for(&mut session, &mut panes, 24);
    let start = Instant::now();
    while !keys.iter().all(|key| memory.recall(key, own).is_some_and(|choice| choice.cells == 24)) {
        assert!(start.elapsed() < Duration::from_secs(60), "it is not remembered");
        std::thread::sleep(Duration::from_millis(2));
    }
    session.load(SCENE, &panes);
    wait_for(&mut session, &mut panes, 24);
}

#[test]
fn cells_that_are_asked_for_win_and_nothing_is_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let memory = Memory::at(folder.path().join("resolutions.json"));
    let overrides = Overrides { cells: Some(40), ..Overrides::default() };
    let (mut session, mut panes) =
        Session::open(&Opening { overrides, ..opening(&memory) }).expect("threads");
    assert!(!session.resolution().is_measuring);
    wait_for(&mut session, &mut panes, 40);
    assert!(!folder.path().join("resolutions.json").exists());
}

#[test]
fn only_a_long_lag_is_worth_a_word_and_only_one() {
    let start = Instant::now();
    let at = |seconds: f64| start + Duration::from_secs_f64(seconds);
    let mut lag = LagWatch::default();
    assert!(!lag.look(at(0.0), Some(0.5), 1.0));
    assert!(!lag.look(at(4.0), Some(0.95), 1.0), "it catches up");
    assert!(!lag.look(at(5.0), Some(0.5), 1.0) && !lag.look(at(10.0), Some(0.5), 1.0));
    assert!(!lag.look(at(10.5), None, 1.0), "paused");
    assert!(!lag.look(at(11.0), Some(0.5), 1.0) && !lag.look(at(16.0), Some(0.5), 1.0));
    assert!(lag.look(at(17.5), Some(0.5), 1.0));
    assert!(!lag.look(at(60.0), Some(0.5), 1.0), "once");
    let mut slow_motion = LagWatch::default();
    assert!(!slow_motion.look(at(0.0), Some(0.25), 0.25) && !slow_motion.look(at(60.0), Some(0.25), 0.25));
}
