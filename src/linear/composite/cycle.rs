//! The V-cycle over levels with bodies, on top of the coarse levels of the network without.

use crate::math::power;

use super::super::hierarchy::Hierarchy;
use super::super::params::SolveInfo;
use super::super::system::System;
use super::body::{Bodies, Body};
use super::bridge::Bridge;
use super::coarser::coarsen;
use super::components::{Components, Labels, closed_nodes};
use super::filled::{Filled, Filling};
use super::finest;
use super::net::Net;
use super::surfaces::{Rough, Surfaces};

/// The levels of a system with bodies.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels<const D: usize> {
    list: Vec<Body>,
    /// The system itself: only its unknowns are looked up here.
    outside: Hierarchy<D>,
    nets: Vec<Net<D>>,
    surfaces: Vec<Surfaces>,
    filling: Filling,
    full: Hierarchy<D>,
    bridge: Bridge,
    /// Levels with bodies, and whether others follow. If not, more sweeps of the last one do.
    depth: usize,
    goes_on: bool,
    components: Components,
}

/// Boxes of half a body are the first that need to know nothing of bodies.
fn levels_with_bodies(width: usize) -> usize {
    (width.next_power_of_two().trailing_zeros() as usize).saturating_sub(1).max(1)
}

/// A last level with few nodes, a quarter of a block, is solved well enough by so many times as many sweeps as others get.
const LAST_SWEEPS: usize = 8;

/// Whether there is little but a large body or two, which are carried on to a last level with few nodes, if there are so
/// many blocks on the finest. Tiles are many, and beyond their own size the network without them is the better one.
fn ends_with_few<const D: usize>(blocks: usize, bodies: usize, levels: usize) -> bool {
    const SEVERAL: usize = 8;
    levels > 1 && bodies < SEVERAL && 4 * blocks <= power(power(2, D), levels - 1)
}

