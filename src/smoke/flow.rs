//! How much air passes each face in a substep.
//!
//! Through the open share of a face goes `φ = open · u · dt / dx`, in cells. Where solids stand still the projection has
//! made these balance. Where solids or the surface of liquid move, the air that is left in a cell differs a little from its
//! room: by the excess `e = air − Σ φ − room`. A flow `(e_low − e_high) / (2D + 1)` on top spreads it out, as a step of
//! Jacobi's method for a potential of it would.

use crate::grid::{Field, Halo, SIDE, for_each_block, halo_cells, load_halo};
use crate::math::{Real, unflatten};

use super::{Around, Smoke, SmokeScratch};

const HALO: Halo = Halo::new(1);
const MOST: usize = halo_cells(HALO, 3);

/// A substep is cut into at most so many parts. What would have to leave a cell faster stays (see `sweep`).
const MOST_PARTS: u64 = 16;
/// The share of a cell's air that may leave in a part, as far as parts allow.
const MOST_LEAVES: f32 = 0.9;
/// A cell that holds less air than that does not make parts shorter.
const LEAST_AIR: f32 = 0.25;
/// Excess that is not worth a flow: what rounding and the solver's tolerance leave.
const NEGLIGIBLE: f32 = 1e-6;

/// Finds the flow through all low faces, and into how many parts a substep is to be cut.
pub(super) fn find<const D: usize>(
    smoke: &Smoke<D>,
    around: &Around<'_, D>,
    velocity: &[Field<f32>; D],
    scratch: &mut SmokeScratch<D>,
    dt: Real,
) -> u64 {
    let SmokeScratch { room, flux, excess, most, .. } = scratch;
    let blocks = around.blocks;
    flux.iter_mut().for_each(|flux| flux.resize(blocks.slot_count()));
    excess.resize(blocks.slot_count());
    let cells_per_speed = (dt / blocks.grid().dx) as f32;
    let room = &*room;
    for_each_block(blocks.slots(), flux.each_mut().map(Field::parts), |slot, flux| {
        let mut rooms = [0f32; MOST];
        load_halo(blocks, room, slot, HALO, &mut rooms);
        for (axis, flux) in flux.into_iter().enumerate() {
            let (open, velocity) = (around.boundary.open[axis].block(slot), velocity[axis].block(slot));
            for (row, flux) in flux.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
                let (at, first) = (place_of_row::<D>(row), row * SIDE);
                for x in 0..SIDE {
                    let leads = rooms[at + x] > 0.0 && rooms[at + x - HALO.stride(axis)] > 0.0;
                    let passes = open[first + x] * velocity[first + x] * cells_per_speed;
                    flux[x] = if leads && !passes.is_nan() { passes } else { 0.0 };
                }
            }
        }
    });
    most.clear();
    most.resize(blocks.slot_count(), 0.0);
    let (known, air) = (&*flux, &smoke.air);
    let most_parts = crate::grid::Parts::new(most, 1);
    for_each_block(blocks.slots(), (excess.parts(), most_parts), |slot, (excess, most)| {
        let mut sums = [[0f32; SIDE * SIDE * SIDE]; 2];
        let [gain, leaves] = &mut sums;
        for (axis, flux) in known.iter().enumerate() {
            let mut passes = [0f32; MOST];
            load_halo(blocks, flux, slot, HALO, &mut passes);
            for row in 0..excess.len() / SIDE {
                let (at, first) = (place_of_row::<D>(row), row * SIDE);
                for x in 0..SIDE {
                    let (low, high) = (passes[at + x], passes[at + x + HALO.stride(axis)]);
                    gain[first + x] += low - high;
                    leaves[first + x] += (-low).max(0.0) + high.max(0.0);
                }
            }
        }
        let (air, room) = (air.block(slot), room.block(slot));
        for (local, excess) in excess.iter_mut().enumerate() {
            *excess = if room[local] > 0.0 { air[local] + gain[local] - room[local] } else { 0.0 };
            most[0] = most[0].max(leaves[local] / air[local].max(LEAST_AIR));
        }
        if blocks.reaches_out(slot) {
            for (local, excess) in excess.iter_mut().enumerate() {
                *excess = if blocks.grid().contains(blocks.cell_at(slot, local)) { *excess } else { 0.0 };
            }
        }
    });
    let most = most.iter().fold(0f32, |most, &of_block| most.max(of_block));
    spread(around, scratch);
    ((most / MOST_LEAVES).ceil() as u64).clamp(1, MOST_PARTS)
}

/// Adds the flow from cells with excess to those with less.
fn spread<const D: usize>(around: &Around<'_, D>, scratch: &mut SmokeScratch<D>) {
    let SmokeScratch { room, flux, excess, .. } = scratch;
    let (blocks, share) = (around.blocks, 1.0 / (2 * D + 1) as f32);
    let (room, excess) = (&*room, &*excess);
    for_each_block(blocks.slots(), flux.each_mut().map(Field::parts), |slot, flux| {
        let mut excesses = [0f32; MOST];
        load_halo(blocks, excess, slot, HALO, &mut excesses);
        if excesses[..halo_cells(HALO, D)].iter().all(|excess| excess.abs() < NEGLIGIBLE) {
            return;
        }
        let mut rooms = [0f32; MOST];
        load_halo(blocks, room, slot, HALO, &mut rooms);
        for (axis, flux) in flux.into_iter().enumerate() {
            let (open, stride) = (around.boundary.open[axis].block(slot), HALO.stride(axis));
            for (row, flux) in flux.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
                let at = place_of_row::<D>(row);
                for x in 0..SIDE {
                    let (here, below) = (at + x, at + x - stride);
                    let leads = open[row * SIDE + x] > 0.0 && rooms[here] > 0.0 && rooms[below] > 0.0;
                    let passes = share * (excesses[below] - excesses[here]);
                    flux[x] += if leads { passes } else { 0.0 };
                }
            }
        }
    });
}

/// Where a row of a block begins in its [`HALO`].
#[inline(always)]
fn place_of_row<const D: usize>(row: usize) -> usize {
    HALO.index(unflatten::<D>(row * SIDE, SIDE).map(|c| c as i32))
}
