//! What gravity and pressure are about to do to velocities.
//!
//! Viscosity acts on velocities that gravity has changed: liquid that hangs on a wall falls slowly right away. But pressure takes
//! back most of it, all of it where liquid is at rest, and viscosity must not see that part: along walls it would be held back,
//! and what is left over would set the liquid in motion. The pressure of the last substep says how much that is. An impact's
//! pressure does not last, so no more than gravity's own size of it counts.

use crate::geometry::{Boundary, Label};
use crate::grid::{
    Blocks, ExtrapolateScratch, FaceMask, Field, SIDE, across, block_cells, extrapolate, for_each_block,
    mask_parts,
};
use crate::math::{Real, Side};

/// The pressure of the substep before.
#[derive(Clone, Copy)]
pub struct EarlierPressure<'a> {
    /// Scaled pressure `p·dt/(ρ·dx)` of cells; zero where there was none.
    pub q: &'a Field<f64>,
    /// What it is to be multiplied by for a step of this length.
    pub factor: Real,
}

/// Layers of faces around those with a known pressure that get forces from them: as far as viscosity reaches beyond liquid cells.
const LAYERS: usize = 3;

/// Changes of velocity that forces will make, m/s.
#[derive(Clone)]
pub(super) struct Forces<const D: usize> {
    pub change: [Field<f32>; D],
    known: [FaceMask; D],
    extrapolate: ExtrapolateScratch,
}

impl<const D: usize> Default for Forces<D> {
    fn default() -> Self {
        Forces {
            change: std::array::from_fn(|_| Field::new(block_cells(D), 0.0)),
            known: std::array::from_fn(|_| FaceMask::new(D)),
            extrapolate: ExtrapolateScratch::new(D),
        }
    }
}

impl<const D: usize> Forces<D> {
    /// Finds them from what gravity does in this step, and the pressure of the one before; none if there was none.
    pub fn find(
        &mut self,
        blocks: &Blocks<D>,
        boundary: &Boundary<D>,
        label: &Field<Label>,
        gravity: [Real; D],
        earlier: Option<EarlierPressure<'_>>,
    ) {
        let slots = blocks.slot_count();
        self.change.iter_mut().for_each(|change| change.resize(slots));
        self.known.iter_mut().for_each(|known| known.bits.resize(slots));
        let Forces { change, known, extrapolate: scratch } = self;
        let Some(EarlierPressure { q, factor }) = earlier else {
            return change.iter_mut().for_each(|change| change.as_mut_slice().fill(0.0));
        };
        let most = gravity.iter().map(|g| g * g).sum::<Real>().sqrt();
        let parts = (change.each_mut().map(Field::parts), mask_parts(known));
        for_each_block(blocks.slots(), parts, |slot, (change, known)| {
            for axis in 0..D {
                known[axis].fill(0);
                let below_slot = blocks.beside(slot, axis, Side::Low) as usize;
                let open = boundary.open[axis].block(slot);
                for local in 0..block_cells(D) {
                    let (low, is_beyond) = across(local, axis, Side::Low);
                    let low = (if is_beyond { below_slot } else { slot }, low);
                    let pressure = |(slot, local): (usize, usize)| {
                        let q = q.block(slot)[local];
                        (label.block(slot)[local] == Label::Liquid && q != 0.0).then_some(q)
                    };
                    if let (Some(high), Some(low), true) =
                        (pressure((slot, local)), pressure(low), open[local] > 0.0)
                    {
                        let push = (factor * (low - high)).clamp(-most, most);
                        change[axis][local] = (gravity[axis] + push) as f32;
                        known[axis][local / SIDE] |= 1 << (local % SIDE);
                    }
                }
            }
        });
        for axis in 0..D {
            extrapolate(blocks, &mut change[axis], &mut known[axis], scratch, LAYERS);
        }
        // What is far from any pressure falls.
        let (change, known) = (change.each_mut().map(Field::parts), &*known);
        for_each_block(blocks.slots(), change, |slot, change| {
            for (axis, change) in change.into_iter().enumerate() {
                for (local, change) in change.iter_mut().enumerate() {
                    *change = if known[axis].get(slot, local) { *change } else { gravity[axis] as f32 };
                }
            }
        });
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.change.iter().map(Field::bytes).sum::<usize>()
            + self.known.iter().map(|known| known.bits.bytes()).sum::<usize>()
            + self.extrapolate.bytes()
    }
}
