//! The air in a simulation: its components, who they are, and what the projection is to do about them.

use serde::{Deserialize, Serialize};

use crate::bubbles::{
    AirSums, Components, Measure, Rates, Record, Targets, Tracker, TrackerInput, TrackerScratch, WallBlocks,
};
use crate::geometry::{Boundary, Label, Settled, Walls};
use crate::grid::{Blocks, Field, SIDE, block_cells, masks};
use crate::liquid::CellRanges;
use crate::math::{Real, Vector, unflatten};
use crate::pressure::{FREE, OWN, Pressure, Projection, Roles};
use crate::tiles::Tiling;

use super::{AirSource, Params, StepLength};

/// Beside solids that move, liquid is brought back no faster than this, 1/s. What they close off between them and a wall has
/// nowhere to go: asked for more, the scene `seesaw_2d` found velocities without bound (at 10/s and above).
const FASTEST_BESIDE_MOTION: Real = 4.0;

/// What the projection is told about each component. Lists are by component unless they say otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ComponentRoles {
    /// Which air keeps its volume.
    kept: Vec<bool>,
    /// Density of air over the liquid's; zero where air is weightless.
    mass: Real,
    /// The unknown that air shares, or what it has instead.
    node: Vec<u32>,
    /// Per shared unknown: its component.
    component_of_node: Vec<u32>,
    /// Per shared unknown: how many cells it stands for.
    weight: Vec<Real>,
    /// Per shared unknown: a first guess of its scaled pressure.
    guess: Vec<Real>,
    /// Net outflow asked for, m/s: of air as a whole, of liquid in every deep cell.
    asked: Vec<Real>,
    /// Net outflow as the projection wants it, m/s: of every cell where cells have their own pressure.
    outflow: Vec<Real>,
    /// Length of the step that pressures belong to, seconds; zero if there was none.
    dt: Real,
}

/// Components of air and liquid as they follow from a state, and the memory to find them.
#[derive(Clone, Default)]
pub struct Air<const D: usize> {
    /// Blocks that walls run through, and what blocks that are not stored are made of.
    pub wall_blocks: WallBlocks,
    /// The connected components.
    pub components: Components<D>,
    /// Their sizes.
    pub measure: Measure<D>,
    /// Memory of the tracker.
    pub tracker: TrackerScratch,
    targets: Targets,
    air_sums: AirSums,
    fed: Vec<(u32, Real)>,
    in_tiles: Vec<Real>,
}

/// What the components are found from.
pub struct AirInput<'a, const D: usize> {
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

impl<'a, const D: usize> AirInput<'a, D> {
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
        AirInput { blocks, boundary, walls, label, settled, surface, time }
    }
}

impl<const D: usize> Air<D> {
    /// Finds the connected components.
    pub fn fill(&mut self, around: &AirInput<'_, D>) {
        let AirInput { blocks, boundary, walls, label, settled, .. } = *around;
        self.components.fill(blocks, boundary, walls, label, settled, &self.wall_blocks);
    }

    /// Measures them.
    pub fn measure(&mut self, around: &AirInput<'_, D>) {
        let AirInput { blocks, boundary, surface, settled, .. } = *around;
        self.measure.update(blocks, boundary, surface, &self.components, settled);
    }

