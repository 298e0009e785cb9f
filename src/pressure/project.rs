//! The projection as a whole.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use rayon::prelude::*;

use crate::geometry::{Label, Settled};
use crate::grid::masks::Bits;
use crate::grid::{CHUNKS, Field, Slots, block_cells};
use crate::linear::{Bodies, Materials, SharedLink, SharedNodes, SolveInfo, Solver, SolverParams, System};
use crate::liquid::FaceMask;
use crate::math::Real;
use crate::regions::Tiling;

use super::Problem;
use super::assemble::{Kept, assemble};
use super::phases::Filled;
use super::rows::Shore;
use super::update::update_velocity;

/// The linear system of the last projection, its solution, and the memory to do the next one.
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
    /// What is kept in each block's links and grounds.
    pub(super) kept: Field<Kept<D>>,
    /// Unknowns of blocks in the midst of the liquid, or beside walls alone, if there are tiles in it.
    pub(super) known: Field<Option<Bits>>,
    /// Scaled pressure `p·dt/(ρ·dx)`: the last solution, and the next solve's first guess.
    pub q: Field<f64>,
    last_dt: Real,
    /// Blocks full of unknowns.
    pub(super) filled: Filled,
    /// One node per bubble that keeps its volume, its right-hand side and its scaled pressure.
    pub(super) shared: SharedNodes,
    pub(super) shared_rhs: Vec<f64>,
    pub(super) shared_q: Vec<f64>,
    pub(super) shared_links: Vec<SharedLink>,
    pub(super) shores: Box<[Shore; CHUNKS]>,
    /// Tiles of liquid that move as a whole, laid out for the next projection; none if all cells are on their own.
    pub tiling: Option<Box<Tiling<D>>>,
    /// Blocks that hold unknowns outside of tiles.
    pub(super) outside: Slots,
    solver: Solver<D>,
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
            kept: Field::new(1, Kept::Own),
            known: Field::new(1, None),
            q: Field::new(cells, 0.0),
            last_dt: 0.0,
            filled: Filled::default(),
            shared: SharedNodes::default(),
            shared_rhs: Vec::new(),
            shared_q: Vec::new(),
            shared_links: Vec::new(),
            shores: Box::new(std::array::from_fn(|_| Shore::default())),
            tiling: None,
            outside: Slots::default(),
            solver: Solver::new(),
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
        }
    }

    /// What moved as a whole in that system.
    pub fn bodies(&self) -> Option<Bodies<'_>> {
        self.tiling.as_ref().map(|tiling| tiling.bodies(WHOLE, &self.known, !self.mixed))
    }

    /// Whether the last projection found a pressure for a cell.
    pub fn has_pressure(&self, slot: usize, local: usize) -> bool {
        self.label.block(slot)[local] == Label::Liquid || self.mixed && self.gas.block(slot)[local]
    }

    /// Makes the next solve start from zero.
    pub fn forget_pressure(&mut self) {
        self.q.as_mut_slice().fill(0.0);
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
        let (mut rhs, mut q) = (self.rhs.clone(), self.q.clone());
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
            + self.q.bytes()
            + self.gas.bytes()
            + self.solver.bytes()
    }
}

