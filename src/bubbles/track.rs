//! Who is who from step to step.
//!
//! Particles remember the bubble whose wall they were part of. Where they are now tells which new region is which old
//! one, and thereby how rest volumes pass on (CBAR §7.1). A new region of air to which no particle leads is a void: a
//! hole that numerical errors tore into the liquid. It has no rest volume and is closed.

use crate::geometry::Label;
use crate::grid::Blocks;
use crate::liquid::{CellRanges, Particles};
use crate::math::{Real, power};

use super::fill::Regions;
use super::graph::{Graph, Party, Share};
use super::history::{EventKind, History};
use super::measure::Measure;
use super::near::SPRAY;
use super::tags::Tags;

/// What is known of a region beyond its cells. Volumes are in cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Stays the same for as long as the region lives.
    pub id: u64,
    /// Air or liquid.
    pub phase: Label,
    /// What it should measure.
    pub rest: Real,
    /// What it measures.
    pub volume: Real,
    /// Air that reaches an open side of the domain.
    pub open: bool,
    /// A hole without a cause.
    pub void: bool,
    /// When it came into being, simulated seconds.
    pub since: Real,
    /// Its scaled pressure in the last projection: a guess for the next.
    pub pressure: Real,
    /// The net outflow that the last step asked of it, m/s.
    pub asked: Real,
    /// Of a liquid: particles.
    particles: Real,
}

/// What the tracker looks at.
pub struct Scene<'a, const D: usize> {
    /// Where.
    pub blocks: &'a Blocks<D>,
    /// The particles by cell.
    pub ranges: &'a CellRanges,
    /// The place that each particle had before it was sorted.
    pub origin: &'a [u32],
    /// The regions of this step.
    pub regions: &'a Regions<D>,
    /// Their sizes.
    pub measure: &'a Measure<D>,
    /// Air regions that a source has made or feeds, with the volume it gave, in cells.
    pub fed: &'a [(u32, Real)],
    /// Particles in a full cell.
    pub per_cell: Real,
    /// Whether air keeps its volume. Where it does not, rest volumes still tell what it once had.
    pub conserve: bool,
    /// Simulated seconds.
    pub time: Real,
}

/// The regions' records, and the particles' memory.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    records: Vec<Record>,
    before: Vec<Record>,
    tags: Tags,
    /// Rest volume that flies as spray, and the particles it is made of.
    spray: [Real; 2],
    /// Whether air kept its volume in the last step.
    conserved: bool,
    /// Particles forgotten since the last update.
    forgotten: usize,
    history: History,
    /// The last names given, to air and to liquid.
    last_id: [u64; 2],
    graph: Graph,
    edges: Vec<Edge>,
    old: Vec<Party>,
    new: Vec<Party>,
    shares: Vec<Share>,
    kin: Vec<Kin>,
    basins: Vec<Basin>,
}

/// Air that went from an old region to a new one.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: u32,
    to: u32,
    votes: u32,
}

/// The strongest tie of a region to the other step, and all its votes.
#[derive(Clone, Copy, Debug, Default)]
struct Kin {
    best: Option<u32>,
    rank: (bool, u32),
    votes: u32,
    touched: bool,
}

/// The content of a container, in cells.
#[derive(Clone, Copy, Debug, Default)]
struct Basin {
    open: bool,
    whole: Real,
    liquid: Real,
    air: Real,
}

/// Edges with a smaller share of the votes of both their ends are chance encounters of particles in thin films.
const LEAST_SHARE: f64 = 0.02;

/// Sealed air that differs by less than this share from one step to the next is the same.
const SAME_SIZE: f64 = 0.02;

/// A bubble that outgrows its rest volume by more than this within a step has taken in air from outside.
const MOST_GROWTH: f64 = 1.05;

/// Untracked air of more than this many cells along each axis is no numerical void.
const LARGEST_VOID: usize = 4;

impl Tracker {
    /// All regions, as numbered by the last fill.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The records, to note their pressures and what is asked of them.
    pub fn records_mut(&mut self) -> &mut [Record] {
        &mut self.records
    }

    /// What happened so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Rest volume that flies as spray, in cells.
    pub fn spray(&self) -> Real {
        self.spray[0]
    }

