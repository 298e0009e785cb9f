//! The air in a simulation: its regions, who they are, and what the projection is to do about them.

use crate::bubbles::{Measure, Rates, Regions, Scene, Targets, Tracker, WallBlocks};
use crate::geometry::{Boundary, Label, Settled, Walls};
use crate::grid::{Blocks, Field, SIDE, block_cells, masks};
use crate::liquid::{CellRanges, Hollow};
use crate::math::{Real, Vector, unflatten};
use crate::pressure::{FREE, OWN, Projection, Roles};
use crate::regions::Tiling;

use super::gas::Tally;
use super::{AirSource, Params};

/// Regions of air and liquid with all that is known about them.
#[derive(Clone, Default)]
pub struct Air<const D: usize> {
    /// Blocks that walls run through, and what blocks that are not stored are made of.
    pub wall_blocks: WallBlocks,
    /// The connected regions.
    pub regions: Regions<D>,
    /// Their sizes.
    pub measure: Measure<D>,
    /// Who they are.
    pub tracker: Tracker,
    targets: Targets,
    tally: Tally,
    /// Which air regions keep their volume.
    kept: Vec<bool>,
    /// Density over the liquid's; zero where air is weightless.
    mass: Real,
    outflow: Vec<Real>,
    node: Vec<u32>,
    region_of_node: Vec<u32>,
    weight: Vec<Real>,
    guess: Vec<Real>,
    fed: Vec<(u32, Real)>,
    in_tiles: Vec<Real>,
    last_dt: Real,
}

/// What the regions are found from.
pub struct Surroundings<'a, const D: usize> {
    /// Where.
    pub blocks: &'a Blocks<D>,
    /// The walls on the grid.
    pub boundary: &'a Boundary<D>,
    /// The walls themselves.
    pub walls: &'a Walls<D>,
    /// What each cell is made of.
    pub label: &'a Field<Label>,
    /// Blocks where nothing changes.
    pub settled: &'a Settled,
    /// The liquid's signed distance.
    pub surface: &'a Field<f32>,
    /// Simulated seconds.
    pub time: Real,
}

impl<'a, const D: usize> Surroundings<'a, D> {
    /// What the parts of a state say; labels are those of the projection.
    pub fn new(
        blocks: &'a Blocks<D>,
        boundary: &'a Boundary<D>,
        walls: &'a Walls<D>,
        projection: &'a Projection<D>,
        surface: &'a Field<f32>,
        time: Real,
    ) -> Self {
        let Projection { label, settled, .. } = projection;
        Surroundings { blocks, boundary, walls, label, settled, surface, time }
    }
}

impl<const D: usize> Air<D> {
    /// Finds the connected regions.
    pub fn fill(&mut self, around: &Surroundings<'_, D>) {
        let Surroundings { blocks, boundary, walls, label, settled, .. } = *around;
        self.regions.fill(blocks, boundary, walls, label, settled, &self.wall_blocks);
    }

    /// Measures the regions, recognises them, and decides which outflow to ask of each.
    pub fn track(
        &mut self,
        around: &Surroundings<'_, D>,
        ranges: &CellRanges,
        origin: &[u32],
        sources: &[AirSource<D>],
        params: &Params,
        dt: Real,
    ) {
        let Surroundings { blocks, boundary, surface, settled, time, .. } = *around;
        self.measure.update(blocks, boundary, surface, &self.regions, settled);
        self.find_fed(around, sources, dt);
        let conserve = params.keeps_air();
        self.tracker.update(&Scene {
            blocks,
            ranges,
            origin,
            regions: &self.regions,
            measure: &self.measure,
            fed: &self.fed,
            per_cell: crate::math::power(params.seeds_per_axis as usize, D) as Real,
            conserve,
            time,
        });
        self.mass = if params.model.has_gas() { params.air_density / params.density } else { 0.0 };
        self.assign_nodes(conserve, dt);
        let kept = &self.kept;
        self.targets.update(
            self.tracker.records(),
            &self.measure,
            |region| kept[region],
            Rates { air: params.bubble_correction, liquid: params.volume_correction },
            blocks.grid().dx,
            dt,
        );
        for (record, &outflow) in self.tracker.records_mut().iter_mut().zip(&self.targets.outflow) {
            record.asked = outflow;
        }
        self.share_outflow(around);
    }

    /// What is asked of air with mass is asked of all its cells alike.
    fn share_outflow(&mut self, around: &Surroundings<'_, D>) {
        self.outflow.clear();
        self.outflow.extend_from_slice(&self.targets.outflow);
        if self.mass > 0.0 {
            self.tally.update(around.blocks, &self.regions, around.label, |_, _| 0.0);
            for (region, outflow) in self.outflow.iter_mut().enumerate().filter(|(r, _)| self.node[*r] == OWN)
            {
                *outflow /= self.tally.sums[region][0].max(1.0);
            }
        }
    }

    /// The inside of a tile cannot expand: what is asked of a region is asked of its other cells, the more of each.
    pub fn ask_outside(&mut self, tiling: &Tiling<D>) {
        // Few cells are not asked for everything at once.
        const MOST: Real = 20.0;
        self.in_tiles.clear();
        self.in_tiles.resize(self.outflow.len(), 0.0);
        tiling.for_each_piece(|slot, bits| {
            let Some(first) = masks::first(bits) else { return };
            if let Some(cells) = self.in_tiles.get_mut(self.regions.of.block(slot)[first] as usize) {
                *cells += bits.iter().map(|word| word.count_ones() as Real).sum::<Real>();
            }
        });
        for (region, inside) in self.in_tiles.iter().enumerate().filter(|(_, cells)| **cells > 0.0) {
            let asked = match self.tracker.records()[region].phase {
                Label::Liquid => self.measure.extent[region].deep,
                _ => self.tally.sums[region][0],
            };
            self.outflow[region] *= (asked / (asked - inside).max(1.0)).clamp(1.0, MOST);
        }
    }