    /// Recognises the components, once they are measured, and decides which outflow to ask of each.
    #[allow(clippy::too_many_arguments, reason = "where components are, who they were, and who changes them")]
    pub fn track(
        &mut self,
        tracker: &mut Tracker,
        component_roles: &mut ComponentRoles,
        around: &AirInput<'_, D>,
        ranges: &CellRanges,
        origin: &[u32],
        sources: &[AirSource<D>],
        has_smoke: bool,
        params: &Params,
        StepLength { dt, longest }: StepLength,
    ) {
        let AirInput { blocks, walls, time, .. } = *around;
        self.find_fed(around, sources, dt);
        let conserve = params.keeps_air();
        let input = TrackerInput {
            blocks,
            ranges,
            origin,
            components: &self.components,
            measure: &self.measure,
            fed: &self.fed,
            per_cell: crate::math::power(params.seeds_per_axis as usize, D) as Real,
            conserve,
            time,
        };
        tracker.update(&input, &mut self.tracker);
        component_roles.mass = if params.model.has_gas() { params.air_density / params.density } else { 0.0 };
        component_roles.assign_nodes(tracker.records(), &self.measure, conserve, has_smoke, dt);
        let kept = &component_roles.kept;
        self.targets.update(
            tracker.records(),
            &self.measure,
            |component| kept[component],
            Rates {
                air: params.bubble_correction,
                liquid: match walls.solids.iter().any(|solid| solid.has_pose()) {
                    true => params.volume_correction.min(FASTEST_BESIDE_MOTION),
                    false => params.volume_correction,
                },
                // If a void were gone after any step, however short, its walls would be the faster the shorter the step;
                // and steps get shorter with what is faster, until velocities are infinite.
                void: 1.0 / longest,
            },
            blocks.grid().dx,
            dt,
        );
        component_roles.asked.clone_from(&self.targets.outflow);
        for (record, &outflow) in tracker.records_mut().iter_mut().zip(&component_roles.asked) {
            record.asked = outflow;
        }
        self.share_outflow(component_roles, around);
    }

    /// What is asked of air with mass is asked of all its cells alike.
    fn share_outflow(&mut self, component_roles: &mut ComponentRoles, around: &AirInput<'_, D>) {
        let ComponentRoles { node, asked, outflow, mass, .. } = component_roles;
        outflow.clone_from(asked);
        if *mass > 0.0 {
            self.air_sums.update(around.blocks, &self.components, around.label, |_, _| 0.0);
            for (component, outflow) in outflow.iter_mut().enumerate().filter(|(r, _)| node[*r] == OWN) {
                *outflow /= self.air_sums.sums[component][0].max(1.0);
            }
        }
    }

    /// The inside of a tile cannot expand: what is asked of a component is asked of its other cells, the more of each.
    pub fn ask_outside(
        &mut self,
        tracker: &Tracker,
        component_roles: &mut ComponentRoles,
        tiling: &Tiling<D>,
    ) {
        // Few cells are not asked for everything at once.
        const MOST: Real = 20.0;
        self.in_tiles.clear();
        self.in_tiles.resize(component_roles.outflow.len(), 0.0);
        tiling.for_each_piece(|slot, bits| {
            let Some(first) = masks::first(bits) else { return };
            if let Some(cells) = self.in_tiles.get_mut(self.components.of.block(slot)[first] as usize) {
                *cells += bits.iter().map(|word| word.count_ones() as Real).sum::<Real>();
            }
        });
        for (component, inside) in self.in_tiles.iter().enumerate().filter(|(_, cells)| **cells > 0.0) {
            let asked = match tracker.records()[component].phase {
                Label::Liquid => self.measure.extent[component].deep,
                _ => self.air_sums.sums[component][0],
            };
            component_roles.outflow[component] *= (asked / (asked - inside).max(1.0)).clamp(1.0, MOST);
        }
    }

    /// Notes the bubbles' scaled pressures: a guess for the next solve. Where every cell has its own, their mean.
    pub fn note_pressures(
        &mut self,
        tracker: &mut Tracker,
        component_roles: &ComponentRoles,
        blocks: &Blocks<D>,
        projection: &Projection<D>,
        pressure: &Pressure,
    ) {
        let records = tracker.records_mut();
        for (&component, &q) in component_roles.component_of_node.iter().zip(projection.shared_q()) {
            records[component as usize].pressure = q;
        }
        if component_roles.mass > 0.0 {
            let q = |slot: usize, local: usize| pressure.q.block(slot)[local];
            self.air_sums.update(blocks, &self.components, &projection.label, q);
            for (record, sum) in records.iter_mut().zip(&self.air_sums.sums).filter(|(_, sum)| sum[0] > 0.0) {
                record.pressure = sum[1] / sum[0];
            }
        }
    }

    /// Bytes held on the grid.
    pub fn bytes(&self) -> usize {
        self.components.bytes() + self.measure.bytes()
    }

