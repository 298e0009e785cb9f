//! Liquid, bubbles, bodies and tiles as entities: spawned, updated and despawned by diffing against the newest snapshot. The
//! stage draws from them, clicks look things up in them, and the panels list them.

use std::collections::HashMap;
use std::sync::Arc;

use bevy::ecs::component::Mutable;
use bevy::ecs::system::SystemParam;
use bevy::prelude::*;

use super::action::{BodyKey, BubbleKey};
use crate::sim::{BodyReport, BubbleReport};
use crate::snapshot::{Snapshot, TileView};

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
    /// Time and two values: volume and pressure of a bubble; liquid and air, or smoke and its densest, of a simulation.
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

/// A rigid body of one of the simulations.
#[derive(Component, Clone, Debug, PartialEq)]
pub struct Body {
    /// Which pane's.
    pub pane: usize,
    /// As it was last seen.
    pub report: BodyReport,
}

/// A tile of one of the simulations.
#[derive(Component, Clone, Debug, PartialEq)]
pub struct Tile {
    /// Which pane's.
    pub pane: usize,
    /// As it was last seen.
    pub view: TileView,
}

/// Something with a number: the entity for it stays as long as the number does.
trait Tracked: Component<Mutability = Mutable> + Sized {
    /// What a snapshot says of it.
    type Report;

    /// The number that a snapshot gives it.
    fn id(report: &Self::Report) -> u64;

    /// Seen for the first time.
    fn first_seen(pane: usize, snapshot: &Snapshot, report: &Self::Report) -> Self;

    /// Seen again.
    fn update(&mut self, snapshot: &Snapshot, report: &Self::Report);
}

impl Tracked for Bubble {
    type Report = BubbleReport;

    fn id(report: &BubbleReport) -> u64 {
        report.id
    }

    fn first_seen(pane: usize, snapshot: &Snapshot, report: &BubbleReport) -> Self {
        let mut bubble = Bubble { pane, report: report.clone(), history: History::default(), trapped: false };
        bubble.update(snapshot, report);
        bubble
    }

    fn update(&mut self, snapshot: &Snapshot, report: &BubbleReport) {
        self.report = report.clone();
        self.trapped = snapshot.is_trapped(report);
        self.history.push([snapshot.report.time, report.volume, report.pressure]);
    }
}

impl Tracked for Body {
    type Report = BodyReport;

    fn id(report: &BodyReport) -> u64 {
        report.id as u64
    }

    fn first_seen(pane: usize, _: &Snapshot, report: &BodyReport) -> Self {
        Body { pane, report: report.clone() }
    }

    fn update(&mut self, _: &Snapshot, report: &BodyReport) {
        self.report = report.clone();
    }
}

impl Tracked for Tile {
    type Report = TileView;

    fn id(view: &TileView) -> u64 {
        view.id
    }

    fn first_seen(pane: usize, _: &Snapshot, view: &TileView) -> Self {
        Tile { pane, view: view.clone() }
    }

    fn update(&mut self, _: &Snapshot, view: &TileView) {
        if self.view != *view {
            self.view = view.clone();
        }
    }
}

/// Entities by their panes and numbers.
#[derive(Default, Debug)]
struct IdMap(HashMap<(usize, u64), Entity>);

impl IdMap {
    /// Brings a pane's entities in line with what a snapshot says.
    fn follow<T: Tracked>(
        &mut self,
        pane: usize,
        snapshot: &Snapshot,
        reports: &[T::Report],
        commands: &mut Commands,
        known: &mut Query<&mut T>,
    ) {
        let alive: HashMap<u64, &T::Report> = reports.iter().map(|report| (T::id(report), report)).collect();
        self.keep(commands, |(of, id)| of != pane || alive.contains_key(&id));
        for (id, report) in alive {
            match self.0.get(&(pane, id)) {
                // An entity spawned a moment ago is not in the query yet; the next snapshot finds it.
                Some(&entity) => {
                    if let Ok(mut one) = known.get_mut(entity) {
                        one.update(snapshot, report);
                    }
                }
                None => {
                    let entity = commands.spawn(T::first_seen(pane, snapshot, report)).id();
                    self.0.insert((pane, id), entity);
                }
            }
        }
    }

    /// Despawns all but those that stay.
    fn keep(&mut self, commands: &mut Commands, stays: impl Fn((usize, u64)) -> bool) {
        self.0.retain(|&key, entity| {
            let stays = stays(key);
            if !stays {
                commands.entity(*entity).despawn();
            }
            stays
        });
    }
}

