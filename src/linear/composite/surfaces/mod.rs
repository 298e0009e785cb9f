//! The body term `Jᵀ K J` on one level: `J` gathers forces on bodies from the nodes beside them, `K` is their response, `Jᵀ`
//! scatters their velocities back.
//!
//! ```text
//!     · · x x x x · ·      x: nodes beside the body across y, one patch: all weights (1, x, y, z) of J
//!     · · ┌─────┐ · ·      follow from where the nodes lie in their block, and from one offset per patch
//!     · x │body │ x ·      x: patches across x, one on each side, with opposite signs
//! ```
//!
//! Faces of one body, across one axis and towards one side, beside the nodes of one block make a patch. The weights of its nodes,
//! number of faces and first moments, depend on how they lie in the block: patches of blocks with the same pattern share them.

mod build;

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::grid::masks;

use super::super::bodies::{Body, BodyPatch, Moments};
use super::super::scalar::Scalar;
use super::interner::KeyIndex;
use super::network::Network;
use super::rows::rows;
use super::visit::{GRAIN, Nodes, PerBlock, visit, whole_rows};
use super::weights::PatchWeights;
use build::ShapeParts;

/// Faces of one body beside the nodes of a block.
#[derive(Clone, Copy, Debug, Default)]
struct Patch {
    block: u32,
    shape: u32,
    /// Its [`Run`].
    run: u32,
    body: u32,
    axis: u8,
    /// 1 where the body lies on the high side of the nodes, and −1 on the low side.
    sign: i8,
    /// Twice the way from the body's origin to the block's corner, and from centres of cells to their faces.
    offset: [f32; 3],
}

impl Patch {
    /// The patch of a body's faces beside the cells of a block of the finest level.
    fn new<const D: usize>(faces: &BodyPatch, block: u32, shape: u32, body: usize, axis: usize) -> Self {
        let sign = faces.side.sign() as i8;
        let offset = std::array::from_fn(|k| if k < D { f32::from(faces.twice[k] - 1) } else { 0.0 });
        Patch { block, shape, run: 0, body: body as u32, axis: axis as u8, sign, offset }
    }

    /// Adds the force of pressures whose sum and first moments are given.
    fn push(&self, sums: [f64; 4], force: &mut [f64; 4]) {
        let sign = f64::from(self.sign);
        force[0] += sign * sums[0];
        for k in 0..3 {
            force[k + 1] += 0.5 * sign * (sums[k + 1] + f64::from(self.offset[k]) * sums[0]);
        }
    }
}

/// Patches of one block that share a shape: their nodes are gone through once for all of them.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    block: u32,
    shape: u32,
    /// Where its patches end.
    end: u32,
}

/// Velocities of bodies, per axis: coefficients of (1, x, y, z).
pub(super) type Velocities = Vec<[f64; 4]>;

/// All patches of a level.
#[derive(Clone, Debug, Default)]
pub(super) struct Surfaces {
    /// Weights of patches.
    shapes: Vec<PatchWeights>,
    /// The index that each had in the step before, or `NEW`.
    previous: Vec<u32>,
    /// Weights of the finest level, by pattern and cells.
    beside: KeyIndex<(u32, masks::Bits)>,
    /// Weights of a coarse level, by pattern and the weights below it.
    coarse: KeyIndex<(u32, ShapeParts)>,
    /// By block, and there by shape.
    patches: Vec<Patch>,
    start: Vec<u32>,
    runs: Vec<Run>,
    run_start: Vec<u32>,
    /// By body: where its patches start in `order`, which has their places.
    body_start: Vec<u32>,
    order: Vec<u32>,
    /// Per run: `J x`, sums of values and of their first moments.
    sums: Vec<[f64; 4]>,
    velocities: Velocities,
    /// Per run: `Jᵀ v` as coefficients of the weights of its nodes.
    scatter: Vec<[f64; 4]>,
    /// Per body: its width in cells, and the factor of its response on this level.
    bodies: Vec<(u32, f64)>,
}

/// Runs that a thread takes at a time.
const RUNS: usize = 256;
/// Bodies that a thread takes at a time.
const BODIES: usize = 64;
/// About as many nodes are swept in the time that scattering to one takes.
const RUN_NODES: usize = 16;
/// Nodes that a thread takes at a time, at least.
const LEAST_GRAIN: usize = 2048;

