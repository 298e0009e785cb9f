//! Calm water is drawn smooth.
//!
//! The solver's surface follows the particles around it, and where these lie by chance shows: dents and bumps of a tenth of a
//! cell, two or three cells wide. In falling water nobody sees them; in a pool at rest they shine. So the shown surface is
//! smoothed where the water hardly moves. A real wave of that size would move it: at a wavelength of eight cells an amplitude of a
//! tenth of a cell comes with a speed of 0.09 √(g dx). Faster water is shown as it is.
//!
//! Smoothing goes along the surface alone, and takes back what it shrinks (Taubin 1995: a step towards the mean of the
//! neighbours, then a slightly longer one away from it), so that resting bubbles keep their size.

use crate::geometry::Nearness;
use crate::grid::{Blocks, Field, Halo, SIDE, Slots, block_cells, for_each_block, halo_cells, load_halo};
use crate::math::{power, unflatten};
use crate::sim::Simulation;

/// Below the first of these speeds water is calm, above the second it is not; in √(g dx).
const SPEEDS: [f32; 2] = [0.1, 0.3];
/// The least acceleration that speeds are compared with, m/s²: without gravity, too, there is rest.
const LEAST_GRAVITY: f32 = 1.0;
/// Cells whose distance to the surface is known, in cells; the solver cuts it off at 1.5.
const KNOWN: f32 = 1.4;
/// Centres that deep inside a wall hold no surface, in cells.
const WALLED: f32 = -0.6;
/// Steps towards the mean of the neighbours and away from it.
const STEPS: [f32; 2] = [0.33, -0.34];
/// Pairs of steps: waves of three cells go, one of eight cells keeps nine tenths of its height.
const ROUNDS: usize = 12;

const HALO: Halo = Halo::new(1);
const MOST: usize = halo_cells(HALO, 3);

/// Weight of water at rest.
const CALM: u8 = 200;
/// In place of a weight: a cell where no surface is looked for, in a wall or outside of the domain.
const NOWHERE: u8 = u8::MAX;

/// How calm the water is at its surface.
pub struct Calm {
    /// By cell, from 0 to [`CALM`], or [`NOWHERE`].
    weight: Field<u8>,
    /// Whether a block has any weight, by slot.
    has_calm: Vec<bool>,
}

impl Calm {
    /// Looks at the velocity beside the surface.
    pub fn of<const D: usize>(simulation: &Simulation<D>) -> Self {
        let blocks = simulation.blocks();
        let dx = blocks.grid().dx as f32;
        let gravity = (simulation.params.gravity as f32).abs().max(LEAST_GRAVITY);
        let speeds = SPEEDS.map(|speed| speed * (gravity * dx).sqrt());
        let mut calm = Calm { weight: Field::new(block_cells(D), 0), has_calm: Vec::new() };
        calm.weight.resize(blocks.slot_count());
        let mut any = Field::new(1, false);
        any.resize(blocks.slot_count());
        for_each_block(blocks.slots(), (calm.weight.parts(), any.parts()), |slot, (weight, any)| {
            any[0] = weigh(simulation, slot, speeds, weight);
        });
        calm.has_calm = any.as_slice().to_vec();
        calm
    }

    /// The surface, smooth where the water is calm.
    pub fn smooth<const D: usize>(&self, blocks: &Blocks<D>, surface: &Field<f32>) -> Field<f32> {
        let mut now = surface.clone();
        let mut slots = Slots::default();
        slots.refill(blocks.slots(), |slot| self.has_calm[slot]);
        if slots.is_empty() {
            return now;
        }
        let mut next = now.clone();
        let dx = blocks.grid().dx as f32;
        for step in (0..ROUNDS).flat_map(|_| STEPS) {
            let (from, weight) = (&now, &self.weight);
            for_each_block(&slots, next.parts(), |slot, to| {
                let (mut distance, mut weights) = ([0f32; MOST], [0u8; MOST]);
                load_halo(blocks, from, slot, HALO, &mut distance);
                load_halo(blocks, weight, slot, HALO, &mut weights);
                take_step::<D>(&distance, &weights, step, dx, to);
            });
            std::mem::swap(&mut now, &mut next);
        }
        now
    }
}

