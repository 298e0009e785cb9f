//! Where the command line meets scenes and simulations.
//!
//! TODO: `Wave` stands in until `sim::Simulation` is here; then `start` calls that, and `Wave` goes.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Failure;
use super::args::SceneArguments;
use crate::grid::{Blocks, Field, SIDE, block_cells};
use crate::math::unflatten;
use crate::runner::{AnySolver, LinearSystem, MemoryReport, RowKind, Solver, SolverError};
use crate::scene::{self, AnyScene, Overrides, library};
use crate::sim::{FrameReport, Preconditioner, Setup, SolveReport};

/// The built-in scenes' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    library().iter().map(|scene| scene.name)
}

/// The scene that the arguments ask for.
pub fn load(arguments: &SceneArguments) -> Result<AnyScene, Failure> {
    let pair = |change: &String| {
        let (name, value) = change.split_once('=').ok_or_else(|| {
            Failure::Input(format!("--set {change}: expected NAME=VALUE, for example `--set gravity=1.62`"))
        })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    };
    let set = arguments.set.iter().map(pair).collect::<Result<_, Failure>>()?;
    let overrides = Overrides { cells: arguments.cells, model: arguments.model.clone(), set };
    scene::load(&arguments.scene, &overrides).map_err(|error| Failure::Input(error.to_string()))
}

/// Starts the simulation of a scene.
pub fn start(scene: AnyScene) -> Result<AnySolver, SolverError> {
    Ok(match scene {
        AnyScene::TwoD(scene) => {
            let solver = Box::new(Wave::new(&scene.setup));
            AnySolver::TwoD(scene.setup, solver)
        }
        AnyScene::ThreeD(scene) => {
            let solver = Box::new(Wave::new(&scene.setup));
            AnySolver::ThreeD(scene.setup, solver)
        }
    })
}

/// A wave that runs along x: looks like a simulation from outside.
struct Wave<const D: usize> {
    blocks: Blocks<D>,
    surface: Field<f32>,
    positions: Vec<[f32; D]>,
    liquids: Vec<crate::sim::LiquidBody<D>>,
    frame: usize,
    time: f64,
}

impl<const D: usize> Wave<D> {
    fn new(setup: &Setup<D>) -> Self {
        let blocks = Blocks::all(setup.grid);
        let mut surface = Field::new(block_cells(D), f32::MAX);
        surface.resize(blocks.slot_count());
        Wave {
            blocks,
            surface,
            positions: vec![[1.5; D]; 100],
            liquids: setup.liquids.clone(),
            frame: 0,
            time: 0.0,
        }
    }
}

impl<const D: usize> Solver<D> for Wave<D> {
    fn advance_frame(&mut self, seconds: f64, stop: &AtomicBool) -> Result<Option<FrameReport>, SolverError> {
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_millis(2));
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        self.frame += 1;
        self.time += seconds;
        let dx = self.blocks.grid().dx;
        let slots = self.blocks.slots().as_slice().to_vec();
        for slot in slots {
            let first = self.blocks.first_cell(slot as usize);
            for (local, out) in self.surface.block_mut(slot as usize).iter_mut().enumerate() {
                let offset = unflatten::<D>(local, SIDE);
                let x: [f64; D] = std::array::from_fn(|a| ((first[a] + offset[a] as i32) as f64 + 0.5) * dx);
                let across = if D > 2 { x[D - 1] } else { 0.0 };
                let wave = (9.0 * x[0] - 5.0 * self.time).sin() + 0.5 * (14.0 * across + x[0] * 4.0).cos();
                let x = crate::math::Vector::<D>::from(x);
                let near = self.liquids.iter().map(|liquid| liquid.shape.distance(&x));
                *out = (near.fold(f64::MAX, f64::min) - 0.02 * wave) as f32;
            }
        }
        Ok(Some(FrameReport {
            frame: self.frame,
            time: self.time,
            substeps: 2,
            model: "free-surface",
            cells_xyz: self.blocks.grid().cells.to_vec(),
            dx,
            seconds: [("total", 0.02), ("solve", 0.01)].into(),
            particles: self.positions.len(),
            solve: vec![SolveReport { iterations: 7, method: "multigrid", ..SolveReport::default() }; 2],
            ..FrameReport::default()
        }))
    }

    fn blocks(&self) -> &Blocks<D> {
        &self.blocks
    }

    fn surface(&self) -> &Field<f32> {
        &self.surface
    }

    fn particle_positions(&self) -> &[[f32; D]] {
        &self.positions
    }

    fn particle_velocities(&self) -> &[[f32; D]] {
        &self.positions
    }

    fn memory(&self) -> MemoryReport {
        MemoryReport { grid_bytes: self.surface.bytes(), ..MemoryReport::default() }
    }

    fn system(&self) -> Option<LinearSystem> {
        Some(LinearSystem {
            entries: vec![(0, 0, 2.0), (1, 0, -1.0), (1, 1, 2.0)],
            rhs: vec![1.0, 1.0],
            solution: vec![1.0, 1.0],
            rows: vec![(RowKind::Pressure, [0, 0, -1]), (RowKind::Pressure, [1, 0, -1])],
            ..LinearSystem::default()
        })
    }

    fn solve_again(&self, preconditioner: Preconditioner) -> Option<SolveReport> {
        Some(SolveReport { iterations: 5, method: preconditioner.name(), ..SolveReport::default() })
    }
}
