//! Measuring the state for the statistics.

use crate::grid::{Field, SIDE, sum_over_blocks};
use crate::liquid::{self, Particles};
use crate::math::{Real, power, unflatten};
use crate::pressure::{self, Label};

use super::{CellCounts, Divergence, FrameReport, LiquidReport, Params, State};

/// Everything about the state that does not depend on how the frame went.
pub(super) fn survey<const D: usize>(
    state: &State<D>,
    params: &Params,
    partial: &mut Vec<f64>,
    dt: Real,
) -> FrameReport {
    let grid = *state.blocks.grid();
    let problem = pressure::Problem {
        blocks: &state.blocks,
        boundary: &state.boundary,
        walls: &state.walls,
        surface: &state.surface,
        impulse: [0.0; D],
        expansion: state.volume.expansion,
        time: state.time,
    };
    let [max, rms] = pressure::divergence(&problem, &state.projection, &state.velocity, partial);
    FrameReport {
        time: state.time,
        model: params.model.name(),
        cells_xyz: grid.cells.to_vec(),
        dx: grid.dx,
        particles: state.particles.position.iter().filter(|x| Particles::is_alive(x)).count(),
        cells: count_cells(state),
        divergence: Divergence { max: max * dt, rms: rms * dt },
        liquid: survey_liquid(state, params, partial),
        ..FrameReport::default()
    }
}

fn count_cells<const D: usize>(state: &State<D>) -> CellCounts {
    let mut counts = CellCounts::default();
    for &slot in state.blocks.slots().as_slice() {
        for label in state.projection.label.block(slot as usize) {
            counts.stored += 1;
            match label {
                Label::Air => counts.air += 1,
                Label::Liquid => counts.liquid += 1,
                Label::Solid => counts.solid += 1,
            }
        }
    }
    counts
}

fn survey_liquid<const D: usize>(state: &State<D>, params: &Params, partial: &mut Vec<f64>) -> LiquidReport {
    let grid = *state.blocks.grid();
    let blocks = &state.blocks;
    // Sums something over the liquid, cell by cell, weighted by the share that is liquid.
    let sum = |partial: &mut Vec<f64>, of: &(dyn Fn(usize, [usize; D], usize) -> f64 + Sync)| {
        sum_over_blocks(blocks.slots(), partial, |slot| {
            let mut shares = [0f32; SIDE * SIDE * SIDE];
            let shares = &mut shares[..state.surface.block_len()];
            liquid::liquid_shares(blocks, &state.boundary, &state.surface, slot, shares);
            let wet = shares.iter().enumerate().filter(|(_, share)| **share > 0.0);
            wet.map(|(local, &share)| share as f64 * of(slot, unflatten::<D>(local, SIDE), local)).sum()
        })
    };
    let cells = sum(partial, &|_, _, _| 1.0);
    let volume = cells * grid.cell_volume();
    let centroid: Vec<f64> = (0..D)
        .map(|axis| {
            let moment = sum(partial, &|slot, cell, _| {
                (blocks.first_cell(slot)[axis] as f64 + cell[axis] as f64 + 0.5) * grid.dx
            });
            moment / cells.max(1e-300)
        })
        .collect();
    let square = |field: &Field<f32>, slot: usize, cell: [usize; D], local: usize, axis: usize| {
        // The mean of the squares at the cell's two faces.
        let low = field.block(slot)[local] as f64;
        let high = if cell[axis] + 1 < SIDE {
            field.block(slot)[local + power(SIDE, axis)] as f64
        } else {
            let next = blocks.beside(slot, axis, crate::math::Side::High) as usize;
            field.block(next)[local - (SIDE - 1) * power(SIDE, axis)] as f64
        };
        0.5 * (low * low + high * high)
    };
    let speed_squared = sum(partial, &|slot, cell, local| {
        (0..D).map(|axis| square(&state.velocity[axis], slot, cell, local, axis)).sum()
    });
    let mass_per_cell = params.density * grid.cell_volume();
    let fastest = state
        .particles
        .velocity
        .iter()
        .zip(&state.particles.position)
        .filter(|(_, x)| Particles::is_alive(x))
        .map(|(v, _)| v.iter().map(|v| v * v).sum::<f32>())
        .fold(0f32, f32::max);
    let front =
        state.particles.position.iter().filter(|x| Particles::is_alive(x)).map(|x| x[0]).fold(0f32, f32::max);
    LiquidReport {
        volume,
        kinetic_energy: 0.5 * mass_per_cell * speed_squared,
        potential_energy: params.density * volume * params.gravity * centroid[1],
        max_speed: fastest.sqrt() as f64,
        front: front as f64 * grid.dx,
        centroid,
    }
}
