//! Solids of whole cells against cut ones, both against a grid four times finer (Batty et al. 2007, figures 2 and 4).

use std::sync::atomic::AtomicBool;

use super::Failure;
use crate::geometry::{Motion, Move, OUT_OF_PLANE, Shape, Solid};
use crate::grid::{SIDE, block_cells};
use crate::math::{Vector, unflatten};
use crate::scene::{AnyScene, Overrides, load};
use crate::sim::{Flow, LiquidBody, Setup, Simulation, WallCells};

/// Cells along x of the coarse grid, and how many times finer the other one is.
pub const CELLS: usize = 32;
pub const FINER: usize = 4;
/// Frames a second.
const FPS: f64 = 30.0;

/// How far runs on a coarse grid are from one on the fine grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compared {
    /// What flows.
    pub flow: &'static str,
    /// What solids are on the grid.
    pub walls: &'static str,
    /// Root of the mean square difference of velocities, over that of the velocities, clear of solids by two coarse cells.
    pub velocities: f64,
    /// Difference of kinetic energies, over the fine one.
    pub energy: f64,
}

/// Makes a flow with so many cells along x.
type Make = fn(usize) -> Result<Setup<2>, Failure>;

/// Runs all flows on all grids.
pub fn compare(stop: &AtomicBool) -> Result<Vec<Compared>, Failure> {
    let flows: [(&str, Make, usize); 2] =
        [("vortex in a box turned by 30°", turned_box, 12), ("paddle that turns in a full box", paddle, 6)];
    let mut found = Vec::new();
    for (flow, setup, frames) in flows {
        let fine = Course::run(&setup(FINER * CELLS)?, frames, stop)?;
        for walls in [WallCells::Cut, WallCells::Voxel] {
            let mut setup = setup(CELLS)?;
            setup.params.walls = walls;
            let coarse = Course::run(&setup, frames, stop)?;
            found.push(Compared {
                flow,
                walls: if walls == WallCells::Cut { "cut cells" } else { "whole cells" },
                velocities: coarse.off(&fine, &setup, frames as f64 / FPS),
                energy: coarse.energy / fine.energy - 1.0,
            });
        }
    }
    Ok(found)
}

/// Figure 2.
fn turned_box(cells: usize) -> Result<Setup<2>, Failure> {
    let scene = load("vortex_box_2d", &Overrides { cells: Some(cells), ..Overrides::default() });
    match scene.map_err(|error| Failure::Input(error.to_string()))? {
        AnyScene::TwoD(scene) => Ok(scene.setup),
        AnyScene::ThreeD(scene) => Err(Failure::Input(format!("{} is a scene in space", scene.name))),
    }
}

/// Figure 4: in the same domain, a cross that turns in liquid at rest.
fn paddle(cells: usize) -> Result<Setup<2>, Failure> {
    let mut setup = turned_box(cells)?;
    let centre = Vector::from([0.5, 0.5]);
    let full = Shape::Box { min: Vector::zeros(), max: centre * 2.0 };
    let half = Vector::from([0.3, 0.045]);
    let blade = Shape::Box { min: centre - half, max: centre + half };
    let cross = blade.clone().rotated(OUT_OF_PLANE, std::f64::consts::FRAC_PI_2, centre);
    let spin = Move::Spin { axis: OUT_OF_PLANE, center: centre, rate: 3.0, from: 0.0, until: f64::INFINITY };
    setup.solids = vec![Solid::new("paddle", Shape::Union(vec![blade, cross]), Motion::new(vec![spin]))];
    setup.liquids = vec![LiquidBody { shape: full, flow: Flow::rest() }];
    Ok(setup)
}

/// What a run came to.
struct Course {
    /// At the centres of all cells, x fastest.
    velocities: Vec<[f64; 2]>,
    energy: f64,
}

impl Course {
    fn run(setup: &Setup<2>, frames: usize, stop: &AtomicBool) -> Result<Self, Failure> {
        let failure = |error: &dyn std::fmt::Display| Failure::Work(error.to_string());
        let mut simulation = Simulation::new(setup).map_err(|error| failure(&error))?;
        let mut energy = 0.0;
        for frame in 0..frames {
            let report = simulation.advance_frame(1.0 / FPS, stop).map_err(|error| failure(&error))?;
            energy = report.ok_or(Failure::Stopped(frame))?.liquid.kinetic_energy;
        }
        Ok(Course { velocities: velocities(&simulation), energy })
    }

    /// How far it is from a run on the fine grid.
    fn off(&self, fine: &Course, setup: &Setup<2>, time: f64) -> f64 {
        let ([width, height], dx) = (setup.grid.cells, setup.grid.dx);
        let (mut difference, mut size) = (0.0, 0.0);
        for (index, coarse) in self.velocities.iter().enumerate() {
            let (x, y) = (index % width, index / width);
            let centre = Vector::from([(x as f64 + 0.5) * dx, (y as f64 + 0.5) * dx]);
            let sides =
                centre.x.min(centre.y).min(width as f64 * dx - centre.x).min(height as f64 * dx - centre.y);
            let solids = setup.solids.iter().map(|solid| solid.distance(&centre, time));
            if solids.fold(sides, f64::min) < 2.0 * dx {
                continue;
            }
            let mut mean = [0.0; 2];
            for part in 0..FINER * FINER {
                let place = FINER * x + part % FINER + (FINER * y + part / FINER) * FINER * width;
                let fine = fine.velocities[place];
                mean.iter_mut().zip(fine).for_each(|(mean, u)| *mean += u / (FINER * FINER) as f64);
            }
            difference += mean.iter().zip(coarse).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            size += mean.iter().map(|a| a * a).sum::<f64>();
        }
        (difference / size).sqrt()
    }
}

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
            let [x, y]: [i32; 2] = std::array::from_fn(|k| first[k] + offset[k] as i32);
            if state.blocks.grid().contains([x, y]) {
                found[x as usize + y as usize * width] =
                    [0.5 * (at(0, [x, y]) + at(0, [x + 1, y])), 0.5 * (at(1, [x, y]) + at(1, [x, y + 1]))];
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_cells_are_nearer_to_the_fine_grid() {
        let found = compare(&AtomicBool::new(false)).unwrap_or_else(|_| panic!("it runs"));
        println!("{found:#?}");
        for pair in found.chunks_exact(2) {
            assert!(pair[0].velocities < 0.8 * pair[1].velocities, "{pair:?}");
        }
    }
}
