//! The momentum of air that has mass, on the faces of the grid.
//!
//! Liquid is carried by particles because its surface and its splashes are what one looks at. Nobody sees the inside of
//! the air: what counts is that its momentum pushes the surface rightly. So its velocity is carried by the grid alone,
//! with MacCormack's scheme (Selle et al. 2008), which takes a fortieth of the memory of a second set of particles. What
//! it smooths out is small eddies of the air.
//!
//! Velocities are known in the air and a few layers into the liquid; elsewhere they are not numbers.

mod maccormack;

use crate::archive::{ArchiveError, Reader, Writer};
use crate::grid::{
    Blocks, ExtrapolateScratch, FaceMask, Field, SIDE, block_cells, extrapolate, for_each_block,
};
use crate::math::Real;

/// Layers of faces around the air that get a velocity: what the surface may uncover in a substep, and the
/// interpolation there.
const LAYERS: usize = 6;

/// The velocity of air that has mass.
#[derive(Clone, Debug)]
pub struct Gas<const D: usize> {
    /// Face velocities, m/s.
    pub velocity: [Field<f32>; D],
    /// Whether there is such air at all.
    present: bool,
}

impl<const D: usize> Gas<D> {
    /// No such air.
    pub fn new() -> Self {
        Gas { velocity: std::array::from_fn(|_| Field::new(block_cells(D), f32::NAN)), present: false }
    }

    /// Forgets the air, and gives its memory back.
    pub fn clear(&mut self) {
        if self.present {
            *self = Gas::new();
        }
    }

    /// Makes room for the active blocks. Air that was without mass so far starts with the velocity `around` it. Returns
    /// whether there was air before.
    pub fn resize(&mut self, blocks: &Blocks<D>, around: &[Field<f32>; D]) -> bool {
        for (velocity, around) in self.velocity.iter_mut().zip(around) {
            velocity.resize(blocks.slot_count());
            blocks.fresh().iter().for_each(|&slot| velocity.block_mut(slot as usize).fill(f32::NAN));
            if !self.present {
                for_each_block(blocks.slots(), velocity.parts(), |slot, velocity| {
                    velocity.copy_from_slice(around.block(slot));
                });
            }
        }
        std::mem::replace(&mut self.present, true)
    }

    /// Carries the velocity along with itself for `dt` seconds. `first` and `better` are scratch memory.
    pub fn advect(
        &mut self,
        blocks: &Blocks<D>,
        first: &mut [Field<f32>; D],
        better: &mut [Field<f32>; D],
        dt: Real,
    ) {
        let cells_per_speed = (dt / blocks.grid().dx) as f32;
        maccormack::advect(blocks, &mut self.velocity, first, better, cells_per_speed);
    }

    /// Spreads the velocity into the liquid and the walls around the air.
    pub fn extrapolate(
        &mut self,
        blocks: &Blocks<D>,
        known: &mut FaceMask,
        scratch: &mut ExtrapolateScratch,
    ) {
        known.bits.resize(blocks.slot_count());
        for velocity in &mut self.velocity {
            let values = &*velocity;
            for_each_block(blocks.slots(), known.bits.parts(), |slot, bits| {
                for (bits, row) in bits.iter_mut().zip(values.block(slot).chunks_exact(SIDE)) {
                    *bits = row.iter().enumerate().fold(0, |bits, (x, u)| bits | u8::from(!u.is_nan()) << x);
                }
            });
            extrapolate(blocks, velocity, known, scratch, LAYERS);
        }
    }

    /// Largest magnitude of any known face velocity, m/s.
    pub fn max_component(&self, blocks: &Blocks<D>) -> Real {
        let slots = blocks.slots().as_slice().iter().map(|&slot| slot as usize);
        let values = self.velocity.iter().flat_map(|field| slots.clone().map(|slot| field.block(slot)));
        // What is not a number loses against what is.
        let largest = |block: &[f32]| block.iter().fold(0f32, |largest, u| largest.max(u.abs()));
        values.fold(0f32, |all, block| all.max(largest(block))).into()
    }

    /// Writes the velocity, if there is such air.
    pub fn save(&self, blocks: &Blocks<D>, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.value("gas.present", &self.present)?;
        let mut fields = self.velocity.iter().enumerate().filter(|_| self.present);
        fields.try_for_each(|(axis, field)| field.save(&format!("gas.velocity.{axis}"), blocks, out))
    }

    /// Reads what [`Gas::save`] wrote.
    pub fn load(blocks: &Blocks<D>, from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        let mut gas = Gas { present: from.value("gas.present")?, ..Gas::new() };
        let mut fields = gas.velocity.iter_mut().enumerate().filter(|_| gas.present);
        fields.try_for_each(|(axis, field)| field.load(&format!("gas.velocity.{axis}"), blocks, from))?;
        Ok(gas)
    }

    /// Whether there is such air.
    pub fn is_present(&self) -> bool {
        self.present
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.velocity.iter().map(Field::bytes).sum()
    }
}

impl<const D: usize> Default for Gas<D> {
    fn default() -> Self {
        Self::new()
    }
}