impl<const D: usize> Levels<D> {
    /// Reads a system with bodies.
    pub fn build(&mut self, system: &System<'_, D>, bodies: &Bodies<'_>, coarse_levels: bool) {
        self.list.clear();
        self.list.extend_from_slice(bodies.list);
        let whole = if system.materials.is_none() { Some(bodies.fluids.whole[0]) } else { None };
        self.outside.survey(system, whole);
        if self.nets.is_empty() {
            self.nets.push(Net::default());
            self.surfaces.push(Surfaces::default());
        }
        let levels = levels_with_bodies(bodies.width);
        self.goes_on =
            coarse_levels && !ends_with_few::<D>(system.live.as_slice().len(), self.list.len(), levels);
        let goes_on = self.goes_on;
        let Levels { outside, nets, surfaces, filling, full, .. } = self;
        rayon::join(
            || {
                if goes_on {
                    filling.prepare(system, bodies, outside.finest(), outside.block_of());
                    let source = Filled { system, live: bodies.live, filling };
                    full.build_from(system, bodies.live, &source, whole, levels);
                }
            },
            || {
                finest::read(&mut nets[0], system, outside.finest(), outside.block_of());
                surfaces[0].read(bodies, outside.block_of(), &nets[0]);
            },
        );
        self.nets[0].find_inverse();
        self.depth = match (coarse_levels, goes_on) {
            (false, _) => 1,
            (true, true) => levels.min(self.full.depth().saturating_sub(1)).max(1),
            (true, false) => levels,
        };
        self.goes_on &= self.full.depth() > 1;
        if self.depth > 1 {
            self.nets.resize_with(self.nets.len().max(self.depth), Net::default);
            self.surfaces.resize_with(self.surfaces.len().max(self.depth), Surfaces::default);
            for level in 1..self.depth {
                let h = (1u32 << (level - 1)) as f32;
                let (finer, this) = self.nets.split_at_mut(level);
                coarsen(&mut finer[level - 1], &mut this[0], h);
                this[0].find_inverse();
                let (finer, surfaces) = self.surfaces.split_at_mut(level);
                surfaces[0].join(&finer[level - 1], &this[0], self.list.len(), h);
            }
        }
        if self.goes_on {
            self.bridge.build(&self.nets[..self.depth], &self.full, system.live.as_slice());
        }
        for (net, surfaces) in self.nets[..self.depth].iter_mut().zip(&self.surfaces) {
            surfaces.prepare(&self.list, net);
        }
        self.components.find(&self.nets[self.depth - 1]);
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

    fn sweeps_on(&self, level: usize, sweeps: usize) -> usize {
        let is_end = !self.goes_on && level > 0 && level + 1 == self.depth;
        if is_end { LAST_SWEEPS * sweeps } else { sweeps }
    }

    /// Sets the finest `x` from the finest `b`.
    pub fn cycle(&mut self, sweeps: usize) {
        for level in 0..self.depth {
            let sweeps = self.sweeps_on(level, sweeps);
            let (finer, this) = self.nets.split_at_mut(level);
            if let Some(finer) = finer.last() {
                finer.restrict(&mut this[0]);
            }
            sweep_down(&mut self.surfaces[level], &self.list, &mut this[0], sweeps, level > 0);
        }
        if self.goes_on {
            self.cross(sweeps);
        }
        for level in (0..self.depth).rev() {
            let sweeps = self.sweeps_on(level, sweeps);
            let (finer, this) = self.nets.split_at_mut(level);
            sweep_up(&mut self.surfaces[level], &self.list, &mut this[0], sweeps, level > 0);
            if let Some(finer) = finer.last_mut() {
                finer.prolong(&this[0]);
            }
        }
    }

    /// Corrects the last level with bodies by the levels without.
    fn cross(&mut self, sweeps: usize) {
        let Levels { nets, full, bridge, depth, .. } = self;
        let last = &mut nets[*depth - 1];
        full.begin(*depth);
        last.each_residual(|colour, node, residual| {
            full.add(*depth, bridge.parent[colour][node], residual);
        });
        for (shared, &parent) in bridge.shared.iter().enumerate() {
            full.add(*depth, parent, last.ties.residual(shared, [&last.x[0], &last.x[1]]));
        }
        full.cycle_from(*depth, sweeps);
        for colour in 0..2 {
            for (x, &parent) in last.x[colour].iter_mut().zip(&bridge.parent[colour]) {
                *x += full.value(*depth, parent);
            }
        }
        for (x, &parent) in last.ties.x.iter_mut().zip(&bridge.shared) {
            *x += full.value(*depth, parent);
        }
    }

    /// Components without ground, on the finest level.
    pub fn label_components(&mut self) -> Labels {
        self.components.label(&self.nets[..self.depth])
    }

    /// Reports sizes.
    pub fn describe(&self, info: &mut SolveInfo) {
        let nets = &self.nets[..self.depth];
        let own = nets.iter().map(|net| net.size() + net.ties.x.len());
        let beyond = if self.goes_on { self.depth..self.full.depth() } else { 0..0 };
        let sizes = own.chain(beyond.map(|level| self.full.level(level).nodes));
        info.level_count = 0;
        for (nodes, size) in info.levels.iter_mut().zip(sizes) {
            *nodes = size;
            info.level_count += 1;
        }
        info.closed_components = self.components.count + closed_nodes(nets);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.outside.bytes()
            + self.nets.iter().map(Net::bytes).sum::<usize>()
            + self.surfaces.iter().map(Surfaces::bytes).sum::<usize>()
            + self.filling.bytes()
            + self.full.bytes()
            + self.bridge.bytes()
            + self.components.bytes()
    }
}

/// Finds out how bodies move under the network's `x`, and heeds it.
fn ask<const D: usize>(surfaces: &mut Surfaces, bodies: &[Body], net: &mut Net<D>) {
    let x = [0, 1].map(|colour: usize| net.x[colour].as_slice());
    surfaces.respond::<D, Rough>(bodies, net, x);
    net.heed(surfaces);
}

/// Sweeps from zero, and asks what the bodies then do. They are asked for every sweep if `each`: on the finest level their
/// part is small, and it is as well to leave them at rest.
fn sweep_down<const D: usize>(
    surfaces: &mut Surfaces,
    bodies: &[Body],
    net: &mut Net<D>,
    sweeps: usize,
    each: bool,
) {
    net.sweep_from_zero();
    for _ in 1..sweeps {
        if each {
            ask(surfaces, bodies, net);
        }
        net.sweep(each);
    }
    ask(surfaces, bodies, net);
}

/// The sweeps of [`sweep_down`] in reverse, from the values at hand.
fn sweep_up<const D: usize>(
    surfaces: &mut Surfaces,
    bodies: &[Body],
    net: &mut Net<D>,
    sweeps: usize,
    each: bool,
) {
    for sweep in 0..sweeps {
        if sweep == 0 || each {
            ask(surfaces, bodies, net);
        }
        net.sweep_back();
    }
}