    /// The air components in the mouths of running air sources, and what they get in this step, in cells.
    fn find_fed(&mut self, around: &AirInput<'_, D>, sources: &[AirSource<D>], dt: Real) {
        let (blocks, grid) = (around.blocks, around.blocks.grid());
        let (half, dx) = (0.5 * SIDE as Real, grid.dx);
        self.fed.clear();
        for source in sources.iter().filter(|source| source.is_running(around.time)) {
            let first_fed = self.fed.len();
            let [low, high] = source.shape.extent();
            let may_meet = |first: [i32; D]| {
                (0..D).all(|k| {
                    first[k] as Real * dx <= high[k] && (first[k] + SIDE as i32) as Real * dx >= low[k]
                })
            };
            for &slot in blocks.slots().as_slice() {
                let first = blocks.first_cell(slot as usize);
                if !may_meet(first) {
                    continue;
                }
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
                    let component = self.components.of.block(slot as usize)[local];
                    let known = self.fed[first_fed..].iter().any(|&(fed, _)| fed == component);
                    if !known && source.shape.distance(&x) < 0.0 {
                        self.fed.push((component, 0.0));
                    }
                }
            }
            let count = (self.fed.len() - first_fed).max(1);
            let cells = source.rate * dt / grid.cell_volume() / count as Real;
            self.fed[first_fed..].iter_mut().for_each(|(_, volume)| *volume = cells);
        }
    }
}

impl ComponentRoles {
    /// Says what every air component that touches liquid is to the projection: closed ones keep their volume, by a
    /// shared unknown if air is weightless. Air with mass that may carry smoke moves even without liquid.
    fn assign_nodes<const D: usize>(
        &mut self,
        records: &[Record],
        measure: &Measure<D>,
        conserve: bool,
        has_smoke: bool,
        dt: Real,
    ) {
        let scale = if self.dt > 0.0 { dt / self.dt } else { 0.0 };
        self.dt = dt;
        self.node.clear();
        self.node.resize(records.len(), FREE);
        self.component_of_node.clear();
        self.weight.clear();
        self.guess.clear();
        self.kept.clear();
        self.kept.resize(records.len(), false);
        if !conserve {
            return;
        }
        for (_, air, _) in measure.touching() {
            let closed = !records[air as usize].open;
            self.kept[air as usize] = closed;
            if self.mass > 0.0 {
                self.node[air as usize] = OWN;
            } else if closed {
                self.node[air as usize] = 0;
            }
        }
        if self.mass > 0.0 {
            let all = self.node.iter_mut().zip(records);
            let airy = all.filter(|(_, record)| has_smoke && record.phase == Label::Air);
            airy.for_each(|(node, _)| *node = OWN);
            return;
        }
        for (component, node) in self.node.iter_mut().enumerate().filter(|(_, node)| **node != FREE) {
            *node = self.component_of_node.len() as u32;
            self.component_of_node.push(component as u32);
            self.weight.push(records[component].volume.max(1.0));
            self.guess.push(records[component].pressure * scale);
        }
    }

    /// The components, whose cells are given, as the projection sees them.
    pub fn roles<'a, const D: usize>(&'a self, components: &'a Components<D>) -> Roles<'a> {
        Roles {
            component: &components.of,
            node: &self.node,
            air_mass: self.mass,
            outflow: &self.outflow,
            weight: &self.weight,
            guess: &self.guess,
        }
    }

    /// Whether any air has mass.
    pub fn has_gas(&self) -> bool {
        self.mass > 0.0
    }

    /// Whether the lists fit that many components.
    pub(super) fn are_sane(&self, components: usize) -> bool {
        let ComponentRoles { kept, node, component_of_node, weight, guess, asked, outflow, .. } = self;
        let nodes = component_of_node.len();
        [kept.len(), node.len(), asked.len(), outflow.len()] == [components; 4]
            && [weight.len(), guess.len()] == [nodes; 2]
            && node.iter().all(|&node| node >= OWN || (node as usize) < nodes)
            && component_of_node.iter().all(|&component| (component as usize) < components)
    }

    /// Forgets the step that pressures belong to.
    pub fn forget_pressures(&mut self) {
        self.dt = 0.0;
    }

    /// Whether the last projection kept an air component's volume.
    pub fn is_constrained(&self, component: usize) -> bool {
        self.kept.get(component).copied().unwrap_or(false)
    }

    /// Net outflow asked of a component, m/s: of air as a whole, of liquid in every deep cell.
    pub fn outflow(&self, component: usize) -> Real {
        self.asked.get(component).copied().unwrap_or(0.0)
    }
}