/// Which entity stands for which bubble, which body and which tile.
#[derive(Resource, Default, Debug)]
pub struct Registry {
    bubbles: IdMap,
    bodies: IdMap,
    tiles: IdMap,
    liquids: HashMap<usize, Entity>,
    runs: HashMap<usize, u64>,
}

impl Registry {
    /// The entity of a bubble.
    pub fn bubble(&self, key: BubbleKey) -> Option<Entity> {
        self.bubbles.0.get(&key).copied()
    }

    /// The entity of a body.
    pub fn body(&self, key: BodyKey) -> Option<Entity> {
        self.bodies.0.get(&key).copied()
    }

    /// The entity of a tile, by pane and number.
    pub fn tile(&self, key: (usize, u64)) -> Option<Entity> {
        self.tiles.0.get(&key).copied()
    }

    /// How many bubbles and tiles there are.
    pub fn counts(&self) -> [usize; 2] {
        [self.bubbles.0.len(), self.tiles.0.len()]
    }

    /// Takes a pane's bubbles, bodies and tiles away.
    fn forget(&mut self, pane: usize, commands: &mut Commands) {
        for map in [&mut self.bubbles, &mut self.bodies, &mut self.tiles] {
            map.keep(commands, |(of, _)| of != pane);
        }
    }
}

/// The entities, and what it takes to change them.
#[derive(SystemParam)]
pub struct EntitySync<'w, 's> {
    registry: ResMut<'w, Registry>,
    commands: Commands<'w, 's>,
    bubbles: Query<'w, 's, &'static mut Bubble>,
    bodies: Query<'w, 's, &'static mut Body>,
    tiles: Query<'w, 's, &'static mut Tile>,
}

impl EntitySync<'_, '_> {
    /// Brings a pane's entities in line with its newest snapshot.
    pub fn sync(&mut self, pane: usize, snapshot: &Arc<Snapshot>) {
        let EntitySync { registry, commands, bubbles, bodies, tiles } = self;
        let registry = &mut **registry;
        if registry.runs.insert(pane, snapshot.run) != Some(snapshot.run) {
            // Numbers start again with every run: the same one means another bubble.
            registry.forget(pane, commands);
        }
        let liquid = Liquid { pane, snapshot: Arc::clone(snapshot) };
        match registry.liquids.get(&pane) {
            Some(&entity) => drop(commands.entity(entity).insert(liquid)),
            None => drop(registry.liquids.insert(pane, commands.spawn(liquid).id())),
        }
        registry.bubbles.follow(pane, snapshot, &snapshot.report.bubbles, commands, bubbles);
        registry.bodies.follow(pane, snapshot, &snapshot.report.bodies, commands, bodies);
        registry.tiles.follow(pane, snapshot, &snapshot.tiles, commands, tiles);
    }

    /// Takes everything of a pane away.
    pub fn close(&mut self, pane: usize) {
        let EntitySync { registry, commands, .. } = self;
        registry.forget(pane, commands);
        registry.runs.remove(&pane);
        if let Some(entity) = registry.liquids.remove(&pane) {
            commands.entity(entity).despawn();
        }
    }
}

/// The entities, to draw and to look at.
#[derive(SystemParam)]
pub struct DrawnEntities<'w, 's> {
    registry: Res<'w, Registry>,
    liquids: Query<'w, 's, &'static Liquid>,
    tiles: Query<'w, 's, &'static Tile>,
}

impl DrawnEntities<'_, '_> {
    /// The liquid of a pane: surface, fields and labels of its newest moment.
    pub fn liquid(&self, pane: usize) -> Option<&Arc<Snapshot>> {
        let entity = self.registry.liquids.get(&pane)?;
        self.liquids.get(*entity).ok().map(|liquid| &liquid.snapshot)
    }

    /// The liquid of the first pane that has one.
    pub fn first_liquid(&self) -> Option<&Arc<Snapshot>> {
        self.liquids.iter().min_by_key(|liquid| liquid.pane).map(|liquid| &liquid.snapshot)
    }

    /// The tiles of a pane, by their numbers.
    pub fn tiles(&self, pane: usize) -> Vec<&TileView> {
        let mut tiles: Vec<_> =
            self.tiles.iter().filter(|tile| tile.pane == pane).map(|tile| &tile.view).collect();
        tiles.sort_unstable_by_key(|tile| tile.id);
        tiles
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
