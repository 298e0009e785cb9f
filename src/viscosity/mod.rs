//! Implicit viscosity with the full stress tensor (BB08).
//!
//! In go face velocities `u*`, the liquid's signed distance and the walls, out come the velocities that minimise
//!
//! ```text
//! ½ Σ_f m_f (u_f − u*_f)²  +  α Σ_s V_s |e_s|²,        α = μ dt / (ρ dx²),
//! ```
//!
//! with `e` the symmetric gradient of cell differences: `e_xx` at cell centres, `e_xy` at nodes in 2D and at edges in 3D. `m`
//! and `V` are the liquid's share of the box around a face or a sample. Motions without deformation cost nothing, so liquid
//! that turns or falls as a whole is left alone to the last bits, and a free surface asks for nothing. All velocity components
//! are one symmetric positive definite system, solved for the change `u − u*` by conjugate gradients and one multigrid cycle
//! per iteration.
//!
//! * `forces`: what gravity and pressure are about to do; viscosity acts on velocities with that in them.
//! * `surroundings`: liquid shares and wall distances around a block, on the finest level and on coarser ones.
//! * `coefficients`: what a block's samples and faces weigh.
//! * `walls`: what moving walls add to the right-hand side, and which walls let liquid slip.
//! * `kernel`: the stress on the faces of a block.
//! * `level`, `cycle`: grids of half the resolution each, and the cycle over them.
//!
//! Solids: a face whose centre lies in a wall has the wall's velocity. A difference across a wall ends at the wall and not at
//! the next face, `(u_wall − u)/(θ dx)`, and its sample weighs `θ` as much. Otherwise solids count as liquid in `m` and `V`:
//! samples cut by walls would let the liquid slip along them.

mod coefficients;
mod cycle;
mod forces;
mod kernel;
mod level;
mod surroundings;
#[cfg(test)]
mod tests;
mod walls;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::geometry::{Boundary, Label, Nearness, Walls};
use crate::grid::{Blocks, Field, Slots, VOID, block_cells, for_each_block, share};
use crate::linear::{CgInfo, StoppingRule, conjugate_gradients};
use crate::math::{Real, compiled_here};

use cycle::Cycle;
pub use forces::EarlierPressure;
use forces::Forces;
use kernel::{add_stress, load_faces};
use level::{Hierarchy, Level};
use surroundings::{MOST_NEAR, NEAR, Surroundings};
use walls::WallMotion;

/// What a viscous step reads.
pub struct Problem<'a, const D: usize> {
    /// The active part of the grid.
    pub blocks: &'a Blocks<D>,
    /// The walls on the grid.
    pub boundary: &'a Boundary<D>,
    /// The walls themselves: velocities, and which are slippery.
    pub walls: &'a Walls<D>,
    /// The liquid's signed distance at cell centres, metres.
    pub surface: &'a Field<f32>,
    /// What each cell is made of.
    pub label: &'a Field<Label>,
    /// What gravity is about to add to all velocities, m/s: the projection adds it.
    pub gravity: [Real; D],
    /// The pressure that answered to it in the last substep, if there was one.
    pub earlier: Option<EarlierPressure<'a>>,
    /// `μ dt / (ρ dx²)`.
    pub alpha: Real,
    /// Simulated seconds, for walls that move.
    pub time: Real,
}

/// What a viscous step took.
#[derive(Clone, Copy, Debug)]
pub struct Solved {
    /// The solver's account; residuals are relative to the stress of the velocities given.
    pub info: CgInfo,
    /// Faces solved for.
    pub unknowns: usize,
    /// Wall time, set-up included.
    pub seconds: f64,
}

/// Memory of the viscous step.
#[derive(Clone, Default)]
pub struct Viscosity<const D: usize> {
    live: Slots,
    /// The block of the finest level in each slot; 0 where there is none.
    block_of: Vec<u32>,
    forces: Forces<D>,
    hierarchy: Hierarchy<D>,
    /// Minus the stress of the given velocities, and the change of velocity.
    rhs: Vec<f64>,
    change: Vec<f64>,
}

impl<const D: usize> Viscosity<D> {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.forces.bytes() + self.hierarchy.bytes() + 8 * (self.rhs.capacity() + self.change.capacity())
    }

    /// Drops all memory, if there is any.
    pub fn clear(&mut self) {
        if !self.block_of.is_empty() {
            *self = Viscosity::default();
        }
    }
}

compiled_here! {
    /// Lets viscosity act on the velocities of the liquid for one substep. Faces of walls that liquid sticks to get the
    /// wall's velocity.
    pub fn diffuse<D>(
        velocity: &mut [Field<f32>; D],
        problem: &Problem<'_, D>,
        rule: &StoppingRule,
        viscosity: &mut Viscosity<D>,
        stop: Option<&AtomicBool>,
    ) -> Solved = run_diffuse;
}