/// Damps the sweeps of nodes whose `inverse` is one over their diagonal, where bodies' terms are at most `bounds` and held for
/// some `sweeps`. With `D` the diagonal, `S` what is added to it, and `B` the bodies' term:
///
/// * With bodies taken as they are, a sweep and its mirror image converge together if `D + 2S − B` is positive.
/// * `ν` sweeps that hold the term make steps `y₁ … y_ν`, for which the network gains at least `Σ yᵀ(D + 2S)y`, and the term
///   takes `(Σy)ᵀB(Σy) ≤ ν Σ yᵀB y`: they converge together if `D + 2S − νB` is positive.
///
/// Returns whether any is damped.
fn damp(inverse: &mut [f32], bounds: &[f32], sweeps: usize) -> bool {
    const MARGIN: f32 = 1.05;
    let held = MARGIN * sweeps as f32;
    let mut any = false;
    for (inverse, bound) in inverse.iter_mut().zip(bounds) {
        // `1 / (D + S)`; where there is no node, 0 stays 0.
        let shift = 0.5 * (held * bound * *inverse - 1.0);
        *inverse /= 1.0 + if shift > 0.0 { shift } else { 0.0 };
        any |= shift > 0.0;
    }
    any
}

impl Surfaces {
    /// Calls `each(block, nodes, bodies)` for nodes of a block that lie beside the same bodies.
    pub fn each_run(&self, mut each: impl FnMut(usize, &PatchWeights, &mut dyn Iterator<Item = usize>)) {
        for (index, run) in self.runs.iter().enumerate() {
            let mut bodies = self.of_run(index).iter().map(|patch| patch.body as usize);
            each(run.block as usize, &self.shapes[run.shape as usize], &mut bodies);
        }
    }

    /// Empties the caches of weights.
    pub fn forget(&mut self) {
        self.beside.clear();
        self.coarse.clear();
    }

    fn of_block(&self, block: usize) -> &[Patch] {
        &self.patches[self.start[block] as usize..self.start[block + 1] as usize]
    }

    fn runs_of(&self, block: usize) -> std::ops::Range<usize> {
        self.run_start[block] as usize..self.run_start[block + 1] as usize
    }

    fn of_run(&self, run: usize) -> &[Patch] {
        let first = if run == 0 { 0 } else { self.runs[run - 1].end as usize };
        &self.patches[first..self.runs[run].end as usize]
    }

    /// Marks the blocks beside bodies.
    pub fn mark<const D: usize>(&self, net: &mut Network<D>) {
        for (block, touched) in net.touched.iter_mut().enumerate() {
            *touched = !self.runs_of(block).is_empty();
        }
        net.grain = GRAIN;
    }

    /// Marks the blocks beside bodies, and damps the sweeps of nodes that bodies hold more strongly than the network does: see
    /// [`damp`]. Bodies' terms are held for some `sweeps` at a time.
    pub fn prepare<const D: usize>(&self, bodies: &[Body], net: &mut Network<D>, sweeps: usize) {
        self.mark(net);
        // On deep levels bodies cost more than nodes.
        let nodes = net.size().max(1);
        net.grain = (GRAIN * nodes / (nodes + RUN_NODES * self.runs.len())).max(LEAST_GRAIN);
        for colour in 0..2 {
            let parts = (Nodes(&mut net.inverse[colour], colour), PerBlock(&mut net.damped));
            visit(&net.blocks, parts, &Vec::new, &|bounds, block, (inverse, damped)| {
                let runs = self.runs_of(block);
                if runs.is_empty() {
                    return;
                }
                bounds.clear();
                bounds.resize(inverse.0.len(), 0.0f32);
                for run in runs {
                    let bound = |patch: &Patch| {
                        let body = patch.body as usize;
                        self.bodies[body].1 * bodies[body].bound
                    };
                    let each: f64 = self.of_run(run).iter().map(bound).sum();
                    let shape = &self.shapes[self.runs[run].shape as usize];
                    shape.scatter_velocity(colour, [each, 0.0, 0.0, 0.0], bounds);
                }
                damped.0[0] |= damp(inverse.0, bounds, sweeps);
            });
        }
        for (block, &damped) in net.blocks.iter_mut().zip(&net.damped) {
            block.is_plain &= !damped;
        }
    }

    /// `v = K J x`: how the bodies move under the pressures `x`, summed in numbers `N`.
    pub fn apply_response<const D: usize, S: Copy + Sync, N: Scalar + From<S>>(
        &mut self,
        bodies: &[Body],
        net: &Network<D>,
        x: [&[S]; 2],
    ) {
        let mut sums = std::mem::take(&mut self.sums);
        // By runs, not by blocks: on deep levels one block may lie beside all bodies.
        sums.par_iter_mut().zip(&self.runs).with_min_len(RUNS).for_each(|(sum, run)| {
            let range = |colour: usize| whole_rows(&net.blocks, run.block as usize, colour);
            *sum =
                self.shapes[run.shape as usize].gather_force::<S, N>([0, 1].map(|c| rows(&x[c][range(c)])));
        });
        self.sums = sums;
        let mut velocities = std::mem::take(&mut self.velocities);
        velocities.resize(3 * bodies.len(), [0.0; 4]);
        velocities.par_chunks_mut(3).enumerate().with_min_len(BODIES).for_each(|(body, out)| {
            let field = bodies[body].response.apply::<D>(&self.forces(body));
            out.copy_from_slice(&field.map(|row| row.map(|value| value * self.bodies[body].1)));
        });
        self.velocities = velocities;
    }