/// Finds how calm the cells of a block are. Returns whether any is.
fn weigh<const D: usize>(
    simulation: &Simulation<D>,
    slot: usize,
    speeds: [f32; 2],
    weight: &mut [u8],
) -> bool {
    let (blocks, boundary, state) = (simulation.blocks(), simulation.boundary(), simulation.state());
    let (first, grid) = (blocks.first_cell(slot), blocks.grid());
    let dx = grid.dx as f32;
    let walls = boundary.nearness(slot) != Nearness::Clear;
    let sticks_out = blocks.reaches_out(slot);
    let distance = state.surface.block(slot);
    let has_surface = distance.iter().any(|d| d.abs() < KNOWN * dx);
    weight.fill(0);
    let mut corner = [0f32; MOST];
    if walls {
        load_halo(blocks, &boundary.corner, slot, HALO, &mut corner);
    }
    let mut faces = [[0f32; MOST]; D];
    if has_surface {
        let fields = faces.iter_mut().zip(&state.velocity);
        fields.for_each(|(faces, velocity)| load_halo(blocks, velocity, slot, HALO, faces));
    }
    let mut any = false;
    for (local, weight) in weight.iter_mut().enumerate() {
        let offset = unflatten::<D>(local, SIDE);
        let at = HALO.index(offset.map(|c| c as i32));
        let is_outside = sticks_out && !grid.contains(std::array::from_fn(|k| first[k] + offset[k] as i32));
        if is_outside || walls && wall_distance::<D>(&corner, at) < WALLED {
            *weight = NOWHERE;
        } else if has_surface && distance[local].abs() < KNOWN * dx {
            let square: f32 = (0..D)
                .map(|axis| (0.5 * (faces[axis][at] + faces[axis][at + HALO.stride(axis)])).powi(2))
                .sum();
            let rest = (speeds[1] - square.sqrt()) / (speeds[1] - speeds[0]);
            // What is no number is not calm.
            *weight = (rest.clamp(0.0, 1.0) * f32::from(CALM)) as u8;
            any |= *weight > 0;
        }
    }
    any
}

/// The wall's distance at a cell's centre, from those at its corners.
fn wall_distance<const D: usize>(corner: &[f32], at: usize) -> f32 {
    let offset = |c: usize| (0..D).map(|k| (c >> k & 1) * HALO.stride(k)).sum::<usize>();
    (0..power(2, D)).map(|c| corner[at + offset(c)]).sum::<f32>() / power(2, D) as f32
}