    /// Bytes held per particle.
    pub fn particle_bytes(&self) -> usize {
        self.tags.bytes()
    }

    /// Says what reseeding did after the last update.
    pub fn note_reseeded<const D: usize>(&mut self, particles: &Particles<D>, added: usize, removed: usize) {
        self.tags.note_reseeded(added);
        if removed > 0 {
            self.forget_removed(particles);
        }
    }

    /// Forgets particles that are dead by now: they do not take volume with them, those that die later do.
    pub fn forget_removed<const D: usize>(&mut self, particles: &Particles<D>) {
        let (records, spray) = (&mut self.records, &mut self.spray);
        self.forgotten += self.tags.forget_removed(particles, |liquid| match records.get_mut(liquid) {
            Some(record) => record.particles -= 1.0,
            None => spray[1] -= 1.0,
        });
    }

    /// Says which cells are without particles from now on, though full of liquid: a block, one of its cells, and how
    /// many particles all of those would have.
    pub fn note_hollow<const D: usize>(
        &mut self,
        measure: &Measure<D>,
        shares: impl Iterator<Item = (usize, usize, usize)>,
    ) {
        let (records, spray) = (&mut self.records, &mut self.spray);
        self.tags.note_hollow(&measure.near, shares, |liquid, count| match records.get_mut(liquid) {
            Some(record) => record.particles += count as Real,
            None => spray[1] += count as Real,
        });
    }

    /// Recognises the regions of this step.
    pub fn update<const D: usize>(&mut self, scene: &Scene<'_, D>) {
        // When nobody came or died, shares add up to one whatever the sample; otherwise everyone is counted.
        let complete = scene.origin.len() + self.forgotten == self.tags.known();
        self.tags.vote(scene.blocks, scene.ranges, scene.origin, &scene.measure.near, complete);
        self.forgotten = 0;
        std::mem::swap(&mut self.records, &mut self.before);
        self.gather_edges(scene.regions.len());
        self.begin_records(scene);
        self.share_air(scene);
        self.conserved = scene.conserve;
        self.share_liquid(scene, complete);
        self.find_kin();
        self.name_regions(scene.time, scene.fed);
        if scene.conserve {
            self.balance_closed_basins(scene);
        }
        self.tags.renew(scene.blocks, scene.ranges, scene.origin.len(), &scene.measure.near);
    }

    /// Counts every region's votes, and keeps those that mean something.
    fn gather_edges(&mut self, regions: usize) {
        let olds = self.before.len();
        self.kin.clear();
        self.kin.resize(olds + regions, Kin::default());
        for (from, to, votes) in self.tags.air.iter() {
            self.kin[from as usize].votes += votes;
            self.kin[olds + to as usize].votes += votes;
        }
        for (region, _, _) in self.tags.touched.iter() {
            self.kin[olds + region as usize].touched = true;
        }
        self.edges.clear();
        for (from, to, votes) in self.tags.air.iter() {
            let fewest = self.kin[from as usize].votes.min(self.kin[olds + to as usize].votes);
            if votes as f64 >= LEAST_SHARE * fewest as f64 {
                self.edges.push(Edge { from, to, votes });
            }
        }
    }

    fn begin_records<const D: usize>(&mut self, scene: &Scene<'_, D>) {
        self.records.clear();
        self.records.extend(scene.regions.list.iter().zip(&scene.measure.extent).map(|(region, extent)| {
            Record {
                id: 0,
                phase: region.phase,
                rest: 0.0,
                volume: extent.volume,
                open: region.open,
                void: false,
                since: scene.time,
                pressure: 0.0,
                asked: 0.0,
                particles: 0.0,
            }
        }));
    }

