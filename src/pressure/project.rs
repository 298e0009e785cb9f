//! The projection as a whole.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::archive::{ArchiveError, Reader, Writer};
use crate::geometry::{Label, Settled};
use crate::grid::masks::Bits;
use crate::grid::{Blocks, CHUNKS, FaceMask, Field, Slots, block_cells};
use crate::linear::{
    Bodies, Couplings, Materials, Outcome, SharedLink, SharedNodes, SolveInfo, Solver, SolverParams, System,
    Unknown,
};
use crate::math::{Real, compiled_here};
use crate::tiles::Tiling;

use super::Problem;
use super::assemble::{BlockCoefficients, assemble};
use super::bodies::{BodyProvider, add_bodies, write_back};
use super::let_go::{CellsAlongWalls, LooseCells, solve_in_rounds};
use super::phases::Filled;
use super::rows::BubbleRows;
use super::update::update_velocity;

/// Pressures between two projections.
#[derive(Clone, Debug)]
pub struct Pressure {
    /// Scaled pressure `p·dt/(ρ·dx)`: the last solution, and the next solve's first guess.
    pub q: Field<f64>,
    /// The length of the step it belongs to, seconds; zero if it belongs to none.
    pub(super) dt: Real,
    /// Cells of liquid that were leaving walls.
    pub loose: LooseCells,
}

impl Pressure {
    /// None, on grids of that dimension.
    pub fn new(dimension: usize) -> Self {
        Pressure { q: Field::new(block_cells(dimension), 0.0), dt: 0.0, loose: LooseCells::new(dimension) }
    }

    /// Writes the pressures.
    pub fn save<const D: usize>(&self, blocks: &Blocks<D>, out: &mut Writer<'_>) -> Result<(), ArchiveError> {
        out.value("pressure.dt", &self.dt)?;
        self.q.save("pressure.q", blocks, out)?;
        self.loose.save(blocks, out)
    }

    /// Reads what [`Pressure::save`] wrote.
    pub fn load<const D: usize>(blocks: &Blocks<D>, from: &mut Reader<'_>) -> Result<Self, ArchiveError> {
        let mut pressure = Pressure { dt: from.value("pressure.dt")?, ..Pressure::new(D) };
        pressure.q.load("pressure.q", blocks, from)?;
        pressure.loose = LooseCells::load(blocks, from)?;
        Ok(pressure)
    }

    /// Makes room for new blocks, where there is none yet, and returns what all are to be multiplied by in a step of `dt` seconds;
    /// nothing if they belong to no step.
    pub fn factor_for<const D: usize>(&mut self, blocks: &Blocks<D>, dt: Real) -> Option<Real> {
        self.q.resize(blocks.slot_count());
        blocks.fresh().iter().for_each(|&slot| self.q.block_mut(slot as usize).fill(0.0));
        (self.dt > 0.0).then(|| dt / self.dt)
    }

    /// Makes the next solve start from zero.
    pub fn forget(&mut self) {
        self.q.as_mut_slice().fill(0.0);
        self.dt = 0.0;
        self.loose.clear();
    }
}

/// The linear system of the last projection, and the memory to do the next one.
#[derive(Clone)]
pub struct Projection<const D: usize> {
    /// What each cell is made of.
    pub label: Field<Label>,
    /// Blocks whose labels stay.
    pub settled: Settled,
    /// Blocks that hold liquid; after a projection, blocks that hold unknowns.
    pub live: Slots,
    pub(super) live_flag: Vec<bool>,
    /// Air cells with a pressure of their own, if the last projection had any: if it was `mixed`.
    pub gas: Field<bool>,
    pub(super) mixed: bool,
    /// Density of such air over the liquid's.
    air_mass: f32,
    pub(super) link: [Field<f32>; D],
    pub(super) ground: Field<f32>,
    pub(super) ground_area: Field<f32>,
    pub(super) rhs: Field<f64>,
    /// Coefficients that each block holds already.
    pub(super) coefficients: Field<BlockCoefficients<D>>,
    /// Room for sums over blocks.
    partial: Vec<f64>,
    /// Unknowns of blocks in the midst of the liquid, or beside walls alone, if there are tiles in it.
    pub(super) known: Field<Option<Bits>>,
    /// Blocks full of unknowns.
    pub(super) filled: Filled,
    /// One node per bubble that keeps its volume, its right-hand side and its scaled pressure.
    pub(super) shared: SharedNodes,
    pub(super) shared_rhs: Vec<f64>,
    pub(super) shared_q: Vec<f64>,
    pub(super) shared_links: Vec<SharedLink>,
    pub(super) bubble_rows: Box<[BubbleRows; CHUNKS]>,
    pub(super) wall_cells: CellsAlongWalls,
    /// Tiles of liquid that move as a whole, laid out for the next projection; none if all cells are on their own.
    pub tiling: Option<Box<Tiling<D>>>,
    /// Blocks that hold unknowns outside of tiles.
    pub(super) outside: Slots,
    /// The bodies of other providers than tiles.
    pub(super) couplings: Couplings,
    solver: Solver<D>,
    assembled: bool,
}

