//! The V-cycle over levels with bodies.

use crate::grid::Blocks;

use super::super::bodies::{Bodies, Body};
use super::super::hierarchy::Hierarchy;
use super::super::params::SolveInfo;
use super::super::system::System;
use super::coarsen::coarsen;
use super::components::{Components, Labels, closed_nodes};
use super::dense::DenseSolve;
use super::fill::{self, fill};
use super::finest;
use super::network::{Network, NetworkRows};
use super::surfaces::Surfaces;

/// All levels of a system with bodies, and what their V-cycle needs.
#[derive(Clone, Debug, Default)]
pub(super) struct CompositeHierarchy<const D: usize> {
    list: Vec<Body>,
    /// The system without bodies: finds its unknowns, and nothing is swept there.
    outside: Hierarchy<D>,
    nets: Vec<Network<D>>,
    surfaces: Vec<Surfaces>,
    /// Levels in use.
    depth: usize,
    /// Smoothing sweeps before and after each coarse correction, see [`sweeps_on`].
    sweeps: usize,
    /// Number of levels, from the finest, on which bodies are wide enough for [`BodyTerm::Lagged`].
    lagged: usize,
    /// The first level on which the cells inside bodies are nodes. Its surfaces serve the finer one.
    first_filled: usize,
    dense: DenseSolve,
    components: Components,
}

/// The most levels that are built.
const MAX_LEVELS: usize = 24;
/// Coarsening ends with so few nodes that are linked to others.
const FEW_NODES: usize = 256;
/// Coarsening ends with a step that keeps more than this share of the nodes.
const KEPT: f64 = 0.8;
/// The last level is solved exactly if it has no more linked nodes than this.
const MOST_NODES: usize = 384;
/// Factor of the number of sweeps on a last level that is too large for an exact solve.
const LAST_SWEEPS: usize = 8;
/// From this level on there are twice as many smoothing sweeps: bodies are hardly larger than the cells there, and neither their terms nor
/// the links that take their place fit as well. Nodes are so few that this costs next to nothing.
const FIRST_DEEP: usize = 3;
/// The most sweeps during which the body term may lag behind, see [`BodyTerm::Lagged`].
const MOST_LAGGED: usize = 2;

/// How the body term `Jᵀ K J x` enters the smoother of a level.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyTerm {
    /// Zero on the way down; on the way up as it was after the coarse correction. Where cells are much narrower than bodies,
    /// the term is so small that this will do for one or two sweeps. More of them would lead away from the solution: they come
    /// close to solving the network without bodies, and where this is softer than the bodies' term, as for smooth pressures along
    /// a seam, the answer overshoots by more than the error there was.
    Lagged,
    /// Computed anew before every sweep.
    Recomputed,
    /// There is none: the cells inside bodies are nodes of this level, see [`fill`].
    ReplacedByCells,
}

/// Number of levels with a lagged body term: those on which bodies are as a rule at least sixteen cells wide, and the finest.
fn count_lagged_levels(bodies: &[Body]) -> usize {
    const LOG_NARROW: f64 = 4.0;
    // Wide ones count for more: they have more of the surface.
    let [sum, all] = bodies.iter().fold([0.0; 2], |[sum, all], body| {
        let patches = f64::from(body.patches[3] - body.patches[0]);
        [sum + patches * f64::from(body.width.max(1).next_power_of_two().ilog2()), all + patches]
    });
    let width = if all > 0.0 { (sum / all).round() } else { 0.0 };
    1 + (width - LOG_NARROW).max(0.0) as usize
}

/// Smoothing sweeps of a level before and after the coarse correction.
fn sweeps_on(level: usize, sweeps: usize) -> usize {
    if level < FIRST_DEEP { sweeps } else { 2 * sweeps }
}

impl<const D: usize> CompositeHierarchy<D> {
    /// Reads a system with bodies, for cycles with some `sweeps` before and after each coarse correction; without any, only the
    /// finest level is built.
    pub fn build(&mut self, system: &System<'_, D>, bodies: &Bodies<'_>, sweeps: Option<usize>) {
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
        self.sweeps = sweeps.unwrap_or(1).max(1);
        self.lagged = count_lagged_levels(bodies.list);
        self.first_filled = if whole.is_some() { fill::level_for(bodies.list) } else { MAX_LEVELS };
        self.nets[0].read_couplings(system.couplings, self.outside.block_of());
        let left = sweeps.map(|_| self.add_levels(system.blocks, bodies));
        // What is kept on a level builds on what the finer one kept: the chain must not break.
        self.forget_from(self.depth);
        for level in 0..self.depth {
            let held = self.sweeps_held(level);
            let (net, surfaces) = (&mut self.nets[level], &self.surfaces[level]);
            match held {
                Some(sweeps) => surfaces.prepare(&self.list, net, sweeps),
                None => surfaces.mark(net),
            }
            net.hold_coupled();
        }
        let (net, surfaces) = (&self.nets[self.depth - 1], &self.surfaces[self.depth - 1]);
        self.components.find(net);
        self.dense.clear();
        if left.is_some_and(|nodes| nodes <= MOST_NODES) {
            let surfaces = (self.depth <= self.first_filled).then_some(surfaces);
            self.dense.build(net, surfaces, &self.list, &mut self.components);
        }
    }

