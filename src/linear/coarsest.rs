//! The exact solve on the coarsest level, in f64.
//!
//! Nodes are eliminated from the network one by one, fewest links first: removing node `v` with links `g_a`, ground `d`
//! and `D = Σ g_a + d` leaves links `g_a g_b / D` between its neighbours and grounds `g_a d / D` on them. Only positive
//! numbers are added, so nothing cancels, and the last node of a component without ground is recognised by `D = 0`,
//! exactly. Once the rest of the network is nearly complete it is eliminated as a dense table.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::grid::block_cells;

use super::coupling::CoupledSolve;
use super::explicit::{cell_value, paired_index};
use super::layout::{Node, Place};
use super::level::Level;
use super::source::Source;

/// Elimination of the coarsest network, and room to apply it.
#[derive(Clone, Debug, Default)]
pub(super) struct Coarsest {
    /// Cells of the network, then the explicit nodes of the level follow in order.
    cells: Vec<Node>,
    index_of: Vec<u32>,
    /// Elimination order; for each step the node, `D`, and where its links start.
    steps: Vec<Step>,
    to: Vec<u32>,
    link: Vec<f64>,
    values: Vec<f64>,
    /// Component of each node: the step at which its last node was eliminated, for those without ground.
    component: Vec<u32>,
    /// Components without ground. Explicit nodes without any link are not among them: a shared node without links is no
    /// unknown, and an extra node without links is known as closed to its level.
    pub closed: usize,
    /// So many nodes, the first to be eliminated, have no links.
    lone: usize,
    work: Elimination,
    /// What bodies add.
    coupled: CoupledSolve,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    node: u32,
    start: u32,
    total: f64,
}

/// The network while it shrinks.
#[derive(Clone, Debug, Default)]
struct Elimination {
    /// Links of each node. Those to nodes with a single link may be outdated: see `gone`.
    links: Vec<Vec<(u32, f64)>>,
    /// How many of them are not.
    degree: Vec<u32>,
    ground: Vec<f64>,
    gone: Vec<bool>,
    queue: BinaryHeap<Reverse<(u32, u32)>>,
    merged: Vec<(u32, f64)>,
    rest: Vec<u32>,
    table: Vec<f64>,
}

impl Coarsest {
    /// Eliminates the network of a level whose cell coefficients are in `source`. Gives up, and returns false, as soon
    /// as that seems to take more than `budget` operations.
    pub fn build<const D: usize, S: Source<D>>(
        &mut self,
        level: &Level<D>,
        source: &S,
        budget: usize,
    ) -> bool {
        self.list_nodes(level);
        self.read_links(level, source);
        self.values.clear();
        self.values.resize(self.cells.len() + level.explicit.count, 0.0);
        let is_done = self.eliminate(budget);
        self.coupled.clear();
        if is_done && !level.coupled.is_empty() {
            let mut coupled = std::mem::take(&mut self.coupled);
            let place = |node: Node| match node.place() {
                Place::Cell { .. } => Some(self.index_of[paired_index::<D>(node)] as usize),
                Place::Explicit(index) => Some(self.cells.len() + index),
            };
            let component = |index: usize| self.component[index] as usize;
            let size = self.values.len();
            coupled
                .build(&level.coupled, size, place, self.closed, component, |values| self.substitute(values));
            self.coupled = coupled;
        }
        is_done
    }

