//! What the runner asks of a simulation.

use std::sync::atomic::AtomicBool;

use crate::grid::{Blocks, Field, SIDE, block_cells};
use crate::linear::{SolveInfo, assemble, assemble_with_bodies};
use crate::math::unflatten;
use crate::sim::{FrameReport, MemoryReport, Params, Preconditioner, Simulation, SolveReport};

use super::snapshot::{CellFields, Mote, TileView, Wanted};
use super::{fields, shore};

/// Why a simulation could not go on.
pub type SolverError = Box<dyn std::error::Error + Send + Sync>;

/// A simulation that goes forward frame by frame.
pub trait Solver<const D: usize>: Send + Sync {
    /// Goes forward by one frame; `None` when `stop` was raised before its end.
    fn advance_frame(
        &mut self,
        frame_seconds: f64,
        stop: &AtomicBool,
    ) -> Result<Option<FrameReport>, SolverError>;

    /// The same; before every step of the solver `between` may change the parameters, or take its time.
    fn advance_frame_with(
        &mut self,
        frame_seconds: f64,
        stop: &AtomicBool,
        between: &mut dyn FnMut(&mut Params),
    ) -> Result<Option<FrameReport>, SolverError>;

    /// The parameters in use, to be changed between two frames.
    fn params_mut(&mut self) -> &mut Params;

    /// The same simulation at the same moment, to go its own way.
    fn branch(&self) -> Box<dyn Solver<D>>;

    /// The statistics of this moment, without those of a frame.
    fn survey(&mut self) -> FrameReport;

    /// Fields on the grid, as a snapshot holds them; the surface is the one to show.
    fn cell_fields(&self, surface: &Field<f32>, wanted: Wanted) -> CellFields;

    /// Particles, as a snapshot holds them.
    fn motes(&self) -> Vec<Mote>;

    /// Tiles, as a snapshot holds them; a solver that has none need not say so.
    fn tiles(&self) -> Vec<TileView> {
        Vec::new()
    }

    /// The active blocks.
    fn blocks(&self) -> &Blocks<D>;

    /// Signed distance to the liquid's surface at cell centres, metres, negative inside.
    fn surface(&self) -> &Field<f32>;

    /// The same, as it is shown: water against a wall is drawn up to it.
    fn shown_surface(&self) -> Field<f32>;

    /// Particle positions, in cells.
    fn particle_positions(&self) -> &[[f32; D]];

    /// Particle velocities, m/s.
    fn particle_velocities(&self) -> &[[f32; D]];

    /// Memory held now.
    fn memory(&self) -> MemoryReport;

    /// The linear system of the last projection; `None` before the first.
    fn system(&self) -> Option<LinearSystem>;

    /// Solves the last projection's system once more, from zero, with the given preconditioner; `None` before the
    /// first projection.
    fn solve_again(&self, preconditioner: Preconditioner) -> Option<SolveReport>;
}

impl<const D: usize> Solver<D> for Simulation<D> {
    fn advance_frame(&mut self, seconds: f64, stop: &AtomicBool) -> Result<Option<FrameReport>, SolverError> {
        Ok(Simulation::advance_frame(self, seconds, stop)?)
    }

