//! State and scratch memory of a simulation.
//!
//! A [`State`] is all that is needed to go on. Whatever follows from it (labels, connected components, the walls on the
//! grid) and whatever only makes the next substep faster (the solver's levels, matrices, lists) is part of [`Scratch`]:
//! [`Scratch::of`] finds the former anew, to the last bit, and so a substep with new memory gives the same as one with
//! old.

use crate::bubbles::Tracker;
use crate::gas::Gas;
use crate::geometry::{Boundary, Joint, Walls};
use crate::grid::{Blocks, CellSet, ExtrapolateScratch, FaceMask, Field, Slots, block_cells};
use crate::liquid::{CellRanges, Core, CoreScratch, Emitter, Particles, Sorter, SurfaceScratch};
use crate::math::Real;
use crate::pressure::{Pressure, Projection};
use crate::smoke::{Smoke, SmokeScratch};
use crate::tiles::TileMemory;
use crate::viscosity::Viscosity;

use super::air::{Air, ComponentRoles};
use super::hands::Hands;
use super::{AirSource, ContactScratch, Drain, Setup, SmokeSource, Source, WallCells};

/// All that is needed to go on after a restart, between two substeps.
#[derive(Clone)]
pub struct State<const D: usize> {
    /// Simulated seconds.
    pub time: Real,
    /// Substeps so far.
    pub steps: u64,
    /// Frames so far.
    pub frame: usize,
    /// Seconds that the last substep took; zero before the first.
    pub last_dt: Real,
    /// Largest face velocity component, m/s.
    pub max_component: Real,
    /// Solids and closed sides.
    pub walls: Walls<D>,
    /// What ties bodies.
    pub joints: Vec<Joint<D>>,
    /// What hands hold, put in and took out.
    pub hands: Hands,
    /// Where liquid appears.
    pub sources: Vec<Source<D>>,
    /// Where liquid vanishes.
    pub drains: Vec<Drain<D>>,
    /// Where bubbles are released.
    pub air_sources: Vec<AirSource<D>>,
    /// Where smoke appears.
    pub smoke_sources: Vec<SmokeSource<D>>,
    /// The active part of the grid.
    pub blocks: Blocks<D>,
    /// The liquid.
    pub particles: Particles<D>,
    /// Which of its particles lie in which cell.
    pub ranges: CellRanges,
    /// Where it has none, because it moves in tiles.
    pub core: Core,
    /// Face velocities, m/s: divergence-free in the liquid, extrapolated around it.
    pub velocity: [Field<f32>; D],
    /// Face velocities of the substep before, m/s; zero where there was none.
    pub earlier: [Field<f32>; D],
    /// The velocity of air that has mass.
    pub gas: Gas<D>,
    /// What it carries.
    pub smoke: Smoke<D>,
    /// The liquid's signed distance at cell centres, metres.
    pub surface: Field<f32>,
    /// The pressure that the next solve starts from.
    pub pressure: Pressure,
    /// How tiles move.
    pub tiles: TileMemory,
    /// Who the components of air and liquid are, and the volumes they are to keep.
    pub tracker: Tracker,
    /// What the last projection was told about them.
    pub component_roles: ComponentRoles,
    /// Events of bubbles that reports have told about.
    pub events_reported: usize,
}

/// Memory that a substep reuses, and what follows from a state. Dropping it for [`Self::of`] changes speed, never
/// results.
pub struct Scratch<const D: usize> {
    /// The walls on the grid.
    pub boundary: Boundary<D>,
    /// Components of air and liquid.
    pub air: Air<D>,
    /// Labels, tiles, matrices and the linear solver.
    pub projection: Projection<D>,
    /// Memory of the viscous step.
    pub viscosity: Viscosity<D>,
    /// Memory of the sorting.
    pub sorter: Sorter<D>,
    /// Cells surrounded by liquid.
    pub surface: SurfaceScratch,
    /// Velocities before the projection: FLIP wants the difference. During the transfer, the weights.
    pub before: [Field<f32>; D],
    /// Faces whose velocity is known.
    pub valid: [FaceMask; D],
    /// Faces where the velocity of air is known, one axis at a time.
    pub known: FaceMask,
    /// Memory of what carries smoke.
    pub smoke: SmokeScratch<D>,
    /// Where liquid without particles went, and with what velocity.
    pub core: CoreScratch<D>,
    /// Cells that move as one affine field.
    pub affine: CellSet,
    /// Memory of the extrapolation.
    pub extrapolate: ExtrapolateScratch,
    /// Particles to be born per block.
    pub births: Field<u32>,
    /// Where each source wants particles.
    pub emitters: Vec<Emitter<D>>,
    /// Where solids may touch each other.
    pub contacts: ContactScratch<D>,
    /// Lists of blocks.
    pub slots: Slots,
    /// Sums per block.
    pub partial: Vec<f64>,
}

