//! From the sparse grid of a simulation to the dense fields of a snapshot.

use rayon::prelude::*;

use crate::bubbles::BubbleList;
use crate::geometry::Label;
use crate::grid::{Blocks, Field, SIDE, block_cells};
use crate::liquid::Particles;
use crate::math::unflatten;
use crate::sim::Simulation;

use super::data::{CellFields, SampleParticle, TileView, Wanted, region};
use super::half::half_from_f32;
use super::roles::roles;

/// Distances are continued this many cells away from the surface: what a ray may leap at once.
const REACH: f32 = 10.0;
/// Particles a snapshot holds at most.
const MOST_SAMPLES: usize = 60_000;

/// The fields that are always there, and those that are wanted.
pub fn cell_fields<const D: usize>(
    simulation: &Simulation<D>,
    surface: &Field<f32>,
    wanted: Wanted,
) -> CellFields {
    let state = simulation.state();
    let blocks = &state.blocks;
    let dx = blocks.grid().dx as f32;
    let dense = Dense::new(blocks);
    let mut distance = dense.gather(REACH, |slot, local| surface.block(slot)[local] / dx);
    widen(&mut distance, dense.cells);
    let region = regions(simulation, &dense);
    let faces = |field: &Field<f32>, slot: usize, local: usize, axis: usize| {
        [field.block(slot)[local], above(blocks, field, slot, local, axis)]
    };
    let velocity = wanted.velocity.then(|| {
        dense.gather([0; 4], |slot, local| {
            let known = state.surface.block(slot)[local] < 1.4 * dx;
            std::array::from_fn(|axis| match axis {
                3 => half_from_f32(known as u8 as f32),
                axis if axis < D && known => {
                    let [low, high] = faces(&state.velocity[axis], slot, local, axis);
                    half_from_f32(0.5 * (low + high))
                }
                _ => 0,
            })
        })
    });
    let scalars = wanted.scalars.then(|| {
        let pascal = simulation.pascal_per_q() as f32;
        dense.gather([0; 2], |slot, local| {
            if !state.projection.has_pressure(slot, local) {
                return [0; 2];
            }
            // Water a kilometre deep still fits into half precision when counted in hundreds of pascals.
            let pressure = half_from_f32(state.projection.q.block(slot)[local] as f32 * pascal / 100.0);
            if state.projection.label.block(slot)[local] != Label::Liquid {
                return [pressure, 0];
            }
            let outflow: f32 = (0..D)
                .map(|axis| {
                    let [u0, u1] = faces(&state.velocity[axis], slot, local, axis);
                    let [a0, a1] = faces(&state.boundary.open[axis], slot, local, axis);
                    a1 * u1 - a0 * u0
                })
                .sum();
            [pressure, half_from_f32(outflow / dx)]
        })
    });
    let distance = distance.iter().map(|&value| half_from_f32(value)).collect();
    let roles = wanted.roles.then(|| roles(simulation, &dense)).flatten();
    CellFields { cells: dense.cells, distance, region, velocity, scalars, roles }
}

/// What every cell belongs to; bubbles are numbered as the report lists them.
fn regions<const D: usize>(simulation: &Simulation<D>, dense: &Dense<'_, D>) -> Vec<u16> {
    let (state, blocks) = (simulation.state(), simulation.blocks());
    let regions = &state.air.regions;
    let bubbles = BubbleList::new(state.air.tracker.records());
    let of = |region: u32| bubbles.of_region(region).and_then(region::of_bubble);
    let far = |cell: [i32; D]| {
        let index = blocks.table_index(blocks.grid().block_of(cell))?;
        regions.far_region(index).and_then(of)
    };
    dense.gather_with(
        |cell| far(cell).unwrap_or(region::AIR),
        |slot, local| match state.projection.label.block(slot)[local] {
            Label::Liquid => region::LIQUID,
            Label::Solid => region::SOLID,
            Label::Air => of(regions.of.block(slot)[local]).unwrap_or(region::AIR),
        },
    )
}

/// The value at the cell above along an axis.
fn above<const D: usize>(
    blocks: &Blocks<D>,
    field: &Field<f32>,
    slot: usize,
    local: usize,
    axis: usize,
) -> f32 {
    let mut cell = blocks.first_cell(slot);
    let offset = unflatten::<D>(local, SIDE);
    let stride = SIDE.pow(axis as u32);
    if offset[axis] + 1 < SIDE {
        return field.block(slot)[local + stride];
    }
    for k in 0..D {
        cell[k] += offset[k] as i32;
    }
    cell[axis] += 1;
    let (slot, local) = blocks.locate(cell);
    field.block(slot as usize)[local]
}

/// The dense grid of all cells of the domain.
pub(super) struct Dense<'a, const D: usize> {
    blocks: &'a Blocks<D>,
    pub cells: [usize; 3],
}

impl<'a, const D: usize> Dense<'a, D> {
    fn new(blocks: &'a Blocks<D>) -> Self {
        let grid = blocks.grid();
        Dense { blocks, cells: std::array::from_fn(|axis| if axis < D { grid.cells[axis] } else { 1 }) }
    }

    /// One value per cell; `empty` where nothing is stored.
    pub fn gather<T: Copy + Default + Send + Sync>(
        &self,
        empty: T,
        value: impl Fn(usize, usize) -> T + Sync,
    ) -> Vec<T> {
        self.gather_with(|_| empty, value)
    }

