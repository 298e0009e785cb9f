//! From the sparse grid of a simulation to the dense fields of a snapshot.

use rayon::prelude::*;

use crate::bubbles::BubbleList;
use crate::geometry::Label;
use crate::grid::{Blocks, Field, SIDE, block_cells};
use crate::liquid::Particles;
use crate::math::unflatten;
use crate::sim::Simulation;

use super::data::{CellFields, SampleParticle, Smoke, TileView, Wanted, region};
use super::half::half_from_f32;
use super::roles::roles;

/// Distances are continued this many cells away from the surface: what a ray may leap at once.
const REACH: f32 = 10.0;
/// Particles a snapshot holds at most.
const MOST_SAMPLES: usize = 60_000;

/// The distance to the shown surface in every cell, as [`CellFields::distance`] has it.
pub fn distances<const D: usize>(blocks: &Blocks<D>, surface: &Field<f32>) -> Vec<u16> {
    let (dense, dx) = (Dense::new(blocks), blocks.grid().dx as f32);
    let mut distance = dense.gather(REACH, |slot, local| surface.block(slot)[local] / dx);
    widen(&mut distance, dense.cells);
    distance.iter().map(|&value| half_from_f32(value)).collect()
}

/// What every cell belongs to, and the fields that are wanted; all but the distance.
pub fn cell_fields<const D: usize>(simulation: &Simulation<D>, wanted: Wanted) -> CellFields {
    let state = simulation.state();
    let blocks = &state.blocks;
    let dx = blocks.grid().dx as f32;
    let dense = Dense::new(blocks);
    let region = regions(simulation, &dense);
    let faces = |field: &Field<f32>, slot: usize, local: usize, axis: usize| {
        [field.block(slot)[local], above(blocks, field, slot, local, axis)]
    };
    // Without smoke nobody looks for the flow of the air.
    let shows_air = state.smoke.is_present() && state.gas.is_present();
    let velocity = wanted.velocity.then(|| {
        dense.gather([0; 4], |slot, local| {
            let is_air = shows_air && simulation.projection().label.block(slot)[local] == Label::Air;
            let field = if is_air { &state.gas.velocity } else { &state.velocity };
            let mean: [f32; D] = std::array::from_fn(|axis| {
                let [low, high] = faces(&field[axis], slot, local, axis);
                0.5 * (low + high)
            });
            let known = match is_air {
                true => mean.iter().all(|u| u.is_finite()),
                false => state.surface.block(slot)[local] < 1.4 * dx,
            };
            std::array::from_fn(|axis| match axis {
                3 => half_from_f32(known as u8 as f32),
                axis if axis < D && known => half_from_f32(mean[axis]),
                _ => 0,
            })
        })
    });
    let scalars = wanted.scalars.then(|| {
        let pascal = simulation.pascal_per_q() as f32;
        dense.gather([0; 2], |slot, local| {
            if !simulation.projection().has_pressure(slot, local) {
                return [0; 2];
            }
            // Water a kilometre deep still fits into half precision when counted in hundreds of pascals.
            let pressure = half_from_f32(state.pressure.q.block(slot)[local] as f32 * pascal / 100.0);
            if simulation.projection().label.block(slot)[local] != Label::Liquid {
                return [pressure, 0];
            }
            let outflow: f32 = (0..D)
                .map(|axis| {
                    let [u0, u1] = faces(&state.velocity[axis], slot, local, axis);
                    let [a0, a1] = faces(&simulation.boundary().open[axis], slot, local, axis);
                    a1 * u1 - a0 * u0
                })
                .sum();
            [pressure, half_from_f32(outflow / dx)]
        })
    });
    let roles = wanted.roles.then(|| roles(simulation, &dense)).flatten();
    let smoke = smoke(simulation, &dense);
    CellFields { cells: dense.cells, distance: Vec::new(), region, velocity, scalars, smoke, roles }
}

