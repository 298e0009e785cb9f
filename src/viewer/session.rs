//! The simulations behind the panes: who runs, on how many threads, and what was last heard of them.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use bevy::prelude::*;

use super::entities::History;
use crate::runner::{Adoption, Command, Pace, Phase, Worker};
use crate::scene::Overrides;
use crate::sim::{Model, ParamInfo, ParamValue};
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
}

impl Shown {
    /// Nothing yet.
    pub fn new(model: Model) -> Self {
        Shown { model, snapshot: None, phase: Phase::Loading, history: History::default(), most_air: 0.0 }
    }

    /// Takes a new moment.
    pub fn take(&mut self, snapshot: Arc<Snapshot>) {
        if self.snapshot.as_ref().is_none_or(|old| old.run != snapshot.run) {
            self.history = History::default();
            self.most_air = 0.0;
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

/// The workers behind the panes.
#[derive(Resource)]
pub struct Session {
    workers: Vec<Worker>,
    pace: Arc<Pace>,
    threads: usize,
    scene: String,
    overrides: Overrides,
    wanted: Wanted,
    /// Whether simulations are meant to go on.
    pub playing: bool,
    /// Simulated seconds per second at most.
    pub speed: f64,
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
            playing: true,
            speed: 1.0,
        };
        session.pace = session.pace_of(opening.models.len());
        for &model in &opening.models {
            session.add_worker(session.load_command(model), opening.models.len())?;
        }
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
    fn add_worker(&mut self, start: Command, of: usize) -> std::io::Result<()> {
        let worker = Worker::start((self.threads / of).max(1), &self.pace)?;
        worker.send(Command::Wanted(self.wanted));
        worker.send(Command::Speed(self.speed));
        worker.send(start);
        if self.playing {
            worker.send(Command::Play);
        }
        self.workers.push(worker);
        Ok(())
    }

    fn load_command(&self, model: Model) -> Command {
        Command::Load { scene: self.scene.clone(), overrides: self.overrides_with(model) }
    }

    fn overrides_with(&self, model: Model) -> Overrides {
        Overrides { model: Some(model.name().to_owned()), ..self.overrides.clone() }
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
        for (pane, shown) in panes.0.iter().enumerate() {
            self.tell_one(pane, self.load_command(shown.model));
        }
        self.set_playing(true);
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
            self.add_worker(start, models.len())?;
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

    /// Takes the newest snapshots. Two simulations on one clock are shown at the same frame.
    pub fn receive(&self, panes: &mut Panes) -> Vec<usize> {
        let newest: Vec<_> = self.workers.iter().map(Worker::newest).collect();
        let phases: Vec<_> = self.workers.iter().map(Worker::phase).collect();
        let going = |phase: &Phase| matches!(phase, Phase::Playing | Phase::Loading);
        let frames: Vec<_> = newest.iter().flatten().map(|snapshot| snapshot.report.frame).collect();
        let apart =
            frames.iter().max().zip(frames.iter().min()).is_some_and(|(most, least)| most - least == 1);
        let hold = apart && frames.len() == self.workers.len() && phases.iter().all(|phase| going(phase));
        let mut fresh = Vec::new();
        for (pane, shown) in panes.0.iter_mut().enumerate() {
            if let Some(phase) = phases.get(pane).filter(|phase| ***phase != shown.phase) {
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

/// Threads of the simulations together: as told, or all cores but the one that the window needs.
fn available(told: Option<usize>) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    told.unwrap_or(cores.saturating_sub(1)).max(1)
}