/// What a projection took.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The solver's account.
    pub info: SolveInfo,
    /// Cells solved for: liquid ones, and those of air with mass.
    pub unknowns: usize,
    /// Tiles that moved as a whole, and the cells in them.
    pub tiles: usize,
    /// Cells in those.
    pub tile_cells: usize,
    /// Bubbles solved for.
    pub bubbles: usize,
    /// Solves that it took to know which liquid leaves walls; one if none may.
    pub rounds: usize,
    /// Cells that are leaving walls.
    pub loose: usize,
    /// Seconds to build the system.
    pub seconds_assemble: f64,
    /// Seconds to solve it, set-up included.
    pub seconds_solve: f64,
    /// Seconds to update the velocities.
    pub seconds_update: f64,
}

impl<const D: usize> Projection<D> {
    /// No memory yet.
    pub fn new() -> Self {
        let cells = block_cells(D);
        Projection {
            label: Field::new(cells, Label::Solid),
            settled: Settled::default(),
            live: Slots::default(),
            live_flag: Vec::new(),
            gas: Field::new(cells, false),
            mixed: false,
            air_mass: 0.0,
            link: std::array::from_fn(|_| Field::new(cells, 0.0)),
            ground: Field::new(cells, 0.0),
            ground_area: Field::new(cells, 0.0),
            rhs: Field::new(cells, 0.0),
            coefficients: Field::new(1, BlockCoefficients::Individual),
            partial: Vec::new(),
            known: Field::new(1, None),
            filled: Filled::default(),
            shared: SharedNodes::default(),
            shared_rhs: Vec::new(),
            shared_q: Vec::new(),
            shared_links: Vec::new(),
            bubble_rows: Box::new(std::array::from_fn(|_| BubbleRows::default())),
            wall_cells: CellsAlongWalls::default(),
            tiling: None,
            outside: Slots::default(),
            couplings: Couplings::default(),
            solver: Solver::new(),
            assembled: false,
        }
    }

    /// The linear system as last assembled.
    pub fn system<'a>(&'a self, blocks: &'a crate::grid::Blocks<D>) -> System<'a, D> {
        System {
            blocks,
            live: &self.outside,
            link: &self.link,
            ground: &self.ground,
            ground_area: &self.ground_area,
            shared: &self.shared,
            materials: materials(&self.gas, self.air_mass),
            couplings: self.couplings(),
        }
    }

    /// Whether there is such a system: not before the first projection, and not right after a state was read.
    pub fn is_assembled(&self) -> bool {
        self.assembled && !self.live.is_empty()
    }

    /// What moved as a whole in that system.
    pub fn bodies(&self) -> Option<Bodies<'_>> {
        self.tiling.as_ref().map(|tiling| tiling.bodies(WHOLE, &self.known, !self.mixed))
    }

    /// What else moved along, if anything did.
    fn couplings(&self) -> Option<&Couplings> {
        Some(&self.couplings).filter(|couplings| !couplings.is_empty())
    }

    /// Whether the last projection found a pressure for a cell.
    pub fn has_pressure(&self, slot: usize, local: usize) -> bool {
        self.label.block(slot)[local] == Label::Liquid || self.mixed && self.gas.block(slot)[local]
    }

    /// Solves the last system again, from zero, `repeats` times after a first time that only warms up. Returns the
    /// account with the median times, and the solution.
    pub fn solve_afresh(
        &self,
        blocks: &crate::grid::Blocks<D>,
        params: &SolverParams,
        repeats: usize,
    ) -> (SolveInfo, Field<f64>, Vec<f64>) {
        let mut solver = Solver::new();
        let params = SolverParams { warm_start: false, ..*params };
        let (mut rhs, mut q) = (self.rhs.clone(), Field::new(block_cells(D), 0.0));
        q.resize(blocks.slot_count());
        let (mut shared_rhs, mut shared_q) = (self.shared_rhs.clone(), self.shared_q.clone());
        let mut accounts: Vec<SolveInfo> = (0..=repeats)
            .map(|_| {
                let (system, bodies) = (self.system(blocks), self.bodies());
                let (b, c) = (&mut shared_rhs, &mut shared_q);
                solver.forget();
                solver.solve(&system, bodies.as_ref(), &mut rhs, &mut q, b, c, &params, None)
            })
            .collect();
        if accounts.len() > 1 {
            accounts.remove(0);
        }
        accounts.sort_by(|a, b| {
            (a.seconds_setup + a.seconds_solve).total_cmp(&(b.seconds_setup + b.seconds_solve))
        });
        (accounts[accounts.len() / 2].clone(), q, shared_q)
    }

    /// Right-hand side of that system.
    pub fn rhs(&self) -> &Field<f64> {
        &self.rhs
    }

    /// The part of it that belongs to the bubbles.
    pub fn shared_rhs(&self) -> &[f64] {
        &self.shared_rhs
    }

    /// The bubbles' scaled pressures.
    pub fn shared_q(&self) -> &[f64] {
        &self.shared_q
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.label.bytes()
            + self.link.iter().map(Field::bytes).sum::<usize>()
            + self.ground.bytes()
            + self.ground_area.bytes()
            + self.rhs.bytes()
            + self.gas.bytes()
            + self.solver.bytes()
    }
}

