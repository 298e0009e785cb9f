//! The simulations behind the panes: who runs, on how many threads, and what was last heard of them.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bevy::prelude::*;

use super::entities::History;
use crate::realtime::{Choice, Memory, Question, Search, coarser};
use crate::runner::{Adoption, Command, Pace, Phase, Worker};
use crate::scene::{self, AnyScene, Overrides};
use crate::sim::{Model, ParamInfo, ParamValue, Setup};
use crate::snapshot::{Snapshot, Wanted};

/// What a pane shows: filled by workers in the window, frame by frame when rendering.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The model asked for.
    pub model: Model,
    /// The moment on screen.
    pub snapshot: Option<Arc<Snapshot>>,
    /// What the simulation is doing.
    pub phase: Phase,
    /// Liquid and trapped air over time.
    pub history: History,
    /// The most trapped air there has been in this run.
    pub most_air: f64,
    /// Smoke over time: its mass and the densest cell.
    pub smoke_history: History,
    /// Its mass when the run was first seen, kg; 0 without smoke.
    pub first_smoke: f64,
}

impl Shown {
    /// Nothing yet.
    pub fn new(model: Model) -> Self {
        Shown {
            model,
            snapshot: None,
            phase: Phase::Loading,
            history: History::default(),
            most_air: 0.0,
            smoke_history: History::default(),
            first_smoke: 0.0,
        }
    }

    /// The models that it can go on with: where there is smoke, air has to carry it.
    pub fn models(&self) -> impl Iterator<Item = Model> + Clone {
        let smoky = self.snapshot.as_ref().is_some_and(|snapshot| snapshot.cells.smoke.is_some());
        self.model.solver().models().filter(move |model| !smoky || model.has_gas())
    }

    /// The one of them behind its own, or the first one.
    pub fn next_model(&self) -> Model {
        let next = self.models().skip_while(|one| *one != self.model).nth(1);
        next.or(self.models().next()).unwrap_or(self.model)
    }

    /// Takes a new moment.
    pub fn take(&mut self, snapshot: Arc<Snapshot>) {
        if self.snapshot.as_ref().is_none_or(|old| old.run != snapshot.run) {
            self.history = History::default();
            self.most_air = 0.0;
            self.smoke_history = History::default();
            self.first_smoke = snapshot.report.smoke.as_ref().map_or(0.0, |smoke| smoke.mass);
        }
        if let Some(smoke) = &snapshot.report.smoke {
            self.smoke_history.push([snapshot.report.time, smoke.mass, smoke.max_density]);
        }
        let [air, _] = snapshot.trapped_air();
        self.most_air = self.most_air.max(air);
        self.history.push([snapshot.report.time, snapshot.report.liquid.volume, air]);
        self.model = snapshot.params.model;
        self.snapshot = Some(snapshot);
    }
}

/// The panes' contents, left to right.
#[derive(Resource, Default, Debug)]
pub struct Panes(pub Vec<Shown>);

/// Behind the clock for this long, a simulation is too slow for this machine.
const PATIENCE: Duration = Duration::from_secs(6);
/// Below this share of real time it is behind the clock.
const BEHIND: f64 = 0.9;

/// How the number of cells came about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resolution {
    /// Whether scenes are opened so that they keep up with the clock.
    pub keep_real_time: bool,
    /// Cells along x that were asked for by hand.
    pub asked: Option<usize>,
    /// What was chosen for this machine, when nothing was asked for.
    pub chosen: Option<Choice>,
    /// Whether it is being measured at this moment.
    pub is_measuring: bool,
}

/// Notices when simulations fall behind for long, and says so once.
#[derive(Clone, Copy, Debug, Default)]
pub struct LagWatch {
    behind_since: Option<Instant>,
    said: bool,
}

