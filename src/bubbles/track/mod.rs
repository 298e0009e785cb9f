//! Who is who from step to step.
//!
//! Particles remember the bubble whose wall they were part of. Where they are now tells which new component is which
//! old one, and thereby how rest volumes pass on (CBAR §7.1). A new component of air to which no particle leads is a
//! void: a hole that numerical errors tore into the liquid. It has no rest volume and is closed.

mod names;

pub use names::{FIRST_SPECK, FIRST_VOID, number};

use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveError, Reader, Writer};
use crate::geometry::Label;
use crate::grid::Blocks;
use crate::liquid::{CellRanges, Particles};
use crate::math::{Real, power, unflatten};

use super::fill::Components;
use super::graph::{Graph, Share, Vertex};
use super::history::{EventKind, History, SavedHistory};
use super::measure::Measure;
use super::near::SPRAY;
use super::tags::{Ballot, Tags};
use names::{Fate, Lost, NameKind, Names, Tie, decide_fates};

/// What is known of a component beyond its cells. Volumes are in cells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Stays the same for as long as the component lives: of bubbles see [`number`].
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
    /// A block that it has a part in.
    home: [i32; 3],
}

/// What the tracker looks at.
pub struct TrackerInput<'a, const D: usize> {
    /// Where.
    pub blocks: &'a Blocks<D>,
    /// The particles by cell.
    pub ranges: &'a CellRanges,
    /// The place that each particle had before it was sorted.
    pub origin: &'a [u32],
    /// The components of this step.
    pub components: &'a Components<D>,
    /// Their sizes.
    pub measure: &'a Measure<D>,
    /// Air components that a source has made or feeds, with the volume it gave, in cells.
    pub fed: &'a [(u32, Real)],
    /// Particles in a full cell.
    pub per_cell: Real,
    /// Whether air keeps its volume. Where it does not, rest volumes still tell what it once had.
    pub conserve: bool,
    /// Simulated seconds.
    pub time: Real,
}

/// The components' records, and the particles' memory.
#[derive(Clone, Debug, Default)]
pub struct Tracker {
    records: Vec<Record>,
    tags: Tags,
    /// Rest volume that flies as spray, and the particles it is made of.
    spray: [Real; 2],
    /// Whether air kept its volume in the last step.
    conserved: bool,
    /// Particles forgotten since the last update.
    forgotten: usize,
    history: History,
    names: Names,
}

/// Working memory of a [`Tracker`].
#[derive(Clone, Debug, Default)]
pub struct TrackerScratch {
    /// The components of the step before.
    before: Vec<Record>,
    ballot: Ballot,
    graph: Graph,
    edges: Vec<Edge>,
    old: Vec<Vertex>,
    new: Vec<Vertex>,
    shares: Vec<Share>,
    ties: Vec<Tie>,
    /// Of the components before, then of those now.
    fates: Vec<Fate>,
    /// Components that need a name.
    nameless: Vec<u32>,
    basins: Vec<Basin>,
}

/// Air that went from an old component to a new one.
#[derive(Clone, Copy, Debug)]
struct Edge {
    from: u32,
    to: u32,
    votes: u32,
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

/// The part of a [`Tracker`] that is small.
#[derive(Serialize, Deserialize)]
struct SavedTracker {
    records: Vec<Record>,
    spray: [Real; 2],
    conserved: bool,
    forgotten: usize,
    history: SavedHistory,
    names: Names,
}

impl Tracker {
    /// Writes everything that is known of the components.
    pub fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        let Tracker { records, tags, spray, conserved, forgotten, history, names } = self;
        let account = SavedTracker {
            records: records.clone(),
            spray: *spray,
            conserved: *conserved,
            forgotten: *forgotten,
            history: history.to_saved(),
            names: names.clone(),
        };
        out.value("tracker", &account)?;
        tags.save(out)
    }