impl<const D: usize> Default for Projection<D> {
    fn default() -> Self {
        Self::new()
    }
}

compiled_here! {
    /// Makes the velocity of the labelled liquid, and of air with mass, divergence-free. `valid` afterwards marks the
    /// faces it decided. Comes after [`find_unknowns`](super::find_unknowns). `bodies` move along, as the tiles of the
    /// projection do.
    pub fn project<D>(
        velocity: &mut [Field<f32>; D],
        valid: &mut [FaceMask; D],
        problem: &Problem<'_, D>,
        params: &SolverParams,
        pressure: &mut Pressure,
        projection: &mut Projection<D>,
        bodies: &mut [&mut dyn BodyProvider<D>],
        dt: Real,
        stop: Option<&AtomicBool>,
    ) -> Solved = run_project;
}

#[allow(clippy::too_many_arguments)]
fn run_project<const D: usize>(
    velocity: &mut [Field<f32>; D],
    valid: &mut [FaceMask; D],
    problem: &Problem<'_, D>,
    params: &SolverParams,
    pressure: &mut Pressure,
    projection: &mut Projection<D>,
    bodies: &mut [&mut dyn BodyProvider<D>],
    dt: Real,
    stop: Option<&AtomicBool>,
) -> Solved {
    let start = Instant::now();
    pressure.q.resize(problem.blocks.slot_count());
    let Projection { filled, label, gas, mixed, .. } = projection;
    filled.find(problem.blocks, label, mixed.then_some(gas));
    projection.air_mass = problem.roles.air_mass as f32;
    rescale_guess(problem, pressure, dt);
    forget_stale_guesses(problem, projection, &mut pressure.q);
    let mut tiling = projection.tiling.take();
    let mut providers: Vec<&mut dyn BodyProvider<D>> = Vec::with_capacity(tiling.iter().len() + bodies.len());
    if let Some(tiling) = tiling.as_deref_mut() {
        providers.push(tiling);
    }
    for provider in bodies {
        providers.push(&mut **provider);
    }
    providers.iter_mut().for_each(|provider| provider.prepare(problem, velocity));
    assemble(problem, velocity, tiling_of(&providers), projection);
    let firsts = add_bodies(problem, &mut providers, projection);
    projection.assembled = true;
    let assembled = Instant::now();
    let mut info = SolveInfo::default();
    let tiles = tiling_of(&providers);
    let Pressure { q, loose, .. } = pressure;
    let rounds = solve_in_rounds(problem, tiles, projection, q, loose, |projection, q| {
        info = solve(problem, tiles, params, projection, q, stop).after(&info);
        info.outcome != Outcome::Stopped
    });
    settle_bubbles(projection, &pressure.q);
    let solved = Instant::now();
    update_velocity(problem, projection, &pressure.q, tiling_of(&providers), velocity, valid);
    write_back(problem, &mut providers, &firsts, projection, velocity, valid, &mut pressure.q);
    projection.tiling = tiling;
    let mut partial = std::mem::take(&mut projection.partial);
    let cells = crate::grid::sum_over_blocks(&projection.live, &mut partial, |slot| {
        let liquid = projection.label.block(slot).iter().filter(|&&l| l == Label::Liquid).count();
        let gas = if projection.mixed { projection.gas.block(slot) } else { &[] };
        (liquid + gas.iter().filter(|&&gas| gas).count()) as f64
    }) as usize;
    projection.partial = partial;
    let (tiles, tile_cells) =
        projection.tiling.as_ref().map_or((0, 0), |tiling| (tiling.tiles.len(), tiling.cells()));
    Solved {
        info,
        unknowns: cells - tile_cells,
        tiles,
        tile_cells,
        bubbles: (0..projection.shared.len())
            .filter(|&n| projection.shared.links(n).next().is_some())
            .count(),
        rounds,
        loose: pressure.loose.len(),
        seconds_assemble: (assembled - start).as_secs_f64(),
        seconds_solve: (solved - assembled).as_secs_f64(),
        seconds_update: solved.elapsed().as_secs_f64(),
    }
}

