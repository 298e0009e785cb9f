//! The runner drives whatever is a solver: it need have neither grid nor particles nor pressure.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use glug::runner::{Frame, Outcome, Run, Runner, Solver, SolverError, Watch};
use glug::sim::{FrameReport, Params};
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