    /// Says what every air region that touches liquid is to the projection: closed ones keep their volume, by a shared
    /// unknown if air is weightless.
    fn assign_nodes(&mut self, conserve: bool, dt: Real) {
        let records = self.tracker.records();
        let scale = if self.last_dt > 0.0 { dt / self.last_dt } else { 0.0 };
        self.last_dt = dt;
        self.node.clear();
        self.node.resize(records.len(), FREE);
        self.region_of_node.clear();
        self.weight.clear();
        self.guess.clear();
        self.kept.clear();
        self.kept.resize(records.len(), false);
        if !conserve {
            return;
        }
        for (_, air, _) in self.measure.touching() {
            let closed = !records[air as usize].open;
            self.kept[air as usize] = closed;
            if self.mass > 0.0 {
                self.node[air as usize] = OWN;
            } else if closed {
                self.node[air as usize] = 0;
            }
        }
        if self.mass > 0.0 {
            return;
        }
        for (region, node) in self.node.iter_mut().enumerate().filter(|(_, node)| **node != FREE) {
            *node = self.region_of_node.len() as u32;
            self.region_of_node.push(region as u32);
            self.weight.push(records[region].volume.max(1.0));
            self.guess.push(records[region].pressure * scale);
        }
    }

    /// The regions as the projection sees them.
    pub fn roles(&self) -> Roles<'_> {
        Roles {
            region: &self.regions.of,
            node: &self.node,
            air_mass: self.mass,
            outflow: &self.outflow,
            weight: &self.weight,
            guess: &self.guess,
        }
    }

    /// Notes the bubbles' scaled pressures: a guess for the next solve. Where every cell has its own, their mean.
    pub fn note_pressures(&mut self, blocks: &Blocks<D>, projection: &Projection<D>) {
        let records = self.tracker.records_mut();
        for (&region, &q) in self.region_of_node.iter().zip(projection.shared_q()) {
            records[region as usize].pressure = q;
        }
        if self.mass > 0.0 {
            let q = |slot: usize, local: usize| projection.q.block(slot)[local];
            self.tally.update(blocks, &self.regions, &projection.label, q);
            for (record, sum) in records.iter_mut().zip(&self.tally.sums).filter(|(_, sum)| sum[0] > 0.0) {
                record.pressure = sum[1] / sum[0];
            }
        }
    }

    /// Says which liquid is without particles from now on; a cell of it would have `per_cell`.
    pub fn note_hollow(&mut self, hollow: &Hollow, per_cell: usize) {
        let shares = hollow.shares().map(|(slot, cell, cells)| (slot, cell, cells * per_cell));
        self.tracker.note_hollow(&self.measure, shares);
    }

    /// Forgets pressures and the step they belong to.
    pub fn forget_pressures(&mut self) {
        self.tracker.records_mut().iter_mut().for_each(|record| record.pressure = 0.0);
        self.last_dt = 0.0;
    }

    /// Whether the last projection kept an air region's volume.
    pub fn is_constrained(&self, region: usize) -> bool {
        self.kept.get(region).copied().unwrap_or(false)
    }

    /// Net outflow asked of a region, m/s: of air as a whole, of liquid in every deep cell.
    pub fn outflow(&self, region: usize) -> Real {
        self.targets.outflow.get(region).copied().unwrap_or(0.0)
    }

    /// Bytes held on the grid.
    pub fn grid_bytes(&self) -> usize {
        self.regions.bytes() + self.measure.bytes()
    }

    /// The air regions in the mouths of running air sources, and what they get in this step, in cells.
    fn find_fed(&mut self, around: &Surroundings<'_, D>, sources: &[AirSource<D>], dt: Real) {
        let (blocks, grid) = (around.blocks, around.blocks.grid());
        let (half, dx) = (0.5 * SIDE as Real, grid.dx);
        self.fed.clear();
        for source in sources.iter().filter(|source| source.is_running(around.time)) {
            let first_fed = self.fed.len();
            for &slot in blocks.slots().as_slice() {
                let first = blocks.first_cell(slot as usize);
                let centre = Vector::from_fn(|k, _| (first[k] as Real + half) * dx);
                if source.shape.distance(&centre) > half * (D as Real).sqrt() * dx {
                    continue;
                }
                for local in 0..block_cells(D) {
                    if around.label.block(slot as usize)[local] != Label::Air {
                        continue;
                    }
                    let at = unflatten::<D>(local, SIDE);
                    let x = Vector::from_fn(|k, _| ((first[k] + at[k] as i32) as Real + 0.5) * dx);
                    let region = self.regions.of.block(slot as usize)[local];
                    let known = self.fed[first_fed..].iter().any(|&(fed, _)| fed == region);
                    if source.shape.distance(&x) < 0.0 && !known {
                        self.fed.push((region, 0.0));
                    }
                }
            }
            let count = (self.fed.len() - first_fed).max(1);
            let cells = source.rate * dt / grid.cell_volume() / count as Real;
            self.fed[first_fed..].iter_mut().for_each(|(_, volume)| *volume = cells);
        }
    }
}
