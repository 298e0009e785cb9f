//! How a simulation is to go on: what it was told, and what it says of itself.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use super::Shared;
use crate::runner::command::{Adoption, Branch, Command, Phase};
use crate::runner::pace::Place;
use crate::scene::Overrides;
use crate::sim::{Edit, Params};
use crate::snapshot::Wanted;

/// Why the thread should stop what it is doing and start a run.
pub enum Start {
    Reset,
    Load(String, Overrides),
    /// Like a load, with the parameters as they are.
    Rebuild(String, Overrides),
    Adopt(Adoption),
}

/// How the simulation is to go on; commands change it at any time.
pub struct Control {
    pub inbox: Receiver<Command>,
    pub shared: Arc<Shared>,
    pub place: Place,
    pub playing: bool,
    pub steps: usize,
    pub speed: f64,
    pub wanted: Wanted,
    pub wanted_anew: bool,
    /// The parameters of the next run; those of the current one follow its own copy.
    pub params: Params,
    pub start: Option<Start>,
    /// What hands are to do before the next frame.
    pub edits: Vec<Edit>,
    /// Who wants a copy of the simulation.
    pub heirs: Vec<Sender<Branch>>,
    pub panic: bool,
}

impl Control {
    /// Nothing was told yet.
    pub fn new(inbox: Receiver<Command>, shared: Arc<Shared>, place: Place) -> Self {
        Control {
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
            edits: Vec::new(),
            heirs: Vec::new(),
            panic: false,
        }
    }

    /// Says what the simulation is doing.
    pub fn say(&self, phase: Phase) {
        if **self.shared.phase.load() != phase {
            self.shared.phase.store(Arc::new(phase));
        }
    }

    /// Says whether the simulation goes on.
    pub fn report_phase(&self) {
        self.say(if self.playing { Phase::Playing } else { Phase::Paused });
    }

    /// Whether the next frame is wanted.
    pub fn may_go(&self) -> bool {
        self.playing || self.steps > 0 || !self.heirs.is_empty() || self.place.is_behind()
    }

    fn obey(&mut self, command: Command, live: Option<&mut Params>) {
        if matches!(
            command,
            Command::Reset | Command::Load { .. } | Command::Rebuild { .. } | Command::Adopt(_)
        ) {
            // They were meant for what ends now.
            self.edits.clear();
        }
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
            Command::Rebuild { scene, overrides } => {
                self.start = Some(match self.start {
                    // Another scene's parameters are not to stay.
                    Some(Start::Load(..) | Start::Adopt(_)) => Start::Load(scene, overrides),
                    _ => Start::Rebuild(scene, overrides),
                });
            }
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
            Command::Edit(edit) => self.edits.push(edit),
            Command::Speed(speed) => self.speed = speed.clamp(0.01, 100.0),
            Command::Wanted(wanted) => {
                self.wanted_anew |= wanted != self.wanted;
                self.wanted = wanted;
            }
            Command::Panic => self.panic = true,
        }
    }

    /// Obeys what has arrived.
    pub fn drain(&mut self, mut live: Option<&mut Params>) {
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
    pub fn wait(&mut self, live: Option<&mut Params>, until: Option<Instant>) {
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

    /// Between two substeps: obeys, and holds while paused. Hands wait for the end of the frame, which comes soon enough to be seen.
    pub fn between(&mut self, params: &mut Params) {
        self.drain(Some(params));
        while !self.may_go()
            && self.edits.is_empty()
            && self.start.is_none()
            && !self.shared.quit.load(Ordering::Relaxed)
        {
            self.wait(Some(params), Some(Instant::now() + Duration::from_millis(20)));
            self.drain(Some(params));
        }
        if self.start.is_some() || self.shared.quit.load(Ordering::Relaxed) {
            self.shared.interrupt.store(true, Ordering::Relaxed);
        }
    }
}
