//! The V-cycle over levels with bodies, on top of the coarse levels of the network without.

use super::super::closed;
use super::super::hierarchy::Hierarchy;
use super::super::layout::{Place, Row};
use super::super::level::Level;
use super::super::params::SolveInfo;
use super::super::source::Finest;
use super::super::system::System;
use super::super::transfer;
use super::body::{Bodies, Body};
use super::bridge::Bridge;
use super::components::Components;
use super::filled::{Filled, Filling};
use super::rows::RowSurfaces;
use super::surfaces::{Surfaces, Term, Velocities, node_at};

/// What a network with bodies has beyond the levels of the cells outside.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Composite<const D: usize> {
    list: Vec<Body>,
    finest: RowSurfaces,
    coarse: Vec<Surfaces>,
    filling: Filling,
    full: Hierarchy<D>,
    bridge: Bridge,
    /// Levels with bodies, and whether others follow.
    depth: usize,
    goes_on: bool,
    components: Components,
    velocities: Velocities<f64>,
}

/// Boxes of half a body are the first that need to know nothing of bodies.
fn levels_with_bodies(width: usize) -> usize {
    (width.next_power_of_two().trailing_zeros() as usize).saturating_sub(1).max(1)
}

impl<const D: usize> Composite<D> {
    /// Reads a system with bodies; `outside` becomes the levels of the cells outside of them.
    pub fn build(
        &mut self,
        system: &System<'_, D>,
        bodies: &Bodies<'_>,
        outside: &mut Hierarchy<D>,
        coarse_levels: bool,
    ) {
        self.list.clear();
        self.list.extend_from_slice(bodies.list);
        outside.build_levels(system, 1);
        self.depth = 1;
        self.goes_on = false;
        let (outside_ref, full, filling) = (&*outside, &mut self.full, &mut self.filling);
        let finest = &mut self.finest;
        rayon::join(
            || {
                if coarse_levels {
                    filling.prepare(system, bodies, outside_ref.finest(), outside_ref.block_of());
                    let source = Filled { system, live: bodies.live, filling };
                    full.build_from(system, bodies.live, &source);
                }
            },
            || finest.read(bodies, outside_ref.block_of(), outside_ref.finest()),
        );
        if coarse_levels && self.full.depth() > 1 {
            self.depth = levels_with_bodies(bodies.width).min(self.full.depth() - 1);
            self.goes_on = true;
            outside.extend_levels(system, self.depth);
            self.bridge.build(outside, &self.full, system.live.as_slice(), self.depth - 1);
        }
        self.coarse.resize_with(self.coarse.len().max(self.depth - 1), Surfaces::default);
        for level in 1..self.depth {
            let (finer, this) = self.coarse[..level].split_at_mut(level - 1);
            let (below, here) = (outside.level(level - 1), outside.level(level));
            match finer.last() {
                None => this[0].join(&self.finest, below, here, &self.list),
                Some(finer) => this[0].join(finer, below, here, &self.list),
            }
        }
        self.finest.prepare(&self.list, outside.level_mut(0));
        for (level, surfaces) in self.coarse[..self.depth - 1].iter().enumerate() {
            surfaces.prepare(&self.list, outside.level_mut(level + 1));
        }
        match self.depth {
            1 => self.components.find(outside.level(0), &Finest(system)),
            depth => self.components.find(outside.level(depth - 1), &outside.level(depth - 1).sums),
        }
    }

    /// Sets the finest `x` from the finest `b`.
    pub fn cycle(&mut self, outside: &mut Hierarchy<D>, sweeps: usize) {
        let levels = outside.levels_mut();
        for level in 0..self.depth {
            let (finer, this) = levels.split_at_mut(level);
            if let Some(finer) = finer.last_mut() {
                transfer::restrict(finer, &mut this[0]);
            }
            match level {
                0 => sweep_down(&mut self.finest, &self.list, &mut this[0], sweeps, false),
                _ => sweep_down(&mut self.coarse[level - 1], &self.list, &mut this[0], sweeps, true),
            }
        }
        if self.goes_on {
            self.cross(&mut levels[self.depth - 1], sweeps);
        }
        for level in (0..self.depth).rev() {
            let (finer, this) = levels.split_at_mut(level);
            match level {
                0 => sweep_up(&mut self.finest, &self.list, &mut this[0], sweeps, false),
                _ => sweep_up(&mut self.coarse[level - 1], &self.list, &mut this[0], sweeps, true),
            }
            if let Some(finer) = finer.last_mut() {
                transfer::prolong(finer, &this[0]);
            }
        }
    }