    fn advance_frame_with(
        &mut self,
        seconds: f64,
        stop: &AtomicBool,
        between: &mut dyn FnMut(&mut Params),
    ) -> Result<Option<FrameReport>, SolverError> {
        Ok(Simulation::advance_frame_with(self, seconds, stop, between)?)
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    fn branch(&self) -> Box<dyn Solver<D>> {
        Box::new(Simulation::branch(self))
    }

    fn survey(&mut self) -> FrameReport {
        Simulation::survey(self)
    }

    fn cell_fields(&self, surface: &Field<f32>, wanted: Wanted) -> CellFields {
        fields::cell_fields(self, surface, wanted)
    }

    fn motes(&self) -> Vec<Mote> {
        fields::motes(self)
    }

    fn tiles(&self) -> Vec<TileView> {
        fields::tiles(self)
    }

    fn blocks(&self) -> &Blocks<D> {
        self.blocks()
    }

    fn surface(&self) -> &Field<f32> {
        self.surface()
    }

    fn shown_surface(&self) -> Field<f32> {
        shore::shown_surface(self)
    }

    fn particle_positions(&self) -> &[[f32; D]] {
        self.particle_positions()
    }

    fn particle_velocities(&self) -> &[[f32; D]] {
        self.particle_velocities()
    }

    fn memory(&self) -> MemoryReport {
        self.memory()
    }

    fn system(&self) -> Option<LinearSystem> {
        const REPEATS: usize = 5;
        let projection = self.projection();
        if projection.live.is_empty() {
            return None;
        }
        let (info, solution, shared) = self.solve_again(self.params.preconditioner, REPEATS);
        let system = projection.system(self.blocks());
        let assembled = match &projection.bodies() {
            None => assemble(&system),
            Some(bodies) => assemble_with_bodies(&system, bodies),
        };
        let mut entries = Vec::with_capacity(assembled.matrix.nnz() / 2 + assembled.cells.len());
        for (row, columns) in assembled.matrix.outer_iterator().enumerate() {
            let lower = columns.iter().filter(|&(column, _)| column <= row);
            entries.extend(lower.map(|(column, &value)| (row as u32, column as u32, value)));
        }
        // Cells first, then bubbles.
        let at = |field: &Field<f64>, shared: &[f64]| {
            assembled.cells.iter().map(|&cell| field[cell as usize]).chain(shared.iter().copied()).collect()
        };
        let cells = assembled.cells.iter().map(|&cell| (RowKind::Pressure, cell_of(self.blocks(), cell)));
        // A bubble is named by its number, not by a cell.
        let bubbles = (0..shared.len()).map(|bubble| (RowKind::Bubble, [bubble as i32, -1, -1]));
        Some(LinearSystem {
            entries,
            rhs: at(projection.rhs(), projection.shared_rhs()),
            solution: at(&solution, &shared),
            rows: cells.chain(bubbles).collect(),
            info,
        })
    }

    fn solve_again(&self, preconditioner: Preconditioner) -> Option<SolveReport> {
        if self.projection().live.is_empty() {
            return None;
        }
        // The references take long enough to be timed once.
        let repeats = if preconditioner == Preconditioner::Multigrid { 5 } else { 0 };
        let (info, _, _) = Simulation::solve_again(self, preconditioner, repeats);
        Some(SolveReport {
            iterations: info.iterations,
            relative_residual: info.relative_residual,
            method: preconditioner.method(info.fallback),
            seconds: info.seconds_setup + info.seconds_solve,
            converged: info.converged,
        })
    }
}

/// Coordinates of a cell given by its index in fields; −1 for axes that do not exist.
fn cell_of<const D: usize>(blocks: &Blocks<D>, index: u32) -> [i32; 3] {
    let (slot, local) = (index as usize / block_cells(D), index as usize % block_cells(D));
    let (first, offset) = (blocks.first_cell(slot), unflatten::<D>(local, SIDE));
    std::array::from_fn(|axis| if axis < D { first[axis] + offset[axis] as i32 } else { -1 })
}

/// What an unknown stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowKind {
    /// The pressure of a cell.
    Pressure,
    /// The pressure of a bubble.
    Bubble,
    /// A degree of freedom of a reduced body.
    Body,
}

impl RowKind {
    /// The name in `rows.csv`.
    pub const fn name(self) -> &'static str {
        match self {
            RowKind::Pressure => "pressure",
            RowKind::Bubble => "bubble",
            RowKind::Body => "body",
        }
    }
}

/// A symmetric linear system `A x = b` with the solution found.
#[derive(Clone, Debug, Default)]
pub struct LinearSystem {
    /// The lower triangle of `A` with its diagonal, row after row: `(row, column, value)`, from 0.
    pub entries: Vec<(u32, u32, f64)>,
    /// Right-hand side.
    pub rhs: Vec<f64>,
    /// The solution found.
    pub solution: Vec<f64>,
    /// What each unknown stands for, and its cell; −1 for axes that do not exist.
    pub rows: Vec<(RowKind, [i32; 3])>,
    /// How that went, from a zero start; times are medians of several solves.
    pub info: SolveInfo,
}
