//! Conjugate gradients on a system with bodies: vectors without gaps.

use rayon::prelude::*;

use crate::grid::{Field, for_each_block};

use super::super::bodies::Bodies;
use super::super::closed::Remove;
use super::super::kernels::{self, Size};
use super::super::params::{PreconditionerKind, SolveInfo};
use super::super::space::Space;
use super::super::stencil::grow;
use super::super::system::System;
use super::components::{Labels, MIXED};
use super::cycle::Levels;
use super::gather::{self, Factor, Workspace};
use super::net::{Colours, Net};
use super::rows;
use super::shape::{Exact, Widened};
use super::visit::{
    Block, Form, GRAIN, PerBlock, both, clear_unused, pieces, pieces_mut, range, visit, visit_stretches,
};

/// A system with bodies and the vectors of its solve.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Composite<const D: usize> {
    levels: Levels<D>,
    x: Colours<f64>,
    r: Colours<f64>,
    /// The right-hand side: a field holds it too, but with gaps.
    rhs: Colours<f64>,
    /// `r` is the right-hand side, whatever the memory says.
    r_is_rhs: bool,
    p: Colours<f32>,
    /// `A p`.
    q: Colours<f64>,
    /// How far `x` still has to go along `p`.
    ahead: f64,
    shared: Shared,
    /// The components without ground, once somebody has asked.
    labels: Option<Labels>,
    /// Of parts of `r`.
    sizes: Vec<Size>,
    partial: Vec<f64>,
}

/// The same for shared nodes.
#[derive(Clone, Debug, Default)]
struct Shared {
    x: Vec<f64>,
    r: Vec<f64>,
    p: Vec<f32>,
    q: Vec<f64>,
}

/// A part of one colour's array that belongs to a block.
#[inline]
fn own<'a, T>(values: &'a [T], blocks: &[Block], block: usize, colour: usize) -> &'a [T] {
    &values[range(blocks, block, colour)]
}

impl Size {
    fn include_all(&mut self, all: Size) {
        self.square += all.square;
        self.max = self.max.max(all.max);
    }

    fn include(&mut self, value: f64) {
        self.square += value * value;
        self.max = self.max.max(value.abs());
    }
}

impl<const D: usize> Composite<D> {
    /// Reads a system with bodies; prepares the V-cycle if so asked.
    pub fn build(&mut self, system: &System<'_, D>, bodies: &Bodies<'_>, multigrid: bool) {
        self.levels.build(system, bodies, multigrid);
        (self.labels, self.ahead) = (None, 0.0);
        let (counts, reach) = (self.levels.finest().counts(), self.levels.finest().reach());
        let blocks = &self.levels.finest().blocks;
        for colour in 0..2 {
            for values in [&mut self.r, &mut self.rhs, &mut self.q] {
                grow(&mut values[colour], counts[colour]);
                clear_unused(blocks, &mut values[colour], colour);
            }
            grow(&mut self.x[colour], reach[colour]);
            grow(&mut self.p[colour], reach[colour]);
            clear_unused(blocks, &mut self.x[colour], colour);
            clear_unused(blocks, &mut self.p[colour], colour);
        }
        let count = system.shared.len();
        for values in [&mut self.shared.x, &mut self.shared.r, &mut self.shared.q] {
            values.clear();
            values.resize(count, 0.0);
        }
        self.shared.p.clear();
        self.shared.p.resize(count, 0.0);
    }

    /// Keeps nothing but memory for the next system.
    pub fn forget(&mut self) {
        self.levels.forget_from(0);
    }

    /// Reports sizes.
    pub fn describe(&self, info: &mut SolveInfo) {
        self.levels.describe(info);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let wide = [&self.x, &self.r, &self.rhs, &self.q];
        self.levels.bytes()
            + wide.into_iter().flatten().map(|values| values.capacity() * 8).sum::<usize>()
            + self.p.iter().map(|values| values.capacity() * 4).sum::<usize>()
    }

    fn measure(&self) -> Size {
        let mut size = Size::default();
        self.sizes.iter().for_each(|&part| size.include_all(part));
        self.shared.r.iter().for_each(|&r| size.include(r));
        size
    }

    fn clear_unlinked(&self, shared: &mut [f64]) {
        for (value, &diagonal) in shared.iter_mut().zip(&self.levels.finest().ties.diagonal) {
            *value = if diagonal > 0.0 { *value } else { 0.0 };
        }
    }

    fn round_shared(&mut self, scale: f64) {
        for (b, r) in self.levels.finest_mut().ties.b.iter_mut().zip(&self.shared.r) {
            *b = (r * scale) as f32;
        }
    }
}

