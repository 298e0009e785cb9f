//! The runner drives whatever is a solver: it need have neither grid nor particles nor pressure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use glug::runner::{Command, Frame, Outcome, Pace, Phase, Run, Runner, Solver, SolverError, Watch, Worker};
use glug::scene::Overrides;
use glug::sim::{Edit, Form, FrameReport, Hold, NewBody, ParamValue, Params, param};
use glug::snapshot::{Scenery, Snapshot, SolidPose, Wanted};

const STEPS: usize = 4;

/// A swinging point: `x'' = −gravity x`.
#[derive(Clone, Default)]
struct Pendulum {
    params: Params,
    frame: usize,
    time: f64,
    place: f64,
    speed: f64,
}

impl Pendulum {
    fn new() -> Box<Self> {
        Box::new(Pendulum { place: 1.0, ..Pendulum::default() })
    }
}

impl Solver for Pendulum {
    fn advance_frame(
        &mut self,
        seconds: f64,
        stop: &AtomicBool,
        between: &mut dyn FnMut(&mut Params),
    ) -> Result<Option<FrameReport>, SolverError> {
        for _ in 0..STEPS {
            between(&mut self.params);
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let dt = seconds / STEPS as f64;
            self.speed -= self.params.gravity * self.place * dt;
            self.place += self.speed * dt;
            self.time += dt;
        }
        self.frame += 1;
        Ok(Some(FrameReport { substeps: STEPS, ..self.survey() }))
    }

    fn params(&self) -> &Params {
        &self.params
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    fn survey(&mut self) -> FrameReport {
        FrameReport { frame: self.frame, time: self.time, ..FrameReport::default() }
    }

    fn show(&mut self, _: Wanted, snapshot: &mut Snapshot) {
        let rotation = std::array::from_fn(|k| std::array::from_fn(|l| f32::from(u8::from(k == l))));
        let translation = [self.place as f32, 0.0, 0.0];
        snapshot.poses.push(SolidPose { rotation, translation, present: true });
    }

    fn branch(&self) -> Box<dyn Solver> {
        Box::new(self.clone())
    }
}

#[derive(Default)]
struct Seen {
    times: Vec<f64>,
    enough: usize,
}

impl Watch for Seen {
    fn frame(&mut self, frame: &Frame<'_>) -> std::io::Result<Outcome> {
        assert!(frame.solver.grid().is_none(), "an ability that it does not have");
        self.times.push(frame.report.time);
        frame.stop.store(self.times.len() == self.enough, Ordering::Relaxed);
        Ok(Outcome::Finished)
    }
}

#[test]
fn a_solver_without_a_grid_is_driven_frame_by_frame_and_stops_when_told() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut runner = Runner::start(1, Arc::clone(&stop), || Ok(Pendulum::new())).expect("threads");
    let mut seen = Seen::default();
    assert_eq!(runner.advance(3, 0.1, &mut seen).expect("it swings"), Outcome::Finished);
    assert_eq!(seen.times.len(), 3);
    assert!((seen.times[2] - 0.3).abs() < 1e-12, "{:?}", seen.times);
    seen.enough = 5;
    assert_eq!(runner.advance(100, 0.1, &mut seen).expect("it swings"), Outcome::Stopped);
    assert_eq!(seen.times.len(), 5, "no frame after the flag was raised");
}

