//! Measuring the state for the statistics.

use rayon::prelude::*;

use crate::geometry::Label;
use crate::grid::{Halo, SIDE, halo_cells, load_halo};
use crate::liquid::{self, Particles};
use crate::math::{compiled_here, unflatten};
use crate::pressure;
use crate::smoke::Totals;

use super::bodies::survey_bodies;
use super::bubbles::survey_bubbles;
use super::{CellCounts, Divergence, FrameReport, LiquidReport, Params, Scratch, SmokeReport, State};

compiled_here! {
    /// Everything about the state that does not depend on how the frame went.
    pub(super) fn survey<D>(
        state: &State<D>,
        scratch: &Scratch<D>,
        params: &Params,
        partial: &mut Vec<f64>,
    ) -> FrameReport = run_survey;
}

fn run_survey<const D: usize>(
    state: &State<D>,
    scratch: &Scratch<D>,
    params: &Params,
    partial: &mut Vec<f64>,
) -> FrameReport {
    let dt = state.last_dt;
    let grid = *state.blocks.grid();
    let problem = pressure::Problem {
        blocks: &state.blocks,
        boundary: &scratch.boundary,
        walls: &state.walls,
        surface: &state.surface,
        impulse: [0.0; D],
        roles: state.component_roles.roles(&scratch.air.components),
        let_go: None,
        time: state.time,
    };
    let (projection, loose) = (&scratch.projection, &state.pressure.loose);
    let [max, rms] = pressure::divergence(&problem, projection, loose, &state.velocity, partial);
    let extremes = survey_particles(&state.particles);
    FrameReport {
        time: state.time,
        solver: params.model.solver().name(),
        model: params.model.name(),
        cells_xyz: grid.cells.to_vec(),
        dx: grid.dx,
        particles: extremes.alive,
        cells: count_cells(state, scratch),
        divergence: Divergence { max: max * dt, rms: rms * dt },
        liquid: survey_liquid(state, scratch, params, &extremes),
        bubbles: survey_bubbles(state, scratch, params),
        bodies: survey_bodies(&state.walls, &state.hands),
        smoke: survey_smoke(state),
        ..FrameReport::default()
    }
}

fn survey_smoke<const D: usize>(state: &State<D>) -> Option<SmokeReport> {
    state.smoke.is_present().then(|| {
        let Totals { mass, heat, max_density, centroid } = state.smoke.totals(&state.blocks);
        SmokeReport { mass, heat, max_density, centroid: centroid.to_vec() }
    })
}

fn count_cells<const D: usize>(state: &State<D>, scratch: &Scratch<D>) -> CellCounts {
    let count_block = |&slot: &u32| {
        let labels = scratch.projection.label.block(slot as usize);
        let count = |wanted: Label| labels.iter().filter(|&&label| label == wanted).count();
        let [air, liquid, solid] = [Label::Air, Label::Liquid, Label::Solid].map(count);
        CellCounts { air, liquid, solid, stored: labels.len() }
    };
    let add = |a: CellCounts, b: CellCounts| CellCounts {
        air: a.air + b.air,
        liquid: a.liquid + b.liquid,
        solid: a.solid + b.solid,
        stored: a.stored + b.stored,
    };
    let slots = state.blocks.slots().as_slice().par_iter().with_min_len(16);
    slots.map(count_block).reduce(CellCounts::default, add)
}

/// What the particles alone can tell.
#[derive(Clone, Copy, Default)]
struct Extremes {
    alive: usize,
    /// m²/s².
    speed_squared: f32,
    /// Furthest along x, in cells.
    front: f32,
}

impl Extremes {
    fn join(self, other: Self) -> Self {
        Extremes {
            alive: self.alive + other.alive,
            speed_squared: self.speed_squared.max(other.speed_squared),
            front: self.front.max(other.front),
        }
    }
}

fn survey_particles<const D: usize>(particles: &Particles<D>) -> Extremes {
    let pairs = particles.position.par_iter().zip(&particles.velocity).with_min_len(4096);
    pairs
        .filter(|(x, _)| Particles::is_alive(x))
        .map(|(x, v)| Extremes { alive: 1, speed_squared: v.iter().map(|v| v * v).sum(), front: x[0] })
        .reduce(Extremes::default, Extremes::join)
}

/// Sums over the liquid in one block: volume in cells, its moment along each axis in metres, and squared speed.
#[derive(Clone, Copy, Default)]
struct Sums {
    cells: f64,
    moment: [f64; 3],
    speed_squared: f64,
}

fn survey_liquid<const D: usize>(
    state: &State<D>,
    scratch: &Scratch<D>,
    params: &Params,
    extremes: &Extremes,
) -> LiquidReport {
    let grid = *state.blocks.grid();
    // Collected in order, so that the sums are the same for any number of threads.
    let blocks: Vec<Sums> = state
        .blocks
        .slots()
        .as_slice()
        .par_iter()
        .map(|&slot| survey_block(state, scratch, slot as usize))
        .collect();
    let total = blocks.iter().fold(Sums::default(), |sum, block| Sums {
        cells: sum.cells + block.cells,
        moment: std::array::from_fn(|k| sum.moment[k] + block.moment[k]),
        speed_squared: sum.speed_squared + block.speed_squared,
    });
    let volume = total.cells * grid.cell_volume();
    let centroid: Vec<f64> = (0..D).map(|k| total.moment[k] / total.cells.max(1e-300)).collect();
    LiquidReport {
        volume,
        kinetic_energy: 0.5 * params.density * grid.cell_volume() * total.speed_squared,
        potential_energy: params.density * volume * params.gravity * centroid[1],
        max_speed: (extremes.speed_squared as f64).sqrt(),
        front: extremes.front as f64 * grid.dx,
        centroid,
    }
}

fn survey_block<const D: usize>(state: &State<D>, scratch: &Scratch<D>, slot: usize) -> Sums {
    let (blocks, dx) = (&state.blocks, state.blocks.grid().dx);
    let mut shares = [0f32; SIDE * SIDE * SIDE];
    let shares = &mut shares[..state.surface.block_len()];
    liquid::liquid_shares(blocks, &scratch.boundary, &state.surface, slot, shares);
    let mut sums = Sums::default();
    if shares.iter().all(|&share| share == 0.0) {
        return sums;
    }
    let first = blocks.first_cell(slot);
    let mut faces = [[0f32; halo_cells(HALO, 3)]; D];
    for axis in 0..D {
        load_halo(blocks, &state.velocity[axis], slot, HALO, &mut faces[axis]);
    }
    for (local, &share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        let (cell, share) = (unflatten::<D>(local, SIDE), share as f64);
        let at = HALO.index(cell.map(|c| c as i32));
        sums.cells += share;
        for axis in 0..D {
            sums.moment[axis] += share * (first[axis] as f64 + cell[axis] as f64 + 0.5) * dx;
            // The mean of the squares at the cell's two faces.
            let (low, high) = (faces[axis][at] as f64, faces[axis][at + HALO.stride(axis)] as f64);
            sums.speed_squared += share * 0.5 * (low * low + high * high);
        }
    }
    sums
}

const HALO: Halo = Halo::new(1);
