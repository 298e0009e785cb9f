//! Smoke and heat that air with mass carries along.
//!
//! Per cell: the smoke's `density` (kg per cubic metre of air) and its `heat` (kelvins over the surroundings), and how much
//! `air` holds them. All three are carried by the same flow through the open shares of faces (finite volumes):
//!
//! * What leaves one cell enters the next, so that nothing is lost but to rounding: the sum of `air · density` stays.
//! * No cell gets denser than the densest that it exchanged air with (`sweep`: second order where smoke is smooth).
//! * Air makes room for solids and liquid that move: what is left in a cell that they cover goes to the nearest open ones
//!   (`covered`). A cell's `air` follows the flow and may for a while be more or less than it has room for; a gentle flow
//!   from fuller to emptier cells corrects that, and carries smoke along (`flow`).
//!
//! Smoke is heavy and hot air is light: in the approximation of Boussinesq both are accelerations of the air (FSCG §6.2,
//! `lift`).
//!
//! Nothing goes through the surface of the liquid. Behind open sides of the domain air is clear.

mod covered;
mod flow;
mod lift;
mod room;
mod sweep;
mod totals;

use crate::archive::{ArchiveError, Reader, Writer};
use crate::geometry::{Boundary, Label};
use crate::grid::{Blocks, CHUNKS, Field, block_cells, for_each_block};
use crate::math::Real;

pub use lift::Lift;
pub use totals::Totals;

use covered::Covered;

/// What air carries along. Solids and liquid hold none, unless they cover all open cells far and wide.
#[derive(Clone, Debug)]
pub struct Smoke<const D: usize> {
    /// Smoke, kg/m³ (kg/m² in 2D).
    pub density: Field<f32>,
    /// Temperature over that of the surroundings, K.
    pub heat: Field<f32>,
    /// The air that they are in, as a share of the cell.
    pub air: Field<f32>,
    /// What there is to be seen at most: density, and magnitude of the heat. None where there never is smoke.
    full: Option<[f32; 2]>,
}

/// Where smoke is carried.
#[derive(Clone, Copy)]
pub struct Around<'a, const D: usize> {
    /// The grid.
    pub blocks: &'a Blocks<D>,
    /// The walls.
    pub boundary: &'a Boundary<D>,
    /// What cells are made of.
    pub label: &'a Field<Label>,
    /// Whether solids are stairs of whole cells.
    pub voxels: bool,
}

/// Memory that is used again, and nothing else.
#[derive(Clone, Debug)]
pub struct SmokeScratch<const D: usize> {
    /// What cells have room for: the share of air in them; none where air cannot get.
    room: Field<f32>,
    /// Air that passes each low face in a substep, in cells.
    flux: [Field<f32>; D],
    /// How much more air than room there would be after the substep.
    excess: Field<f32>,
    /// Air, density and heat after a sweep.
    next: [Field<f32>; 3],
    covered: Box<[Vec<Covered>; CHUNKS]>,
    most: Vec<f32>,
}

impl<const D: usize> Smoke<D> {
    /// None yet. There will be some if `full` says how dense and hot, in magnitude, it gets at most.
    pub fn new(full: Option<[f32; 2]>) -> Self {
        let field = || Field::new(block_cells(D), 0.0);
        Smoke { density: field(), heat: field(), air: field(), full }
    }

    /// Whether there may ever be smoke.
    pub fn is_present(&self) -> bool {
        self.full.is_some()
    }

    /// The density and the magnitude of heat that all there is may be compared with: those of the scene.
    pub fn full(&self) -> [f32; 2] {
        self.full.unwrap_or_default()
    }

    /// Fills the air for the first time: `value` gives density and heat in a cell from its coordinates.
    pub fn fill(
        &mut self,
        around: &Around<'_, D>,
        scratch: &mut SmokeScratch<D>,
        value: impl Fn([i32; D]) -> [Real; 2] + Sync + Send,
    ) {
        self.resize(around.blocks);
        room::find(around, &mut scratch.room);
        let (blocks, room) = (around.blocks, &scratch.room);
        let parts = [self.air.parts(), self.density.parts(), self.heat.parts()];
        for_each_block(blocks.slots(), parts, |slot, [air, density, heat]| {
            air.copy_from_slice(room.block(slot));
            for (local, &room) in room.block(slot).iter().enumerate() {
                let cell = blocks.cell_at(slot, local);
                let has_air = room > 0.0 && blocks.grid().contains(cell);
                let [smoke, hot] = if has_air { value(cell) } else { [0.0; 2] };
                (density[local], heat[local]) = (smoke as f32, hot as f32);
            }
        });
    }

    /// Makes room for the active blocks; once whenever those have changed, as fresh ones are emptied.
    pub fn resize(&mut self, blocks: &Blocks<D>) {
        for field in [&mut self.density, &mut self.heat, &mut self.air] {
            field.resize(blocks.slot_count());
            blocks.fresh().iter().for_each(|&slot| field.block_mut(slot as usize).fill(0.0));
        }
    }

    /// Adds to `needed` the places in the table of blocks where there is air: they have to be stored until it has gone.
    pub fn list_held(&self, blocks: &Blocks<D>, needed: &mut Vec<u32>) {
        let slots = blocks.slots().as_slice().iter().map(|&slot| slot as usize);
        let held =
            slots.filter(|&slot| self.is_present() && self.air.block(slot).iter().any(|&air| air > 0.0));
        needed.extend(held.filter_map(|slot| blocks.table_index(blocks.coords(slot))).map(|at| at as u32));
    }