    /// Reads what [`Tracker::save`] wrote, for at most that many particles.
    pub fn load<const D: usize>(
        blocks: &Blocks<D>,
        particles: usize,
        from: &mut Reader<'_>,
    ) -> Result<Self, ArchiveError> {
        let SavedTracker { records, spray, conserved, forgotten, history, names } = from.value("tracker")?;
        let history = History::from_saved(history)
            .ok_or_else(|| ArchiveError::invalid("tracker", "tells of events that cannot happen"))?;
        let tags = Tags::load(blocks, particles, records.len(), from)?;
        Ok(Tracker { records, tags, spray, conserved, forgotten, history, names })
    }

    /// All components, as numbered by the last fill.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// The records, to note their pressures and what is asked of them.
    pub fn records_mut(&mut self) -> &mut [Record] {
        &mut self.records
    }

    /// Forgets pressures.
    pub fn forget_pressures(&mut self) {
        self.records.iter_mut().for_each(|record| record.pressure = 0.0);
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
    pub fn note_reseeded<const D: usize>(
        &mut self,
        particles: &Particles<D>,
        added: usize,
        removed: usize,
        work: &mut TrackerScratch,
    ) {
        self.tags.note_reseeded(added);
        if removed > 0 {
            self.forget_removed(particles, work);
        }
    }

    /// Forgets particles that are dead by now: they do not take volume with them, those that die later do.
    pub fn forget_removed<const D: usize>(&mut self, particles: &Particles<D>, work: &mut TrackerScratch) {
        let (records, spray) = (&mut self.records, &mut self.spray);
        self.forgotten +=
            self.tags.forget_removed(particles, &mut work.ballot, |liquid| match records.get_mut(liquid) {
                Some(record) => record.particles -= 1.0,
                None => spray[1] -= 1.0,
            });
    }

    /// Says which cells are without particles from now on, though full of liquid: a block, one of its cells, and how
    /// many particles all of those would have.
    pub fn note_core<const D: usize>(
        &mut self,
        measure: &Measure<D>,
        shares: impl Iterator<Item = (usize, usize, usize)>,
    ) {
        let (records, spray) = (&mut self.records, &mut self.spray);
        self.tags.note_core(&measure.near, shares, |liquid, count| match records.get_mut(liquid) {
            Some(record) => record.particles += count as Real,
            None => spray[1] += count as Real,
        });
    }

    /// Recognises the components of this step.
    pub fn update<const D: usize>(&mut self, input: &TrackerInput<'_, D>, work: &mut TrackerScratch) {
        // When nobody came or died, shares add up to one whatever the sample; otherwise everyone is counted.
        let complete = input.origin.len() + self.forgotten == self.tags.known();
        let near = &input.measure.near;
        self.tags.vote(input.blocks, input.ranges, input.origin, near, complete, &mut work.ballot);
        self.forgotten = 0;
        std::mem::swap(&mut self.records, &mut work.before);
        self.gather_edges(input.components.len(), work);
        self.begin_records(input);
        self.share_air(input, work);
        self.conserved = input.conserve;
        self.share_liquid(input, complete, work);
        self.find_fates(work);
        self.name_components(input, work);
        self.record_ends(input.time, work);
        if input.conserve {
            self.balance_closed_basins(input, work);
        }
        self.tags.renew(input.blocks, input.ranges, input.origin.len(), &input.measure.near);
    }

    /// Counts every component's votes, and keeps those that mean something.
    fn gather_edges(&mut self, components: usize, work: &mut TrackerScratch) {
        let (olds, votes, fates) = (work.before.len(), &work.ballot.votes, &mut work.fates);
        fates.clear();
        fates.resize(olds + components, Fate::default());
        for (from, to, cast) in votes.air.iter().chain(votes.liquid.iter()) {
            if (from as usize) < olds && (to as usize) < components {
                fates[from as usize].votes += cast;
                fates[olds + to as usize].votes += cast;
            }
        }
        for (component, _, _) in votes.touched.iter() {
            fates[olds + component as usize].touched = true;
        }
        work.edges.clear();
        for (from, to, votes) in votes.air.iter() {
            let fewest = fates[from as usize].votes.min(fates[olds + to as usize].votes);
            if votes as f64 >= LEAST_SHARE * fewest as f64 {
                work.edges.push(Edge { from, to, votes });
            }
        }
    }

    fn begin_records<const D: usize>(&mut self, input: &TrackerInput<'_, D>) {
        self.records.clear();
        self.records.extend(input.components.list.iter().zip(&input.measure.extent).map(
            |(component, extent)| Record {
                id: 0,
                phase: component.phase,
                rest: 0.0,
                volume: extent.volume,
                open: component.open,
                void: false,
                since: input.time,
                pressure: 0.0,
                asked: 0.0,
                particles: 0.0,
                home: component.home,
            },
        ));
    }

    /// Passes rest volumes of air on, and finds the voids.
    fn share_air<const D: usize>(&mut self, input: &TrackerInput<'_, D>, work: &mut TrackerScratch) {
        // Liquid takes no part: as "open" parties without edges they neither give nor get.
        let party = |record: &Record| match record.phase {
            Label::Air => Vertex { rest: record.rest, volume: record.volume, open: record.open },
            _ => Vertex { open: true, ..Vertex::default() },
        };
        work.old.clear();
        work.old.extend(work.before.iter().map(party));
        work.new.clear();
        work.new.extend(self.records.iter().map(party));
        work.shares.clear();
        work.shares.resize(self.records.len(), Share::Nothing);
        let edges = work.edges.iter().map(|edge| (edge.from as usize, edge.to as usize));
        let shares = &mut work.shares;
        work.graph.redistribute(&work.old, &work.new, edges, |component, share| shares[component] = share);
        let olds = work.before.len();
        let outside = work.before.iter().any(|record| record.open);
        let limit = power(LARGEST_VOID, D) as Real;
        for (index, record) in self.records.iter_mut().enumerate().filter(|(_, r)| r.phase == Label::Air) {
            let Fate { votes, touched, .. } = work.fates[olds + index];
            let from_voids = votes > 0;
            let share = work.shares[index];
            record.rest = match share {
                // A film that tears and closes again within the step lets air in; its particles cannot tell from where.
                Share::Rest(rest) if touched && outside && record.volume > MOST_GROWTH * rest + 8.0 => {
                    record.volume
                }
                Share::Rest(rest) => rest,
                Share::Measured => record.volume,
                Share::Nothing if !from_voids && (touched || record.volume > limit) => record.volume,
                Share::Nothing => {
                    record.void = true;
                    0.0
                }
            };
            // When air that could come and go is held again, it is as large as it should be.
            if input.conserve && !self.conserved {
                record.rest = if record.void { 0.0 } else { record.volume };
            }
        }
        for &(component, volume) in input.fed {
            let record = &mut self.records[component as usize];
            if record.void || record.rest == 0.0 {
                // A source has just opened it: it is as large as it was made.
                record.rest = record.volume;
                record.void = false;
            } else if !record.open {
                record.rest += volume;
            }
        }
    }

    /// Finds out where every component's name goes.
    fn find_fates(&mut self, work: &mut TrackerScratch) {
        let TrackerScratch { before, ballot, edges, ties, fates, .. } = work;
        let air = edges.iter().map(|edge| (edge.from, edge.to, edge.votes));
        ties.clear();
        for (from, to, votes) in air.chain(ballot.votes.liquid.iter()) {
            let (Some(old), Some(new)) = (before.get(from as usize), self.records.get(to as usize)) else {
                continue;
            };
            let all = [fates[from as usize].votes, fates[before.len() + to as usize].votes];
            let open = [old.open, new.open];
            ties.push(Tie::new([from, to], open, [old.volume, new.volume], votes, all));
        }
        let (old, new) = fates.split_at_mut(before.len());
        decide_fates(ties, old, new);
        self.find_dry_fates(work);
    }

    /// Air that no particle touched before or now has nobody to speak for it: above a platform, in a sealed box. It
    /// continues what was as open or as large.
    fn find_dry_fates(&mut self, work: &mut TrackerScratch) {
        let (before, fates) = (&work.before, &mut work.fates);
        for (new, record) in self.records.iter().enumerate().filter(|(_, r)| r.phase == Label::Air && !r.void)
        {
            let is_silent = |fate: &Fate| fate.kin.is_none() && fate.votes == 0;
            if !is_silent(&fates[before.len() + new]) {
                continue;
            }
            let same = |old: &Record| {
                let alike = (old.volume - record.volume).abs() <= SAME_SIZE * record.volume;
                old.phase == Label::Air && !old.void && old.open == record.open && (old.open || alike)
            };
            let found = before.iter().zip(&*fates).position(|(old, fate)| is_silent(fate) && same(old));
            if let Some(old) = found {
                fates[old].unite(new as u32);
                fates[before.len() + new].unite(old as u32);
            }
        }
    }

    /// Gives every component its name, and writes down where air without one came from.
    fn name_components<const D: usize>(&mut self, input: &TrackerInput<'_, D>, work: &mut TrackerScratch) {
        let TrackerScratch { before, fates, nameless, .. } = work;
        let fates = &fates[before.len()..];
        let (time, first) = (input.time, before.is_empty());
        let is_fed = |index: usize| input.fed.iter().any(|&(component, _)| component as usize == index);
        let kind_of = |record: &Record, index: usize| NameKind::of(record, first || is_fed(index), D);
        self.names.forget_before(time);
        nameless.clear();
        for (index, (record, fate)) in self.records.iter_mut().zip(fates).enumerate() {
            if let Some(old) = fate.heir.map(|old| before[old as usize]) {
                (record.since, record.pressure, record.asked) = (old.since, old.pressure, old.asked);
                // What grew beyond a speck gets a number.
                if record.phase != Label::Air || kind_of(record, index) <= NameKind::of_id(old.id) {
                    record.id = old.id;
                    continue;
                }
            }
            nameless.push(index as u32);
        }
        // The largest bubble has the smallest number, and the outside air comes last.
        let records = &mut self.records;
        nameless.sort_unstable_by(|&a, &b| {
            let (left, right) = (&records[a as usize], &records[b as usize]);
            left.open.cmp(&right.open).then(right.volume.total_cmp(&left.volume)).then(a.cmp(&b))
        });
        for index in nameless.iter().map(|&index| index as usize) {
            let record = &mut records[index];
            if record.phase != Label::Air {
                record.id = self.names.next_liquid();
                continue;
            }
            let kind = kind_of(record, index);
            let is_there = |home: [i32; 3]| is_near(input, index as u32, home);
            let known = match kind {
                NameKind::Number if !record.open => self.names.take_back(record.volume, is_there),
                _ => None,
            };
            if let Some(known) = known {
                record.since = known.since;
            }
            record.id = known.map_or_else(|| self.names.next(kind), |known| known.id);
            let event = match fates[index].kin.map(|parent| before[parent as usize]) {
                _ if fates[index].heir.is_some() && is_fed(index) => EventKind::Released,
                _ if fates[index].heir.is_some() => EventKind::Formed,
                Some(parent) if parent.open && !record.open => EventKind::Trapped,
                Some(parent) => {
                    record.pressure = parent.pressure;
                    EventKind::SplitFrom(parent.id)
                }
                None if is_fed(index) => EventKind::Released,
                None if record.void => EventKind::Void,
                None => EventKind::Present,
            };
            self.history.record(time, record.id, event);
        }
    }

    /// Writes down what became of air whose name nobody carries on.
    fn record_ends(&mut self, time: Real, work: &TrackerScratch) {
        for (old, fate) in work.before.iter().zip(&work.fates).filter(|(old, _)| old.phase == Label::Air) {
            let event = match fate.heir.or(fate.kin).map(|child| self.records[child as usize]) {
                Some(child) if child.id == old.id => continue,
                Some(child) if child.open && !old.open => EventKind::Burst,
                Some(child) => EventKind::MergedInto(child.id),
                None if old.void => EventKind::Closed,
                None => EventKind::Collapsed,
            };
            self.history.record(time, old.id, event);
            if !old.open && number(old.id).is_some() {
                let Record { id, since, volume, home, .. } = *old;
                self.names.keep(Lost { id, since, volume, home, time });
            }
        }
    }

    /// Every particle carries its share of its liquid's rest volume to wherever it is now: to another component, into
    /// spray, or out of the input.
    fn share_liquid<const D: usize>(
        &mut self,
        input: &TrackerInput<'_, D>,
        complete: bool,
        work: &mut TrackerScratch,
    ) {
        let first = work.before.is_empty();
        let mut spray = [0.0; 2];
        if complete {
            // Nobody died: all votes of a liquid are all its particles, as far as they were asked.
            work.before.iter_mut().for_each(|record| record.particles = 0.0);
            self.spray[1] = 0.0;
            for (from, _, votes) in work.ballot.votes.liquid.iter() {
                match work.before.get_mut(from as usize) {
                    Some(record) => record.particles += votes as Real,
                    None => self.spray[1] += votes as Real,
                }
            }
        }
        for (from, to, votes) in work.ballot.votes.liquid.iter() {
            debug_assert!(from == SPRAY as u32 || (from as usize) < work.before.len());
            let (rest, particles) = match work.before.get(from as usize) {
                Some(record) => (record.rest, record.particles),
                None => (self.spray[0], self.spray[1]),
            };
            let carried = rest * votes as Real / particles.max(1.0);
            match self.records.get_mut(to as usize) {
                Some(record) => record.rest += carried,
                None => spray[0] += carried,
            }
        }
        for (to, _, count) in work.ballot.votes.fresh.iter().filter(|_| !first) {
            let volume = count as Real / input.per_cell;
            match self.records.get_mut(to as usize) {
                Some(record) => record.rest += volume,
                None => spray[0] += volume,
            }
        }
        for (component, _, count) in work.ballot.votes.present.iter() {
            match self.records.get_mut(component as usize) {
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
    fn balance_closed_basins<const D: usize>(
        &mut self,
        input: &TrackerInput<'_, D>,
        work: &mut TrackerScratch,
    ) {
        work.basins.clear();
        work.basins.resize(self.records.len(), Basin::default());
        for (record, &basin) in self.records.iter().zip(&input.measure.basin) {
            let basin = &mut work.basins[basin as usize];
            basin.open |= record.open;
            basin.whole += record.volume;
            match record.phase {
                Label::Air => basin.air += record.rest,
                _ => basin.liquid += record.rest,
            }
        }
        for (record, &basin) in self.records.iter_mut().zip(&input.measure.basin) {
            let Basin { open, whole, liquid, air } = work.basins[basin as usize];
            if record.phase == Label::Air && !open && air > 0.0 && liquid > 0.0 && whole > liquid {
                record.rest *= (whole - liquid) / air;
            }
        }
    }
}

/// Whether a component has a part in a block or in one beside it.
fn is_near<const D: usize>(input: &TrackerInput<'_, D>, component: u32, home: [i32; 3]) -> bool {
    (0..power(3, D)).any(|shift| {
        let shift = unflatten::<D>(shift, 3);
        let block = std::array::from_fn(|axis| home[axis] + shift[axis] as i32 - 1);
        input.components.has_part_in(input.blocks, block, component)
    })
}
