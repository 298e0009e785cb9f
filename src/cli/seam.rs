//! Where the command line meets scenes and simulations: the only place that names them.
//!
//! TODO: a stand-in until `scene::load` and `sim::Simulation` are here; then `load`, `names` and `start` call
//! those, and `Scene`, `AnyScene` and the `Wave` solver go.

use std::sync::atomic::{AtomicBool, Ordering};

use super::args::SceneArguments;
use crate::geometry::{Motion, Shape, Solid};
use crate::grid::{Blocks, Field, Grid, SIDE, block_cells};
use crate::math::{Vector, unflatten};
use crate::runner::{AnySolver, LinearSystem, MemoryReport, RowKind, Solver, SolverError};
use crate::sim::{
    Flow, FrameReport, LiquidBody, Model, Params, Preconditioner, Setup, SolveReport, set_param,
};

/// A scene.
#[derive(Clone, Debug)]
pub struct Scene<const D: usize> {
    pub name: String,
    pub title: String,
    pub summary: String,
    pub figure: String,
    pub setup: Setup<D>,
    pub frames: usize,
    pub fps: f64,
}

/// A scene of either dimension.
#[derive(Clone, Debug)]
pub enum AnyScene {
    TwoD(Scene<2>),
    ThreeD(Scene<3>),
}

/// The built-in scenes' names.
pub fn names() -> Vec<String> {
    ["dam_break", "dam_break_2d"].map(str::to_owned).to_vec()
}

/// The scene that the arguments ask for, or a message.
pub fn load(arguments: &SceneArguments) -> Result<AnyScene, String> {
    let mut params = Params::default();
    if let Some(name) = &arguments.model {
        params.model = Model::from_name(name).ok_or_else(|| format!("unknown model `{name}`"))?;
    }
    for change in &arguments.set {
        let (name, value) = change.split_once('=').ok_or_else(|| format!("`{change}` is not NAME=VALUE"))?;
        set_param(&mut params, name, value).map_err(|error| error.to_string())?;
    }
    let cells = arguments.cells.unwrap_or(48);
    match arguments.scene.as_str() {
        "dam_break" => Ok(AnyScene::ThreeD(scene("dam_break", [1.0, 0.5, 0.5], cells, params))),
        "dam_break_2d" => Ok(AnyScene::TwoD(scene("dam_break_2d", [1.0, 0.5], cells, params))),
        other => Err(format!("no scene `{other}`; built-in scenes are {}", names().join(", "))),
    }
}

/// Starts the simulation of a scene.
pub fn start(scene: AnyScene) -> Result<AnySolver, SolverError> {
    Ok(match scene {
        AnyScene::TwoD(scene) => AnySolver::TwoD(scene.setup.clone(), Box::new(Wave::new(&scene.setup))),
        AnyScene::ThreeD(scene) => AnySolver::ThreeD(scene.setup.clone(), Box::new(Wave::new(&scene.setup))),
    })
}

fn scene<const D: usize>(name: &str, size: [f64; D], cells: usize, params: Params) -> Scene<D> {
    let shape = Shape::Box { min: Vector::zeros(), max: Vector::from(size) * 0.5 };
    let setup = Setup {
        size,
        grid: Grid::covering(size, cells),
        open: [[false; 2]; D],
        liquids: vec![LiquidBody { shape, flow: Flow::rest() }],
        sources: Vec::new(),
        drains: Vec::new(),
        solids: vec![Solid {
            name: "ball".to_owned(),
            shape: Shape::Sphere { center: Vector::from(size) * 0.6, radius: 0.1 },
            motion: Motion::default(),
        }],
        params,
    };
    let (title, summary) = ("A wave".to_owned(), "A plane wave.".to_owned());
    Scene { name: name.to_owned(), title, summary, figure: String::new(), setup, frames: 20, fps: 24.0 }
}

/// A wave that runs along x: looks like a simulation from outside.
struct Wave<const D: usize> {
    blocks: Blocks<D>,
    surface: Field<f32>,
    positions: Vec<[f32; D]>,
    frame: usize,
    time: f64,
}

impl<const D: usize> Wave<D> {
    fn new(setup: &Setup<D>) -> Self {
        let blocks = Blocks::all(setup.grid);
        let mut surface = Field::new(block_cells(D), f32::MAX);
        surface.resize(blocks.slot_count());
        Wave { blocks, surface, positions: vec![[1.5; D]; 100], frame: 0, time: 0.0 }
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
                *out = (x[1] - 0.22 - 0.05 * wave) as f32;
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
