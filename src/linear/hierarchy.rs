//! The levels, from the system down to a network small enough to solve exactly.

use crate::grid::{block_cells, masks};
use crate::math::power;

use super::closed;
use super::coarsen::coarsen;
use super::coarsest::Coarsest;
use super::coupling::{CoupledBlock, Couplings, LevelRows, Row, Unknown};
use super::cycle::cycle;
use super::explicit::HalfLink;
use super::layout::Node;
use super::level::Level;
use super::parallel::{cut, each_block};
use super::params::SolveInfo;
use super::source::{Finest, Source};
use super::split::Splitter;
use super::system::System;
use super::topology::Topology;
use super::transfer::parent_of;

/// Coarsening ends with so few nodes; these are solved exactly.
const FEW_NODES: usize = 64;
/// Coarsening also ends when all nodes lie in a box of so many cells along each axis: further aggregates would be whole mazes.
const FEW_CELLS: i32 = 4;
/// Coarsening ends with a step that keeps more than this share of the nodes: only separate parts are left.
const KEPT: f64 = 0.8;
/// The most levels that are built.
const MAX_LEVELS: usize = 24;
/// Number of nodes with which a loosely linked network may be eliminated at once.
const DIRECT_NODES: std::ops::RangeInclusive<usize> = 600..=40_000;
/// Links per node and axis up to which a network counts as loosely linked: a corridor of three by three cells has 0.78, a wide
/// tank 1.
const DIRECT_MAX_LINKS_PER_NODE_AXIS: f64 = 0.87;
/// Share of the cells with links on all sides up to which a network counts as loosely linked, in 1D; to the power of `D − 1`. A
/// corridor of three cells across has 1/3, one of four 1/2: in the midst of a wide network aggregates serve well, and
/// elimination, which leaves more and more links, is found to cost too much only when most of that is spent.
const DIRECT_MAX_INNER_SHARE: f64 = 0.4;
/// Operations per node that the elimination of a loosely linked network may take.
const DIRECT_MAX_OPS_PER_NODE: usize = 150;

/// A system and its coarser images.
#[derive(Clone, Debug, Default)]
pub(super) struct Hierarchy<const D: usize> {
    levels: Vec<Level<D>>,
    depth: usize,
    coarsest: Coarsest,
    splitter: Splitter,
    block_of: Vec<u32>,
    half_links: Vec<HalfLink>,
    largest: Vec<f32>,
}

/// Two materials have whole links of two strengths: blocks of the one that fills more of them are swept fast.
fn most_frequent(values: &mut [f32]) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    let runs = values.chunk_by(|a, b| a == b).filter(|run| run[0] > 0.0);
    runs.max_by_key(|run| run.len()).map_or(0.0, |run| run[0])
}

/// The strength of a whole link. Whole links are the largest ones, in one material: partly covered faces only weaken them.
fn find_whole<const D: usize, S: Source<D>>(
    topology: &Topology<D>,
    source: &S,
    largest: &mut Vec<f32>,
    has_materials: bool,
) -> f32 {
    largest.clear();
    largest.resize(topology.len(), 0.0);
    each_block::<D, _>((cut(largest, 1),), |block, (largest,)| {
        for axis in 0..D {
            let mut lanes = [0.0f32; 16];
            for values in source.link(axis, block).as_chunks::<16>().0 {
                for (lane, &value) in lanes.iter_mut().zip(values) {
                    *lane = if value > *lane { value } else { *lane };
                }
            }
            largest[0] = lanes.into_iter().fold(largest[0], f32::max);
        }
    });
    match has_materials {
        false => largest.iter().copied().fold(0.0, f32::max),
        true => most_frequent(largest),
    }
}

/// The rows of a level, and the parents that nodes of the finer one have there.
struct Rows<'a, const D: usize, S> {
    level: &'a Level<D>,
    source: &'a S,
    finer: Option<&'a Level<D>>,
}

impl<const D: usize, S: Source<D>> LevelRows for Rows<'_, D, S> {
    fn row(&self, node: Node) -> Row {
        self.level.row(self.source, node)
    }

    fn parent(&self, node: Node) -> Option<Node> {
        self.finer.and_then(|finer| parent_of(finer, self.level, node))
    }
}

impl<const D: usize> Hierarchy<D> {
    /// Reads a system and builds all levels.
    pub fn build(&mut self, system: &System<'_, D>) {
        let source = Finest(system);
        let whole = self.read(system, &source, None);
        let Level { topology, stencil, explicit, .. } = &mut self.levels[0];
        stencil.build(topology, &source, explicit, whole, true);
        self.levels[0].reserve_vectors();
        self.levels[0].count_nodes();
        if let Some(couplings) = system.couplings {
            self.read_couplings(couplings, &source);
        }
        if !self.finish(&source, false) {
            self.add_levels(&source);
        }
    }

