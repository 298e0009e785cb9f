//! The grid solver, as the runner drives it, and what it alone can do.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::archive::{ArchiveError, Writer};
use crate::grid::{Blocks, Field, SIDE, block_cells};
use crate::linear::{PreconditionerKind, SolveInfo, assemble, assemble_with_bodies};
use crate::math::unflatten;
use crate::sim::{
    BodyReport, Edit, EditError, FrameReport, MemoryReport, Params, Setup, Simulation, SolveReport,
};
use crate::snapshot::{Scenery, Snapshot, SolidField, Wanted, sketch_grid, solid_field};

use super::solver::{Rest, Solver, SolverError};

/// A simulation on the grid, with what it started from.
pub struct GridSolver<const D: usize> {
    /// What it started from.
    pub setup: Setup<D>,
    /// The simulation.
    pub simulation: Simulation<D>,
    /// The solids as they are shown where none of them moves.
    solids: Option<Arc<SolidField>>,
    /// A copy of the setup to show moving solids by.
    stage: Option<Arc<Setup<D>>>,
    /// The scene with the bodies that hands put in, if they did.
    scenery: Option<Arc<Scenery>>,
}

/// The grid solver of either dimension.
#[derive(Clone, Copy)]
pub enum AnyGrid<'a> {
    /// Two dimensions.
    TwoD(&'a GridSolver<2>),
    /// Three dimensions.
    ThreeD(&'a GridSolver<3>),
}

impl<const D: usize> GridSolver<D> {
    /// Starts with the given parameters.
    pub fn new(setup: &Setup<D>, params: Params) -> Result<Self, SolverError> {
        let setup = Setup { params, ..setup.clone() };
        let simulation = Simulation::new(&setup)?;
        Ok(GridSolver::of(setup, simulation))
    }

    /// Goes on with a simulation of that setup.
    pub fn of(setup: Setup<D>, simulation: Simulation<D>) -> Self {
        GridSolver { setup, simulation, solids: None, stage: None, scenery: None }
    }

    /// What it started from, with bodies where they are now.
    pub fn setup_now(&self) -> Cow<'_, Setup<D>> {
        let walls = &self.simulation.state().walls;
        match walls.has_bodies() {
            true => Cow::Owned(Setup { solids: walls.solids.clone(), ..self.setup.clone() }),
            false => Cow::Borrowed(&self.setup),
        }
    }

    /// The linear system of the last projection; `None` before the first.
    pub fn system(&self) -> Option<LinearSystem> {
        let simulation = &self.simulation;
        const REPEATS: usize = 5;
        let projection = simulation.projection();
        if !projection.is_assembled() {
            return None;
        }
        let (info, solution, shared) = simulation.solve_again(simulation.params.preconditioner, REPEATS);
        let system = projection.system(simulation.blocks());
        let assembled = match projection.bodies() {
            None if system.couplings.is_none() => assemble(&system),
            bodies => assemble_with_bodies(&system, bodies.as_ref()),
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
        let cells =
            assembled.cells.iter().map(|&cell| (RowKind::Pressure, cell_of(simulation.blocks(), cell)));
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

    /// Solves the last projection's system once more, from zero, with the given preconditioner; `None` before the
    /// first projection.
    pub fn solve_again(&self, preconditioner: PreconditionerKind) -> Option<SolveReport> {
        if !self.simulation.projection().is_assembled() {
            return None;
        }
        // The references take long enough to be timed once.
        let repeats = if preconditioner == PreconditionerKind::Multigrid { 5 } else { 0 };
        let (info, _, _) = self.simulation.solve_again(preconditioner, repeats);
        Some(SolveReport {
            iterations: info.iterations,
            relative_residual: info.relative_residual,
            method: preconditioner.method(info.fallback),
            seconds: info.seconds_setup + info.seconds_solve,
            rounds: 1,
            loose: self.simulation.state().pressure.loose.len(),
            converged: info.converged,
        })
    }
}

impl<const D: usize> Solver for GridSolver<D> {
    fn advance_frame(
        &mut self,
        seconds: f64,
        stop: &AtomicBool,
        between: &mut dyn FnMut(&mut Params),
    ) -> Result<Option<FrameReport>, SolverError> {
        Ok(self.simulation.advance_frame_with(seconds, stop, between)?)
    }

    fn params(&self) -> &Params {
        &self.simulation.params
    }

    fn params_mut(&mut self) -> &mut Params {
        &mut self.simulation.params
    }

    fn edit(&mut self, edit: &Edit) -> Result<(), EditError> {
        self.simulation.edit(edit)
    }

    fn bodies(&self) -> Vec<BodyReport> {
        self.simulation.bodies()
    }

    fn survey(&mut self) -> FrameReport {
        self.simulation.survey()
    }

    fn show(&mut self, wanted: Wanted, snapshot: &mut Snapshot) {
        if let Some(rest) = self.sketch(wanted, snapshot) {
            rest(snapshot);
        }
    }

    fn sketch(&mut self, wanted: Wanted, snapshot: &mut Snapshot) -> Option<Rest> {
        // What hands did just now is seen at once.
        let (setup, time) = (&self.setup, snapshot.report.time.next_up());
        let undrawn = sketch_grid(&self.simulation, wanted, snapshot);
        let all = &self.simulation.state().walls.solids;
        if all.len() > snapshot.scenery.solids.len() {
            let known = self.scenery.as_ref().filter(|scenery| scenery.solids.len() == all.len());
            let scenery =
                known.cloned().unwrap_or_else(|| Arc::new(snapshot.scenery.with_solids(setup, all)));
            snapshot.scenery = Arc::clone(self.scenery.insert(scenery));
        }
        if !all.iter().any(|solid| solid.is_moving()) {
            let solids = self.solids.get_or_insert_with(|| Arc::new(solid_field(setup, time)));
            snapshot.solids = Arc::clone(solids);
            return Some(Box::new(move |snapshot| undrawn.draw(snapshot)));
        }
        let walls = &self.simulation.state().walls;
        let stage = match walls.has_bodies() {
            true => Arc::new(Setup { solids: walls.solids.clone(), ..setup.clone() }),
            false => Arc::clone(self.stage.get_or_insert_with(|| Arc::new(setup.clone()))),
        };
        Some(Box::new(move |snapshot| {
            snapshot.solids = Arc::new(solid_field(&stage, time));
            undrawn.draw(snapshot);
        }))
    }

    fn branch(&self) -> Box<dyn Solver> {
        let GridSolver { setup, simulation, solids, stage, scenery } = self;
        Box::new(GridSolver {
            setup: setup.clone(),
            simulation: simulation.branch(),
            solids: solids.clone(),
            stage: stage.clone(),
            scenery: scenery.clone(),
        })
    }

    fn save(&self, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        self.simulation.save_to(out)
    }

    fn grid(&self) -> Option<AnyGrid<'_>> {
        let own: &dyn Any = self;
        own.downcast_ref().map(AnyGrid::TwoD).or_else(|| own.downcast_ref().map(AnyGrid::ThreeD))
    }
}

/// Takes the same expression from a grid solver of either dimension.
macro_rules! either {
    ($any:expr, $grid:ident => $value:expr) => {
        match $any {
            AnyGrid::TwoD($grid) => $value,
            AnyGrid::ThreeD($grid) => $value,
        }
    };
}

impl AnyGrid<'_> {
    /// The linear system of the last projection; `None` before the first.
    pub fn system(self) -> Option<LinearSystem> {
        either!(self, grid => grid.system())
    }

    /// Solves the last projection's system once more; `None` before the first projection.
    pub fn solve_again(self, preconditioner: PreconditionerKind) -> Option<SolveReport> {
        either!(self, grid => grid.solve_again(preconditioner))
    }

    /// Memory held now, by what it grows with.
    pub fn memory(self) -> MemoryReport {
        either!(self, grid => grid.simulation.memory())
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
