//! The V-cycle over levels with bodies.

use crate::grid::Blocks;

use super::super::bodies::{Bodies, Body};
use super::super::hierarchy::Hierarchy;
use super::super::params::SolveInfo;
use super::super::system::System;
use super::coarser::coarsen;
use super::components::{Components, Labels, closed_nodes};
use super::fill::{self, fill};
use super::finest;
use super::last::Last;
use super::net::Net;
use super::shape::Rough;
use super::surfaces::Surfaces;

/// The levels of a system with bodies.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels<const D: usize> {
    list: Vec<Body>,
    /// The system itself: only its unknowns are looked up here.
    outside: Hierarchy<D>,
    nets: Vec<Net<D>>,
    surfaces: Vec<Surfaces>,
    /// Levels in use.
    depth: usize,
    /// The first ones of them, on which bodies stay as they are during sweeps.
    still: usize,
    /// The first one on which the cells inside bodies are nodes. Its surfaces serve the finer one.
    filled: usize,
    last: Last,
    components: Components,
}

const MAX_LEVELS: usize = 24;
/// With so few nodes linked to others, the rest is solved exactly.
const FEW_NODES: usize = 256;
/// A step that keeps more than this share of them has met its end, and its level is solved exactly if it has no more than
/// so many.
const KEPT: f64 = 0.8;
const MOST_NODES: usize = 384;
/// Otherwise so many times as many sweeps as others get must do.
const LAST_SWEEPS: usize = 8;
/// From this level on there are twice as many sweeps: bodies are hardly larger than the cells there, and neither their terms nor
/// the links that take their place fit as well. Nodes are so few that this costs next to nothing.
const FIRST_DEEP: usize = 3;

/// What bodies do while a level is swept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// On the way down they stay at rest, on the way up they move as after the coarser levels. Where cells are much narrower
    /// than bodies, their part is so small that this will do.
    Still,
    /// They are asked for every sweep.
    Asked,
    /// There are none: see [`fill`].
    Filled,
}

/// The first levels, on which bodies are as a rule at least sixteen cells wide; the finest one always.
fn still_levels(bodies: &[Body]) -> usize {
    const LOG_NARROW: f64 = 4.0;
    // Wide ones count for more: they have more of the surface.
    let [sum, all] = bodies.iter().fold([0.0; 2], |[sum, all], body| {
        let patches = f64::from(body.patches[3] - body.patches[0]);
        [sum + patches * f64::from(body.width.max(1).next_power_of_two().ilog2()), all + patches]
    });
    let width = if all > 0.0 { (sum / all).round() } else { 0.0 };
    1 + (width - LOG_NARROW).max(0.0) as usize
}

fn sweeps_on(level: usize, sweeps: usize) -> usize {
    if level < FIRST_DEEP { sweeps } else { 2 * sweeps }
}

impl<const D: usize> Levels<D> {
    /// Reads a system with bodies.
    pub fn build(&mut self, system: &System<'_, D>, bodies: &Bodies<'_>, coarse_levels: bool) {
        self.list.clear();
        self.list.extend_from_slice(bodies.list);
        let whole = system.materials.is_none().then_some(bodies.whole);
        self.outside.survey(system, whole, |slot| bodies.known[slot]);
        self.reserve(1);
        finest::read(&mut self.nets[0], system, self.outside.finest(), self.outside.block_of());
        self.surfaces[0].read(bodies, self.outside.block_of(), &self.nets[0]);
        self.nets[0].find_inverse();
        self.nets[0].find_diagonal();
        self.depth = 1;
        self.still = still_levels(bodies.list);
        self.filled = if whole.is_some() { fill::level_for(bodies.list) } else { MAX_LEVELS };
        let left = coarse_levels.then(|| self.add_levels(system.blocks, bodies));
        // What is kept on a level builds on what the finer one kept: the chain must not break.
        self.forget_from(self.depth);
        for (level, (net, surfaces)) in self.nets[..self.depth].iter_mut().zip(&self.surfaces).enumerate() {
            if level < self.filled {
                surfaces.prepare(&self.list, net);
            } else {
                surfaces.mark(net);
            }
        }
        let (net, surfaces) = (&self.nets[self.depth - 1], &self.surfaces[self.depth - 1]);
        self.components.find(net);
        self.last.clear();
        if left.is_some_and(|nodes| nodes <= MOST_NODES) {
            let surfaces = (self.depth <= self.filled).then_some(surfaces);
            self.last.build(net, surfaces, &self.list, &self.components);
        }
    }