impl<const D: usize> State<D> {
    /// An empty tank.
    pub fn new(setup: &Setup<D>) -> Self {
        let cells = block_cells(D);
        State {
            time: 0.0,
            steps: 0,
            frame: 0,
            last_dt: 0.0,
            max_component: 0.0,
            walls: Walls {
                solids: setup.solids.clone(),
                size: setup.size,
                open: setup.open,
                sticky: setup.sticky,
                slip: setup.slip,
                voxels: setup.params.walls == WallCells::Voxel,
            },
            joints: setup.joints.clone(),
            hands: Hands::default(),
            sources: setup.sources.clone(),
            drains: setup.drains.clone(),
            air_sources: setup.air_sources.clone(),
            smoke_sources: setup.smoke_sources.clone(),
            blocks: Blocks::new(setup.grid),
            particles: Particles::default(),
            ranges: CellRanges::new(D),
            core: Core::default(),
            velocity: std::array::from_fn(|_| Field::new(cells, 0.0)),
            earlier: std::array::from_fn(|_| Field::new(cells, 0.0)),
            gas: Gas::new(),
            smoke: Smoke::new(setup.full_smoke()),
            surface: Field::new(cells, crate::liquid::KERNEL_CELLS * setup.grid.dx as f32),
            pressure: Pressure::new(D),
            tiles: TileMemory::default(),
            tracker: Tracker::default(),
            component_roles: ComponentRoles::default(),
            events_reported: 0,
        }
    }

    /// Bytes held on the grid.
    pub fn grid_bytes(&self) -> usize {
        self.blocks.bytes()
            + self.ranges.bytes()
            + self.core.bytes()
            + self.velocity.iter().chain(&self.earlier).map(Field::bytes).sum::<usize>()
            + self.gas.bytes()
            + self.smoke.bytes()
            + self.surface.bytes()
            + self.pressure.q.bytes()
    }

    /// Bytes held per particle.
    pub fn particle_bytes(&self) -> usize {
        self.particles.bytes() + self.tracker.particle_bytes()
    }
}

impl<const D: usize> Scratch<D> {
    /// No memory yet.
    pub fn new() -> Self {
        Scratch {
            boundary: Boundary::new(),
            air: Air::default(),
            projection: Projection::new(),
            viscosity: Viscosity::default(),
            sorter: Sorter::new(),
            surface: SurfaceScratch::new(D),
            before: std::array::from_fn(|_| Field::new(block_cells(D), 0.0)),
            valid: std::array::from_fn(|_| FaceMask::new(D)),
            known: FaceMask::new(D),
            smoke: SmokeScratch::new(),
            core: CoreScratch::new(),
            affine: CellSet::new(),
            extrapolate: ExtrapolateScratch::new(D),
            births: Field::new(1, 0),
            emitters: Vec::new(),
            contacts: ContactScratch::default(),
            slots: Slots::default(),
            partial: Vec::new(),
        }
    }

    /// New memory for a state between two substeps, with all that follows from it.
    pub fn of(state: &State<D>) -> Self {
        let mut scratch = Scratch::new();
        super::step::derive(state, &mut scratch);
        scratch
    }

    /// Makes room for the active blocks.
    pub fn resize(&mut self, slots: usize) {
        self.before.iter_mut().for_each(|field| field.resize(slots));
        self.valid.iter_mut().for_each(|mask| mask.bits.resize(slots));
        self.births.resize(slots);
    }

    /// Bytes held on the grid.
    pub fn grid_bytes(&self) -> usize {
        self.boundary.bytes()
            + self.air.bytes()
            + self.projection.bytes()
            + self.viscosity.bytes()
            + self.sorter.grid_bytes()
            + self.surface.bytes()
            + self.before.iter().map(Field::bytes).sum::<usize>()
            + self.valid.iter().map(|mask| mask.bits.bytes()).sum::<usize>()
            + self.known.bits.bytes()
            + self.smoke.bytes()
            + self.core.bytes()
            + self.affine.bytes()
            + self.extrapolate.bytes()
            + self.births.bytes()
    }
}

impl<const D: usize> Default for Scratch<D> {
    fn default() -> Self {
        Self::new()
    }
}
