//! A simulation on a thread of its own: commands in, the newest snapshot out; nobody waits.
//!
//! Commands take effect between two substeps. A failure of any kind, panics included, stops the simulation and is
//! reported; the last good snapshot stays.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use rayon::ThreadPoolBuilder;

use super::SolverError;
use super::command::{Adoption, Branch, Command, Phase};
use super::exhibit::Exhibit;
use super::pace::{Pace, Place};
use super::snapshot::{Snapshot, Wanted};
use super::stage::Stage;
use crate::scene::{self, AnyScene, Overrides};
use crate::sim::{Params, params_table};

/// Snapshots are made at most this often while playing: no screen shows more.
const SHORTEST: Duration = Duration::from_millis(12);
/// A solve that ends with a larger relative residual than this has failed.
const HOPELESS: f64 = 0.5;

/// What the viewer holds of a worker.
pub struct Worker {
    commands: Sender<Command>,
    shared: Arc<Shared>,
}

struct Shared {
    newest: ArcSwapOption<Snapshot>,
    phase: ArcSwap<Phase>,
    /// Raised to cut the current frame short.
    interrupt: AtomicBool,
    quit: AtomicBool,
}

impl Worker {
    /// Starts a thread with a pool of `threads` threads; it waits for a scene to load. Workers of one [`Pace`] go
    /// forward together.
    pub fn start(threads: usize, pace: &Arc<Pace>) -> std::io::Result<Self> {
        let (commands, inbox) = channel();
        let shared = Arc::new(Shared {
            newest: ArcSwapOption::empty(),
            phase: ArcSwap::default(),
            interrupt: AtomicBool::new(false),
            quit: AtomicBool::new(false),
        });
        let (own, place) = (Arc::clone(&shared), pace.join());
        std::thread::Builder::new().name("glug-sim".into()).spawn(move || {
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads.max(1))
                .thread_name(|index| format!("glug-sim-{index}"))
                .build();
            match pool {
                Ok(pool) => pool.install(|| Loop::new(inbox, own, place).run()),
                Err(error) => own.phase.store(Arc::new(Phase::Failed(format!("no threads: {error}")))),
            }
        })?;
        Ok(Worker { commands, shared })
    }

    /// Tells the worker something; returns at once.
    pub fn send(&self, command: Command) {
        let at_once = matches!(&command, Command::Reset | Command::Load { .. } | Command::Adopt(_))
            || matches!(&command, Command::Set(info, _) if !info.live);
        // First the flag, then the command: the other way round the flag could be raised after the command was obeyed,
        // and stop what came of it.
        if at_once {
            self.shared.interrupt.store(true, Ordering::Relaxed);
        }
        // The receiver is gone only when its thread is: then there is nobody to tell.
        let _ = self.commands.send(command);
    }

    /// The newest snapshot.
    pub fn newest(&self) -> Option<Arc<Snapshot>> {
        self.shared.newest.load_full()
    }

    /// What the worker is doing.
    pub fn phase(&self) -> Arc<Phase> {
        self.shared.phase.load_full()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::Relaxed);
        self.shared.interrupt.store(true, Ordering::Relaxed);
        // Wakes it up. It ends by itself after the substep it is in; nobody waits for that.
        let _ = self.commands.send(Command::Pause);
    }
}

/// Why the thread should stop what it is doing and start a run.
enum Start {
    Reset,
    Load(String, Overrides),
    Adopt(Adoption),
}

/// How the simulation is to go on; commands change it at any time.
struct Control {
    inbox: Receiver<Command>,
    shared: Arc<Shared>,
    place: Place,
    playing: bool,
    steps: usize,
    speed: f64,
    wanted: Wanted,
    wanted_anew: bool,
    /// The parameters of the next run; those of the current one follow its own copy.
    params: Params,
    start: Option<Start>,
    /// Who wants a copy of the simulation.
    heirs: Vec<Sender<Branch>>,
    panic: bool,
}