    /// Finds out what a system's unknowns are, and where its links are not whole; there is nothing to sweep then.
    /// `known(slot)` are the unknowns of blocks with `whole` links and no ground, if they are known.
    pub fn survey(
        &mut self,
        system: &System<'_, D>,
        whole: Option<f32>,
        known: impl Fn(usize) -> Option<masks::Bits> + Sync,
    ) {
        let source = Finest(system);
        let found = self.read(system, &source, whole);
        let live = system.live.as_slice();
        let known = |block: usize| known(live[block - 1] as usize).filter(|_| whole.is_some());
        let Level { topology, stencil, explicit, .. } = &mut self.levels[0];
        stencil.survey(topology, &source, explicit, found, known);
        self.levels[0].count_nodes();
    }

    /// Takes the bodies of the finest level.
    fn read_couplings<S: Source<D>>(&mut self, couplings: &Couplings, source: &S) {
        let mut level = std::mem::take(&mut self.levels[0]);
        let (cells, words, first) = (block_cells(D), super::stencil::mask_words(D), level.explicit.ends[1]);
        let node = |unknown: Unknown| match unknown {
            Unknown::Cell(cell) => {
                let (slot, local) = (cell as usize / cells, cell as usize % cells);
                let block = self.block_of.get(slot).map_or(0, |&block| block as usize);
                let is_live = level.stencil.live[block * words + local / 64] >> (local % 64) & 1 != 0;
                (block != 0 && is_live).then(|| Node::cell::<D>(block, local))
            }
            Unknown::Shared(node) => {
                let index = first + node as usize;
                (level.explicit.diagonal[index] > 0.0).then(|| Node::explicit(index))
            }
        };
        let mut coupled = CoupledBlock::default();
        coupled.read(couplings, &Rows { level: &level, source, finer: None }, node);
        level.set_coupled(coupled);
        self.levels[0] = level;
    }

    /// Builds levels until one can be solved exactly.
    fn add_levels<S: Source<D>>(&mut self, source: &S) {
        loop {
            self.add_level(source);
            let [fine, coarse] = [&self.levels[self.depth - 2], &self.levels[self.depth - 1]];
            let last = coarse.linked as f64 > KEPT * fine.linked as f64 || self.depth == MAX_LEVELS;
            let sums = std::mem::take(&mut self.levels[self.depth - 1].sums);
            let done = self.finish(&sums, last);
            self.levels[self.depth - 1].sums = sums;
            if done {
                return;
            }
        }
    }

    /// Builds the next coarser level; `source` has the coefficients of the finest.
    fn add_level<S: Source<D>>(&mut self, source: &S) {
        if self.levels.len() == self.depth {
            self.levels.push(Level::default());
        }
        let h = (1u32 << (self.depth - 1)) as f32;
        let (fine, coarse) = self.levels[self.depth - 1..].split_at_mut(1);
        let (fine, coarse) = (&mut fine[0], &mut coarse[0]);
        if self.depth == 1 {
            coarsen(fine, source, coarse, h, &mut self.splitter);
        } else {
            let sums = std::mem::take(&mut fine.sums);
            coarsen(fine, &sums, coarse, h, &mut self.splitter);
            fine.sums = sums;
        }
        let mut coupled = std::mem::take(&mut fine.coupled);
        let below = coupled.coarsen(&Rows { level: &*coarse, source: &coarse.sums, finer: Some(&*fine) });
        fine.coupled = coupled;
        coarse.set_coupled(below);
        self.depth += 1;
    }

    /// Eliminates the coarsest level so far if it must be the last, is small, or hangs together so loosely that this is
    /// cheap. Aggregates fit chains and trees badly (they keep half of the nodes at best, and bubbles between short
    /// slugs make it worse), while elimination likes them.
    fn finish<S: Source<D>>(&mut self, source: &S, must: bool) -> bool {
        let level = &self.levels[self.depth - 1];
        if must || self.is_small() {
            return self.coarsest.build(level, source, usize::MAX);
        }
        // Bodies cost one elimination for each of their motions.
        if !DIRECT_NODES.contains(&level.nodes)
            || level.stencil.has_uniform_block()
            || !level.coupled.is_empty()
        {
            return false;
        }
        let [links, inner] = level.count_links(source).map(|count| count as f64);
        links <= DIRECT_MAX_LINKS_PER_NODE_AXIS * (D * level.nodes) as f64
            && inner <= DIRECT_MAX_INNER_SHARE.powi(D as i32 - 1) * level.nodes as f64
            && self.coarsest.build(level, source, DIRECT_MAX_OPS_PER_NODE * level.nodes)
    }