    /// Keeps nothing of a level and those below it for the next step.
    pub fn forget_from(&mut self, level: usize) {
        for (net, surfaces) in self.nets.iter_mut().zip(&mut self.surfaces).skip(level) {
            net.forget();
            surfaces.forget();
        }
    }

    /// Makes room for so many levels.
    fn reserve(&mut self, levels: usize) {
        self.nets.resize_with(self.nets.len().max(levels), Net::default);
        self.surfaces.resize_with(self.surfaces.len().max(levels), Surfaces::default);
    }

    /// Builds coarser levels until few nodes are left that are linked to others; returns how many.
    fn add_levels(&mut self, blocks: &Blocks<D>, bodies: &Bodies<'_>) -> usize {
        let mut nodes = self.nets[0].linked();
        while nodes > FEW_NODES && self.depth < MAX_LEVELS {
            let level = self.depth;
            self.reserve(level + 1);
            let h = (1u32 << (level - 1)) as f32;
            let (finer, this) = self.nets.split_at_mut(level);
            let (finer, this) = (&mut finer[level - 1], &mut this[0]);
            coarsen(finer, this, h);
            let (above, surfaces) = self.surfaces.split_at_mut(level);
            let (above, surfaces) = (&above[level - 1], &mut surfaces[0]);
            if level == self.filled && !fill(this, (finer, above), blocks, bodies, level) {
                self.filled = MAX_LEVELS;
            }
            this.find_inverse();
            this.find_links();
            if level <= self.filled {
                surfaces.join(above, this, h);
            } else {
                surfaces.clear(this.blocks.len() - 1);
            }
            self.depth += 1;
            let before = std::mem::replace(&mut nodes, this.linked());
            if nodes as f64 > KEPT * before as f64 {
                break;
            }
        }
        nodes
    }

    /// The system's own network.
    pub fn finest(&self) -> &Net<D> {
        &self.nets[0]
    }

    /// The same, to be changed.
    pub fn finest_mut(&mut self) -> &mut Net<D> {
        &mut self.nets[0]
    }

    /// The block of each slot, 0 where it is not live.
    pub fn block_of(&self) -> &[u32] {
        self.outside.block_of()
    }

    /// The system's own network and the bodies' surfaces there.
    pub fn finest_with_surfaces(&mut self) -> (&Net<D>, &mut Surfaces, &[Body]) {
        (&self.nets[0], &mut self.surfaces[0], &self.list)
    }

    /// The surfaces there.
    pub fn surfaces(&self) -> &Surfaces {
        &self.surfaces[0]
    }

    /// What bodies do on a level.
    fn role(&self, level: usize) -> Role {
        match level {
            level if level >= self.filled => Role::Filled,
            level if level < self.still => Role::Still,
            _ => Role::Asked,
        }
    }