struct Loop {
    control: Control,
    scene: Option<(AnyScene, Arc<Stage>)>,
    exhibit: Option<Exhibit>,
    /// The first moment of the last run: a run that starts the same way shows it at once, before it is built.
    first: Option<Arc<Snapshot>>,
    runs: u64,
    due: Instant,
    published: Instant,
    /// Whether the last frame was kept back, since another was to follow at once.
    kept_back: bool,
    /// When the last frame was done, while frames follow each other.
    done: Option<Instant>,
    pace: f64,
}

impl Loop {
    fn new(inbox: Receiver<Command>, shared: Arc<Shared>, place: Place) -> Self {
        let control = Control {
            inbox,
            shared,
            place,
            playing: false,
            steps: 0,
            speed: 1.0,
            wanted: Wanted::default(),
            wanted_anew: false,
            params: Params::default(),
            start: None,
            heirs: Vec::new(),
            panic: false,
        };
        let now = Instant::now();
        Loop {
            control,
            scene: None,
            exhibit: None,
            first: None,
            runs: 0,
            due: now,
            published: now,
            kept_back: false,
            done: None,
            pace: 0.0,
        }
    }

    fn run(mut self) {
        while !self.control.shared.quit.load(Ordering::Relaxed) {
            // Whatever goes wrong inside, this thread stays to be told to start again.
            let turn = catch_unwind(AssertUnwindSafe(|| self.turn()));
            match turn {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.fail(error.to_string()),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
                    self.fail(format!("the simulation stumbled over a bug: {text}"));
                }
            }
        }
        self.control.place.leave();
    }

    fn fail(&mut self, message: String) {
        self.exhibit = None;
        self.control.playing = false;
        self.control.steps = 0;
        self.control.place.leave();
        self.control.say(Phase::Failed(message));
    }

    /// Waits for something to do and does it.
    fn turn(&mut self) -> Result<(), SolverError> {
        self.control.drain(self.exhibit.as_mut().map(Exhibit::params_mut));
        // A flag without a start is one whose command is still on its way, or asked for nothing that is allowed.
        self.control.shared.interrupt.store(false, Ordering::Relaxed);
        if let Some(start) = self.control.start.take() {
            return self.begin(start);
        }
        if !self.control.heirs.is_empty() {
            self.send_copies();
            return Ok(());
        }
        let Some(exhibit) = &mut self.exhibit else {
            self.control.wait(None, None);
            return Ok(());
        };
        let is_last = self.kept_back && !self.control.may_go();
        if std::mem::take(&mut self.control.wanted_anew) || is_last {
            self.kept_back = false;
            self.control.publish(exhibit.snapshot(self.control.wanted, self.pace));
        }
        if !self.control.may_go() {
            self.due = Instant::now();
            self.done = None;
            // Not for ever: another simulation of the group may still finish a frame.
            let soon = Instant::now() + Duration::from_millis(50);
            self.control.wait(Some(exhibit.params_mut()), Some(soon));
            return Ok(());
        }
        if self.control.steps == 0 && Instant::now() < self.due {
            self.control.wait(Some(exhibit.params_mut()), Some(self.due));
            return Ok(());
        }
        if !self.control.place.may_start() {
            let soon = Instant::now() + Duration::from_millis(2);
            self.control.wait(Some(exhibit.params_mut()), Some(soon));
            return Ok(());
        }
        self.frame()
    }

    /// Gives its simulation to all who asked for it; who gets nothing will notice.
    fn send_copies(&mut self) {
        for heir in std::mem::take(&mut self.control.heirs) {
            if let (Some(exhibit), Some(scene)) = (&self.exhibit, &self.scene) {
                // Who does not want it any more need not get it.
                let _ = heir.send(Branch {
                    exhibit: exhibit.branch(),
                    scene: scene.clone(),
                    first: self.first.clone(),
                    params: self.control.params.clone(),
                    runs: self.runs,
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
        let Branch { mut exhibit, scene, first, params, runs } = branch;
        exhibit.params_mut().model = adoption.model;
        self.control.params = Params { model: adoption.model, ..params };
        (self.scene, self.first, self.runs) = (Some(scene), first, runs);
        self.show(exhibit);
        true
    }

    fn begin(&mut self, start: Start) -> Result<(), SolverError> {
        self.exhibit = None;
        self.control.say(Phase::Loading);
        let start = match start {
            Start::Adopt(adoption) if self.adopt(&adoption) => return Ok(()),
            Start::Adopt(Adoption { otherwise: (name, overrides), .. }) => Start::Load(name, overrides),
            start => start,
        };
        if let Start::Load(name, overrides) = start {
            let scene = scene::load(&name, &overrides)?;
            self.control.params = scene.params().clone();
            let stage = Arc::new(Stage::of(&scene));
            self.scene = Some((scene, stage));
            self.first = None;
        }
        let Some((scene, stage)) = &self.scene else { return Ok(()) };
        self.runs += 1;
        let params = self.control.params.clone();
        if let Some(first) = self.first.take().filter(|first| starts_alike(&first.params, &params)) {
            let again = Snapshot { run: self.runs, params: params.clone(), ..Snapshot::clone(&first) };
            self.control.publish(again);
        }
        let exhibit = Exhibit::new(scene, Arc::clone(stage), params, self.runs)?;
        self.show(exhibit);
        self.first = self.control.shared.newest.load_full();
        Ok(())
    }

    /// A simulation enters.
    fn show(&mut self, mut exhibit: Exhibit) {
        self.pace = 0.0;
        self.done = None;
        self.control.publish(exhibit.snapshot(self.control.wanted, 0.0));
        (self.control.wanted_anew, self.kept_back) = (false, false);
        self.control.place.restart();
        self.exhibit = Some(exhibit);
        self.due = Instant::now();
        self.control.report_phase();
    }

    fn frame(&mut self) -> Result<(), SolverError> {
        let Some(exhibit) = &mut self.exhibit else { return Ok(()) };
        let seconds = 1.0 / exhibit.stage().fps;
        let control = &mut self.control;
        let shared = Arc::clone(&control.shared);
        let pace = control.place.pace();
        let turn = pace.turn();
        let done = exhibit.advance(&shared.interrupt, &mut |params| control.between(params))?;
        drop(turn);
        if !done {
            // Cut short: its state is of no use, and a start is on its way.
            return Ok(());
        }
        check(exhibit)?;
        control.place.finish_frame();
        control.steps = control.steps.saturating_sub(1);
        let now = Instant::now();
        // Behind schedule simulated time slows down; it does not pile up a debt.
        let length = Duration::from_secs_f64(seconds / control.speed.max(1e-3));
        self.due = (self.due + length).max(now - Duration::from_millis(100));
        if let Some(before) = self.done.replace(now) {
            let pace = seconds / (now - before).as_secs_f64().max(1e-6);
            // Frames come in bursts; what counts is the last second or so.
            let share = (1.0 / exhibit.stage().fps).clamp(0.02, 0.2);
            self.pace = if self.pace == 0.0 { pace } else { (1.0 - share) * self.pace + share * pace };
        }
        self.kept_back = now - self.published < SHORTEST && control.may_go() && self.due > now;
        if !self.kept_back {
            self.published = now;
            let snapshot = exhibit.snapshot(control.wanted, self.pace);
            control.publish(snapshot);
        }
        control.report_phase();
        Ok(())
    }
}

/// Whether runs with these parameters have the same first picture: only those that are not live shape it.
fn starts_alike(a: &Params, b: &Params) -> bool {
    params_table().iter().filter(|info| !info.live).all(|info| (info.get)(a) == (info.get)(b))
}

/// Whether a frame can be believed.
fn check(exhibit: &Exhibit) -> Result<(), SolverError> {
    let report = exhibit.report();
    if report.particles == 0 && exhibit.report().liquid.volume <= 0.0 && report.frame > 0 {
        return Err("no liquid is left".into());
    }
    if !report.liquid.volume.is_finite() || !report.liquid.kinetic_energy.is_finite() {
        return Err("a value became infinite or not a number; a smaller `cfl` may help".into());
    }
    let worst = report.solve.iter().map(|solve| solve.relative_residual).fold(0.0, f64::max);
    if !worst.is_finite() || report.solve.iter().any(|solve| !solve.converged && worst > HOPELESS) {
        return Err(format!("the pressure solve failed (relative residual {worst:.1e})").into());
    }
    Ok(())
}

impl Control {
    fn say(&self, phase: Phase) {
        if **self.shared.phase.load() != phase {
            self.shared.phase.store(Arc::new(phase));
        }
    }

    fn report_phase(&self) {
        self.say(if self.playing { Phase::Playing } else { Phase::Paused });
    }

    fn publish(&self, snapshot: Snapshot) {
        self.shared.newest.store(Some(Arc::new(snapshot)));
    }

    /// Whether the next frame is wanted.
    fn may_go(&self) -> bool {
        self.playing || self.steps > 0 || !self.heirs.is_empty() || self.place.is_behind()
    }

    fn obey(&mut self, command: Command, live: Option<&mut Params>) {
        match command {
            Command::Play => (self.playing, self.steps) = (true, 0),
            Command::Pause => (self.playing, self.steps) = (false, 0),
            Command::Step => {
                self.steps = if self.playing { 0 } else { self.steps + 1 };
                self.playing = false;
            }
            // A load that has not begun yet is a start as well, and knows the scene.
            Command::Reset => self.start = Some(self.start.take().unwrap_or(Start::Reset)),
            Command::Load { scene, overrides } => self.start = Some(Start::Load(scene, overrides)),
            Command::Branch(heirs) => self.heirs.extend(heirs),
            Command::Adopt(adoption) => self.start = Some(Start::Adopt(adoption)),
            Command::Set(info, value) => {
                // Refused values never leave the panel; should one, nothing changes.
                if info.assign(&mut self.params, &value).is_ok() {
                    match live {
                        Some(live) if info.live => info.assign(live, &value).unwrap_or_default(),
                        _ if !info.live => self.start = Some(self.start.take().unwrap_or(Start::Reset)),
                        _ => {}
                    }
                }
            }
            Command::Model(model) => {
                self.params.model = model;
                if let Some(live) = live {
                    live.model = model;
                }
            }
            Command::Speed(speed) => self.speed = speed.clamp(0.01, 100.0),
            Command::Wanted(wanted) => {
                self.wanted_anew |= wanted != self.wanted;
                self.wanted = wanted;
            }
            Command::Panic => self.panic = true,
        }
    }

    /// Obeys what has arrived.
    fn drain(&mut self, mut live: Option<&mut Params>) {
        while let Ok(command) = self.inbox.try_recv() {
            self.obey(command, live.as_deref_mut());
        }
        if self.start.is_none() && !matches!(**self.shared.phase.load(), Phase::Failed(_) | Phase::Loading) {
            self.report_phase();
        }
        self.place.set_active(self.playing || self.steps > 0);
        if std::mem::take(&mut self.panic) {
            panic!("on request");
        }
    }

    /// Waits for a command, not past a moment, and obeys it.
    fn wait(&mut self, live: Option<&mut Params>, until: Option<Instant>) {
        let command = match until {
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(until) => self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())),
        };
        match command {
            Ok(command) => self.obey(command, live),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.shared.quit.store(true, Ordering::Relaxed),
        }
    }

    /// Between two substeps: obeys, and holds while paused.
    fn between(&mut self, params: &mut Params) {
        self.drain(Some(params));
        while !self.may_go() && self.start.is_none() && !self.shared.quit.load(Ordering::Relaxed) {
            self.wait(Some(params), Some(Instant::now() + Duration::from_millis(20)));
            self.drain(Some(params));
        }
        if self.start.is_some() || self.shared.quit.load(Ordering::Relaxed) {
            self.shared.interrupt.store(true, Ordering::Relaxed);
        }
    }
}