/// Takes the values of all nodes from a field.
fn gather<const D: usize>(net: &Net<D>, system: &System<'_, D>, field: &Field<f64>, out: &mut Colours<f64>) {
    visit(&net.blocks, both(out), &|| (), &|(), block, (red, black)| {
        let values = field.block(system.live.as_slice()[block - 1] as usize);
        let pattern = net.pattern(block);
        for (colour, out) in [red.0, black.0].into_iter().enumerate() {
            if net.blocks[block].form == Form::AllRows {
                rows::split::<D>(out, values, colour);
                pattern.clear_others(colour, out);
            } else {
                pattern.pick(colour, values, out);
            }
        }
    });
}

impl<const D: usize> Space<D> for Composite<D> {
    fn load_r(&mut self, system: &System<'_, D>, rhs: &Field<f64>, shared: &[f64]) -> Size {
        gather(self.levels.finest(), system, rhs, &mut self.rhs);
        self.reload_r(system, rhs, shared);
        self.measure_r()
    }

    fn reload_r(&mut self, _: &System<'_, D>, _: &Field<f64>, shared: &[f64]) {
        self.r_is_rhs = true;
        let mut r = std::mem::take(&mut self.shared.r);
        r.copy_from_slice(shared);
        self.clear_unlinked(&mut r);
        self.shared.r = r;
    }

    fn store_r(&mut self, system: &System<'_, D>, rhs: &mut Field<f64>, shared: &mut [f64]) {
        self.settle_r();
        self.rhs.clone_from(&self.r);
        scatter(&self.levels, &self.r, system, rhs);
        let ties = &self.levels.finest().ties;
        for ((rhs, &r), &diagonal) in shared.iter_mut().zip(&self.shared.r).zip(&ties.diagonal) {
            *rhs = if diagonal > 0.0 { r } else { *rhs };
        }
    }

    fn measure_r(&mut self) -> Size {
        let counts = self.levels.finest().counts();
        let r = if self.r_is_rhs { &self.rhs } else { &self.r };
        pieces(r, counts).map(kernels::measure).collect_into_vec(&mut self.sizes);
        self.measure()
    }

    fn load_x(&mut self, system: &System<'_, D>, x: &Field<f64>, shared: &[f64]) {
        self.ahead = 0.0;
        gather(self.levels.finest(), system, x, &mut self.x);
        let mut x = std::mem::take(&mut self.shared.x);
        x.copy_from_slice(shared);
        self.clear_unlinked(&mut x);
        self.shared.x = x;
    }

    fn clear_x(&mut self) {
        self.ahead = 0.0;
        let counts = self.levels.finest().counts();
        pieces_mut(&mut self.x, counts).for_each(|x| x.fill(0.0));
        self.shared.x.fill(0.0);
    }

    fn store_x(&mut self, system: &System<'_, D>, x: &mut Field<f64>, shared: &mut [f64]) {
        self.catch_up();
        scatter(&self.levels, &self.x, system, x);
        shared.copy_from_slice(&self.shared.x);
    }

    fn round_residual(&mut self, scale: f64) {
        self.settle_r();
        let net = self.levels.finest_mut();
        let counts = net.counts();
        pieces_mut(&mut net.b, counts).zip(pieces(&self.r, counts)).for_each(|(b, r)| {
            b.iter_mut().zip(r).for_each(|(b, r)| *b = (r * scale) as f32);
        });
        self.round_shared(scale);
    }

    fn subtract_product(&mut self, scale: f64) -> Size {
        self.catch_up();
        let (net, surfaces, bodies) = self.levels.finest_with_surfaces();
        surfaces.respond::<D, Exact>(bodies, net, [&self.x[0], &self.x[1]]);
        surfaces.tell();
        let Shared { x, q, .. } = &mut self.shared;
        self.levels.finest().copy_all_seen(&mut self.x);
        multiply(&self.levels, (&self.x, x), (&mut self.q, q), &mut self.partial);
        self.descend(1.0, scale)
    }

    fn precondition(&mut self, kind: PreconditionerKind, sweeps: usize) -> f64 {
        if kind != PreconditionerKind::Multigrid {
            return self.levels.finest_mut().divide_by_diagonal(&mut self.partial);
        }
        self.levels.cycle(sweeps.max(1), &mut self.partial)
    }

    fn redirect(&mut self, beta: f64) {
        let (net, beta, alpha) = (self.levels.finest(), beta as f32, std::mem::take(&mut self.ahead));
        let (counts, Shared { x, p, .. }) = (net.counts(), &mut self.shared);
        let directions = pieces_mut(&mut self.p, counts).zip(pieces(&net.x, counts));
        directions
            .zip(pieces_mut(&mut self.x, counts))
            .for_each(|((p, z), x)| gather::go_and_turn(x, alpha, p, z, beta));
        gather::go_and_turn(x, alpha, p, &net.ties.x, beta);
    }