    /// Carries everything along for `dt` seconds with velocities that are free of divergence, as far as solids do not move.
    /// Where they are not numbers nothing moves. Comes after [`Self::resize`]. The order of the sweeps along the axes takes turns with `turn`.
    pub fn advance(
        &mut self,
        around: &Around<'_, D>,
        velocity: &[Field<f32>; D],
        scratch: &mut SmokeScratch<D>,
        dt: Real,
        turn: u64,
    ) {
        room::find(around, &mut scratch.room);
        covered::make_way(self, around.blocks, scratch);
        let parts = flow::find(self, around, velocity, scratch, dt);
        for part in 0..parts {
            let backwards = (turn + part).is_multiple_of(2);
            for step in 0..D {
                let axis = if backwards { D - 1 - step } else { step };
                sweep::carry(self, around.blocks, &scratch.flux[axis], &mut scratch.next, axis, parts);
            }
            self.clear_outside(around.blocks);
        }
    }

    /// Lets smoke and heat fade, at rates in 1/s.
    pub fn fade(&mut self, blocks: &Blocks<D>, smoke_rate: Real, heat_rate: Real, dt: Real) {
        for (field, rate) in [(&mut self.density, smoke_rate), (&mut self.heat, heat_rate)] {
            if rate > 0.0 {
                let left = (-rate * dt).exp() as f32;
                for_each_block(blocks.slots(), field.parts(), |_, values| {
                    values.iter_mut().for_each(|value| *value *= left);
                });
            }
        }
    }

    /// Lets smoke into the air of a block: `value` gives, for a cell, the share of the way that density and heat go to new
    /// values, and those; smoke is only added, and without a heat that stays.
    pub fn feed(&mut self, blocks: &Blocks<D>, slot: usize, value: impl Fn([i32; D]) -> Feed) {
        for local in 0..block_cells(D) {
            let cell = blocks.cell_at(slot, local);
            if self.air.block(slot)[local] <= 0.0 || !blocks.grid().contains(cell) {
                continue;
            }
            let feed = value(cell);
            let density = &mut self.density.block_mut(slot)[local];
            *density += feed.share * (feed.density - *density).max(0.0);
            let heat = &mut self.heat.block_mut(slot)[local];
            *heat += feed.share * feed.heat.map_or(0.0, |hot| hot - *heat);
        }
    }

    /// Behind open sides air is clear, and there is always enough.
    fn clear_outside(&mut self, blocks: &Blocks<D>) {
        let parts = [self.air.parts(), self.density.parts(), self.heat.parts()];
        for_each_block(blocks.slots(), parts, |slot, [air, density, heat]| {
            if !blocks.reaches_out(slot) {
                return;
            }
            for local in 0..block_cells(D) {
                if !blocks.grid().contains(blocks.cell_at(slot, local)) {
                    (air[local], density[local], heat[local]) = (room::OUTSIDE, 0.0, 0.0);
                }
            }
        });
    }

    /// Writes smoke and heat, if there is any.
    pub fn save(&self, blocks: &Blocks<D>, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.value("smoke.full", &self.full)?;
        let mut fields = self.named().into_iter().filter(|_| self.is_present());
        fields.try_for_each(|(name, field)| field.save(name, blocks, out))
    }

    /// Reads what [`Smoke::save`] wrote.
    pub fn load(blocks: &Blocks<D>, from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        let mut smoke = Smoke::new(from.value("smoke.full")?);
        if let Some(full) = smoke.full {
            let is_sane = full.iter().all(|value| value.is_finite() && *value >= 0.0);
            ArchiveError::unless(is_sane, "smoke.full", "has a number that cannot be")?;
            smoke.density.load("smoke.density", blocks, from)?;
            smoke.heat.load("smoke.heat", blocks, from)?;
            smoke.air.load("smoke.air", blocks, from)?;
            for (name, field) in smoke.named() {
                let slots = blocks.slots().as_slice().iter().map(|&slot| slot as usize);
                let is_sane =
                    slots.clone().all(|slot| field.block(slot).iter().all(|value| value.is_finite()));
                ArchiveError::unless(is_sane, name, "has a number that cannot be")?;
            }
        }
        Ok(smoke)
    }

    fn named(&self) -> [(&'static str, &Field<f32>); 3] {
        [("smoke.density", &self.density), ("smoke.heat", &self.heat), ("smoke.air", &self.air)]
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.named().iter().map(|(_, field)| field.bytes()).sum()
    }
}

/// What a source does to the air of a cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Feed {
    /// The share of the way to the new values.
    pub share: f32,
    /// kg/m³.
    pub density: f32,
    /// K over the surroundings, if that changes.
    pub heat: Option<f32>,
}

impl<const D: usize> SmokeScratch<D> {
    /// No memory yet.
    pub fn new() -> Self {
        let field = || Field::new(block_cells(D), 0.0);
        SmokeScratch {
            room: field(),
            flux: std::array::from_fn(|_| field()),
            excess: field(),
            next: std::array::from_fn(|_| field()),
            covered: Box::new(std::array::from_fn(|_| Vec::new())),
            most: Vec::new(),
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let fields = [&self.room, &self.excess].into_iter().chain(&self.flux).chain(&self.next);
        fields.map(Field::bytes).sum()
    }
}

impl<const D: usize> Default for SmokeScratch<D> {
    fn default() -> Self {
        Self::new()
    }
}
