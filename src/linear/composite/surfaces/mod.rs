//! The bodies' surfaces: which nodes of a network lie beside which body.
//!
//! Faces of one body, across one axis and towards one side, beside the nodes of one block make a patch. What a patch needs
//! of its nodes, their number of faces and the first moments of these, depends on how they lie in the block: patches of
//! blocks with the same pattern share it.

mod build;

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::grid::masks;

use super::super::bodies::{Body, BodyPatch, Moments};
use super::net::Net;
use super::rows::rows;
use super::shape::{Lane, Pressure, Shape};
use super::stock::Known;
use super::visit::{GRAIN, Nodes, PerBlock, visit, whole_rows};
use build::Made;

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
    /// Of a body's faces beside the cells of a block of the finest level.
    fn new<const D: usize>(faces: &BodyPatch, block: u32, shape: u32, body: usize, axis: usize) -> Self {
        let sign = if faces.ahead { 1 } else { -1 };
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
    /// Shapes of patches. Where each was in the step before, and what those are made of that may be wanted again: on the finest
    /// level a pattern and cells, on others a pattern and shapes of its parts.
    shapes: Vec<Shape>,
    origin: Vec<u32>,
    beside: Known<(u32, masks::Bits)>,
    joined: Known<(u32, Made)>,
    /// By block, and there by shape.
    patches: Vec<Patch>,
    start: Vec<u32>,
    runs: Vec<Run>,
    run_start: Vec<u32>,
    /// By body: where its patches start in `order`, which has their places.
    body_start: Vec<u32>,
    order: Vec<u32>,
    /// Per run: sums of values and of their first moments.
    sums: Vec<[f64; 4]>,
    velocities: Velocities,
    /// Per run: `Jᵀ v` as coefficients of the weights of its nodes.
    told: Vec<[f64; 4]>,
    /// Per body: its width in cells, and how strongly it answers on this level.
    bodies: Vec<(u32, f64)>,
}

/// Runs that a thread takes at a time.
const RUNS: usize = 256;
/// Bodies that a thread takes at a time.
const BODIES: usize = 64;
/// About as many nodes are swept while one is handed out to.
const RUN_NODES: usize = 16;
/// Nodes that a thread takes at a time, at least.
const LEAST_GRAIN: usize = 2048;

/// Damps the sweeps of nodes whose `inverse` is one over their diagonal, where bodies' terms are at most `bounds`. With bodies
/// taken as they are, a sweep and its mirror image converge together if `D + 2S − B` is positive, with `D` the diagonal,
/// `S` what is added to it, and `B` the bodies' term.
/// Returns whether any is damped.
fn damp(inverse: &mut [f32], bounds: &[f32]) -> bool {
    const MARGIN: f32 = 1.05;
    let mut any = false;
    for (inverse, bound) in inverse.iter_mut().zip(bounds) {
        // `1 / (D + S)`; where there is no node, 0 stays 0.
        let shift = 0.5 * (MARGIN * bound * *inverse - 1.0);
        *inverse /= 1.0 + if shift > 0.0 { shift } else { 0.0 };
        any |= shift > 0.0;
    }
    any
}

impl Surfaces {
    /// Calls `each(block, nodes, bodies)` for nodes of a block that lie beside the same bodies.
    pub fn each_run(&self, mut each: impl FnMut(usize, &Shape, &mut dyn Iterator<Item = usize>)) {
        for (index, run) in self.runs.iter().enumerate() {
            let mut bodies = self.of_run(index).iter().map(|patch| patch.body as usize);
            each(run.block as usize, &self.shapes[run.shape as usize], &mut bodies);
        }
    }

