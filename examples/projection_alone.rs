//! A pressure projection by itself, without particles or time: a half-full closed tank gets a velocity that is anything but
//! incompressible, and one solve makes it so. Prints the divergence before and after.
//!
//!     cargo run --release --no-default-features --example projection_alone

use glug::geometry::{Boundary, Settled, Walls, label_cells};
use glug::grid::{Blocks, FaceMask, Field, Grid, SIDE, block_cells};
use glug::linear::SolverParams;
use glug::math::unflatten;
use glug::pressure::{self, FREE, Pressure, Problem, Projection, Roles};

/// A field with a value at every place of every block: `at(x)` for the low corner of a cell, in cells.
fn sampled<const D: usize>(blocks: &Blocks<D>, at: impl Fn([f32; D]) -> f32) -> Field<f32> {
    let mut field = Field::new(block_cells(D), 0.0);
    field.resize(blocks.slot_count());
    for &slot in blocks.slots().as_slice() {
        let first = blocks.first_cell(slot as usize);
        for (local, value) in field.block_mut(slot as usize).iter_mut().enumerate() {
            let cell = unflatten::<D>(local, SIDE);
            *value = at(std::array::from_fn(|k| (first[k] + cell[k] as i32) as f32));
        }
    }
    field
}

fn main() {
    let blocks = Blocks::all(Grid { cells: [64, 64], dx: 1.0 / 64.0 });
    let walls = Walls {
        solids: Vec::new(),
        size: [1.0; 2],
        open: [[false; 2]; 2],
        sticky: [[false; 2]; 2],
        slip: [[false; 2]; 2],
        voxels: false,
    };
    let mut boundary = Boundary::new();
    boundary.update(&blocks, &walls, 0.0);
    // Water up to half the height: signed distances at cell centres, metres.
    let surface = sampled(&blocks, |[_, y]| (y + 0.5) / 64.0 - 0.5);
    let mut velocity = [0.3, 0.7].map(|rate| sampled(&blocks, |[x, y]| (rate * x).sin() + (0.2 * y).cos()));
    let mut valid = [FaceMask::new(2), FaceMask::new(2)];
    valid.iter_mut().for_each(|mask| mask.bits.resize(blocks.slot_count()));

    let mut projection = Projection::new();
    let Projection { label, live, .. } = &mut projection;
    label_cells(&blocks, &boundary, &surface, label, live, &mut Settled::default());
    // One component of air, at zero pressure.
    let mut component = Field::new(block_cells(2), 0);
    component.resize(blocks.slot_count());
    let (node, outflow) = ([FREE], [0.0]);
    let (component, node, outflow) = (&component, &node, &outflow);
    let roles = Roles { component, node, air_mass: 0.0, outflow, weight: &[], guess: &[] };
    pressure::find_unknowns(&blocks, &roles, &mut projection);
    let (boundary, walls, surface) = (&boundary, &walls, &surface);
    let (blocks, impulse, let_go) = (&blocks, [0.0; 2], None);
    let problem = Problem { blocks, boundary, walls, surface, impulse, roles, let_go, time: 0.0 };
    let q = &mut Pressure::new(2);
    let [before, _] = pressure::divergence(&problem, &projection, &q.loose, &velocity, &mut Vec::new());
    let params = SolverParams { tolerance: 1e-8, ..SolverParams::default() };
    let (faces, dt) = ((&mut velocity, &mut valid), 1.0);
    let solved =
        pressure::project(faces.0, faces.1, &problem, &params, q, &mut projection, &mut [], dt, None);
    let [after, _] = pressure::divergence(&problem, &projection, &q.loose, &velocity, &mut Vec::new());
    println!("divergence at most {before:.1} → {after:.1e} 1/s in {} iterations", solved.info.iterations);
}
