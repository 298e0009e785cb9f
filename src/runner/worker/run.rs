//! The thread's loop: waiting, starting runs, going forward frame by frame.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::control::{Control, Start};
use super::finisher::Finisher;
use super::{Shared, panic_text};
use crate::runner::SolverError;
use crate::runner::command::{Adoption, Branch, Command, Phase};
use crate::runner::pace::Place;
use crate::runner::run::Run;
use crate::scene::{self, AnyScene};
use crate::sim::Params;
use crate::snapshot::{Scenery, Snapshot};

/// Snapshots are made at most this often while playing: no screen shows more.
const SHORTEST: Duration = Duration::from_millis(12);
/// A solve that ends with a larger relative residual than this has failed.
const HOPELESS: f64 = 0.5;

/// What the thread does, turn after turn.
pub struct Loop {
    control: Control,
    finisher: Finisher,
    scene: Option<(AnyScene, Arc<Scenery>)>,
    run: Option<Run>,
    due: Instant,
    published: Instant,
    /// Whether the last frame was kept back, since another was to follow at once.
    kept_back: bool,
    /// When the last frame was done, while frames follow each other.
    done: Option<Instant>,
    pace: f64,
}

impl Loop {
    /// Waits for a scene.
    pub fn new(inbox: Receiver<Command>, shared: Arc<Shared>, place: Place, finisher: Finisher) -> Self {
        let now = Instant::now();
        Loop {
            control: Control::new(inbox, shared, place),
            finisher,
            scene: None,
            run: None,
            due: now,
            published: now,
            kept_back: false,
            done: None,
            pace: 0.0,
        }
    }

    /// Obeys until told to quit.
    pub fn run(mut self) {
        while !self.control.shared.quit.load(Ordering::Relaxed) {
            // Whatever goes wrong inside, this thread stays to be told to start again.
            let turn = catch_unwind(AssertUnwindSafe(|| self.turn()));
            match turn {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.fail(error.to_string()),
                Err(panic) => self.fail(panic_text(&*panic)),
            }
            if let Some(trouble) = self.finisher.take_error() {
                self.fail(trouble);
            }
        }
        self.control.place.leave();
    }

    fn fail(&mut self, message: String) {
        self.run = None;
        self.control.playing = false;
        self.control.steps = 0;
        self.control.place.leave();
        self.control.say(Phase::Failed(message));
    }

    /// Waits for something to do and does it.
    fn turn(&mut self) -> Result<(), SolverError> {
        self.control.drain(self.run.as_mut().map(Run::params_mut));
        // A flag without a start is one whose command is still on its way, or asked for nothing that is allowed.
        self.control.shared.interrupt.store(false, Ordering::Relaxed);
        if let Some(start) = self.control.start.take() {
            return self.begin(start);
        }
        if !self.control.heirs.is_empty() {
            self.send_copies();
            return Ok(());
        }
        let Some(run) = &mut self.run else {
            self.control.edits.clear();
            self.control.wait(None, None);
            return Ok(());
        };
        for edit in std::mem::take(&mut self.control.edits) {
            if let Err(refused) = run.edit(&edit) {
                self.control.shared.refuse(refused.to_string());
            }
            // While it is paused, this is all there is to see of it.
            self.control.wanted_anew |= !self.control.may_go();
        }
        let is_last = self.kept_back && !self.control.may_go();
        if std::mem::take(&mut self.control.wanted_anew) || is_last {
            self.kept_back = false;
            self.finisher.submit(run.sketch(self.control.wanted, self.pace));
        }
        if !self.control.may_go() {
            self.due = Instant::now();
            self.done = None;
            // Not for ever: another simulation of the group may still finish a frame.
            let soon = Instant::now() + Duration::from_millis(50);
            self.control.wait(Some(run.params_mut()), Some(soon));
            return Ok(());
        }
        if self.control.steps == 0 && Instant::now() < self.due {
            self.control.wait(Some(run.params_mut()), Some(self.due));
            return Ok(());
        }
        if !self.control.place.may_start() {
            let soon = Instant::now() + Duration::from_millis(2);
            self.control.wait(Some(run.params_mut()), Some(soon));
            return Ok(());
        }
        self.frame()
    }

    /// Gives its simulation to all who asked for it; who gets nothing will notice.
    fn send_copies(&mut self) {
        for heir in std::mem::take(&mut self.control.heirs) {
            if let (Some(run), Some(scene)) = (&self.run, &self.scene) {
                // Who does not want it any more need not get it.
                let _ = heir.send(Branch {
                    run: run.branch(),
                    scene: scene.clone(),
                    first: self.control.shared.first.load_full(),
                    params: self.control.params.clone(),
                });
            }
        }
        self.control.playing = false;
    }