    /// Takes the velocities of the finer level, and prepares `Jᵀ v`.
    pub fn copy_velocities(&mut self, finer: &Surfaces) {
        self.velocities.clone_from(&finer.velocities);
        self.update_scatter();
    }

    /// Adds the response to the coarse correction, after the pressures of the coarser level were added to those of this one.
    ///
    /// The force on a body is the same on both levels, and was just computed on the coarser one; see [`Self::coarsen`].
    pub fn add_coarse_response(&mut self, coarser: &Surfaces) {
        for (body, own) in self.velocities.chunks_exact_mut(3).enumerate() {
            let share = self.bodies[body].1 / coarser.bodies[body].1;
            let other = coarser.velocities[3 * body..3 * body + 3].as_flattened();
            for (own, other) in own.as_flattened_mut().iter_mut().zip(other) {
                *own += share * other;
            }
        }
        self.update_scatter();
    }

    /// Calls `each(a, b, value)` for the entries of all bodies' terms between nodes, given by colour and place.
    pub fn each_entry<const D: usize>(
        &self,
        bodies: &[Body],
        net: &Network<D>,
        mut each: impl FnMut((usize, usize), (usize, usize), f64),
    ) {
        let mut forces: BTreeMap<(usize, usize), Moments> = BTreeMap::new();
        for (body, own) in bodies.iter().enumerate() {
            // The force on the body per unit of pressure in each node.
            forces.clear();
            for &index in &self.order[self.body_start[body] as usize..self.body_start[body + 1] as usize] {
                let patch = &self.patches[index as usize];
                for colour in 0..2 {
                    let first = net.blocks[patch.block as usize].nodes[colour] as usize;
                    for (node, weights) in self.shapes[patch.shape as usize].each(colour) {
                        let force = forces.entry((colour, first + node)).or_default();
                        patch.push(weights.map(f64::from), &mut force[patch.axis as usize]);
                    }
                }
            }
            for (&a, force) in &forces {
                let field = own.response.apply::<D>(force);
                for (&b, other) in &forces {
                    let dot = field.iter().flatten().zip(other.iter().flatten()).map(|(v, f)| v * f);
                    each(a, b, self.bodies[body].1 * dot.sum::<f64>());
                }
            }
        }
    }

    fn forces(&self, body: usize) -> Moments {
        let mut forces = [[0.0; 4]; 3];
        for &index in &self.order[self.body_start[body] as usize..self.body_start[body + 1] as usize] {
            let patch = &self.patches[index as usize];
            patch.push(self.sums[patch.run as usize], &mut forces[patch.axis as usize]);
        }
        forces
    }

    /// Prepares `Jᵀ v` for the velocities found last: coefficients of the weights of each run.
    pub fn update_scatter(&mut self) {
        let mut scatter = std::mem::take(&mut self.scatter);
        scatter.par_iter_mut().enumerate().with_min_len(RUNS).for_each(|(index, scatter)| {
            *scatter = [0.0; 4];
            for patch in self.of_run(index) {
                let field = &self.velocities[3 * patch.body as usize + patch.axis as usize];
                let sign = f64::from(patch.sign);
                scatter[0] += sign * field[0];
                for k in 0..3 {
                    scatter[0] += 0.5 * sign * f64::from(patch.offset[k]) * field[k + 1];
                    scatter[k + 1] += 0.5 * sign * field[k + 1];
                }
            }
        });
        self.scatter = scatter;
    }

    /// `out += scale · Jᵀ v` for the nodes of a colour of a block, with the `v` last prepared.
    pub fn scatter_velocity<A: Scalar>(&self, block: usize, colour: usize, out: &mut [A], scale: f64) {
        for run in self.runs_of(block) {
            let scatter = self.scatter[run].map(|value| scale * value);
            self.shapes[self.runs[run].shape as usize].scatter_velocity(colour, scatter, out);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.shapes.iter().map(PatchWeights::bytes).sum::<usize>()
            + self.previous.capacity() * 4
            + self.beside.capacity() * size_of::<((u32, masks::Bits), u32)>()
            + self.coarse.capacity() * size_of::<((u32, ShapeParts), u32)>()
            + self.patches.capacity() * size_of::<Patch>()
            + self.runs.capacity() * size_of::<Run>()
            + (self.start.capacity() + self.run_start.capacity()) * 4
            + (self.body_start.capacity() + self.order.capacity()) * 4
            + (self.sums.capacity() + self.velocities.capacity() + self.scatter.capacity()) * 32
    }
}