    /// Passes rest volumes of air on, and finds the voids.
    fn share_air<const D: usize>(&mut self, scene: &Scene<'_, D>) {
        // Liquid takes no part: as "open" parties without edges they neither give nor get.
        let party = |record: &Record| match record.phase {
            Label::Air => Party { rest: record.rest, volume: record.volume, open: record.open },
            _ => Party { open: true, ..Party::default() },
        };
        self.old.clear();
        self.old.extend(self.before.iter().map(party));
        self.new.clear();
        self.new.extend(self.records.iter().map(party));
        self.shares.clear();
        self.shares.resize(self.records.len(), Share::Nothing);
        let edges = self.edges.iter().map(|edge| (edge.from as usize, edge.to as usize));
        let shares = &mut self.shares;
        self.graph.redistribute(&self.old, &self.new, edges, |region, share| shares[region] = share);
        let olds = self.before.len();
        let outside = self.before.iter().any(|record| record.open);
        let limit = power(LARGEST_VOID, D) as Real;
        for (index, record) in self.records.iter_mut().enumerate().filter(|(_, r)| r.phase == Label::Air) {
            let kin = self.kin[olds + index];
            let from_voids = kin.votes > 0;
            let share = self.shares[index];
            record.rest = match share {
                // A film that tears and closes again within the step lets air in; its particles cannot tell from where.
                Share::Rest(rest) if kin.touched && outside && record.volume > MOST_GROWTH * rest + 8.0 => {
                    record.volume
                }
                Share::Rest(rest) => rest,
                Share::Measured => record.volume,
                Share::Nothing if !from_voids && (kin.touched || record.volume > limit) => record.volume,
                Share::Nothing => {
                    record.void = true;
                    0.0
                }
            };
            // When air that could come and go is held again, it is as large as it should be.
            if scene.conserve && !self.conserved {
                record.rest = if record.void { 0.0 } else { record.volume };
            }
        }
        for &(region, volume) in scene.fed {
            let record = &mut self.records[region as usize];
            if record.void || record.rest == 0.0 {
                // A source has just opened it: it is as large as it was made.
                record.rest = record.volume;
                record.void = false;
            } else if !record.open {
                record.rest += volume;
            }
        }
    }

    /// Gives every region its name, and writes down what happened to the air.
    fn name_regions(&mut self, time: Real, fed: &[(u32, Real)]) {
        let olds = self.before.len();
        for index in 0..self.records.len() {
            let parent = self.kin[olds + index].best.map(|parent| parent as usize);
            let continues = parent.filter(|&parent| self.kin[parent].best == Some(index as u32));
            if let Some(parent) = continues {
                let old = self.before[parent];
                let record = &mut self.records[index];
                (record.id, record.since) = (old.id, old.since);
                (record.pressure, record.asked) = (old.pressure, old.asked);
                continue;
            }
            let record = &mut self.records[index];
            let counter = &mut self.last_id[(record.phase == Label::Liquid) as usize];
            *counter += 1;
            record.id = *counter;
            if record.phase != Label::Air {
                continue;
            }
            let is_fed = fed.iter().any(|&(region, _)| region as usize == index);
            let kind = match parent.map(|parent| self.before[parent]) {
                Some(parent) if parent.open && !record.open => EventKind::Trapped,
                Some(parent) => {
                    record.pressure = parent.pressure;
                    EventKind::SplitFrom(parent.id)
                }
                None if is_fed => EventKind::Released,
                None if record.void => EventKind::Void,
                None => EventKind::Present,
            };
            self.history.record(time, record.id, kind);
        }
        for index in 0..olds {
            let old = self.before[index];
            if old.phase != Label::Air {
                continue;
            }
            let kind = match self.kin[index].best.map(|child| self.records[child as usize]) {
                Some(child) if child.id == old.id => continue,
                Some(child) if child.open && !old.open => EventKind::Burst,
                Some(child) => EventKind::MergedInto(child.id),
                None if old.void => EventKind::Closed,
                None => EventKind::Collapsed,
            };
            self.history.record(time, old.id, kind);
        }
    }

    /// Finds every region's strongest tie to the other step.
    fn find_kin(&mut self) {
        let olds = self.before.len();
        let air = self.edges.iter().map(|edge| (edge.from, edge.to, edge.votes));
        let (before, records, kin) = (&self.before, &self.records, &mut self.kin);
        for (from, to, votes) in air.chain(self.tags.liquid.iter()) {
            let (Some(old), Some(new)) = (before.get(from as usize), records.get(to as usize)) else {
                continue;
            };
            // Open air continues open air before anything else.
            let rank = (old.open && new.open, votes);
            for (own, other) in [(from as usize, to), (olds + to as usize, from)] {
                let kin = &mut kin[own];
                if kin.best.is_none() || rank > kin.rank {
                    (kin.best, kin.rank) = (Some(other), rank);
                }
            }
        }
        self.find_dry_kin();
    }

