//! A simulation to bytes and back: its state and its parameters. All the rest is found anew.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveError, Reader, Writer};
use crate::bubbles::Tracker;
use crate::gas::Gas;
use crate::grid::{Blocks, Field};
use crate::liquid::{CellRanges, Core, Particles};
use crate::math::Real;
use crate::pressure::Pressure;
use crate::smoke::Smoke;
use crate::tiles::TileMemory;

use super::bodies::{load_bodies, save_bodies};
use super::hands::Hands;
use super::{Params, Scratch, Setup, Simulation, State, WallCells};

/// The grid that a state lives on.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    cells: Vec<usize>,
    dx: Real,
}

impl Place {
    fn of<const D: usize>(blocks: &Blocks<D>) -> Self {
        let grid = blocks.grid();
        Place { cells: grid.cells.to_vec(), dx: grid.dx }
    }
}

/// The numbers of a state.
#[derive(Serialize, Deserialize)]
struct Numbers {
    time: Real,
    steps: u64,
    frame: usize,
    last_dt: Real,
    max_component: Real,
    events_reported: usize,
}

impl<const D: usize> State<D> {
    /// Writes all but what the scene says: solids that do not move by forces, sources, drains.
    pub fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        let State { time, steps, frame, last_dt, max_component, events_reported, .. } = *self;
        let State { blocks, particles, ranges, core, velocity, earlier, gas, smoke, surface, .. } = self;
        out.value("grid", &Place::of(blocks))?;
        out.value("state", &Numbers { time, steps, frame, last_dt, max_component, events_reported })?;
        blocks.save(out)?;
        particles.save(out)?;
        ranges.save(blocks, out)?;
        core.save(out)?;
        for (name, fields) in [("velocity", velocity), ("earlier", earlier)] {
            for (axis, field) in fields.iter().enumerate() {
                field.save(&format!("{name}.{axis}"), blocks, out)?;
            }
        }
        gas.save(blocks, out)?;
        smoke.save(blocks, out)?;
        surface.save("surface", blocks, out)?;
        self.pressure.save(blocks, out)?;
        self.tiles.save(out)?;
        self.tracker.save(out)?;
        out.value("duties", &self.component_roles)?;
        self.hands.save(out)?;
        save_bodies(&self.walls, out)
    }

    /// Reads a state of a scene.
    pub fn load(setup: &Setup<D>, from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        let mut state = State::new(setup);
        let place: Place = from.value("grid")?;
        ArchiveError::unless(place == Place::of(&state.blocks), "grid", "is not that of the scene")?;
        let Numbers { time, steps, frame, last_dt, max_component, events_reported } = from.value("state")?;
        let is_sane =
            [time, last_dt, max_component].iter().all(|number| number.is_finite() && *number >= 0.0);
        ArchiveError::unless(is_sane, "state", "has a number that cannot be")?;
        state = State { time, steps, frame, last_dt, max_component, events_reported, ..state };
        let blocks = Blocks::load(setup.grid, from)?;
        state.particles = Particles::load(from)?;
        let particles = state.particles.len();
        state.ranges = CellRanges::load(&blocks, particles, from)?;
        state.core = Core::load(&blocks, particles, from)?;
        for (name, fields) in [("velocity", &mut state.velocity), ("earlier", &mut state.earlier)] {
            for (axis, field) in fields.iter_mut().enumerate() {
                field.load(&format!("{name}.{axis}"), &blocks, from)?;
            }
        }
        state.gas = Gas::load(&blocks, from)?;
        state.smoke = Smoke::load(&blocks, from)?;
        Field::load(&mut state.surface, "surface", &blocks, from)?;
        state.pressure = Pressure::load(&blocks, from)?;
        state.tiles = TileMemory::load(from)?;
        state.tracker = Tracker::load(&blocks, particles, from)?;
        state.component_roles = from.value("duties")?;
        let is_sane = state.component_roles.are_sane(state.tracker.records().len());
        ArchiveError::unless(is_sane, "duties", "is about other components")?;
        state.hands = Hands::load(&mut state.walls, &setup.grid, from)?;
        load_bodies(&mut state.walls, from)?;
        state.blocks = blocks;
        Ok(state)
    }
}

impl<const D: usize> Simulation<D> {
    /// Writes the simulation as it is between two frames, to go on later with [`Self::load`].
    pub fn save(&self, mut out: impl Write) -> Result<(), ArchiveError> {
        let mut out = Writer::begin(&mut out)?;
        self.save_to(&mut out)?;
        out.finish()
    }

    /// Reads a simulation of a scene: it goes on as the one that was saved would have, to the last bit.
    pub fn load(setup: &Setup<D>, mut from: impl Read) -> Result<Self, ArchiveError> {
        let mut from = Reader::begin(&mut from)?;
        let simulation = Self::load_from(setup, &mut from)?;
        from.finish()?;
        Ok(simulation)
    }

    /// Writes the simulation into an archive that may hold more.
    pub fn save_to(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.value("parameters", &self.params)?;
        self.state().save(out)
    }

    /// Reads what [`Self::save_to`] wrote.
    pub fn load_from(setup: &Setup<D>, from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        let params: Params = from.value("parameters")?;
        let mut state = State::load(setup, from)?;
        state.walls.voxels = params.walls == WallCells::Voxel;
        let scratch = Scratch::of(&state);
        // What is derived has to fit: a version that finds other components or tiles cannot go on with these.
        let components = scratch.air.components.len() == state.tracker.records().len();
        ArchiveError::unless(components, "tracker", "is about other components than there are")?;
        let tiles =
            scratch.projection.tiling.as_ref().is_none_or(|tiling| tiling.is_remembered(&state.tiles));
        ArchiveError::unless(tiles, "tiles.now.id", "names other tiles than there are")?;
        Ok(Simulation::from_parts(params, state, scratch))
    }
}
