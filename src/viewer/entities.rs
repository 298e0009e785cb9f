//! Bubbles as entities: spawned, updated and despawned by diffing against the newest snapshot.

use std::collections::HashMap;
use std::sync::Arc;

use bevy::prelude::*;

use super::action::BubbleKey;
use crate::runner::Snapshot;
use crate::sim::BubbleReport;

/// Moments a history holds before every other one is dropped.
const MOMENTS: usize = 512;

/// A bubble of one of the simulations.
#[derive(Component, Clone, Debug)]
pub struct Bubble {
    /// Which pane's.
    pub pane: usize,
    /// As it was last seen.
    pub report: BubbleReport,
    /// How it came there.
    pub history: History,
    /// Whether it is a bubble to people, see [`Snapshot::is_trapped`].
    pub trapped: bool,
}

/// The liquid of one of the simulations: surface, fields and region labels are its snapshot's.
#[derive(Component, Clone, Debug)]
pub struct Liquid {
    /// Which pane's.
    pub pane: usize,
    /// The newest moment.
    pub snapshot: Arc<Snapshot>,
}

/// Values over time; old times are thinned out, so that it never grows.
#[derive(Clone, Debug, PartialEq)]
pub struct History {
    /// Time and two values: volume and pressure of a bubble, liquid and air of a simulation.
    pub moments: Vec<[f64; 3]>,
    stride: usize,
    skipped: usize,
}

impl Default for History {
    fn default() -> Self {
        History { moments: Vec::new(), stride: 1, skipped: 0 }
    }
}

impl History {
    /// Adds a moment.
    pub fn push(&mut self, moment: [f64; 3]) {
        if self.moments.last().is_some_and(|last| last[0] >= moment[0]) {
            return;
        }
        self.skipped += 1;
        if self.skipped < self.stride && !self.moments.is_empty() {
            return;
        }
        self.skipped = 0;
        self.moments.push(moment);
        if self.moments.len() >= MOMENTS {
            let mut keep = false;
            self.moments.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
    }
}

/// Which entity stands for which bubble.
#[derive(Resource, Default, Debug)]
pub struct Registry {
    bubbles: HashMap<BubbleKey, Entity>,
    liquids: HashMap<usize, Entity>,
    runs: HashMap<usize, u64>,
}

impl Registry {
    /// The entity of a bubble.
    pub fn bubble(&self, key: BubbleKey) -> Option<Entity> {
        self.bubbles.get(&key).copied()
    }

    /// How many bubbles there are.
    pub fn len(&self) -> usize {
        self.bubbles.len()
    }

    /// Whether there is no bubble.
    pub fn is_empty(&self) -> bool {
        self.bubbles.is_empty()
    }

    /// Brings a pane's entities in line with its newest snapshot.
    pub fn sync(
        &mut self,
        pane: usize,
        snapshot: &Arc<Snapshot>,
        commands: &mut Commands,
        bubbles: &mut Query<&mut Bubble>,
    ) {
        if self.runs.insert(pane, snapshot.run) != Some(snapshot.run) {
            // Numbers start again with every run: the same one means another bubble.
            self.forget(pane, commands);
        }
        let liquid = Liquid { pane, snapshot: Arc::clone(snapshot) };
        match self.liquids.get(&pane) {
            Some(&entity) => drop(commands.entity(entity).insert(liquid)),
            None => drop(self.liquids.insert(pane, commands.spawn(liquid).id())),
        }
        let time = snapshot.report.time;
        let alive: HashMap<u64, &BubbleReport> =
            snapshot.report.bubbles.iter().map(|report| (report.id, report)).collect();
        self.bubbles.retain(|&(of, id), entity| {
            let stays = of != pane || alive.contains_key(&id);
            if !stays {
                commands.entity(*entity).despawn();
            }
            stays
        });
        for (&id, &report) in &alive {
            let moment = [time, report.volume, report.pressure];
            match self.bubbles.get(&(pane, id)) {
                // An entity spawned a moment ago is not in the query yet; the next snapshot finds it.
                Some(&entity) => {
                    if let Ok(mut bubble) = bubbles.get_mut(entity) {
                        bubble.report = report.clone();
                        bubble.trapped = snapshot.is_trapped(report);
                        bubble.history.push(moment);
                    }
                }
                None => {
                    let mut history = History::default();
                    history.push(moment);
                    let entity = {
                        let trapped = snapshot.is_trapped(report);
                        commands.spawn(Bubble { pane, report: report.clone(), history, trapped }).id()
                    };
                    self.bubbles.insert((pane, id), entity);
                }
            }
        }
    }

    /// Takes a pane's bubbles away.
    pub fn forget(&mut self, pane: usize, commands: &mut Commands) {
        self.bubbles.retain(|&(of, _), entity| {
            if of == pane {
                commands.entity(*entity).despawn();
            }
            of != pane
        });
    }

    /// Takes everything of a pane away.
    pub fn close(&mut self, pane: usize, commands: &mut Commands) {
        self.forget(pane, commands);
        self.runs.remove(&pane);
        if let Some(entity) = self.liquids.remove(&pane) {
            commands.entity(entity).despawn();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_keeps_its_ends_and_its_size() {
        let mut history = History::default();
        for k in 0..100_000 {
            history.push([k as f64, 2.0 * k as f64, 0.0]);
        }
        assert!(history.moments.len() < MOMENTS);
        assert_eq!(history.moments[0], [0.0; 3]);
        assert!(history.moments.windows(2).all(|pair| pair[0][0] < pair[1][0]));
        assert!(history.moments.last().is_some_and(|last| last[0] > 99_000.0));
    }
}