impl LagWatch {
    /// Whether it is time to say something, going by the slowest simulation's share of real time; `None` while time does
    /// not pass.
    pub fn look(&mut self, now: Instant, pace: Option<f64>, speed: f64) -> bool {
        if pace.is_none_or(|pace| pace >= BEHIND * speed.min(1.0)) {
            self.behind_since = None;
            return false;
        }
        let since = *self.behind_since.get_or_insert(now);
        let is_time = !self.said && now.saturating_duration_since(since) >= PATIENCE;
        self.said |= is_time;
        is_time
    }
}

/// The workers behind the panes.
#[derive(Resource)]
pub struct Session {
    workers: Vec<Worker>,
    pace: Arc<Pace>,
    threads: usize,
    scene: String,
    overrides: Overrides,
    wanted: Wanted,
    keep_real_time: bool,
    /// What keeps up with the clock, while it is looked for, and what the scene starts with then.
    search: Option<(Search, Parameters)>,
    chosen: Option<Choice>,
    memory: Option<Memory>,
    lag: LagWatch,
    /// Whether simulations are meant to go on.
    pub playing: bool,
    /// Simulated seconds per second at most.
    pub speed: f64,
}

/// What a scene is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameters {
    /// What its file says.
    OfScene,
    /// What they are now.
    AsTheyAre,
}

/// What the viewer opens with.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Built-in name or path of the scene.
    pub scene: String,
    /// Changes to it.
    pub overrides: Overrides,
    /// A model per pane: one or two.
    pub models: Vec<Model>,
    /// Threads of the simulations together; all cores but one unless told.
    pub threads: Option<usize>,
    /// Whether scenes are opened at a resolution that keeps up with the clock; a number of cells in the changes wins.
    pub keep_real_time: bool,
    /// What is known of this machine.
    pub memory: Option<Memory>,
}

impl Session {
    /// Starts a worker per model, playing.
    pub fn open(opening: &Opening) -> std::io::Result<(Self, Panes)> {
        let mut session = Session {
            workers: Vec::new(),
            pace: Arc::default(),
            threads: available(opening.threads),
            scene: opening.scene.clone(),
            overrides: opening.overrides.clone(),
            wanted: Wanted::default(),
            keep_real_time: opening.keep_real_time,
            search: None,
            chosen: None,
            memory: opening.memory.clone(),
            lag: LagWatch::default(),
            playing: true,
            speed: 1.0,
        };
        session.pace = session.pace_of(opening.models.len());
        for _ in &opening.models {
            session.add_worker(None, opening.models.len())?;
        }
        session.begin(&opening.models, Parameters::OfScene);
        let panes = Panes(opening.models.iter().map(|&model| Shown::new(model)).collect());
        Ok((session, panes))
    }

    /// A clock for `count` simulations. Where they have but one thread they take turns: the window needs the rest.
    fn pace_of(&self, count: usize) -> Arc<Pace> {
        Arc::new(if self.threads < count { Pace::taking_turns() } else { Pace::default() })
    }

    /// The scene that was asked for last.
    pub fn scene(&self) -> &str {
        &self.scene
    }

    /// Starts one of `of` workers; its first command gives it something to do.
    fn add_worker(&mut self, start: Option<Command>, of: usize) -> std::io::Result<()> {
        let worker = Worker::start(self.threads_of(of), &self.pace)?;
        worker.send(Command::Wanted(self.wanted));
        worker.send(Command::Speed(self.speed));
        if let Some(start) = start {
            worker.send(start);
            if self.playing {
                worker.send(Command::Play);
            }
        }
        self.workers.push(worker);
        Ok(())
    }

    /// Threads of each of `of` simulations.
    fn threads_of(&self, of: usize) -> usize {
        (self.threads / of.max(1)).max(1)
    }

    fn overrides_with(&self, model: Model) -> Overrides {
        let cells = self.overrides.cells.or(self.chosen.map(|choice| choice.cells));
        Overrides { cells, model: Some(model.name().to_owned()), ..self.overrides.clone() }
    }