/// Moves the distances of a block's cells towards the mean of their neighbours along the surface.
fn take_step<const D: usize>(distance: &[f32], weights: &[u8], step: f32, dx: f32, to: &mut [f32]) {
    for (local, to) in to.iter_mut().enumerate() {
        let at = HALO.index(unflatten::<D>(local, SIDE).map(|c| c as i32));
        let own = distance[at];
        *to = own;
        let weight = weights[at];
        if weight == 0 || weight == NOWHERE || own.abs() >= KNOWN * dx {
            continue;
        }
        // Where there is no neighbour the surface goes on level.
        let beside = |next: usize| if weights[next] == NOWHERE { own } else { distance[next] };
        let (mut bend, mut slope) = ([0f32; D], [0f32; D]);
        for axis in 0..D {
            let (low, high) = (beside(at - HALO.stride(axis)), beside(at + HALO.stride(axis)));
            (bend[axis], slope[axis]) = (0.5 * (low + high) - own, high - low);
        }
        let steepness: f32 = slope.iter().map(|s| s * s).sum();
        if steepness > 0.0 {
            let along: f32 = (0..D).map(|k| (1.0 - slope[k] * slope[k] / steepness) * bend[k]).sum();
            *to += step * (f32::from(weight) / f32::from(CALM)) * along;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::Grid;
    use crate::math::hash_unit;

    /// Distances to a shape given by its own distance, with noise of that height, cells; all of it equally calm.
    fn noisy<const D: usize>(
        shape: impl Fn([f32; D]) -> f32,
        noise: f32,
        weight: u8,
    ) -> (Blocks<D>, Field<f32>, Calm) {
        let blocks = Blocks::all(Grid::<D> { cells: [32; D], dx: 1.0 });
        let mut surface = Field::new(block_cells(D), 0.0);
        surface.resize(blocks.slot_count());
        let mut calm =
            Calm { weight: Field::new(block_cells(D), 0), has_calm: vec![true; blocks.slot_count()] };
        calm.weight.resize(blocks.slot_count());
        for &slot in blocks.slots().as_slice() {
            let (slot, first) = (slot as usize, blocks.first_cell(slot as usize));
            for local in 0..block_cells(D) {
                let offset = unflatten::<D>(local, SIDE);
                let cell: [i32; D] = std::array::from_fn(|k| first[k] + offset[k] as i32);
                let chance = hash_unit((slot * block_cells(D) + local) as u64) - 0.5;
                let distance = shape(cell.map(|c| c as f32 + 0.5)) + 2.0 * noise * chance;
                surface.block_mut(slot)[local] = distance.clamp(-1.5, 1.5);
                calm.weight.block_mut(slot)[local] =
                    if blocks.grid().contains(cell) { weight } else { NOWHERE };
            }
        }
        (blocks, surface, calm)
    }

    /// Root mean squares over the cells near the surface: how far they are from a shape, and by how much less or more the next
    /// one along x is.
    fn roughness<const D: usize>(
        blocks: &Blocks<D>,
        surface: &Field<f32>,
        shape: impl Fn([f32; D]) -> f32,
    ) -> [f32; 2] {
        let off = |cell: [i32; D]| {
            let (slot, local) = blocks.locate(cell);
            let exact = shape(cell.map(|c| c as f32 + 0.5));
            let is_near = exact.abs() < 0.6 && blocks.grid().contains(cell);
            is_near.then(|| surface.block(slot as usize)[local] - exact)
        };
        let (mut sums, mut counts) = ([0.0; 2], [0; 2]);
        for index in 0..power(32, D) {
            let cell = unflatten::<D>(index, 32).map(|c| c as i32);
            let mut next = cell;
            next[0] += 1;
            let Some(own) = off(cell) else { continue };
            let steps = [Some(own), off(next).map(|next| next - own)];
            for (k, step) in steps.into_iter().enumerate() {
                sums[k] += step.map_or(0.0, |step| step * step);
                counts[k] += usize::from(step.is_some());
            }
        }
        std::array::from_fn(|k| (sums[k] / counts[k] as f32).sqrt())
    }

    fn a_rough_pool_at_rest_is_drawn_flat<const D: usize>() {
        let level = |x: [f32; D]| x[1] - 13.2;
        let (blocks, surface, calm) = noisy(level, 0.2, CALM);
        let [before, after] = [surface.clone(), calm.smooth(&blocks, &surface)]
            .map(|surface| roughness(&blocks, &surface, level));
        // Long waves stay, as they might be real; steps from cell to cell are what shines.
        assert!(
            before[0] > 0.1 && after[0] < 0.6 * before[0],
            "{D}D: {before:?} before, {after:?} afterwards"
        );
        assert!(
            before[1] > 0.1 && after[1] < 0.3 * before[1],
            "{D}D: {before:?} before, {after:?} afterwards"
        );
    }

    #[test]
    fn a_rough_pool_at_rest_is_drawn_flat_2d() {
        a_rough_pool_at_rest_is_drawn_flat::<2>();
    }

    #[test]
    fn a_rough_pool_at_rest_is_drawn_flat_3d() {
        a_rough_pool_at_rest_is_drawn_flat::<3>();
    }

    fn a_bubble_at_rest_keeps_its_size<const D: usize>() {
        let ball = |x: [f32; D]| 6.0 - x.iter().map(|x| (x - 15.3).powi(2)).sum::<f32>().sqrt();
        let (blocks, surface, calm) = noisy(ball, 0.0, CALM);
        let [off, _] = roughness(&blocks, &calm.smooth(&blocks, &surface), ball);
        assert!(off < 0.06, "{D}D: {off} cells off");
    }

    #[test]
    fn a_bubble_at_rest_keeps_its_size_2d() {
        a_bubble_at_rest_keeps_its_size::<2>();
    }

    #[test]
    fn a_bubble_at_rest_keeps_its_size_3d() {
        a_bubble_at_rest_keeps_its_size::<3>();
    }

    #[test]
    fn what_moves_is_drawn_as_it_is() {
        let level = |x: [f32; 3]| x[1] - 13.2;
        let (blocks, surface, calm) = noisy(level, 0.2, 0);
        assert_eq!(calm.smooth(&blocks, &surface).as_slice(), surface.as_slice());
    }
}
