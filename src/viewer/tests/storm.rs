//! Workers under fire: random commands, panics, bad scenes.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::math::hash_unit;
use crate::runner::{Adoption, Command, Pace, Phase, Worker};
use crate::scene::Overrides;
use crate::sim::{Edit, Form, Hold, Model, NewBody, ParamKind, ParamValue, params_table};
use crate::snapshot::{Snapshot, Wanted};

const SCENES: [&str; 4] = ["dam_break_2d", "ball_in_circle_2d", "vortex_box_2d", "dam_break"];
/// None of those: a picture of it was made after the storm.
const LAST_SCENE: &str = "tilted_tank_2d";

fn load(scene: &str) -> Command {
    let overrides =
        Overrides { cells: Some(if scene.ends_with("2d") { 24 } else { 12 }), ..Overrides::default() };
    Command::Load { scene: scene.to_owned(), overrides }
}

fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn worker() -> Worker {
    Worker::start(1, &Arc::new(Pace::default())).expect("a thread")
}

fn after(worker: &Worker, accept: impl Fn(&Snapshot) -> bool) -> Arc<Snapshot> {
    wait_for("a snapshot", || worker.newest().filter(|snapshot| accept(snapshot)))
}

#[test]
fn ten_thousand_random_commands_end_in_a_running_simulation() {
    let pace = Arc::new(Pace::default());
    let workers = [(); 2].map(|()| Worker::start(1, &pace).expect("a thread"));
    let mut dice = (1000..).map(hash_unit);
    let mut map = move |sides: usize| (dice.next().unwrap_or(0.0) * sides as f32) as usize % sides;
    workers.iter().for_each(|worker| worker.send(load(SCENES[0])));
    for round in 0..10_000 {
        let command = match map(100) {
            0 => load(SCENES[map(SCENES.len())]),
            1 => load("no_such_scene"),
            2 => Command::Rebuild {
                scene: SCENES[map(SCENES.len())].to_owned(),
                overrides: Overrides { cells: Some([16, 24][map(2)]), ..Overrides::default() },
            },
            3..=4 => Command::Reset,
            5..=14 => Command::Play,
            15..=24 => Command::Pause,
            25..=44 => Command::Step,
            45..=49 => Command::Speed([0.1, 1.0, 4.0][map(3)]),
            50..=54 => Command::Wanted(Wanted {
                velocity: map(2) == 0,
                scalars: map(2) == 0,
                particles: map(2) == 0,
                roles: map(2) == 0,
            }),
            55..=59 => Command::Model(Model::ALL[map(Model::ALL.len())]),
            60..=64 => Command::Edit(match map(5) {
                0 => {
                    let form = Form::ALL[map(4)];
                    let position = [map(100) as f64 / 99.0, map(100) as f64 / 99.0, 0.3];
                    let size = [0.1, 0.2, 0.4][map(3)];
                    Edit::Add(NewBody { form, size, density: 500.0, position, velocity: [0.5, 0.0, 0.0] })
                }
                1 => Edit::Grab { body: map(4), at: [0.5; 3], hold: Hold::default() },
                2 => Edit::Move { body: map(4), to: [map(100) as f64 / 99.0, 0.4, 0.3] },
                3 => Edit::Release { body: map(4) },
                _ => Edit::Remove { body: map(4) },
            }),
            _ => {
                let info = &params_table()[map(params_table().len())];
                let share = map(1000) as f64 / 999.0;
                Command::Set(
                    info,
                    match info.kind {
                        ParamKind::Number { min, max } => ParamValue::Number(min + share * (max - min)),
                        ParamKind::Whole { min, max } => {
                            ParamValue::Number((min as f64 + share * (max - min) as f64).round())
                        }
                        ParamKind::Switch => ParamValue::Switch(map(2) == 0),
                        ParamKind::Choice(names) => ParamValue::Choice(names[map(names.len())]),
                    },
                )
            }
        };
        // Most commands go to both, as in the window; some to one alone.
        let both = map(4) != 0;
        workers[0].send(command.clone());
        if both {
            workers[1].send(command);
        }
        if round % 500 == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    for worker in &workers {
        worker.send(load(LAST_SCENE));
        worker.send(Command::Speed(4.0));
        worker.send(Command::Play);
    }
    for worker in &workers {
        let snapshot = after(worker, |s| s.scenery.name == LAST_SCENE && s.report.frame >= 3);
        assert!(snapshot.report.liquid.volume > 0.0);
        assert_eq!(*worker.phase(), Phase::Playing);
    }
}

#[test]
fn a_panic_stops_one_simulation_and_a_reset_brings_it_back() {
    let worker = worker();
    worker.send(load("dam_break_2d"));
    worker.send(Command::Play);
    let before = after(&worker, |s| s.report.frame >= 1);
    worker.send(Command::Panic);
    let message = wait_for("a failure", || match &*worker.phase() {
        Phase::Failed(message) => Some(message.clone()),
        _ => None,
    });
    assert!(message.contains("on request"), "{message}");
    assert!(worker.newest().is_some(), "the last good picture stays");
    worker.send(Command::Reset);
    worker.send(Command::Play);
    let again = after(&worker, |s| s.run > before.run && s.report.frame >= 1);
    assert!(again.report.frame < 1000);
}

#[test]
fn a_scene_that_cannot_be_read_is_reported_and_the_picture_stays() {
    let worker = worker();
    worker.send(load("dam_break_2d"));
    after(&worker, |_| true);
    worker.send(load("no_such_scene"));
    wait_for("a failure", || {
        matches!(&*worker.phase(), Phase::Failed(text) if text.contains("no_such")).then_some(())
    });
    assert_eq!(worker.newest().expect("still there").scenery.name, "dam_break_2d");
}

#[test]
fn a_changed_parameter_counts_from_the_next_step_on() {
    let worker = worker();
    worker.send(load("dam_break_2d"));
    let start = after(&worker, |_| true);
    assert_eq!(start.report.frame, 0);
    let gravity = crate::sim::param("gravity").expect("a parameter");
    worker.send(Command::Set(gravity, ParamValue::Number(0.0)));
    worker.send(Command::Step);
    let next = after(&worker, |s| s.report.frame == 1);
    assert_eq!(next.params.gravity, 0.0);
    assert!(next.report.liquid.max_speed < 1e-6, "without gravity nothing falls");
    // One that is not live starts the scene again, with the others as they were.
    let seeds = crate::sim::param("seeds_per_axis").expect("a parameter");
    worker.send(Command::Set(seeds, ParamValue::Number(3.0)));
    let again = after(&worker, |s| s.run > next.run);
    assert_eq!((again.report.frame, again.params.seeds_per_axis, again.params.gravity), (0, 3, 0.0));
    assert!(again.report.particles > start.report.particles);
}

#[test]
fn a_step_is_one_frame_and_a_pause_is_a_pause() {
    let worker = worker();
    worker.send(load("ball_in_circle_2d"));
    after(&worker, |_| true);
    for frame in 1..=3 {
        worker.send(Command::Step);
        after(&worker, |s| s.report.frame == frame);
    }
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(worker.newest().map(|s| s.report.frame), Some(3));
    assert_eq!(*worker.phase(), Phase::Paused);
}

#[test]
fn a_reset_shows_the_first_moment_at_once_and_no_older_run_comes_back() {
    let worker = worker();
    worker.send(load("dam_break"));
    worker.send(Command::Play);
    for _ in 0..3 {
        let before = after(&worker, |s| s.report.frame >= 2);
        worker.send(Command::Reset);
        let first = worker.newest().expect("a picture");
        assert!(first.run > before.run, "run {} after {}", first.run, before.run);
        assert_eq!(first.report.frame, 0);
        let mut last = first.run;
        wait_for("the run to go on", || {
            let snapshot = worker.newest()?;
            assert!(snapshot.run >= last, "run {} after {last}", snapshot.run);
            last = snapshot.run;
            (snapshot.report.frame >= 1).then_some(())
        });
    }
    // Where another start is asked for, the old one is not shown.
    let seeds = crate::sim::param("seeds_per_axis").expect("a parameter");
    worker.send(Command::Pause);
    worker.send(Command::Set(seeds, ParamValue::Number(3.0)));
    let before = worker.newest().expect("a picture").run;
    worker.send(Command::Reset);
    assert_eq!(after(&worker, |s| s.run > before).params.seeds_per_axis, 3);
}

#[test]
fn two_simulations_on_one_clock_stay_together() {
    stay_together(Pace::default());
}

#[test]
fn two_simulations_on_one_thread_stay_together() {
    stay_together(Pace::taking_turns());
}

fn stay_together(pace: Pace) {
    let pace = Arc::new(pace);
    let workers = [(); 2].map(|()| Worker::start(1, &pace).expect("a thread"));
    for worker in &workers {
        worker.send(load("ball_in_circle_2d"));
        worker.send(Command::Speed(4.0));
        worker.send(Command::Play);
    }
    let start = Instant::now();
    wait_for("forty frames", || {
        let frames = [0, 1].map(|k| workers[k].newest().map_or(0, |s| s.report.frame as i64));
        assert!(
            (frames[0] - frames[1]).abs() <= 4 || start.elapsed() < Duration::from_millis(500),
            "{frames:?}"
        );
        (frames[0].min(frames[1]) >= 40).then_some(())
    });
    workers.iter().for_each(|worker| worker.send(Command::Pause));
    wait_for("both at the same frame", || {
        let frames = [0, 1].map(|k| workers[k].newest().map_or(0, |s| s.report.frame));
        (frames[0] == frames[1]).then_some(())
    });
}

#[test]
fn a_comparison_goes_on_from_the_moment_it_was_asked_for() {
    let parent = worker();
    parent.send(load("ball_in_circle_2d"));
    parent.send(Command::Play);
    after(&parent, |snapshot| snapshot.report.frame >= 5);
    let (parent, pace) = (Arc::new(parent), Arc::new(Pace::default()));
    let (senders, receivers): (Vec<_>, Vec<_>) = Model::ALL.iter().map(|_| channel()).unzip();
    parent.send(Command::Branch(senders));
    let heirs: Vec<_> = receivers
        .into_iter()
        .zip(Model::ALL)
        .map(|(from, model)| {
            let heir = Worker::start(1, &pace).expect("a thread");
            heir.send(Command::Adopt(Adoption {
                from: Arc::new(Mutex::new(from)),
                parent: Arc::clone(&parent),
                model,
                otherwise: ("no_such_scene".to_owned(), Overrides::default()),
            }));
            heir
        })
        .collect();
    let gone = Arc::downgrade(&parent);
    drop(parent);
    let moments: Vec<_> = heirs.iter().map(|heir| after(heir, |_| true)).collect();
    assert!(moments[0].report.frame >= 5, "from the middle of the run");
    for (moment, model) in moments.iter().zip(Model::ALL) {
        assert_eq!(moment.params.model, model);
        assert_eq!(moment.report.time, moments[0].report.time, "both at the same moment");
        assert_eq!(moment.report.liquid, moments[0].report.liquid, "and in the same state");
    }
    wait_for("the parent's end", || gone.upgrade().is_none().then_some(()));
    heirs.iter().for_each(|heir| heir.send(Command::Play));
    let later = moments[0].report.frame + 5;
    heirs.iter().for_each(|heir| drop(after(heir, |snapshot| snapshot.report.frame >= later)));
}

#[test]
fn a_comparison_with_nothing_starts_from_the_beginning() {
    let parent = Arc::new(worker());
    let (sender, from) = channel();
    parent.send(Command::Branch(vec![sender]));
    let heir = worker();
    heir.send(Command::Adopt(Adoption {
        from: Arc::new(Mutex::new(from)),
        parent,
        model: Model::Constraint,
        otherwise: ("dam_break_2d".to_owned(), Overrides { cells: Some(24), ..Overrides::default() }),
    }));
    assert_eq!(after(&heir, |_| true).report.frame, 0);
}