    /// Air that no particle touched before or now has nobody to speak for it: above a platform, in a sealed box. It
    /// continues what was as open or as large.
    fn find_dry_kin(&mut self) {
        let (olds, kin) = (self.before.len(), &mut self.kin);
        for (new, record) in self.records.iter().enumerate().filter(|(_, r)| r.phase == Label::Air && !r.void)
        {
            if kin[olds + new].best.is_some() || kin[olds + new].votes > 0 {
                continue;
            }
            let same = |old: &Record| {
                let alike = (old.volume - record.volume).abs() <= SAME_SIZE * record.volume;
                old.phase == Label::Air && !old.void && old.open == record.open && (old.open || alike)
            };
            let found = self.before.iter().enumerate().position(|(index, old)| {
                let silent = kin[index].best.is_none() && kin[index].votes == 0;
                silent && same(old)
            });
            if let Some(old) = found {
                kin[old].best = Some(new as u32);
                kin[olds + new].best = Some(old as u32);
            }
        }
    }

    /// Every particle carries its share of its liquid's rest volume to wherever it is now: to another region, into
    /// spray, or out of the scene.
    fn share_liquid<const D: usize>(&mut self, scene: &Scene<'_, D>, complete: bool) {
        let first = self.before.is_empty();
        let mut spray = [0.0; 2];
        if complete {
            // Nobody died: all votes of a liquid are all its particles, as far as they were asked.
            self.before.iter_mut().for_each(|record| record.particles = 0.0);
            self.spray[1] = 0.0;
            for (from, _, votes) in self.tags.liquid.iter() {
                match self.before.get_mut(from as usize) {
                    Some(record) => record.particles += votes as Real,
                    None => self.spray[1] += votes as Real,
                }
            }
        }
        for (from, to, votes) in self.tags.liquid.iter() {
            debug_assert!(from == SPRAY as u32 || (from as usize) < self.before.len());
            let (rest, particles) = match self.before.get(from as usize) {
                Some(record) => (record.rest, record.particles),
                None => (self.spray[0], self.spray[1]),
            };
            let carried = rest * votes as Real / particles.max(1.0);
            match self.records.get_mut(to as usize) {
                Some(record) => record.rest += carried,
                None => spray[0] += carried,
            }
        }
        for (to, _, count) in self.tags.fresh.iter().filter(|_| !first) {
            let volume = count as Real / scene.per_cell;
            match self.records.get_mut(to as usize) {
                Some(record) => record.rest += volume,
                None => spray[0] += volume,
            }
        }
        for (region, _, count) in self.tags.present.iter() {
            match self.records.get_mut(region as usize) {
                Some(record) => record.particles = count as Real,
                None => spray[1] = count as Real,
            }
        }
        self.spray = spray;
        if first {
            let liquids = self.records.iter_mut().filter(|record| record.phase == Label::Liquid);
            liquids.for_each(|record| record.rest = record.volume);
        }
    }

    /// In a container without an opening, air fills what the liquid leaves: the rest volumes of its bubbles are scaled
    /// to that. So volume that a collapsed bubble took along, or that a moving solid displaced, goes to the others.
    fn balance_closed_basins<const D: usize>(&mut self, scene: &Scene<'_, D>) {
        self.basins.clear();
        self.basins.resize(self.records.len(), Basin::default());
        for (record, &basin) in self.records.iter().zip(&scene.measure.basin) {
            let basin = &mut self.basins[basin as usize];
            basin.open |= record.open;
            basin.whole += record.volume;
            match record.phase {
                Label::Air => basin.air += record.rest,
                _ => basin.liquid += record.rest,
            }
        }
        for (record, &basin) in self.records.iter_mut().zip(&scene.measure.basin) {
            let Basin { open, whole, liquid, air } = self.basins[basin as usize];
            if record.phase == Label::Air && !open && air > 0.0 && liquid > 0.0 && whole > liquid {
                record.rest *= (whole - liquid) / air;
            }
        }
    }
}