    fn energy(&mut self) -> f64 {
        let (net, surfaces, bodies) = self.levels.finest_with_surfaces();
        surfaces.respond::<D, Widened>(bodies, net, [&self.p[0], &self.p[1]]);
        surfaces.tell();
        let Shared { p, q, .. } = &mut self.shared;
        self.levels.finest().copy_all_seen(&mut self.p);
        multiply(&self.levels, (&self.p, p), (&mut self.q, q), &mut self.partial);
        let shared: f64 = p.iter().zip(q).map(|(&p, q)| f64::from(p) * *q).sum();
        self.partial.iter().sum::<f64>() + shared
    }

    fn step(&mut self, alpha: f64, scale: f64) -> Size {
        self.catch_up();
        self.ahead = alpha;
        self.descend(alpha, scale)
    }

    fn take_direction(&mut self) {
        self.catch_up();
        self.ahead = 1.0;
    }

    fn remove(&mut self, what: Remove, system: &System<'_, D>, components: usize) {
        self.catch_up();
        self.settle_r();
        let labels = self.labels.get_or_insert_with(|| self.levels.label_components());
        let (cells, shared) = match what {
            Remove::Sum => (&mut self.r, &mut self.shared.r),
            Remove::Mean => (&mut self.x, &mut self.shared.x),
        };
        // Blocks that belong to one component are summed side by side.
        let net = self.levels.finest();
        let mut parts = vec![[0.0; 2]; labels.blocks.len()];
        visit(&net.blocks, PerBlock(&mut parts), &|| (), &|(), block, sum| {
            if labels.blocks[block] != MIXED {
                let of = |colour: usize| gather::sum(own(&cells[colour], &net.blocks, block, colour));
                sum.0[0] = [of(0) + of(1), net.pattern(block).nodes() as f64];
            }
        });
        let mut sums = vec![[0.0; 2]; components + 1];
        for (block, (&label, part)) in labels.blocks.iter().zip(&parts).enumerate() {
            if label != MIXED {
                let sum = &mut sums[label as usize];
                *sum = [sum[0] + part[0], sum[1] + part[1]];
                continue;
            }
            for colour in 0..2 {
                let range = net.range(block, colour);
                for (&value, &label) in cells[colour][range.clone()].iter().zip(&labels.nodes[colour][range])
                {
                    let sum = &mut sums[label as usize];
                    *sum = [sum[0] + value, sum[1] + 1.0];
                }
            }
        }
        for (node, (value, &label)) in shared.iter().zip(&labels.shared).enumerate() {
            let (sum, weight) = (&mut sums[label as usize], system.shared.weight(node));
            sum[0] += if what == Remove::Mean { weight * value } else { *value };
            sum[1] += weight;
        }
        let mut means: Vec<f64> =
            sums.iter().map(|&[sum, weight]| if weight > 0.0 { sum / weight } else { 0.0 }).collect();
        means[0] = 0.0;
        visit(&net.blocks, both(cells), &|| (), &|(), block, (red, black)| {
            let (label, pattern) = (labels.blocks[block], net.pattern(block));
            if label == 0 {
                return;
            }
            for (colour, values) in [red.0, black.0].into_iter().enumerate() {
                if label == MIXED {
                    let of = own(&labels.nodes[colour], &net.blocks, block, colour);
                    values.iter_mut().zip(of).for_each(|(value, &label)| *value -= means[label as usize]);
                } else {
                    values.iter_mut().for_each(|value| *value -= means[label as usize]);
                }
                pattern.clear_others(colour, values);
            }
        });
        for (node, (value, &label)) in shared.iter_mut().zip(&labels.shared).enumerate() {
            let each = if what == Remove::Sum { system.shared.weight(node) } else { 1.0 };
            *value -= each * means[label as usize];
        }
    }
}

impl<const D: usize> Composite<D> {
    /// Brings `x` to where it is said to be. Along the way of each iteration but the last it goes while `p` is at hand.
    fn catch_up(&mut self) {
        let (alpha, counts) = (std::mem::take(&mut self.ahead), self.levels.finest().counts());
        if alpha != 0.0 {
            let steps = pieces_mut(&mut self.x, counts).zip(pieces(&self.p, counts));
            steps.for_each(|(x, p)| gather::go(x, alpha, p));
            gather::go(&mut self.shared.x, alpha, &self.shared.p);
        }
    }