/// The tiles among some providers.
fn tiling_of<'a, const D: usize>(providers: &'a [&mut dyn BodyProvider<D>]) -> Option<&'a Tiling<D>> {
    providers.iter().find_map(|provider| provider.tiling())
}

/// The link between two cells of liquid.
const WHOLE: f32 = 1.0;

/// Solves the assembled system.
fn solve<const D: usize>(
    problem: &Problem<'_, D>,
    tiling: Option<&Tiling<D>>,
    params: &SolverParams,
    projection: &mut Projection<D>,
    q: &mut Field<f64>,
    stop: Option<&AtomicBool>,
) -> SolveInfo {
    let Projection { outside, link, ground, ground_area, shared, rhs, shared_rhs, shared_q, .. } = projection;
    let materials = materials(&projection.gas, projection.air_mass);
    let couplings = Some(&projection.couplings).filter(|couplings| !couplings.is_empty());
    let system = System {
        blocks: problem.blocks,
        live: outside,
        link,
        ground,
        ground_area,
        shared,
        materials,
        couplings,
    };
    let bodies = tiling.map(|tiling| tiling.bodies(WHOLE, &projection.known, !projection.mixed));
    projection.solver.solve(&system, bodies.as_ref(), rhs, q, shared_rhs, shared_q, params, stop)
}

/// What the solver is told of the two fluids, if their densities differ so much that it must keep them apart. Where
/// they hardly do, joint aggregates are better and cheaper.
fn materials(gas: &Field<bool>, air_mass: f32) -> Option<Materials<'_>> {
    const ALIKE: std::ops::RangeInclusive<f32> = 0.1..=10.0;
    (air_mass > 0.0 && !ALIKE.contains(&air_mass))
        .then(|| Materials { second: gas, whole: [1.0, 1.0 / air_mass] })
}

/// Solves the bubbles' own rows exactly for the liquid's pressures as they are. No two bubbles share a link, so this is
/// one division each, and every bubble's net flux is right to rounding whatever the tolerance. Bubbles that touch a body
/// are right to the tolerance.
fn settle_bubbles<const D: usize>(projection: &mut Projection<D>, q: &Field<f64>) {
    let Projection { shared, shared_rhs, shared_q, couplings, .. } = projection;
    for (node, (rhs, value)) in shared_rhs.iter().zip(shared_q).enumerate() {
        if couplings.touch(Unknown::Shared(node as u32)) {
            continue;
        }
        let (mut sum, mut diagonal) = (*rhs, 0.0);
        for (cell, link, _) in shared.links(node) {
            sum += link as f64 * q[cell];
            diagonal += link as f64;
        }
        if diagonal > 0.0 {
            *value = sum / diagonal;
        }
    }
}

/// Weightless air has no pressure: a guess left in a cell that is no longer liquid would be read as one.
fn forget_stale_guesses<const D: usize>(
    problem: &Problem<'_, D>,
    projection: &Projection<D>,
    q: &mut Field<f64>,
) {
    for &slot in problem.blocks.fresh() {
        q.block_mut(slot as usize).fill(0.0);
    }
    let Projection { label, gas, mixed, filled, .. } = projection;
    crate::grid::for_each_block(problem.blocks.slots(), q.parts(), |slot, q| {
        if filled.has(slot) {
            return;
        }
        for (local, (q, &label)) in q.iter_mut().zip(label.block(slot)).enumerate() {
            if label != Label::Liquid && !(*mixed && gas.block(slot)[local]) {
                *q = 0.0;
            }
        }
    });
}

/// The unknown carries the step's length: a guess from a step of another length is scaled to this one.
fn rescale_guess<const D: usize>(problem: &Problem<'_, D>, pressure: &mut Pressure, dt: Real) {
    let factor = if pressure.dt > 0.0 { dt / pressure.dt } else { 1.0 };
    pressure.dt = dt;
    if factor != 1.0 {
        crate::grid::for_each_block(problem.blocks.slots(), pressure.q.parts(), |_, q| {
            q.iter_mut().for_each(|q| *q *= factor);
        });
    }
}