fn run_diffuse<const D: usize>(
    velocity: &mut [Field<f32>; D],
    problem: &Problem<'_, D>,
    rule: &StoppingRule,
    viscosity: &mut Viscosity<D>,
    stop: Option<&AtomicBool>,
) -> Solved {
    let start = Instant::now();
    viscosity.find_blocks(problem);
    let Viscosity { live, block_of, forces, hierarchy, rhs, change } = viscosity;
    let &Problem { blocks, boundary, label, gravity, earlier, .. } = problem;
    forces.find(blocks, boundary, label, gravity, earlier);
    hierarchy.build(problem, live, block_of);
    let size = hierarchy.finest().vector_len();
    change.clear();
    change.resize(size, 0.0);
    rhs.clear();
    rhs.resize(size, 0.0);
    find_rhs(problem, [velocity, &forces.change], live, hierarchy.finest(), rhs);
    let (finest, mut cycle) = Cycle::new(hierarchy);
    let info = conjugate_gradients(finest, &mut cycle, rhs, change, rule, stop);
    let unknowns = finest.unknowns();
    write_back(problem, (live, block_of), finest, change, &forces.change, velocity);
    Solved { info, unknowns, seconds: start.elapsed().as_secs_f64() }
}

/// Cells nearer to the liquid than this have faces that viscosity moves; in cells.
const NEAR_LIQUID: f32 = 1.4;

impl<const D: usize> Viscosity<D> {
    /// Lists the blocks that may hold unknowns.
    fn find_blocks(&mut self, problem: &Problem<'_, D>) {
        let near = NEAR_LIQUID * problem.blocks.grid().dx as f32;
        let is_near = |slot: usize| problem.surface.block(slot).iter().any(|&distance| distance < near);
        self.live.refill(problem.blocks.slots(), is_near);
        self.block_of.clear();
        self.block_of.resize(problem.blocks.slot_count(), VOID);
        for (block, &slot) in self.live.as_slice().iter().enumerate() {
            self.block_of[slot as usize] = block as u32 + 1;
        }
    }
}

/// Cuts a vector into the parts of blocks, and calls `body` with each but the void one's.
fn each_block<T: Send>(values: &mut [T], part: usize, body: impl Fn(usize, &mut [T]) + Sync + Send) {
    let parts = crate::grid::Parts::new(values, part);
    share(parts.count() - 1, 2, &|range| {
        for block in range.start + 1..range.end + 1 {
            // SAFETY: ranges are disjoint, and the void block is in none.
            body(block, unsafe { crate::grid::Blockwise::take(&parts, block) });
        }
    });
}

/// Minus the stress of the velocities with all forces, on every unknown face.
fn find_rhs<const D: usize>(
    problem: &Problem<'_, D>,
    velocity: [&[Field<f32>; D]; 2],
    live: &Slots,
    finest: &Level<D>,
    rhs: &mut [f64],
) {
    let cells = block_cells(D);
    each_block(rhs, D * cells, |block, rhs| {
        let slot = live.as_slice()[block - 1] as usize;
        let coefficients = finest.coefficients(block);
        let mut faces = [0f64; 3 * MOST_NEAR];
        load_faces::<D>(problem.blocks, velocity, slot, &mut faces);
        if problem.boundary.nearness(slot) != Nearness::Clear {
            let surroundings = Surroundings::walls_of(problem, slot);
            surroundings.clear_walls(&mut faces);
            if problem.boundary.nearness(slot) == Nearness::Moving && surroundings.has_walls() {
                WallMotion::new(problem, slot).add_stress(&surroundings, coefficients.weights, rhs);
            }
        }
        add_stress::<f64, D>(coefficients.weights, &faces, rhs);
        for (rhs, &inverse) in rhs.iter_mut().zip(coefficients.inverse) {
            *rhs = if inverse > 0.0 { -*rhs } else { 0.0 };
        }
    });
}

/// Adds the change to the velocities, and gives faces in walls the walls' velocity, less what forces will add.
fn write_back<const D: usize>(
    problem: &Problem<'_, D>,
    (live, block_of): (&Slots, &[u32]),
    finest: &Level<D>,
    change: &[f64],
    forces: &[Field<f32>; D],
    velocity: &mut [Field<f32>; D],
) {
    let cells = block_cells(D);
    for_each_block(live, velocity.each_mut().map(Field::parts), |slot, velocity| {
        let block = block_of[slot] as usize;
        let inverse = finest.coefficients(block).inverse;
        let nearness = problem.boundary.nearness(slot);
        let walls = (nearness != Nearness::Clear).then(|| Surroundings::<D>::walls_of(problem, slot));
        let motion = WallMotion::new(problem, slot);
        for (axis, velocity) in velocity.into_iter().enumerate() {
            let change = &change[(block * D + axis) * cells..][..cells];
            let inverse = &inverse[axis * cells..][..cells];
            let (open, forces) = (problem.boundary.open[axis].block(slot), forces[axis].block(slot));
            for (local, velocity) in velocity.iter_mut().enumerate() {
                if inverse[local] > 0.0 {
                    *velocity = (f64::from(*velocity) + change[local]) as f32;
                } else if open[local] > 0.0
                    && walls.as_ref().is_some_and(|walls| walls.is_in_wall(local, axis))
                    && !motion.slips(local, axis)
                {
                    *velocity = (motion.face_velocity(local, axis) - f64::from(forces[local])) as f32;
                }
            }
        }
    });
}

/// Index of a cell of a block in its halo.
fn near_index<const D: usize>(local: usize) -> usize {
    NEAR.index(crate::math::unflatten::<D>(local, crate::grid::SIDE).map(|c| c as i32))
}