    /// Empties the caches of a level and of all coarser ones.
    pub fn forget_from(&mut self, level: usize) {
        for (net, surfaces) in self.nets.iter_mut().zip(&mut self.surfaces).skip(level) {
            net.forget();
            surfaces.forget();
        }
    }

    /// Makes room for a number of levels.
    fn reserve(&mut self, levels: usize) {
        self.nets.resize_with(self.nets.len().max(levels), Network::default);
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
            if level == self.first_filled && !fill(this, (finer, above), blocks, bodies, level) {
                self.first_filled = MAX_LEVELS;
            }
            this.find_inverse();
            this.find_links();
            if level <= self.first_filled {
                surfaces.coarsen(above, this, h);
            } else {
                surfaces.clear(this.blocks.len() - 1);
            }
            self.depth += 1;
            let mut coupled = std::mem::take(&mut finer.coupled);
            let below = coupled.coarsen(&NetworkRows { network: &*this, finer: Some(&*finer) });
            (finer.coupled, this.coupled) = (coupled, below);
            let before = std::mem::replace(&mut nodes, this.linked());
            if nodes as f64 > KEPT * before as f64 {
                break;
            }
        }
        nodes
    }

    /// The system's own network.
    pub fn finest(&self) -> &Network<D> {
        &self.nets[0]
    }

    /// The network of a level, finest first.
    pub fn network(&self, level: usize) -> Option<&Network<D>> {
        self.nets[..self.depth].get(level)
    }

    /// Mutable access to the system's own network.
    pub fn finest_mut(&mut self) -> &mut Network<D> {
        &mut self.nets[0]
    }

    /// The block of each slot, 0 where it is not live.
    pub fn block_of(&self) -> &[u32] {
        self.outside.block_of()
    }

    /// The system's own network and the bodies' surfaces there.
    pub fn finest_with_surfaces(&mut self) -> (&Network<D>, &mut Surfaces, &[Body]) {
        (&self.nets[0], &mut self.surfaces[0], &self.list)
    }

    /// The bodies' surfaces on the finest level.
    pub fn surfaces(&self) -> &Surfaces {
        &self.surfaces[0]
    }

    /// How the body term enters the smoother of a level.
    fn body_term(&self, level: usize) -> BodyTerm {
        // The last level, where it is not solved exactly, is swept many times.
        let has_few_sweeps = level + 1 < self.depth && sweeps_on(level, self.sweeps) <= MOST_LAGGED;
        match level {
            level if level >= self.first_filled => BodyTerm::ReplacedByCells,
            level if level < self.lagged && has_few_sweeps => BodyTerm::Lagged,
            _ => BodyTerm::Recomputed,
        }
    }

    /// For how many sweeps of a level the body term stays as it is, if there is one.
    fn sweeps_held(&self, level: usize) -> Option<usize> {
        match self.body_term(level) {
            BodyTerm::Lagged => Some(sweeps_on(level, self.sweeps)),
            BodyTerm::Recomputed => Some(1),
            BodyTerm::ReplacedByCells => None,
        }
    }

    /// One V-cycle: sets the finest `x` from the finest `b`, and returns `x·b`.
    pub fn cycle(&mut self, partial: &mut Vec<f64>) -> f64 {
        let sweeps = self.sweeps;
        for level in 0..self.depth {
            let body_term = self.body_term(level);
            let was_at_rest = level > 0 && self.body_term(level - 1) != BodyTerm::Recomputed;
            let (finer, this) = self.nets.split_at_mut(level);
            if let Some(finer) = finer.last_mut() {
                let (above, surfaces) = self.surfaces.split_at_mut(level);
                if level <= self.first_filled {
                    surfaces[0].copy_velocities(&above[level - 1]);
                }
                finer.restrict(&surfaces[0], was_at_rest, &mut this[0]);
            }
            if level + 1 < self.depth {
                let sweeps = sweeps_on(level, sweeps);
                sweep_down(&mut self.surfaces[level], &self.list, &mut this[0], sweeps, body_term);
            }
        }
        let end = self.depth - 1;
        let body_term = self.body_term(end);
        let (net, surfaces) = (&mut self.nets[end], &mut self.surfaces[end]);
        if !self.dense.solve(net) {
            let sweeps = if end > 0 { LAST_SWEEPS * sweeps } else { sweeps };
            sweep_down(surfaces, &self.list, net, sweeps, body_term);
            surfaces.update_scatter();
            sweep_up(surfaces, &self.list, net, sweeps, body_term);
        }
        for level in (0..end).rev() {
            let (all_sweeps, body_term) = (sweeps_on(level, sweeps), self.body_term(level));
            let (finer, coarser) = self.nets.split_at_mut(level + 1);
            let (net, coarse) = (&mut finer[level], &coarser[0]);
            let (finer, coarser) = self.surfaces.split_at_mut(level + 1);
            let (surfaces, coarser) = (&mut finer[level], &mut coarser[0]);
            net.prolong(coarse);
            if body_term != BodyTerm::ReplacedByCells {
                // J acts alike on both levels, and the coarse one has fewer nodes.
                apply_response(coarser, &self.list, coarse);
                surfaces.add_coarse_response(coarser);
            }
            if level == 0 {
                sweep_up(surfaces, &self.list, net, sweeps - 1, body_term);
                if sweeps > 1 && body_term == BodyTerm::Recomputed {
                    update_bodies(surfaces, &self.list, net);
                }
                return net.sweep_back_and_dot(surfaces, partial);
            }
            sweep_up(surfaces, &self.list, net, all_sweeps, body_term);
        }
        self.nets[0].dot_xb(partial)
    }

    /// Numbers of the components without ground, by node of the finest level.
    pub fn label_components(&mut self) -> Labels {
        self.components.label(&self.nets[..self.depth])
    }

    /// Reports sizes.
    pub fn describe(&self, info: &mut SolveInfo) {
        let nets = &self.nets[..self.depth];
        info.level_count = self.depth;
        for (nodes, net) in info.levels.iter_mut().zip(nets) {
            *nodes = net.size() + net.shared.x.len();
        }
        info.closed_components = self.components.count + closed_nodes(nets);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.outside.bytes()
            + self.nets.iter().map(Network::bytes).sum::<usize>()
            + self.surfaces.iter().map(Surfaces::bytes).sum::<usize>()
            + self.dense.bytes()
            + self.components.bytes()
    }
}