/// The smoke in every cell.
fn smoke<const D: usize>(simulation: &Simulation<D>, dense: &Dense<'_, D>) -> Option<Smoke> {
    let smoke = &simulation.state().smoke;
    smoke.is_present().then(|| {
        let [full_density, full_heat] = smoke.full();
        let values = dense.gather([0; 2], |slot, local| {
            let value = |field: &Field<f32>| half_from_f32(field.block(slot)[local]);
            match simulation.projection().label.block(slot)[local] {
                Label::Air => [value(&smoke.density), value(&smoke.heat)],
                Label::Liquid | Label::Solid => [0; 2],
            }
        });
        Smoke { values, full_density, full_heat, appearance: Vec::new() }
    })
}

/// What every cell belongs to; bubbles are numbered as the report lists them.
fn regions<const D: usize>(simulation: &Simulation<D>, dense: &Dense<'_, D>) -> Vec<u16> {
    let (state, blocks) = (simulation.state(), simulation.blocks());
    let components = &simulation.air().components;
    let bubbles = BubbleList::new(state.tracker.records());
    let of = |component: u32| bubbles.of_component(component).and_then(region::of_bubble);
    let far = |cell: [i32; D]| {
        let index = blocks.table_index(blocks.grid().block_of(cell))?;
        components.far_component(index).and_then(of)
    };
    dense.gather_with(
        |cell| far(cell).unwrap_or(region::AIR),
        |slot, local| match simulation.projection().label.block(slot)[local] {
            Label::Liquid => region::LIQUID,
            Label::Solid => region::SOLID,
            Label::Air => of(components.of.block(slot)[local]).unwrap_or(region::AIR),
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

/// Distances up to here are those that the solver found, in cells.
const TRUSTED: f32 = 1.2;

/// Continues a distance that is exact near zero to cells farther away, by two sweeps over the neighbours. A ray can
/// then leap over calm water instead of creeping through it. The result is up to a tenth too large.
fn widen(distance: &mut [f32], [nx, ny, nz]: [usize; 3]) {
    // Cells farther from the surface than the solver looks carry a cut-off value: their distance is unknown.
    for value in distance.iter_mut() {
        if value.is_nan() || value.abs() >= TRUSTED {
            *value = if *value < 0.0 { -REACH } else { REACH };
        }
    }
    let mut sweep = Sweep { side: vec![0.0; nx], nearest: vec![0.0; nx] };
    for forward in [true, false] {
        for step in 0..ny * nz {
            let row = if forward { step } else { ny * nz - 1 - step };
            let (j, k) = (row % ny, row / ny);
            // The sweep has visited the rows on one side of this one.
            let (own, visited, first) = if forward {
                let (visited, rest) = distance.split_at_mut(row * nx);
                (&mut rest[..nx], &*visited, 0)
            } else {
                let (rest, visited) = distance.split_at_mut((row + 1) * nx);
                (&mut rest[row * nx..], &*visited, row + 1)
            };
            sweep.begin(own);
            for (dy, dz) in [(-1, -1), (0, -1), (1, -1), (-1, 0)] {
                let (dy, dz) = if forward { (dy, dz) } else { (-dy, -dz) };
                let (Some(y), Some(z)) = (j.checked_add_signed(dy), k.checked_add_signed(dz)) else {
                    continue;
                };
                if y < ny && z < nz {
                    let at = (z * ny + y - first) * nx;
                    sweep.hear(&visited[at..at + nx], (dy * dy + dz * dz) as f32);
                }
            }
            sweep.settle(own, forward);
        }
    }
}

/// A row of cells on its way through [`widen`]. What comes from other rows is found for all cells at once.
struct Sweep {
    /// 1 outside the liquid, −1 inside.
    side: Vec<f32>,
    /// The way to the surface that is known by now.
    nearest: Vec<f32>,
}

impl Sweep {
    fn begin(&mut self, own: &[f32]) {
        for ((side, nearest), value) in self.side.iter_mut().zip(&mut self.nearest).zip(own) {
            *side = if *value < 0.0 { -1.0 } else { 1.0 };
            *nearest = value.abs();
        }
    }

    /// Ways through the cells of another row, so far away (squared).
    fn hear(&mut self, other: &[f32], apart: f32) {
        let (straight, slanted) = (apart.sqrt(), (apart + 1.0).sqrt());
        let count = other.len();
        self.hear_shifted(0, other, straight);
        self.hear_shifted(1, &other[..count - 1], slanted);
        // The last of the row has nobody behind it.
        self.nearest[..count - 1]
            .iter_mut()
            .zip(&self.side)
            .zip(&other[1..])
            .for_each(|((nearest, side), other)| *nearest = lesser(*nearest, side * other + slanted));
    }

    fn hear_shifted(&mut self, from: usize, other: &[f32], length: f32) {
        let cells = self.nearest[from..].iter_mut().zip(&self.side[from..]);
        // Across the surface the other side's distance counts the other way.
        cells
            .zip(other)
            .for_each(|((nearest, side), other)| *nearest = lesser(*nearest, side * other + length));
    }

    /// Ways along the row, and the result.
    fn settle(&self, own: &mut [f32], forward: bool) {
        let count = own.len();
        let mut last: Option<f32> = None;
        for step in 0..count {
            let i = if forward { step } else { count - 1 - step };
            if own[i].abs() >= TRUSTED {
                let beside = last.map_or(REACH, |last| self.side[i] * last + 1.0);
                own[i] = lesser(self.nearest[i], beside).max(TRUSTED).copysign(own[i]);
            }
            last = Some(own[i]);
        }
    }
}

/// The smaller of two numbers; unlike [`f32::min`] it is one instruction.
#[inline]
fn lesser(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

/// The tiles of a simulation.
pub fn tiles<const D: usize>(simulation: &Simulation<D>) -> Vec<TileView> {
    let dx = simulation.blocks().grid().dx;
    let Some(tiling) = &simulation.projection().tiling else { return Vec::new() };
    let view = |tile: &crate::tiles::Tile<D>| {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    /// The sweeps of [`widen`], neighbour by neighbour.
    fn widen_plainly(distance: &mut [f32], [nx, ny, nz]: [usize; 3]) {
        for value in distance.iter_mut() {
            if value.is_nan() || value.abs() >= TRUSTED {
                *value = if *value < 0.0 { -REACH } else { REACH };
            }
        }
        for forward in [true, false] {
            for step in 0..nx * ny * nz {
                let index = if forward { step } else { nx * ny * nz - 1 - step };
                let value = distance[index];
                if value.abs() < TRUSTED {
                    continue;
                }
                let place = [index % nx, index / nx % ny, index / (nx * ny)].map(|c| c as i64);
                let mut nearest = value.abs();
                for (dz, dy, dx) in (0..27i64).map(|k| (k / 9 - 1, k / 3 % 3 - 1, k % 3 - 1)) {
                    let order = dz * 9 + dy * 3 + dx;
                    let at = [place[0] + dx, place[1] + dy, place[2] + dz];
                    let inside = (0..3).all(|k| at[k] >= 0 && at[k] < [nx, ny, nz][k] as i64);
                    if inside && if forward { order < 0 } else { order > 0 } {
                        let other = distance[(at[0] + nx as i64 * (at[1] + ny as i64 * at[2])) as usize];
                        let through = if (other < 0.0) == (value < 0.0) { other.abs() } else { -other.abs() };
                        let length = ((dx * dx + dy * dy + dz * dz) as f32).sqrt();
                        nearest = nearest.min((through + length).max(TRUSTED));
                    }
                }
                distance[index] = nearest.copysign(value);
            }
        }
    }

    #[test]
    fn distances_are_continued_row_by_row_as_neighbour_by_neighbour() {
        for cells in [[13, 9, 7], [1, 5, 4], [17, 11, 1], [2, 1, 1]] {
            let count = cells.iter().product::<usize>();
            let mut rows: Vec<f32> = (0..count as u64)
                .map(|k| match hash_unit(k) {
                    // A few cells beside the surface, the others far away on either side.
                    share if share < 0.05 => 20.0 * share - 0.5,
                    share if share < 0.06 => f32::NAN,
                    share => 30.0 * (share - 0.6),
                })
                .collect();
            let mut cell_by_cell = rows.clone();
            widen(&mut rows, cells);
            widen_plainly(&mut cell_by_cell, cells);
            assert_eq!(rows, cell_by_cell, "{cells:?}");
        }
    }
}