    /// Starts the scene with a model per pane: at once, or when it is known at which resolution it keeps up.
    fn begin(&mut self, models: &[Model], parameters: Parameters) {
        // A scene that has not started yet has no parameters to keep but its own.
        let parameters = match self.search.take() {
            Some((_, Parameters::OfScene)) => Parameters::OfScene,
            _ => parameters,
        };
        (self.chosen, self.lag) = (None, LagWatch::default());
        if self.keep_real_time && self.overrides.cells.is_none() {
            self.search_for(self.question(models), parameters);
        }
        if self.search.is_none() {
            self.start(models, parameters);
        }
    }

    /// Measures once more what this machine can do, and starts the scene again.
    pub fn measure_again(&mut self, panes: &Panes) {
        let models = models_of(panes);
        self.overrides.cells = None;
        (self.chosen, self.lag) = (None, LagWatch::default());
        self.search_for(Question { anew: true, ..self.question(&models) }, Parameters::AsTheyAre);
        if self.search.is_none() {
            self.start(&models, Parameters::AsTheyAre);
        }
    }

    fn search_for(&mut self, question: Question, parameters: Parameters) {
        // What still runs leaves the cores to the measurement.
        self.tell(Command::Pause);
        // Without a thread to measure on, the scene opens as it is.
        self.search = Search::start(question, self.memory.clone()).ok().map(|search| (search, parameters));
    }

    fn question(&self, models: &[Model]) -> Question {
        Question {
            scene: self.scene.clone(),
            overrides: self.overrides.clone(),
            models: models.to_vec(),
            threads: self.threads_of(models.len()),
            in_turns: self.threads < models.len(),
            anew: false,
        }
    }

    /// Starts the scene at the resolution that is asked for, or chosen, or its own.
    fn start(&mut self, models: &[Model], parameters: Parameters) {
        for (pane, &model) in models.iter().enumerate() {
            let (scene, overrides) = (self.scene.clone(), self.overrides_with(model));
            self.tell_one(
                pane,
                match parameters {
                    Parameters::OfScene => Command::Load { scene, overrides },
                    Parameters::AsTheyAre => Command::Rebuild { scene, overrides },
                },
            );
        }
        let playing = self.playing;
        self.set_playing(playing);
    }

    /// How the number of cells came about.
    pub fn resolution(&self) -> Resolution {
        Resolution {
            keep_real_time: self.keep_real_time,
            asked: self.overrides.cells,
            chosen: self.chosen,
            is_measuring: self.search.is_some(),
        }
    }

    /// Starts the scene again with so many cells along x, or with as many as are right for it and this machine.
    pub fn set_cells(&mut self, cells: Option<usize>, panes: &Panes) {
        self.overrides.cells = cells;
        self.begin(&models_of(panes), Parameters::AsTheyAre);
    }

    /// Whether scenes keep up with the clock. This one starts again if that makes a difference to it.
    pub fn set_keep_real_time(&mut self, keep: bool, panes: &Panes) {
        self.keep_real_time = keep;
        let was_own = self.chosen.is_none_or(|choice| choice.cells == choice.own) && self.search.is_none();
        let is_asked = self.overrides.cells.is_some();
        if !is_asked && (keep || !was_own) {
            self.begin(&models_of(panes), Parameters::AsTheyAre);
        } else if !keep {
            self.chosen = None;
        }
    }

    /// Starts the scene again with the cells that were offered, and remembers that they are right for this machine.
    pub fn settle_for(&mut self, cells: usize, panes: &Panes) {
        let models = models_of(panes);
        let Some(own) = own_cells(panes) else { return };
        let pace = slowest(panes).unwrap_or(1.0);
        let grown = (self.cells_now(panes) as f64 / cells as f64).powi(dimension(panes) as i32 + 1);
        let choice = Choice { own, cells, pace: pace * grown };
        (self.search, self.lag) = (None, LagWatch::default());
        self.overrides.cells = None;
        if let Some(memory) = &self.memory {
            Search::settle(self.question(&models), memory.clone(), choice);
        }
        self.chosen = Some(choice);
        self.start(&models, Parameters::AsTheyAre);
    }