    /// One value per cell: by the cell's slot and place in its block, or by its coordinates where nothing is stored.
    fn gather_with<T: Copy + Default + Send + Sync>(
        &self,
        empty: impl Fn([i32; D]) -> T + Sync,
        value: impl Fn(usize, usize) -> T + Sync,
    ) -> Vec<T> {
        let [nx, ny, nz] = self.cells;
        let mut all = vec![T::default(); nx * ny * nz];
        all.par_chunks_mut(nx).enumerate().for_each(|(row, values)| {
            let (j, k) = (row % ny, row / ny);
            let mut i = 0;
            while i < nx {
                let place = [i, j, k];
                let cell: [i32; D] = std::array::from_fn(|axis| place[axis] as i32);
                let (slot, local) = self.blocks.locate(cell);
                let run = (SIDE - local % SIDE).min(nx - i);
                if slot != crate::grid::VOID {
                    for step in 0..run {
                        values[i + step] = value(slot as usize, local + step);
                    }
                } else {
                    // A run stays within one block.
                    values[i..i + run].fill(empty(cell));
                }
                i += run;
            }
        });
        debug_assert_eq!(block_cells(D) % SIDE, 0);
        all
    }
}

/// Continues a distance that is exact near zero to cells farther away, by two sweeps over the neighbours. A ray can
/// then leap over calm water instead of creeping through it. The result is up to a tenth too large.
fn widen(distance: &mut [f32], [nx, ny, nz]: [usize; 3]) {
    const TRUSTED: f32 = 1.2;
    // Cells farther from the surface than the solver looks carry a cut-off value: their distance is unknown.
    for value in distance.iter_mut() {
        if value.is_nan() || value.abs() >= TRUSTED {
            *value = if *value < 0.0 { -REACH } else { REACH };
        }
    }
    let reach = |delta: i64| if delta < 0 { 1 } else { 0 };
    let strides = [1i64, nx as i64, (nx * ny) as i64];
    for forward in [true, false] {
        // The half of the neighbours that the sweep has visited already.
        let sign = if forward { -1 } else { 1 };
        let mut around = Vec::new();
        for (dz, dy, dx) in (0..27).map(|k| (k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1)) {
            let order = dz * 9 + dy * 3 + dx;
            if (order * sign as i64) > 0 && (nz > 1 || dz == 0) {
                let length = ((dx * dx + dy * dy + dz * dz) as f32).sqrt();
                around.push(([dx, dy, dz], dx * strides[0] + dy * strides[1] + dz * strides[2], length));
            }
        }
        let inside = |c: usize, d: i64, n: usize| (d >= 0 || c >= reach(d)) && (d <= 0 || c + 1 < n);
        for step in 0..nx * ny * nz {
            let index = if forward { step } else { nx * ny * nz - 1 - step };
            let value = distance[index];
            if value.abs() < TRUSTED {
                continue;
            }
            let (i, j, k) = (index % nx, index / nx % ny, index / (nx * ny));
            let interior = i > 0 && j > 0 && i + 1 < nx && j + 1 < ny && (nz == 1 || (k > 0 && k + 1 < nz));
            let mut nearest = value.abs();
            for ([dx, dy, dz], offset, length) in &around {
                if interior || (inside(i, *dx, nx) && inside(j, *dy, ny) && inside(k, *dz, nz)) {
                    let other = distance[(index as i64 + offset) as usize];
                    // Across the surface the other side's distance counts the other way.
                    let through = if (other < 0.0) == (value < 0.0) { other.abs() } else { -other.abs() };
                    nearest = nearest.min((through + length).max(TRUSTED));
                }
            }
            distance[index] = nearest.copysign(value);
        }
    }
}

/// The tiles of a simulation.
pub fn tiles<const D: usize>(simulation: &Simulation<D>) -> Vec<TileView> {
    let dx = simulation.blocks().grid().dx;
    let Some(tiling) = &simulation.projection().tiling else { return Vec::new() };
    let view = |tile: &crate::regions::Tile<D>| {
        let (velocity, gradient) = (tile.velocity(), tile.gradient(dx));
        let mut view = TileView { id: tile.id, high: [1; 3], ..TileView::default() };
        for axis in 0..D {
            (view.low[axis], view.high[axis]) = (tile.low[axis], tile.high[axis]);
            view.centre[axis] = (0.5 * f64::from(tile.low[axis] + tile.high[axis]) * dx) as f32;
            view.velocity[axis] = velocity[axis] as f32;
            (0..D).for_each(|k| view.gradient[axis][k] = gradient[axis][k] as f32);
        }
        view
    };
    tiling.tiles.iter().map(view).collect()
}

/// Particles in metres with their speeds; every so many when there are too many to show.
pub fn sample_particles<const D: usize>(simulation: &Simulation<D>) -> Vec<SampleParticle> {
    let dx = simulation.blocks().grid().dx as f32;
    let (positions, velocities) = (simulation.particle_positions(), simulation.particle_velocities());
    let step = positions.len().div_ceil(MOST_SAMPLES).max(1);
    let alive = positions.iter().zip(velocities).step_by(step).filter(|(x, _)| Particles::is_alive(x));
    alive
        .map(|(x, v)| {
            let speed = v.iter().map(|v| v * v).sum::<f32>().sqrt();
            std::array::from_fn(|k| match k {
                3 => speed,
                k if k < D => x[k] * dx,
                _ => 0.0,
            })
        })
        .collect()
}
