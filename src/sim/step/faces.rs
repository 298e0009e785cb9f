//! Velocities on faces beyond those that the projection decides.

use crate::grid::{self, Blocks, CHUNKS, FaceMask, Field, SIDE, for_each_block_collecting, masks};
use crate::math::Real;
use crate::pressure;
use crate::sim::{Scratch, SimError, Stage, State};

/// Layers of faces around the liquid that get a velocity: as far as a particle may go in a substep, and the
/// interpolation at its end.
const LAYERS: usize = 4;

/// Fills the faces around the known ones.
pub(super) fn spread<const D: usize>(
    blocks: &Blocks<D>,
    velocity: &mut [Field<f32>; D],
    scratch: &mut Scratch<D>,
    layers: usize,
) {
    let Scratch { valid, extrapolate, .. } = scratch;
    grid::lead(|| {
        for (velocity, valid) in velocity.iter_mut().zip(valid) {
            grid::extrapolate(blocks, velocity, valid, extrapolate, layers);
        }
    });
}

pub(super) fn extrapolate<const D: usize>(
    state: &mut State<D>,
    scratch: &mut Scratch<D>,
) -> Result<(), SimError> {
    spread(&state.blocks, &mut state.velocity, scratch, LAYERS);
    let State { blocks, walls, time, pressure, velocity, .. } = state;
    pressure::stop_at_walls(blocks, &scratch.boundary, walls, *time, &pressure.loose, velocity);
    state.max_component = clear_unknown(&state.blocks, &mut state.velocity, &scratch.valid);
    if state.gas.is_present() {
        let State { gas, blocks, walls, time, pressure, .. } = state;
        gas.extrapolate(blocks, &mut scratch.known, &mut scratch.extrapolate);
        pressure::stop_at_walls(blocks, &scratch.boundary, walls, *time, &pressure.loose, &mut gas.velocity);
        if state.smoke.is_present() {
            // Smoke is seen, and liquid may not be there: the air's speed counts as well.
            state.max_component = state.max_component.max(state.gas.max_component(&state.blocks));
        }
    }
    if state.max_component.is_finite() {
        Ok(())
    } else {
        Err(SimError::NonFinite { stage: Stage::Solve, time: state.time })
    }
}

/// Zeroes the faces that no layer reached: what they hold belongs to an earlier step. Returns the largest magnitude of
/// any face velocity; not finite if any is not.
fn clear_unknown<const D: usize>(
    blocks: &Blocks<D>,
    velocity: &mut [Field<f32>; D],
    valid: &[FaceMask; D],
) -> Real {
    let mut largest = [0u32; CHUNKS];
    let velocity = velocity.each_mut().map(Field::parts);
    for_each_block_collecting(blocks.slots(), velocity, &mut largest, |slot, velocity, largest| {
        for (velocity, valid) in velocity.into_iter().zip(valid) {
            let rows = velocity.as_chunks_mut::<SIDE>().0.iter_mut();
            for (row, &bits) in rows.zip(valid.bits.block(slot)) {
                if bits == 0 {
                    *row = [0.0; SIDE];
                    continue;
                }
                let marks = masks::marks_of(bits);
                for x in 0..SIDE {
                    row[x] = if marks[x] == 0 { 0.0 } else { row[x] };
                    // Without their signs, numbers are ordered as their bits are, infinity and what is no number last.
                    *largest = (*largest).max(row[x].abs().to_bits());
                }
            }
        }
    });
    f32::from_bits(largest.into_iter().fold(0, u32::max)).into()
}