    /// Makes `r` hold its value.
    fn settle_r(&mut self) {
        if std::mem::take(&mut self.r_is_rhs) {
            let counts = self.levels.finest().counts();
            let copies = pieces_mut(&mut self.r, counts).zip(pieces(&self.rhs, counts));
            copies.for_each(|(r, rhs)| r.copy_from_slice(rhs));
        }
    }

    /// `r −= α q`, handed to the preconditioner. Measures `r`.
    fn descend(&mut self, alpha: f64, scale: f64) -> Size {
        let net = self.levels.finest_mut();
        let counts = net.counts();
        let residuals = pieces_mut(&mut self.r, counts).zip(pieces_mut(&mut net.b, counts));
        let residuals = residuals.zip(pieces(&self.q, counts));
        let descend =
            |((r, b), q): ((&mut [f64], &mut [f32]), &[f64])| gather::descend(r, b, q, alpha, scale);
        if std::mem::take(&mut self.r_is_rhs) {
            let residuals = residuals.zip(pieces(&self.rhs, counts)).map(|(((r, b), q), rhs)| {
                r.copy_from_slice(rhs);
                descend(((r, b), q))
            });
            residuals.collect_into_vec(&mut self.sizes);
        } else {
            residuals.map(descend).collect_into_vec(&mut self.sizes);
        }
        let Shared { r, q, .. } = &mut self.shared;
        r.iter_mut().zip(q).for_each(|(r, q)| *r -= alpha * *q);
        self.round_shared(scale);
        self.measure()
    }
}

/// `q = A p` for nodes and shared nodes, with bodies that move as they were last told; `p·q` block by block.
fn multiply<T: Factor, const D: usize>(
    levels: &Levels<D>,
    (p, shared_p): (&Colours<T>, &[T]),
    (q, shared_q): (&mut Colours<f64>, &mut [f64]),
    partial: &mut Vec<f64>,
) {
    let (net, surfaces) = (levels.finest(), levels.surfaces());
    let (blocks, whole) = (&net.blocks, f64::from(net.whole));
    let (red, black) = both(q);
    partial.clear();
    partial.resize(blocks.len() - 1, 0.0);
    let parts = (red, black, PerBlock(partial));
    let desk = || Workspace::<T>::new(net.room);
    visit_stretches(GRAIN, blocks, parts, &desk, &|values, stretch, (red, black, sum)| {
        let (mut q, block) = ([red.0, black.0], stretch.start);
        for (colour, q) in q.iter_mut().enumerate() {
            let (range, other) = (net.range_of(stretch.clone(), colour), &p[1 - colour]);
            let (here, half) = (&p[colour][range], &net.pattern(block).half[colour]);
            let sight = || net.sight(stretch.clone(), colour, other);
            if blocks[block].is_plain {
                let diagonal = net.diagonal_of(stretch.clone(), colour);
                rows::product_alone::<T, D>(q, here, diagonal, &sight(), whole);
            } else if blocks[block].form != Form::Listed {
                rows::product::<T, D>(q, here, half, &sight(), whole);
            } else {
                values.load(own(other, blocks, block, 1 - colour), net.seen(block, colour, other));
                gather::product(q, here, half, values, whole);
            }
            net.hand_out::<f64>(surfaces, stretch.clone(), colour, q, 1.0);
            let ties = if blocks[block].is_tied[colour] { net.ties.of(colour, block) } else { &[] };
            for tie in ties {
                let node = (tie.node.1 - blocks[block].nodes[colour]) as usize;
                q[node] += f64::from(tie.link) * (here[node].into() - shared_p[tie.shared as usize].into());
            }
            sum.0[0] += T::alignment(here, q);
        }
    });
    for (shared, (q, &own)) in shared_q.iter_mut().zip(shared_p).enumerate() {
        *q = net.ties.diagonal[shared] * own.into() - net.ties.pull(shared, [&p[0], &p[1]]);
    }
}

/// Puts the values of all nodes into a field; other cells of their blocks become zero.
fn scatter<const D: usize>(
    levels: &Levels<D>,
    values: &Colours<f64>,
    system: &System<'_, D>,
    field: &mut Field<f64>,
) {
    let (net, block_of) = (levels.finest(), levels.block_of());
    for_each_block(system.live, field.parts(), |slot, out| {
        let block = block_of[slot] as usize;
        if net.blocks[block].form == Form::AllRows {
            let [red, black] = [0, 1].map(|colour| own(&values[colour], &net.blocks, block, colour));
            rows::join::<D>(out, red, black);
            return;
        }
        out.fill(0.0);
        for (colour, half) in net.pattern(block).half.iter().enumerate() {
            for (&cell, &value) in half.cells.iter().zip(own(&values[colour], &net.blocks, block, colour)) {
                out[cell as usize] = value;
            }
        }
    });
}