    /// Waits for a copy of another worker's simulation, and goes on with it; false when there is none.
    fn adopt(&mut self, adoption: &Adoption) -> bool {
        let from = adoption.from.lock().unwrap_or_else(PoisonError::into_inner);
        let branch = loop {
            match from.recv_timeout(Duration::from_millis(20)) {
                Ok(branch) => break branch,
                Err(RecvTimeoutError::Timeout) if !self.control.shared.quit.load(Ordering::Relaxed) => {}
                Err(_) => return false,
            }
        };
        let Branch { mut run, scene, first, params } = branch;
        run.params_mut().model = adoption.model;
        self.control.params = Params { model: adoption.model, ..params };
        self.scene = Some(scene);
        let shared = &self.control.shared;
        shared.runs.fetch_max(run.number(), Ordering::Relaxed);
        shared.first.store(first);
        self.show(run);
        true
    }

    fn begin(&mut self, start: Start) -> Result<(), SolverError> {
        self.run = None;
        self.control.say(Phase::Loading);
        let start = match start {
            Start::Adopt(adoption) if self.adopt(&adoption) => return Ok(()),
            Start::Adopt(Adoption { otherwise: (name, overrides), .. }) => Start::Load(name, overrides),
            start => start,
        };
        if let Start::Load(name, overrides) | Start::Rebuild(name, overrides) = &start {
            let scene = scene::load(name, overrides)?;
            // A rebuilt scene keeps what it was told, if there was one.
            if matches!(start, Start::Load(..)) || self.scene.is_none() {
                self.control.params = scene.params().clone();
            }
            let scenery = Arc::new(Scenery::of(&scene));
            self.scene = Some((scene, scenery));
        }
        let Some((scene, scenery)) = &self.scene else { return Ok(()) };
        let (params, number) = (self.control.params.clone(), self.control.shared.next_run());
        let run = Run::new(scene, Arc::clone(scenery), params, number)?;
        let first = self.show(run);
        self.control.shared.first.store(Some(first));
        Ok(())
    }

    /// A simulation enters, and shows this moment.
    fn show(&mut self, mut run: Run) -> Arc<Snapshot> {
        self.pace = 0.0;
        self.done = None;
        let snapshot = Arc::new(run.snapshot(self.control.wanted, 0.0));
        self.control.shared.publish(Arc::clone(&snapshot));
        (self.control.wanted_anew, self.kept_back) = (false, false);
        self.control.place.restart();
        self.run = Some(run);
        self.due = Instant::now();
        self.control.report_phase();
        snapshot
    }

    fn frame(&mut self) -> Result<(), SolverError> {
        let Some(run) = &mut self.run else { return Ok(()) };
        let seconds = 1.0 / run.scenery().fps;
        let control = &mut self.control;
        let shared = Arc::clone(&control.shared);
        let pace = control.place.pace();
        let turn = pace.turn();
        let done = run.advance(&shared.interrupt, &mut |params| control.between(params))?;
        drop(turn);
        if !done {
            // Cut short: its state is of no use, and a start is on its way.
            return Ok(());
        }
        check(run)?;
        control.place.finish_frame();
        control.steps = control.steps.saturating_sub(1);
        let now = Instant::now();
        // Behind schedule simulated time slows down; it does not pile up a debt.
        let length = Duration::from_secs_f64(seconds / control.speed.max(1e-3));
        self.due = (self.due + length).max(now - Duration::from_millis(100));
        if let Some(before) = self.done.replace(now) {
            let pace = seconds / (now - before).as_secs_f64().max(1e-6);
            // Frames come in bursts; what counts is the last second or so.
            let share = (1.0 / run.scenery().fps).clamp(0.02, 0.2);
            self.pace = if self.pace == 0.0 { pace } else { (1.0 - share) * self.pace + share * pace };
        }
        self.kept_back = now - self.published < SHORTEST && control.may_go() && self.due > now;
        if !self.kept_back {
            self.published = now;
            self.finisher.submit(run.sketch(control.wanted, self.pace));
        }
        control.report_phase();
        Ok(())
    }
}

/// Whether a frame can be believed.
fn check(run: &Run) -> Result<(), SolverError> {
    let report = run.report();
    if report.particles == 0 && report.liquid.volume <= 0.0 && report.smoke.is_none() && report.frame > 0 {
        return Err(SolverError::NoLiquidLeft);
    }
    if !report.liquid.volume.is_finite() || !report.liquid.kinetic_energy.is_finite() {
        return Err(SolverError::NonFinite);
    }
    let worst = report.solve.iter().map(|solve| solve.relative_residual).fold(0.0, f64::max);
    if !worst.is_finite() || report.solve.iter().any(|solve| !solve.converged && worst > HOPELESS) {
        return Err(SolverError::SolveFailed { residual: worst });
    }
    Ok(())
}