    /// Corrects the last level with bodies by the levels without.
    fn cross(&mut self, last: &mut Level<D>, sweeps: usize) {
        if last.explicit.has_contacts() {
            last.explicit.refresh(&mut last.b, 0);
            last.explicit.refresh(&mut last.b, 1);
        }
        let cells = last.topology.len() * crate::grid::block_cells(D);
        self.full.begin(self.depth);
        for &(place, parent) in &self.bridge.crossings {
            let node = node_at::<D>(place as usize, cells);
            let residual = if node.is_explicit() {
                last.explicit.residual(place as usize - cells, [&last.x[0], &last.x[1]])
            } else {
                last.residual(node)
            };
            self.full.add(self.depth, parent, residual);
        }
        self.full.cycle_from(self.depth, sweeps);
        for &(place, parent) in &self.bridge.crossings {
            let value = self.full.value(self.depth, parent);
            match node_at::<D>(place as usize, cells).place() {
                Place::Cell { colour, index } => {
                    last.x[colour].as_flattened_mut()[index] += value;
                }
                Place::Explicit(index) => last.explicit.x[index] += value,
            }
        }
    }

    /// `p·A p`, the bodies' part, for a vector of the solve; remembers how they move.
    pub fn respond<X: Copy + Into<f64> + Sync>(&mut self, p: &[Row<X>]) -> f64 {
        self.finest.respond_exactly::<D, X>(&self.list, p, &mut self.velocities)
    }

    /// `r −= α A p` in a block, the bodies' part, for the `p` of the last [`Self::respond`].
    pub fn subtract(&self, block: usize, alpha: f64, r: &mut [Row<f64>]) {
        self.finest.subtract_exactly::<D>(block, alpha, &self.velocities, r);
    }

    /// Sets the finest `x` to component numbers, as [`Hierarchy::label_components`] does.
    pub fn label_components(&mut self, outside: &mut Hierarchy<D>) -> usize {
        let components = &mut self.components;
        let count = components.count;
        closed::label_with(outside.levels_mut(), count, |last| components.write(last))
    }

    /// Reports sizes.
    pub fn describe(&self, outside: &Hierarchy<D>, info: &mut SolveInfo) {
        let own = (0..self.depth).map(|level| outside.level(level));
        let beyond = if self.goes_on { self.depth..self.full.depth() } else { 0..0 };
        let levels = own.chain(beyond.map(|level| self.full.level(level)));
        info.level_count = 0;
        for (nodes, level) in info.levels.iter_mut().zip(levels) {
            *nodes = level.nodes;
            info.level_count += 1;
        }
        let closed = (0..self.depth).map(|level| outside.level(level).closed.len()).sum::<usize>();
        info.closed_components = self.components.count + closed;
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.finest.bytes()
            + self.coarse.iter().map(Surfaces::bytes).sum::<usize>()
            + self.filling.bytes()
            + self.full.bytes()
            + self.bridge.bytes()
            + self.components.bytes()
    }
}

/// Sweeps from zero, and leaves in the right-hand side what the bodies then do. Bodies are asked again for every sweep if
/// `each`: on the finest level their part is small, and it is as well to take them as they are for all sweeps.
fn sweep_down<const D: usize>(
    surfaces: &mut impl Term<D>,
    bodies: &[Body],
    level: &mut Level<D>,
    sweeps: usize,
    each: bool,
) {
    surfaces.take_base(level);
    level.sweep_from_zero();
    for _ in 1..sweeps {
        if each {
            surfaces.freeze(bodies, level);
        }
        level.sweep();
    }
    surfaces.freeze(bodies, level);
}

/// The sweeps of [`sweep_down`] in reverse, from the values at hand.
fn sweep_up<const D: usize>(
    surfaces: &mut impl Term<D>,
    bodies: &[Body],
    level: &mut Level<D>,
    sweeps: usize,
    each: bool,
) {
    for sweep in 0..sweeps {
        if sweep == 0 || each {
            surfaces.freeze(bodies, level);
        }
        level.sweep_back();
    }
    surfaces.restore(level);
}
