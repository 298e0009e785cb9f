//! Solids of whole cells against cut ones, as the published figures compare them: both against a grid four times finer.

use glug::geometry::{Motion, Move, OUT_OF_PLANE, Shape, Solid};
use glug::grid::{SIDE, block_cells};
use glug::math::{Vector, unflatten};
use glug::scene::{AnyScene, Overrides, load};
use glug::sim::{Setup, Simulation, WallCells};

use super::{advance, corner_box, tank};

/// Coarse cells for one of the fine ones along each axis.
const FINER: usize = 4;

/// The velocity at the centres of all cells of a simulation in 2D, x fastest.
fn velocities(simulation: &Simulation<2>) -> Vec<[f64; 2]> {
    let state = simulation.state();
    let [width, height] = state.blocks.grid().cells;
    let mut found = vec![[0.0; 2]; width * height];
    let at = |axis: usize, cell: [i32; 2]| {
        let (slot, local) = state.blocks.locate(cell);
        f64::from(state.velocity[axis].block(slot as usize)[local])
    };
    for &slot in state.blocks.slots().as_slice() {
        let first = state.blocks.first_cell(slot as usize);
        for local in 0..block_cells(2) {
            let offset = unflatten::<2>(local, SIDE);
            let cell: [i32; 2] = std::array::from_fn(|k| first[k] + offset[k] as i32);
            if !state.blocks.grid().contains(cell) {
                continue;
            }
            let [x, y] = cell;
            found[x as usize + y as usize * width] =
                [0.5 * (at(0, cell) + at(0, [x + 1, y])), 0.5 * (at(1, cell) + at(1, [x, y + 1]))];
        }
    }
    found
}

/// After some frames: velocities, and kinetic energy.
fn run(setup: &Setup<2>, frames: usize) -> (Vec<[f64; 2]>, f64) {
    let mut simulation = Simulation::new(setup).expect("it starts");
    let mut energy = 0.0;
    for _ in 0..frames {
        let report = advance(&mut simulation, 1.0 / 30.0);
        assert!(report.solve.iter().all(|solve| solve.converged), "{:?}", report.solve);
        energy = report.liquid.kinetic_energy;
    }
    (velocities(&simulation), energy)
}

/// Root of the mean square difference from a run on the fine grid, over that of its velocities, in places that are clear of all
/// solids by two coarse cells.
fn error(coarse: &[[f64; 2]], fine: &[[f64; 2]], setup: &Setup<2>, time: f64) -> f64 {
    let ([width, height], dx) = (setup.grid.cells, setup.grid.dx);
    let (mut difference, mut size) = (0.0, 0.0);
    for (index, coarse) in coarse.iter().enumerate() {
        let (x, y) = (index % width, index / width);
        let centre = Vector::from([(x as f64 + 0.5) * dx, (y as f64 + 0.5) * dx]);
        let sides =
            centre.x.min(centre.y).min(width as f64 * dx - centre.x).min(height as f64 * dx - centre.y);
        let solids = setup.solids.iter().map(|solid| solid.distance(&centre, time));
        if solids.fold(sides, f64::min) < 2.0 * dx {
            continue;
        }
        // The mean over the fine cells in it.
        let mut mean = [0.0; 2];
        for part in 0..FINER * FINER {
            let fine = fine[FINER * x + part % FINER + (FINER * y + part / FINER) * FINER * width];
            mean.iter_mut().zip(fine).for_each(|(mean, u)| *mean += u / (FINER * FINER) as f64);
        }
        difference += mean.iter().zip(coarse).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        size += mean.iter().map(|a| a * a).sum::<f64>();
    }
    (difference / size).sqrt()
}

/// How far cut cells and voxels are from the fine grid: velocities, and kinetic energies.
fn errors(setup: impl Fn(usize) -> Setup<2>, cells: usize, frames: usize) -> [[f64; 2]; 2] {
    let time = frames as f64 / 30.0;
    let (fine, energy) = run(&setup(FINER * cells), frames);
    [WallCells::Cut, WallCells::Voxel].map(|walls| {
        let mut setup = setup(cells);
        setup.params.walls = walls;
        let (coarse, own) = run(&setup, frames);
        [error(&coarse, &fine, &setup, time), (own / energy - 1.0).abs()]
    })
}

/// Figure 2: a vortex in a box that is turned against the grid.
#[test]
fn a_vortex_in_a_turned_box_is_nearer_to_the_fine_one_with_cut_cells() {
    let setup = |cells: usize| {
        let overrides = Overrides { cells: Some(cells), ..Overrides::default() };
        match load("vortex_box_2d", &overrides) {
            Ok(AnyScene::TwoD(scene)) => scene.setup,
            other => panic!("a scene in 2D, not {other:?}"),
        }
    };
    let [cut, voxel] = errors(setup, 32, 12);
    println!("velocities and energy are off by {cut:.3?} with cut cells, {voxel:.3?} with voxels");
    assert!(cut[0] < 0.6 * voxel[0], "velocities: {:.3} with cut cells, {:.3} with voxels", cut[0], voxel[0]);
    assert!(cut[1] < voxel[1], "energy: {:.3} with cut cells, {:.3} with voxels", cut[1], voxel[1]);
}

/// Figure 4: a paddle that turns, here in a box full of liquid.
#[test]
fn the_flow_around_a_paddle_is_nearer_to_the_fine_one_with_cut_cells() {
    let setup = |cells: usize| {
        let mut setup = tank([1.0, 1.0], cells, vec![corner_box([0.0, 0.0], [1.0, 1.0], 1.0)]);
        let centre = Vector::from([0.5, 0.5]);
        let half = Vector::from([0.3, 0.045]);
        let blade = Shape::Box { min: centre - half, max: centre + half };
        let cross = blade.clone().rotated(OUT_OF_PLANE, std::f64::consts::FRAC_PI_2, centre);
        let spin =
            Move::Spin { axis: OUT_OF_PLANE, center: centre, rate: 3.0, from: 0.0, until: f64::INFINITY };
        let paddle = Solid::new("paddle", Shape::Union(vec![blade, cross]), Motion::new(vec![spin]));
        setup.solids.push(paddle);
        setup.params.gravity = 0.0;
        setup.params.cfl = 0.5;
        setup
    };
    let [cut, voxel] = errors(setup, 32, 6);
    println!("velocities and energy are off by {cut:.3?} with cut cells, {voxel:.3?} with voxels");
    assert!(cut[0] < 0.8 * voxel[0], "velocities: {:.3} with cut cells, {:.3} with voxels", cut[0], voxel[0]);
}