    fn list_nodes<const D: usize>(&mut self, level: &Level<D>) {
        self.cells.clear();
        self.index_of.clear();
        self.index_of.resize(level.topology.len() * block_cells(D), u32::MAX);
        let words = super::stencil::mask_words(D);
        for (index, &word) in level.stencil.live.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let cell = index % words * 64 + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                let node = Node::cell::<D>(index / words, cell);
                self.index_of[paired_index::<D>(node)] = self.cells.len() as u32;
                self.cells.push(node);
            }
        }
    }

    fn read_links<const D: usize, S: Source<D>>(&mut self, level: &Level<D>, source: &S) {
        let count = self.cells.len() + level.explicit.count;
        let work = &mut self.work;
        if work.links.len() < count {
            work.links.resize(count, Vec::new());
        }
        for links in &mut work.links[..count] {
            links.clear();
        }
        work.ground.clear();
        let mut connect = |a: usize, b: usize, link: f64| {
            work.links[a].push((b as u32, link));
            work.links[b].push((a as u32, link));
        };
        for (index, &node) in self.cells.iter().enumerate() {
            let (block, cell) = node.block_and_local::<D>();
            work.ground.push(f64::from(source.ground(block)[cell]));
            for axis in 0..D {
                let link = source.link(axis, block)[cell];
                if link > 0.0 {
                    let stride = crate::math::power(8, axis);
                    let beside = level.topology.beside(block)[axis][0] as usize;
                    let low = match cell / stride % 8 {
                        0 => Node::cell::<D>(beside, cell + 7 * stride),
                        _ => Node::cell::<D>(block, cell - stride),
                    };
                    let other = self.index_of[paired_index::<D>(low)] as usize;
                    connect(index, other, f64::from(link));
                }
            }
        }
        let first = self.cells.len();
        for index in 0..level.explicit.count {
            work.ground.push(f64::from(level.explicit.ground[index]));
            for (to, link, _) in level.explicit.links(index) {
                match to.place() {
                    Place::Cell { .. } => {
                        let other = self.index_of[paired_index::<D>(to)] as usize;
                        connect(first + index, other, f64::from(link));
                    }
                    Place::Explicit(other) if other < index => {
                        connect(first + index, first + other, f64::from(link));
                    }
                    Place::Explicit(_) => {}
                }
            }
        }
        for links in &mut work.links[..count] {
            links.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            links.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    kept.1 += later.1;
                }
                same
            });
        }
    }

    fn eliminate(&mut self, budget: usize) -> bool {
        let work = &mut self.work;
        let count = work.ground.len();
        self.steps.clear();
        self.to.clear();
        self.link.clear();
        self.closed = 0;
        work.gone.clear();
        work.gone.resize(count, false);
        work.queue.clear();
        work.degree.clear();
        for (node, links) in work.links[..count].iter().enumerate() {
            work.degree.push(links.len() as u32);
            work.queue.push(Reverse((links.len() as u32, node as u32)));
        }
        self.lone = work.degree.iter().filter(|&&degree| degree == 0).count();
        let (mut left, mut spent) = (count, 0);
        while let Some(Reverse((degree, node))) = work.queue.pop() {
            let v = node as usize;
            if work.gone[v] || work.degree[v] != degree {
                continue; // an outdated entry
            }
            if degree as usize * 3 > left * 2 && left > 8 {
                break;
            }
            // The nodes that are left will hardly have fewer links than this one.
            let each = (degree as usize).pow(2);
            if spent + left * each > budget {
                return false;
            }
            spent += each;
            work.gone[v] = true;
            left -= 1;
            let mut links = std::mem::take(&mut work.links[v]);
            if links.len() != degree as usize {
                links.retain(|&(a, _)| !work.gone[a as usize]);
            }
            let total = links.iter().map(|l| l.1).sum::<f64>() + work.ground[v];
            self.steps.push(Step { node, start: self.to.len() as u32, total });
            for &(a, g) in &links {
                self.to.push(a);
                self.link.push(g);
                work.ground[a as usize] += g * work.ground[v] / total;
                if degree == 1 {
                    // No new links: a node with thousands of such neighbours must not be rewritten for each.
                    work.degree[a as usize] -= 1;
                } else {
                    work.absorb(a as usize, g / total, &links);
                }
                work.queue.push(Reverse((work.degree[a as usize], a)));
            }
            work.links[v] = links;
        }
        if spent.saturating_add(left.saturating_pow(3) / 3) > budget {
            return false;
        }
        self.eliminate_dense();
        self.steps.push(Step { node: u32::MAX, start: self.to.len() as u32, total: 0.0 });
        self.name_components(count);
        true
    }

    /// Eliminates what is left as a full table.
    fn eliminate_dense(&mut self) {
        let work = &mut self.work;
        work.rest.clear();
        work.rest.extend((0..work.gone.len() as u32).filter(|&v| !work.gone[v as usize]));
        let n = work.rest.len();
        if n == 0 {
            return;
        }
        work.table.clear();
        work.table.resize(n * n, 0.0);
        for i in 0..n {
            for k in 0..work.links[work.rest[i] as usize].len() {
                let (a, g) = work.links[work.rest[i] as usize][k];
                if let Ok(j) = work.rest.binary_search(&a) {
                    work.table[i * n + j] = g;
                }
            }
        }
        for v in 0..n {
            let node = work.rest[v];
            let ground = work.ground[node as usize];
            let total = work.table[v * n + v + 1..(v + 1) * n].iter().sum::<f64>() + ground;
            self.steps.push(Step { node, start: self.to.len() as u32, total });
            let (done, below) = work.table.split_at_mut((v + 1) * n);
            let pivot = &done[v * n..];
            for a in v + 1..n {
                let g = pivot[a];
                if g == 0.0 {
                    continue;
                }
                self.to.push(work.rest[a]);
                self.link.push(g);
                let share = g / total;
                let row = &mut below[(a - v - 1) * n..(a - v) * n];
                for b in v + 1..n {
                    row[b] += share * pivot[b];
                }
                row[a] = 0.0;
                work.ground[work.rest[a] as usize] += share * ground;
            }
        }
    }

    /// Walks back through the elimination: a node belongs to the component of those it was linked to.
    fn name_components(&mut self, count: usize) {
        self.component.clear();
        self.component.resize(count, 0);
        for (index, pair) in self.steps.windows(2).enumerate().rev() {
            let step = pair[0];
            let first = step.start as usize;
            self.component[step.node as usize] = if step.total == 0.0 && index >= self.lone {
                self.closed += 1;
                self.closed as u32
            } else if pair[1].start as usize > first {
                self.component[self.to[first] as usize]
            } else {
                0
            };
        }
    }

    /// Sets a level's `x` from its `b`.
    pub fn solve<const D: usize>(&mut self, level: &mut Level<D>) {
        let first = self.cells.len();
        for (value, &cell) in self.values.iter_mut().zip(&self.cells) {
            *value = f64::from(*cell_value::<D>(&level.b, cell));
        }
        for (value, &b) in self.values[first..].iter_mut().zip(&level.explicit.b) {
            *value = f64::from(b);
        }
        let mut values = std::mem::take(&mut self.values);
        let mut coupled = std::mem::take(&mut self.coupled);
        if coupled.is_empty() {
            self.substitute(&mut values);
        } else {
            let mut block = std::mem::take(&mut level.coupled);
            block.start(|node| level.rhs(node));
            coupled.solve(&mut values, &mut block, |values| self.substitute(values));
            level.coupled = block;
        }
        (self.values, self.coupled) = (values, coupled);
        self.write(level, |solver, index| solver.values[index] as f32);
        let block = std::mem::take(&mut level.coupled);
        self.coupled.further(&block).for_each(|(node, value)| level.set_value(node, value));
        level.coupled = block;
    }

    /// Forward and backward substitution: from right-hand sides to values.
    fn substitute(&self, values: &mut [f64]) {
        for pair in self.steps.windows(2) {
            if pair[0].total > 0.0 {
                let share = values[pair[0].node as usize] / pair[0].total;
                for i in pair[0].start as usize..pair[1].start as usize {
                    values[self.to[i] as usize] += self.link[i] * share;
                }
            }
        }
        for pair in self.steps.windows(2).rev() {
            let node = pair[0].node as usize;
            values[node] = if pair[0].total > 0.0 {
                let mut sum = values[node];
                for i in pair[0].start as usize..pair[1].start as usize {
                    sum += self.link[i] * values[self.to[i] as usize];
                }
                sum / pair[0].total
            } else {
                0.0
            };
        }
    }

    /// Sets a level's `x` to the number of each node's component, from 1; 0 where it has a ground.
    pub fn write_components<const D: usize>(&self, level: &mut Level<D>) {
        self.write(level, |solver, index| solver.component[index] as f32);
    }

    fn write<const D: usize>(&self, level: &mut Level<D>, value: impl Fn(&Self, usize) -> f32) {
        for x in &mut level.x {
            x.fill([0.0; 8]);
        }
        for (index, cell) in self.cells.iter().enumerate() {
            if let Place::Cell { colour, index: at } = cell.place() {
                level.x[colour].as_flattened_mut()[at] = value(self, index);
            }
        }
        for (index, x) in level.explicit.x.iter_mut().enumerate() {
            *x = value(self, self.cells.len() + index);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let work = &self.work;
        self.cells.capacity() * 4
            + (self.index_of.capacity() + self.to.capacity() + self.component.capacity()) * 4
            + self.steps.capacity() * size_of::<Step>()
            + (self.link.capacity() + self.values.capacity()) * 8
            + work
                .links
                .iter()
                .map(|links| links.capacity() * 16 + size_of::<Vec<(u32, f64)>>())
                .sum::<usize>()
            + (work.ground.capacity() + work.table.capacity() + work.queue.capacity()) * 8
            + work.gone.capacity()
            + work.merged.capacity() * 16
            + self.coupled.bytes()
            + (work.rest.capacity() + work.degree.capacity()) * 4
    }
}

impl Elimination {
    /// Replaces node `a`'s link to a removed node by links of `share` times that node's links to all others.
    fn absorb(&mut self, a: usize, share: f64, links: &[(u32, f64)]) {
        self.merged.clear();
        let own = &self.links[a];
        let (mut i, mut j) = (0, 0);
        while i < own.len() || j < links.len() {
            let (left, right) = (own.get(i).copied(), links.get(j).copied());
            let next = match (left, right) {
                (Some(l), Some(r)) if l.0 == r.0 => {
                    i += 1;
                    j += 1;
                    (l.0, l.1 + share * r.1)
                }
                (Some(l), r) if r.is_none_or(|r| l.0 < r.0) => {
                    i += 1;
                    l
                }
                (_, Some(r)) => {
                    j += 1;
                    (r.0, share * r.1)
                }
                _ => unreachable!("one side has an entry"),
            };
            if !self.gone[next.0 as usize] && next.0 as usize != a {
                self.merged.push(next);
            }
        }
        let own = &mut self.links[a];
        own.clear();
        own.extend_from_slice(&self.merged);
        self.degree[a] = self.merged.len() as u32;
    }
}