    fn cells_now(&self, panes: &Panes) -> usize {
        panes.0.iter().find_map(|pane| pane.snapshot.as_ref()).map_or(1, |snapshot| snapshot.scenery.cells[0])
    }

    /// A coarser resolution to be offered, when the simulations have fallen behind for long: once for a scene and
    /// its resolution.
    pub fn offer(&mut self, panes: &Panes, now: Instant) -> Option<usize> {
        let goes_on =
            self.playing && self.search.is_none() && panes.0.iter().all(|pane| pane.phase == Phase::Playing);
        let pace = slowest(panes).filter(|_| goes_on);
        if !self.keep_real_time || !self.lag.look(now, pace, self.speed) {
            return None;
        }
        coarser(dimension(panes), own_cells(panes)?, self.cells_now(panes), pace?)
    }

    /// Tells every simulation.
    pub fn tell(&self, command: Command) {
        self.workers.iter().for_each(|worker| worker.send(command.clone()));
    }

    /// Tells one simulation.
    pub fn tell_one(&self, pane: usize, command: Command) {
        if let Some(worker) = self.workers.get(pane) {
            worker.send(command);
        }
    }

    /// Changes a parameter everywhere, and in scenes restarted later.
    pub fn set(&mut self, info: &'static ParamInfo, value: ParamValue) {
        self.tell(Command::Set(info, value));
    }

    /// Changes the scene; the panes keep their models.
    pub fn load(&mut self, scene: &str, panes: &Panes) {
        self.scene = scene.to_owned();
        // What the command line changed belonged to the first scene.
        self.overrides = Overrides::default();
        self.playing = true;
        self.begin(&suited(scene, models_of(panes)), Parameters::OfScene);
    }

    /// Play or pause.
    pub fn set_playing(&mut self, playing: bool) {
        self.playing = playing;
        self.tell(if playing { Command::Play } else { Command::Pause });
    }

    /// How fast time may go.
    pub fn set_speed(&mut self, speed: f64) {
        self.speed = speed;
        self.tell(Command::Speed(speed));
    }

    /// Which costly parts snapshots should have.
    pub fn want(&mut self, wanted: Wanted) {
        if self.wanted != wanted {
            self.wanted = wanted;
            self.tell(Command::Wanted(wanted));
        }
    }

    /// A second simulation with another model, from this moment on.
    pub fn compare(&mut self, panes: &mut Panes, model: Model) -> std::io::Result<()> {
        let (Some(first), Some(parent)) = (panes.0.first().cloned(), self.workers.pop()) else {
            return Ok(());
        };
        // Members of the old group that are gone must not be waited for.
        self.pace = self.pace_of(2);
        self.workers.clear();
        let parent = Arc::new(parent);
        let models = [first.model, model];
        let (senders, receivers): (Vec<_>, Vec<_>) = models.iter().map(|_| channel()).unzip();
        parent.send(Command::Branch(senders));
        for (model, from) in models.into_iter().zip(receivers) {
            let overrides = self.overrides_with(model);
            let start = Command::Adopt(Adoption {
                from: Arc::new(Mutex::new(from)),
                parent: Arc::clone(&parent),
                model,
                otherwise: (self.scene.clone(), overrides),
            });
            self.add_worker(Some(start), models.len())?;
        }
        self.lag = LagWatch::default();
        if let Some((_, parameters)) = self.search.take() {
            // It was looked for with one simulation in mind.
            self.begin(&models, parameters);
        }
        // Until the second simulation has something of its own to show, it looks like the first.
        panes.0 = vec![first.clone(), Shown { model, ..first }];
        Ok(())
    }

    /// Back to one simulation, which goes on.
    pub fn compare_no_more(&mut self, panes: &mut Panes) {
        self.workers.truncate(1);
        panes.0.truncate(1);
    }

    /// Why simulations refused what hands wanted, each reason once.
    pub fn take_refused(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.workers.iter().flat_map(Worker::take_refused).collect();
        reasons.dedup();
        reasons
    }