impl<const D: usize> Default for Projection<D> {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes the velocity of the labelled liquid, and of air with mass, divergence-free. `valid` afterwards marks the faces it decided.
/// Comes after [`find_unknowns`](super::find_unknowns).
pub fn project<const D: usize>(
    velocity: &mut [Field<f32>; D],
    valid: &mut [FaceMask; D],
    problem: &Problem<'_, D>,
    params: &SolverParams,
    projection: &mut Projection<D>,
    dt: Real,
    stop: Option<&AtomicBool>,
) -> Solved {
    let start = Instant::now();
    let slots = problem.blocks.slot_count();
    projection.q.resize(slots);
    let Projection { filled, label, gas, mixed, .. } = projection;
    filled.find(problem.blocks, label, mixed.then_some(gas));
    projection.air_mass = problem.roles.air_mass as f32;
    rescale_guess(problem, projection, dt);
    forget_stale_guesses(problem, projection);
    let mut tiling = projection.tiling.take();
    if let Some(tiling) = &mut tiling {
        tiling.fit(problem.blocks, velocity);
    }
    assemble(problem, velocity, tiling.as_deref(), projection);
    let assembled = Instant::now();
    let info = solve(problem, tiling.as_deref(), params, projection, stop);
    settle_bubbles(projection);
    let solved = Instant::now();
    update_velocity(problem, projection, tiling.as_deref(), velocity, valid);
    if let Some(tiling) = &mut tiling {
        tiling.respond(&projection.q, problem.impulse);
        tiling.write(problem.blocks, velocity);
        tiling.extend_pressures(problem.blocks, &mut projection.q);
    }
    projection.tiling = tiling;
    let cells: usize = projection
        .live
        .as_slice()
        .par_iter()
        .with_min_len(64)
        .map(|&slot| {
            let liquid =
                projection.label.block(slot as usize).iter().filter(|&&l| l == Label::Liquid).count();
            let gas = if projection.mixed { projection.gas.block(slot as usize) } else { &[] };
            liquid + gas.iter().filter(|&&gas| gas).count()
        })
        .sum();
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
        seconds_assemble: (assembled - start).as_secs_f64(),
        seconds_solve: (solved - assembled).as_secs_f64(),
        seconds_update: solved.elapsed().as_secs_f64(),
    }
}

/// The link between two cells of liquid.
const WHOLE: f32 = 1.0;

/// Solves the assembled system.
fn solve<const D: usize>(
    problem: &Problem<'_, D>,
    tiling: Option<&Tiling<D>>,
    params: &SolverParams,
    projection: &mut Projection<D>,
    stop: Option<&AtomicBool>,
) -> SolveInfo {
    let Projection { outside, link, ground, ground_area, shared, rhs, q, shared_rhs, shared_q, .. } =
        projection;
    let materials = materials(&projection.gas, projection.air_mass);
    let system =
        System { blocks: problem.blocks, live: outside, link, ground, ground_area, shared, materials };
    let bodies = tiling.map(|tiling| tiling.bodies(WHOLE, &projection.known, !projection.mixed));
    projection.solver.solve(&system, bodies.as_ref(), rhs, q, shared_rhs, shared_q, params, stop)
}

/// What the solver is told of the two fluids, if their densities differ so much that it must keep them apart. Where they
/// hardly do, joint aggregates are better and cheaper.
fn materials(gas: &Field<bool>, air_mass: f32) -> Option<Materials<'_>> {
    const ALIKE: std::ops::RangeInclusive<f32> = 0.1..=10.0;
    (air_mass > 0.0 && !ALIKE.contains(&air_mass))
        .then(|| Materials { second: gas, whole: [1.0, 1.0 / air_mass] })
}

/// Solves the bubbles' own rows exactly for the liquid's pressures as they are. No two bubbles share a link, so this is
/// one division each, and every bubble's net flux is right to rounding whatever the tolerance.
fn settle_bubbles<const D: usize>(projection: &mut Projection<D>) {
    let Projection { shared, shared_rhs, shared_q, q, .. } = projection;
    for (node, (rhs, value)) in shared_rhs.iter().zip(shared_q).enumerate() {
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
fn forget_stale_guesses<const D: usize>(problem: &Problem<'_, D>, projection: &mut Projection<D>) {
    for &slot in problem.blocks.fresh() {
        projection.q.block_mut(slot as usize).fill(0.0);
    }
    let Projection { label, gas, mixed, filled, q, .. } = projection;
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
fn rescale_guess<const D: usize>(problem: &Problem<'_, D>, projection: &mut Projection<D>, dt: Real) {
    let factor = if projection.last_dt > 0.0 { dt / projection.last_dt } else { 1.0 };
    projection.last_dt = dt;
    if factor != 1.0 {
        crate::grid::for_each_block(problem.blocks.slots(), projection.q.parts(), |_, q| {
            q.iter_mut().for_each(|q| *q *= factor);
        });
    }
}