#[test]
fn a_run_of_any_solver_shows_itself_and_branches() {
    let scenery = Arc::new(Scenery { fps: 20.0, ..Scenery::default() });
    let mut run = Run::of(Pendulum::new(), scenery, 7);
    let place = |run: &mut Run| run.snapshot(Wanted::default(), 1.0).poses[0].translation[0];
    assert_eq!((place(&mut run), run.number()), (1.0, 7));
    let mut still = run.branch();
    let never = AtomicBool::new(false);
    let mut asked = 0;
    assert!(run.advance(&never, &mut |_| asked += 1).expect("it swings"));
    assert_eq!(asked, STEPS, "before every step");
    assert!(still.advance(&never, &mut |params| params.gravity = 0.0).expect("it rests"));
    assert_eq!((run.report().frame, still.report().frame), (1, 1));
    assert!(place(&mut run) < 1.0, "it swings");
    assert_eq!(place(&mut still), 1.0, "its copy has parameters of its own");
    assert!(!run.advance(&AtomicBool::new(true), &mut |_| ()).expect("told to stop"));
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

fn overrides(cells: usize) -> Overrides {
    Overrides { cells: Some(cells), ..Overrides::default() }
}

/// Surfaces used to be meshed for every frame, whether or not the window had taken the one before.
#[test]
fn nothing_is_drawn_while_nobody_looks() {
    let worker = Worker::start(1, &Arc::new(Pace::default())).expect("a thread");
    worker.send(Command::Load { scene: "ball_in_circle_2d".to_owned(), overrides: overrides(24) });
    worker.send(Command::Play);
    wait_for("playing", || (*worker.phase() == Phase::Playing).then_some(()));
    std::thread::sleep(Duration::from_millis(400));
    let first = worker.newest().expect("the first moment");
    assert_eq!(first.report.frame, 0, "nobody has taken it until now");
    let next = wait_for("the next", || worker.newest().filter(|snapshot| snapshot.report.frame > 0));
    assert!(next.report.frame > 3, "the newest one, not the one behind the first: {}", next.report.frame);
}

#[test]
fn a_scene_rebuilt_at_another_resolution_keeps_its_parameters() {
    let worker = Worker::start(1, &Arc::new(Pace::default())).expect("a thread");
    let scene = "ball_in_circle_2d".to_owned();
    worker.send(Command::Load { scene: scene.clone(), overrides: overrides(24) });
    let moment =
        |cells| wait_for("the scene", || worker.newest().filter(|moment| moment.scenery.cells[0] == cells));
    assert_eq!(moment(24).params.gravity, 9.81);
    worker.send(Command::Set(param("gravity").expect("a parameter"), ParamValue::Number(1.62)));
    worker.send(Command::Rebuild { scene: scene.clone(), overrides: overrides(32) });
    let lunar = moment(32);
    assert_eq!((lunar.params.gravity, lunar.report.frame), (1.62, 0));
    assert_eq!(lunar.report.cells_xyz[0], 32);
    assert!(lunar.scenery.own_cells > 32, "the file asks for {}", lunar.scenery.own_cells);
    worker.send(Command::Load { scene, overrides: overrides(40) });
    assert_eq!(moment(40).params.gravity, 9.81, "a load brings its own");
}

/// What hands do is seen at once, also while no time passes; what cannot be done is said.
#[test]
fn hands_work_while_no_time_passes() {
    let worker = Worker::start(1, &Arc::new(Pace::default())).expect("a thread");
    worker.send(Command::Load { scene: "floating_boxes_2d".to_owned(), overrides: overrides(48) });
    let first = wait_for("the scene", || worker.newest());
    let known = first.report.bodies.len();
    let ball = NewBody {
        form: Form::Ball,
        size: 0.24,
        density: 300.0,
        position: [0.5, 0.9, 0.0],
        velocity: [0.0; 3],
    };
    worker.send(Command::Edit(Edit::Add(ball)));
    let with = wait_for("a ball", || worker.newest().filter(|now| now.report.bodies.len() > known));
    let body = with.report.bodies.last().expect("a ball");
    assert_eq!((with.report.frame, body.name.as_str()), (0, "ball 1"));
    assert_eq!(with.scenery.solids.len(), with.poses.len());
    assert!(with.poses[body.id].present && with.scenery.solids[body.id].outline.len() > 8);
    worker.send(Command::Edit(Edit::Grab { body: body.id, at: ball.position, hold: Hold::default() }));
    worker.send(Command::Edit(Edit::Move { body: body.id, to: [0.7, 0.9, 0.0] }));
    let id = body.id;
    let pulled = |now: &Arc<Snapshot>| {
        let body = now.report.bodies.iter().find(|body| body.id == id);
        body.and_then(|body| body.pull.clone())
    };
    let pull =
        wait_for("a pull", || worker.newest().as_ref().and_then(pulled).filter(|pull| pull.target[0] == 0.7));
    assert_eq!(pull.force, [0.0, 0.0], "no time has passed");
    worker.send(Command::Edit(Edit::Add(NewBody { position: [0.5, 9.0, 0.0], ..ball })));
    let refused = wait_for("a reason", || worker.take_refused().pop());
    assert!(refused.contains("the place is 9"), "{refused}");
    worker.send(Command::Step);
    let moved = wait_for("a frame", || worker.newest().filter(|now| now.report.frame == 1));
    assert!(pulled(&moved).expect("it is held").force[0] > 0.0);
    worker.send(Command::Edit(Edit::Remove { body: id }));
    wait_for("no ball", || worker.newest().filter(|now| now.report.bodies.len() == known));
}
