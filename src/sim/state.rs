//! State and scratch memory of a simulation.

use crate::geometry::{Boundary, Walls};
use crate::grid::{Blocks, CellSet, Field, Slots, block_cells};
use crate::liquid::{
    ExtrapolateScratch, FaceMask, Gas, Hollow, HollowScratch, Particles, Sorter, SurfaceScratch,
};
use crate::math::Real;
use crate::pressure::Projection;

use super::{Air, AirSource, Drain, Setup, Source};

/// All that is needed to go on after a restart.
#[derive(Clone)]
pub struct State<const D: usize> {
    /// Simulated seconds.
    pub time: Real,
    /// Substeps so far.
    pub steps: u64,
    /// The liquid.
    pub particles: Particles<D>,
    /// Where it has none, because it moves in tiles.
    pub hollow: Hollow,
    /// Solids and closed sides.
    pub walls: Walls<D>,
    /// Where liquid appears.
    pub sources: Vec<Source<D>>,
    /// Where liquid vanishes.
    pub drains: Vec<Drain<D>>,
    /// Where bubbles are released.
    pub air_sources: Vec<AirSource<D>>,
    /// The active part of the grid.
    pub blocks: Blocks<D>,
    /// The walls on it.
    pub boundary: Boundary<D>,
    /// Face velocities, m/s: divergence-free in the liquid, extrapolated around it.
    pub velocity: [Field<f32>; D],
    /// Face velocities of the substep before, m/s; zero where there was none.
    pub earlier: [Field<f32>; D],
    /// The velocity of air that has mass.
    pub gas: Gas<D>,
    /// Seconds that the last substep took; zero before the first.
    pub last_dt: Real,
    /// The liquid's signed distance at cell centres, metres.
    pub surface: Field<f32>,
    /// Labels, and the pressure that the next solve starts from.
    pub projection: Projection<D>,
    /// Particles by cell.
    pub sorter: Sorter<D>,
    /// Cells surrounded by liquid.
    pub surface_scratch: SurfaceScratch,
    /// Regions of air and liquid, and the volumes they are to keep.
    pub air: Air<D>,
    /// Largest face velocity component, m/s.
    pub max_component: Real,
}

/// Memory that a substep reuses. Dropping it changes speed, never results.
pub struct Scratch<const D: usize> {
    /// Velocities before the projection: FLIP wants the difference. During the transfer, the weights.
    pub before: [Field<f32>; D],
    /// Faces whose velocity is known.
    pub valid: [FaceMask; D],
    /// Faces where the velocity of air is known, one axis at a time.
    pub known: FaceMask,
    /// Where liquid without particles went, and with what velocity.
    pub hollow: HollowScratch<D>,
    /// Cells that move as one affine field.
    pub even: CellSet,
    /// Memory of the extrapolation.
    pub extrapolate: ExtrapolateScratch,
    /// Something small per block.
    pub flags: Field<u8>,
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
            particles: Particles::default(),
            hollow: Hollow::default(),
            walls: Walls { solids: setup.solids.clone(), size: setup.size, open: setup.open },
            sources: setup.sources.clone(),
            drains: setup.drains.clone(),
            air_sources: setup.air_sources.clone(),
            blocks: Blocks::new(setup.grid),
            boundary: Boundary::new(),
            velocity: std::array::from_fn(|_| Field::new(cells, 0.0)),
            earlier: std::array::from_fn(|_| Field::new(cells, 0.0)),
            gas: Gas::new(),
            last_dt: 0.0,
            surface: Field::new(cells, crate::liquid::KERNEL_CELLS * setup.grid.dx as f32),
            projection: Projection::new(),
            sorter: Sorter::new(),
            surface_scratch: SurfaceScratch::new(D),
            air: Air::default(),
            max_component: 0.0,
        }
    }
}

impl<const D: usize> Scratch<D> {
    /// No memory yet.
    pub fn new() -> Self {
        Scratch {
            before: std::array::from_fn(|_| Field::new(block_cells(D), 0.0)),
            valid: std::array::from_fn(|_| FaceMask::new(D)),
            known: FaceMask::new(D),
            hollow: HollowScratch::new(),
            even: CellSet::new(),
            extrapolate: ExtrapolateScratch::new(D),
            flags: Field::new(1, 0),
            slots: Slots::default(),
            partial: Vec::new(),
        }
    }

    /// Makes room for the active blocks.
    pub fn resize(&mut self, slots: usize) {
        self.before.iter_mut().for_each(|field| field.resize(slots));
        self.valid.iter_mut().for_each(|mask| mask.bits.resize(slots));
        self.flags.resize(slots);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.before.iter().map(Field::bytes).sum::<usize>()
            + self.valid.iter().map(|mask| mask.bits.bytes()).sum::<usize>()
            + self.known.bits.bytes()
            + self.hollow.bytes()
            + self.even.bytes()
            + self.extrapolate.bytes()
            + self.flags.bytes()
    }
}

impl<const D: usize> Default for Scratch<D> {
    fn default() -> Self {
        Self::new()
    }
}