    /// Keeps nothing for the next step.
    pub fn forget(&mut self) {
        self.beside.clear();
        self.joined.clear();
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
    pub fn mark<const D: usize>(&self, net: &mut Net<D>) {
        for (block, touched) in net.touched.iter_mut().enumerate() {
            *touched = !self.runs_of(block).is_empty();
        }
        net.grain = GRAIN;
    }

    /// The same, and damps the sweeps of nodes that bodies hold more strongly than the network does: see [`damp`].
    pub fn prepare<const D: usize>(&self, bodies: &[Body], net: &mut Net<D>) {
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
                    shape.hand_out(colour, [each, 0.0, 0.0, 0.0], bounds);
                }
                damped.0[0] |= damp(inverse.0, bounds);
            });
        }
        for (block, &damped) in net.blocks.iter_mut().zip(&net.damped) {
            block.is_plain &= !damped;
        }
    }

    /// Finds out how the bodies move under the pressures `x`: `K J x`.
    pub fn respond<const D: usize, T: Pressure>(
        &mut self,
        bodies: &[Body],
        net: &Net<D>,
        x: [&[T::Stored]; 2],
    ) {
        let mut sums = std::mem::take(&mut self.sums);
        // By runs, not by blocks: on deep levels one block may lie beside all bodies.
        sums.par_iter_mut().zip(&self.runs).with_min_len(RUNS).for_each(|(sum, run)| {
            let range = |colour: usize| whole_rows(&net.blocks, run.block as usize, colour);
            *sum = self.shapes[run.shape as usize].add_up::<T>([0, 1].map(|c| rows(&x[c][range(c)])));
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

    /// Lets bodies move as they do on the finer level, and makes ready to hand that out.
    pub fn move_as(&mut self, finer: &Surfaces) {
        self.velocities.clone_from(&finer.velocities);
        self.tell();
    }

    /// Takes into account that the pressures of the coarser level were added to those of this one since bodies were last asked.
    ///
    /// The force on a body is the same whether they act here or there, where it was just asked; see [`Self::join`].
    pub fn follow(&mut self, coarser: &Surfaces) {
        for (body, own) in self.velocities.chunks_exact_mut(3).enumerate() {
            let share = self.bodies[body].1 / coarser.bodies[body].1;
            let other = coarser.velocities[3 * body..3 * body + 3].as_flattened();
            for (own, other) in own.as_flattened_mut().iter_mut().zip(other) {
                *own += share * other;
            }
        }
        self.tell();
    }

    /// Calls `each(a, b, value)` for the entries of all bodies' terms between nodes, given by colour and place.
    pub fn each_entry<const D: usize>(
        &self,
        bodies: &[Body],
        net: &Net<D>,
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

    /// Makes ready to hand out `Jᵀ v` for the velocities found last.
    pub fn tell(&mut self) {
        let mut told = std::mem::take(&mut self.told);
        told.par_iter_mut().enumerate().with_min_len(RUNS).for_each(|(index, told)| {
            *told = [0.0; 4];
            for patch in self.of_run(index) {
                let field = &self.velocities[3 * patch.body as usize + patch.axis as usize];
                let sign = f64::from(patch.sign);
                told[0] += sign * field[0];
                for k in 0..3 {
                    told[0] += 0.5 * sign * f64::from(patch.offset[k]) * field[k + 1];
                    told[k + 1] += 0.5 * sign * field[k + 1];
                }
            }
        });
        self.told = told;
    }

    /// Adds `scale Jᵀ v` to the nodes of a colour of a block, as they were last told.
    pub fn hand_out<A: Lane>(&self, block: usize, colour: usize, out: &mut [A], scale: f64) {
        for run in self.runs_of(block) {
            let told = self.told[run].map(|value| scale * value);
            self.shapes[self.runs[run].shape as usize].hand_out(colour, told, out);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.shapes.iter().map(Shape::bytes).sum::<usize>()
            + self.origin.capacity() * 4
            + self.beside.capacity() * size_of::<((u32, masks::Bits), u32)>()
            + self.joined.capacity() * size_of::<((u32, Made), u32)>()
            + self.patches.capacity() * size_of::<Patch>()
            + self.runs.capacity() * size_of::<Run>()
            + (self.start.capacity() + self.run_start.capacity()) * 4
            + (self.body_start.capacity() + self.order.capacity()) * 4
            + (self.sums.capacity() + self.velocities.capacity() + self.told.capacity()) * 32
    }
}