    /// The finest level: its network is the system's, as `source` has it. Its stencil is left to do; returns what a whole
    /// link is there.
    fn read<S: Source<D>>(&mut self, system: &System<'_, D>, source: &S, whole: Option<f32>) -> f32 {
        self.depth = 1;
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        let level = &mut self.levels[0];
        level.coupled.clear();
        level.topology.read(system.blocks, system.live, &mut self.block_of);
        level.explicit.clear();
        level.explicit.count = system.shared.len();
        level.explicit.ground.resize(system.shared.len(), 0.0);
        level.explicit.area.resize(system.shared.len(), 0.0);
        self.half_links.clear();
        for node in 0..system.shared.len() {
            for (cell, link, area) in system.shared.links(node) {
                let block = self.block_of[cell / block_cells(D)] as usize;
                assert!(block != 0, "shared node {node} is linked to cell {cell} outside the live blocks");
                let (from, to) = (Node::cell::<D>(block, cell % block_cells(D)), Node::explicit(node));
                self.half_links.push(HalfLink { from, to, link, area });
                self.half_links.push(HalfLink { from: to, to: from, link, area });
            }
        }
        level.explicit.connect(&mut self.half_links);

        level.whole = system.materials.map_or([0.0; 2], |materials| materials.whole);
        whole.unwrap_or_else(|| {
            find_whole(&level.topology, source, &mut self.largest, system.materials.is_some())
        })
    }

    fn is_small(&self) -> bool {
        let level = &self.levels[self.depth - 1];
        if level.linked <= FEW_NODES {
            return true;
        }
        let linked = &level.stencil.linked;
        let cells = linked.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        if cells > power(FEW_CELLS as usize, D) {
            return false;
        }
        let (mut low, mut high) = ([i32::MAX; D], [i32::MIN; D]);
        let mut include = |position: [i32; D]| {
            low = std::array::from_fn(|a| low[a].min(position[a]));
            high = std::array::from_fn(|a| high[a].max(position[a]));
        };
        level.explicit.position.iter().for_each(|&position| include(position));
        let words = super::stencil::mask_words(D);
        for (index, &word) in linked.iter().enumerate() {
            for bit in (0..64).filter(|bit| word >> bit & 1 != 0) {
                let first = level.topology.coords(index / words).map(|c| c * 8);
                let offset = crate::math::unflatten::<D>(index % words * 64 + bit, 8);
                include(std::array::from_fn(|a| first[a] + offset[a] as i32));
            }
        }
        (0..D).all(|a| high[a] - low[a] < FEW_CELLS)
    }

    /// The system's own level.
    pub fn finest(&self) -> &Level<D> {
        &self.levels[0]
    }

    /// A level, finest first.
    pub fn level(&self, index: usize) -> Option<&Level<D>> {
        self.levels[..self.depth].get(index)
    }

    /// Mutable access to the system's own level.
    pub fn finest_mut(&mut self) -> &mut Level<D> {
        &mut self.levels[0]
    }

    /// The block of each slot, 0 where it is not live.
    pub fn block_of(&self) -> &[u32] {
        &self.block_of
    }

    /// Sets the finest `x` from the finest `b` by one V-cycle.
    pub fn cycle(&mut self, sweeps: usize) {
        cycle(&mut self.levels[..self.depth], &mut self.coarsest, sweeps);
    }

    /// Sets the finest `x` to component numbers; see [`closed::label`].
    pub fn label_components(&mut self) -> usize {
        closed::label(&mut self.levels[..self.depth], &self.coarsest)
    }

    /// Reports sizes.
    pub fn describe(&self, info: &mut SolveInfo) {
        let levels = &self.levels[..self.depth];
        info.level_count = self.depth;
        for (nodes, level) in info.levels.iter_mut().zip(levels) {
            *nodes = level.nodes;
        }
        info.closed_components = closed::count(levels, &self.coarsest);
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(Level::bytes).sum::<usize>()
            + self.coarsest.bytes()
            + self.splitter.bytes()
            + (self.block_of.capacity() + self.largest.capacity()) * 4
            + self.half_links.capacity() * size_of::<HalfLink>()
    }
}