    /// Sets the finest `x` from the finest `b`, and returns `x·b`.
    pub fn cycle(&mut self, sweeps: usize, partial: &mut Vec<f64>) -> f64 {
        for level in 0..self.depth {
            let role = self.role(level);
            let was_at_rest = level > 0 && self.role(level - 1) != Role::Asked;
            let (finer, this) = self.nets.split_at_mut(level);
            if let Some(finer) = finer.last_mut() {
                let (above, surfaces) = self.surfaces.split_at_mut(level);
                if level <= self.filled {
                    surfaces[0].move_as(&above[level - 1]);
                }
                finer.restrict(&surfaces[0], was_at_rest, &mut this[0]);
            }
            if level + 1 < self.depth {
                let sweeps = sweeps_on(level, sweeps);
                sweep_down(&mut self.surfaces[level], &self.list, &mut this[0], sweeps, role);
            }
        }
        let end = self.depth - 1;
        let role = self.role(end);
        let (net, surfaces) = (&mut self.nets[end], &mut self.surfaces[end]);
        if !self.last.solve(net) {
            let sweeps = if end > 0 { LAST_SWEEPS * sweeps } else { sweeps };
            sweep_down(surfaces, &self.list, net, sweeps, role);
            surfaces.tell();
            sweep_up(surfaces, &self.list, net, sweeps, role);
        }
        for level in (0..end).rev() {
            let (all_sweeps, role) = (sweeps_on(level, sweeps), self.role(level));
            let (finer, coarser) = self.nets.split_at_mut(level + 1);
            let (net, coarse) = (&mut finer[level], &coarser[0]);
            let (finer, coarser) = self.surfaces.split_at_mut(level + 1);
            let (surfaces, coarser) = (&mut finer[level], &mut coarser[0]);
            net.prolong(coarse);
            if role != Role::Filled {
                // Coarse nodes are fewer to ask.
                respond(coarser, &self.list, coarse);
                surfaces.follow(coarser);
            }
            if level == 0 {
                (1..sweeps).for_each(|_| net.sweep_back(Some(surfaces)));
                return net.sweep_back_and_align(surfaces, partial);
            }
            sweep_up(surfaces, &self.list, net, all_sweeps, role);
        }
        self.nets[0].alignment(partial)
    }

    /// Components without ground, on the finest level.
    pub fn label_components(&mut self) -> Labels {
        self.components.label(&self.nets[..self.depth])
    }

    /// Reports sizes.
    pub fn describe(&self, info: &mut SolveInfo) {
        let nets = &self.nets[..self.depth];
        info.level_count = self.depth;
        for (nodes, net) in info.levels.iter_mut().zip(nets) {
            *nodes = net.size() + net.ties.x.len();
        }
        info.closed_components = self.components.count + closed_nodes(nets);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.outside.bytes()
            + self.nets.iter().map(Net::bytes).sum::<usize>()
            + self.surfaces.iter().map(Surfaces::bytes).sum::<usize>()
            + self.last.bytes()
            + self.components.bytes()
    }
}

/// Finds out how bodies move under the network's `x`.
fn respond<const D: usize>(surfaces: &mut Surfaces, bodies: &[Body], net: &Net<D>) {
    let x = [0, 1].map(|colour: usize| net.x[colour].as_slice());
    surfaces.respond::<D, Rough>(bodies, net, x);
}

/// The same, and tells nodes.
fn ask<const D: usize>(surfaces: &mut Surfaces, bodies: &[Body], net: &Net<D>) {
    respond(surfaces, bodies, net);
    surfaces.tell();
}

/// Sweeps from zero, and finds out how bodies then move.
fn sweep_down<const D: usize>(
    surfaces: &mut Surfaces,
    bodies: &[Body],
    net: &mut Net<D>,
    sweeps: usize,
    role: Role,
) {
    net.sweep_from_zero();
    for _ in 1..sweeps {
        if role == Role::Asked {
            ask(surfaces, bodies, net);
        }
        net.sweep((role == Role::Asked).then_some(&*surfaces));
    }
    if role != Role::Filled {
        respond(surfaces, bodies, net);
    }
}

/// The sweeps of [`sweep_down`] in reverse, from the values at hand, with bodies that move as they were last told.
fn sweep_up<const D: usize>(
    surfaces: &mut Surfaces,
    bodies: &[Body],
    net: &mut Net<D>,
    sweeps: usize,
    role: Role,
) {
    for sweep in 0..sweeps {
        if sweep > 0 && role == Role::Asked {
            ask(surfaces, bodies, net);
        }
        net.sweep_back((role != Role::Filled).then_some(&*surfaces));
    }
}