    /// Takes the newest snapshots. Two simulations on one clock are shown at the same frame.
    pub fn receive(&mut self, panes: &mut Panes) -> Vec<usize> {
        if let Some((search, parameters)) = &self.search
            && let Some(choice) = search.poll()
        {
            let parameters = *parameters;
            (self.search, self.chosen) = (None, choice);
            self.start(&models_of(panes), parameters);
        }
        let newest: Vec<_> = self.workers.iter().map(Worker::newest).collect();
        let phases: Vec<_> = self.workers.iter().map(Worker::phase).collect();
        let going = |phase: &Phase| matches!(phase, Phase::Playing | Phase::Loading);
        let frames: Vec<_> = newest.iter().flatten().map(|snapshot| snapshot.report.frame).collect();
        let apart =
            frames.iter().max().zip(frames.iter().min()).is_some_and(|(most, least)| most - least == 1);
        let hold = apart && frames.len() == self.workers.len() && phases.iter().all(|phase| going(phase));
        let mut fresh = Vec::new();
        for (pane, shown) in panes.0.iter_mut().enumerate() {
            if self.search.is_some() {
                shown.phase = Phase::Loading;
            } else if let Some(phase) = phases.get(pane).filter(|phase| ***phase != shown.phase) {
                shown.phase = Phase::clone(phase);
            }
            let Some(Some(snapshot)) = newest.get(pane) else { continue };
            let known = shown.snapshot.as_ref().is_some_and(|old| Arc::ptr_eq(old, snapshot));
            let ahead = hold && frames.iter().all(|&frame| frame <= snapshot.report.frame);
            if !known && (!ahead || shown.snapshot.is_none()) {
                shown.take(Arc::clone(snapshot));
                fresh.push(pane);
            }
        }
        fresh
    }
}

/// Threads of the simulations together: as requested, or all cores but the one that the window needs.
fn available(requested: Option<usize>) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    requested.unwrap_or(cores.saturating_sub(1)).max(1)
}

/// The models that a scene is opened with: those that were in use, but air that weighs nothing carries no smoke.
fn suited(scene: &str, models: Vec<Model>) -> Vec<Model> {
    if models.iter().all(|model| model.has_gas()) {
        return models;
    }
    // What is wrong with a scene is said by those that start it.
    let Ok(scene) = scene::load(scene, &Overrides::default()) else { return models };
    let is_smoky = match &scene {
        AnyScene::TwoD(scene) => has_smoke(&scene.setup),
        AnyScene::ThreeD(scene) => has_smoke(&scene.setup),
    };
    if !is_smoky {
        return models;
    }
    let carriers = scene.params().model.solver().models().filter(|model| model.has_gas()).cycle();
    carriers.skip_while(|model| *model != scene.params().model).take(models.len()).collect()
}

fn has_smoke<const D: usize>(setup: &Setup<D>) -> bool {
    !setup.smoke.is_empty() || !setup.smoke_sources.is_empty()
}

fn models_of(panes: &Panes) -> Vec<Model> {
    panes.0.iter().map(|shown| shown.model).collect()
}

/// Share of real time of the slowest simulation; `None` before anything is known.
fn slowest(panes: &Panes) -> Option<f64> {
    let paces = panes.0.iter().filter_map(|pane| pane.snapshot.as_ref()).map(|snapshot| snapshot.pace);
    paces.filter(|pace| *pace > 0.0).min_by(f64::total_cmp)
}

fn own_cells(panes: &Panes) -> Option<usize> {
    panes.0.iter().find_map(|pane| pane.snapshot.as_ref()).map(|snapshot| snapshot.scenery.own_cells)
}

fn dimension(panes: &Panes) -> usize {
    let snapshot = panes.0.iter().find_map(|pane| pane.snapshot.as_ref());
    snapshot.map_or(3, |snapshot| snapshot.scenery.dimension)
}