/// `v = K J x` for the network's `x`: how bodies move.
fn apply_response<const D: usize>(surfaces: &mut Surfaces, bodies: &[Body], net: &Network<D>) {
    let x = [0, 1].map(|colour: usize| net.x[colour].as_slice());
    surfaces.apply_response::<D, f32, f32>(bodies, net, x);
}

/// `v = K J x`, and prepares `Jᵀ v`.
fn update_bodies<const D: usize>(surfaces: &mut Surfaces, bodies: &[Body], net: &Network<D>) {
    apply_response(surfaces, bodies, net);
    surfaces.update_scatter();
}

/// Pre-smoothing: red–black sweeps from zero, then `v = K J x`.
fn sweep_down<const D: usize>(
    surfaces: &mut Surfaces,
    bodies: &[Body],
    net: &mut Network<D>,
    sweeps: usize,
    body_term: BodyTerm,
) {
    net.sweep_from_zero();
    for _ in 1..sweeps {
        if body_term == BodyTerm::Recomputed {
            update_bodies(surfaces, bodies, net);
        }
        net.sweep((body_term == BodyTerm::Recomputed).then_some(&*surfaces));
    }
    if body_term != BodyTerm::ReplacedByCells {
        apply_response(surfaces, bodies, net);
    }
}

/// Post-smoothing: the sweeps of [`sweep_down`] in reverse order, from the values at hand; the first one with the last `v`.
fn sweep_up<const D: usize>(
    surfaces: &mut Surfaces,
    bodies: &[Body],
    net: &mut Network<D>,
    sweeps: usize,
    body_term: BodyTerm,
) {
    for sweep in 0..sweeps {
        if sweep > 0 && body_term == BodyTerm::Recomputed {
            update_bodies(surfaces, bodies, net);
        }
        net.sweep_back((body_term != BodyTerm::ReplacedByCells).then_some(&*surfaces));
    }
}
