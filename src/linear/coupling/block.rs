//! The unknowns of a level that touch bodies, relaxed as one block.
//!
//! With `d` the diagonal of the network `L` and `ω` a damping factor, one step solves
//! `(d/ω + Wᵀ W) y = (b − L x − Wᵀ W x)` on these unknowns, by Woodbury's formula with the small matrix
//! `S = 1 + ω W d⁻¹ Wᵀ`. Sweeps over the other unknowns leave them alone. As `L ≤ 2 d` there, the step converges for bodies of
//! any mass; bodies that share an unknown are solved together. With ties, `Wᵀ W = W₀ᵀ A⁻¹ W₀`, and the step solves with
//! `A + ω W₀ d⁻¹ W₀ᵀ`: weights are those of `W₀` throughout.

use std::sync::Arc;

use super::super::layout::Node;
use super::sparse::{SparseBlocks, SparseFactors};
use super::ties::Ties;
use super::{Couplings, Unknown};

/// `ω`, for two and three dimensions.
const DAMPING: f64 = 0.7;
/// Share of `w·w` that takes the place of the diagonal where the network has none: so little that the step is exact there.
const LEAST_DIAGONAL: f64 = 0.01;
/// Weights that cancel to less than this share of their sizes are gone: a body inside of one aggregate.
const CANCELLED: f64 = 1e-10;

/// The row of an unknown in a level's network.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Row {
    /// Ends and strengths of its links.
    pub links: Vec<(Node, f32)>,
    /// Their sum, and its ground.
    pub diagonal: f64,
}

/// What a block asks of its level while it is built.
pub(in super::super) trait LevelRows {
    /// The row of a node.
    fn row(&self, node: Node) -> Row;

    /// The parent of a node of the next finer level, if it has one.
    fn parent(&self, node: Node) -> Option<Node>;
}

/// Where an unknown's residual goes on the next coarser level, and where its correction comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Parent {
    /// A node of that level.
    Node(Node),
    /// An unknown of that level's block that is no node.
    Orphan(u32),
}

/// A body's rows and columns of `W`.
#[derive(Clone, Copy, Debug, Default)]
struct Body {
    first_row: usize,
    rows: usize,
    first_entry: usize,
    entries: usize,
    first_weight: usize,
}

/// The unknowns of a level that touch bodies: cells by colour, explicit nodes, and orphans. An orphan is a finer node that has no
/// parent, since nothing of the network reaches beyond it, and that bodies still connect with others.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct CoupledBlock {
    nodes: Vec<Node>,
    rows: Vec<Row>,
    bodies: Vec<Body>,
    /// Per entry of a body: index of the unknown.
    at: Vec<u32>,
    weights: Vec<f64>,
    row_count: usize,
    /// `ω / d`.
    step: Vec<f64>,
    ties: Option<Arc<Ties>>,
    /// Of `S`, or `A + ω W₀ d⁻¹ W₀ᵀ`.
    factors: SparseFactors,
    parents: Vec<Parent>,
    /// Nodes that are linked to these unknowns and touch no body, and their parents.
    beside: Vec<(Node, Node)>,
    /// Links to them: unknown, place in `beside`, strength.
    outward: Vec<(u32, u32, f32)>,
    x: Vec<f32>,
    b: Vec<f32>,
    /// `b − L x`, and `Wᵀ W x`.
    residual: Vec<f64>,
    term: Vec<f64>,
    /// What the last step added to `x`.
    change: Vec<f64>,
    forces: Vec<f64>,
}

impl CoupledBlock {
    /// Forgets all bodies.
    pub fn clear(&mut self) {
        *self = CoupledBlock::default();
    }

    /// Whether no unknown touches a body.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The block of a system's own level. `node` finds the node of an unknown.
    pub fn read(
        &mut self,
        couplings: &Couplings,
        level: &impl LevelRows,
        node: impl Fn(Unknown) -> Option<Node>,
    ) {
        self.clear();
        let mut entries = Vec::new();
        for body in 0..couplings.len() {
            for (unknown, weights) in couplings.columns(body) {
                if let Some(node) = node(unknown) {
                    entries.push((body, Parent::Node(node), weights));
                }
            }
        }
        let rows: Vec<usize> = (0..couplings.len()).map(|body| couplings.rows_of(body).len()).collect();
        self.ties = couplings.ties.clone();
        self.collect(&rows, entries, &[], level);
    }

    /// The block of the next coarser level: `W` summed over aggregates, without a factor, since a force is an integral of
    /// pressure. Also finds where the unknowns of this level have their parents.
    pub fn coarsen(&mut self, level: &impl LevelRows) -> CoupledBlock {
        let mut grounds = Vec::new();
        self.parents.clear();
        for (&node, row) in self.nodes.iter().zip(&self.rows) {
            let parent = if node == Node::NONE { None } else { level.parent(node) };
            self.parents.push(parent.map_or_else(
                || {
                    grounds.push(row.diagonal - row.links.iter().map(|link| f64::from(link.1)).sum::<f64>());
                    Parent::Orphan(grounds.len() as u32 - 1)
                },
                Parent::Node,
            ));
        }
        let mut entries = Vec::with_capacity(self.at.len());
        for (index, body) in self.bodies.iter().enumerate() {
            for (at, weights) in self.entries(body) {
                entries.push((index, self.parents[at], weights));
            }
        }
        let rows: Vec<usize> = self.bodies.iter().map(|body| body.rows).collect();
        let mut coarse = CoupledBlock { ties: self.ties.clone(), ..CoupledBlock::default() };
        coarse.collect(&rows, entries, &grounds, level);
        self.find_beside(level);
        let first = coarse.nodes.len() - grounds.len();
        for parent in &mut self.parents {
            if let Parent::Orphan(index) = parent {
                *index += first as u32;
            }
        }
        coarse
    }

    /// Finds the nodes beside the block, whose parents are on a coarser level.
    fn find_beside(&mut self, level: &impl LevelRows) {
        let own = &self.nodes;
        let is_other = |end: &Node| own.binary_search(end).is_err();
        let ends = self.rows.iter().flat_map(|row| row.links.iter().map(|link| link.0));
        let mut beside: Vec<Node> = ends.filter(is_other).collect();
        beside.sort_unstable();
        beside.dedup();
        self.outward.clear();
        for (index, row) in self.rows.iter().enumerate() {
            for &(end, link) in &row.links {
                if let Ok(place) = beside.binary_search(&end) {
                    self.outward.push((index as u32, place as u32, link));
                }
            }
        }
        let parent = |node: Node| (node, level.parent(node).unwrap_or(Node::NONE));
        self.beside = beside.into_iter().map(parent).collect();
    }

    /// Takes columns of `W` by body and unknown, sums those of the same, and drops those that cancel. Orphans keep their order,
    /// behind all nodes.
    fn collect(
        &mut self,
        rows: &[usize],
        mut entries: Vec<(usize, Parent, &[f64])>,
        grounds: &[f64],
        level: &impl LevelRows,
    ) {
        let key = |parent: Parent| match parent {
            Parent::Node(node) => (0, node.0),
            Parent::Orphan(index) => (1, index),
        };
        entries.sort_by_key(|&(body, parent, _)| (body, key(parent)));
        let mut found: Vec<(usize, Parent)> = Vec::new();
        for same in entries.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (start, count) = (self.weights.len(), same[0].2.len());
            let (mut left, mut size) = (0.0, 0.0);
            for k in 0..count {
                let sum = same.iter().map(|entry| entry.2[k]).sum::<f64>();
                left += sum * sum;
                size += same.iter().map(|entry| entry.2[k].abs()).sum::<f64>().powi(2);
                self.weights.push(sum);
            }
            if left <= CANCELLED * CANCELLED * size {
                self.weights.truncate(start);
            } else {
                found.push((same[0].0, same[0].1));
            }
        }
        self.nodes = found
            .iter()
            .filter_map(|&(_, parent)| match parent {
                Parent::Node(node) => Some(node),
                Parent::Orphan(_) => None,
            })
            .collect();
        self.nodes.sort_unstable();
        self.nodes.dedup();
        let own = self.nodes.len();
        self.rows = self.nodes.iter().map(|&node| level.row(node)).collect();
        self.nodes.resize(own + grounds.len(), Node::NONE);
        self.rows.extend(grounds.iter().map(|&diagonal| Row { links: Vec::new(), diagonal }));
        let place = |parent: Parent| match parent {
            Parent::Node(node) => self.nodes[..own].binary_search(&node).expect("listed above") as u32,
            Parent::Orphan(index) => own as u32 + index,
        };
        self.at = found.iter().map(|&(_, parent)| place(parent)).collect();
        let (mut first_row, mut first_entry, mut first_weight) = (0, 0, 0);
        for (index, &rows) in rows.iter().enumerate() {
            let entries = found[first_entry..].iter().take_while(|entry| entry.0 == index).count();
            self.bodies.push(Body { first_row, rows, first_entry, entries, first_weight });
            (first_row, first_entry, first_weight) =
                (first_row + rows, first_entry + entries, first_weight + entries * rows);
        }
        self.row_count = first_row;
        let size = self.nodes.len();
        (self.x, self.b) = (vec![0.0; size], vec![0.0; size]);
        (self.residual, self.term, self.change) = (vec![0.0; size], vec![0.0; size], vec![0.0; size]);
        self.forces = vec![0.0; self.row_count];
    }

    /// Makes the block ready for [`Self::relax`].
    pub fn factor(&mut self) {
        if self.is_empty() {
            // Nobody relaxes it, and a substep of a scene without bodies is not to ask for memory.
            return;
        }
        let mut size = vec![0.0; self.nodes.len()];
        // Entries by unknown: the end of each one's list, then the lists, of bodies and where weights start.
        let mut ends = vec![0usize; self.nodes.len() + 1];
        for body in &self.bodies {
            for (at, weights) in self.entries(body) {
                size[at] += weights.iter().map(|weight| weight * weight).sum::<f64>();
                ends[at + 1] += 1;
            }
        }
        let step = |(row, size): (&Row, f64)| match row.diagonal {
            diagonal if diagonal > 0.0 => DAMPING / diagonal,
            _ if size > 0.0 => DAMPING / (LEAST_DIAGONAL * size),
            _ => 0.0,
        };
        self.step = self.rows.iter().zip(size).map(step).collect();
        (1..ends.len()).for_each(|at| ends[at] += ends[at - 1]);
        let mut lists: Vec<(usize, &[f64])> = vec![(0, &[]); self.at.len()];
        for (index, body) in self.bodies.iter().enumerate() {
            for (at, weights) in self.entries(body) {
                lists[ends[at]] = (index, weights);
                ends[at] += 1;
            }
        }
        let mut matrix = match &self.ties {
            Some(ties) => ties.matrix.clone(),
            None => SparseBlocks::identity(self.bodies.iter().map(|body| body.rows)),
        };
        let mut start = 0;
        for (&end, &step) in ends.iter().zip(&self.step) {
            let list = &lists[start..end];
            for (k, &own) in list.iter().enumerate() {
                list[..=k].iter().for_each(|&other| matrix.add(own, other, step));
            }
            start = end;
        }
        self.factors = matrix.factor().unwrap_or_default();
    }

    /// The unknowns of a body, with their weights.
    fn entries(&self, body: &Body) -> impl Iterator<Item = (usize, &[f64])> {
        let Body { rows, first_entry, entries, first_weight, .. } = *body;
        (0..entries).map(move |entry| {
            let start = first_weight + entry * rows;
            (self.at[first_entry + entry] as usize, &self.weights[start..start + rows])
        })
    }

    /// The unknowns in order; [`Node::NONE`] for orphans.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Row of an unknown in the network.
    pub fn row(&self, index: usize) -> &Row {
        &self.rows[index]
    }

    /// Rows of `W`, and of `W₀`.
    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Calls `each(row, column, value)` for all entries of `A − 1`, between rows of `W₀`, that are not zero.
    pub fn each_tie(&self, mut each: impl FnMut(usize, usize, f64)) {
        let Some(ties) = &self.ties else { return };
        ties.matrix.each_entry(|row, column, value| {
            let more = if row == column { value - 1.0 } else { value };
            if more != 0.0 {
                each(row, column, more);
            }
        });
    }

    /// Calls `each(row, unknown, weight)` for all entries of `W₀`: what is free of `W` is free of it, too.
    pub fn each_weight(&self, mut each: impl FnMut(usize, usize, f64)) {
        for body in &self.bodies {
            for (at, weights) in self.entries(body) {
                weights.iter().enumerate().for_each(|(k, &weight)| each(body.first_row + k, at, weight));
            }
        }
    }

    /// `W x` for values by node, in double precision.
    pub fn gather(&self, x: impl Fn(Node) -> f64) -> Vec<f64> {
        let mut forces = vec![0.0; self.row_count];
        for body in &self.bodies {
            let forces = &mut forces[body.first_row..body.first_row + body.rows];
            for (at, weights) in self.entries(body) {
                let x = x(self.nodes[at]);
                forces.iter_mut().zip(weights).for_each(|(force, weight)| *force += weight * x);
            }
        }
        if let Some(ties) = &self.ties {
            ties.factors.forward(&mut forces);
        }
        forces
    }

    /// Calls `add(node, value)` with the entries of `Wᵀ f`.
    pub fn scatter(&self, forces: &[f64], mut add: impl FnMut(Node, f64)) {
        let mut tied = Vec::new();
        let forces = match &self.ties {
            Some(ties) => {
                tied.extend_from_slice(forces);
                ties.factors.backward(&mut tied);
                tied.as_slice()
            }
            None => forces,
        };
        for body in &self.bodies {
            let forces = &forces[body.first_row..body.first_row + body.rows];
            for (at, weights) in self.entries(body) {
                add(self.nodes[at], forces.iter().zip(weights).map(|(force, weight)| force * weight).sum());
            }
        }
    }

    /// Starts from zero with a right-hand side. Orphans were given theirs by [`Self::set_orphan`].
    pub fn start(&mut self, b: impl Fn(Node) -> f32) {
        self.x.fill(0.0);
        for (own, &node) in self.b.iter_mut().zip(&self.nodes).filter(|(_, node)| **node != Node::NONE) {
            *own = b(node);
        }
    }

    /// The unknowns that are nodes, and their values.
    pub fn values(&self) -> impl Iterator<Item = (Node, f32)> {
        self.nodes.iter().copied().zip(self.x.iter().copied()).filter(|(node, _)| *node != Node::NONE)
    }

    /// The cells of a colour, and their values.
    pub fn cells(&self, colour: usize) -> impl Iterator<Item = (Node, f32)> {
        let start = self.nodes.partition_point(|node| node.0 < (colour as u32) << 30);
        let end = self.nodes.partition_point(|node| node.0 < (colour as u32 + 1) << 30);
        self.nodes[start..end].iter().copied().zip(self.x[start..end].iter().copied())
    }

    /// Right-hand side of an unknown.
    pub fn b(&self, index: usize) -> f32 {
        self.b[index]
    }

    /// Value of an unknown.
    pub fn x(&self, index: usize) -> f32 {
        self.x[index]
    }

    /// Sets the value of an unknown.
    pub fn set_x(&mut self, index: usize, value: f32) {
        self.x[index] = value;
    }

    /// `residual = b − L x − others` and `term = Wᵀ W x`, where `x` gives values of the level's nodes, and `others(index)` is
    /// what further terms take from an unknown's row.
    fn find_residual(&mut self, x: impl Fn(Node) -> f32, others: impl Fn(usize) -> f64) {
        for (index, row) in self.rows.iter().enumerate() {
            let pull: f64 = row.links.iter().map(|&(end, link)| f64::from(link) * f64::from(x(end))).sum();
            let own = row.diagonal * f64::from(self.x[index]);
            self.residual[index] = f64::from(self.b[index]) + pull - own - others(index);
        }
        let x = std::mem::take(&mut self.x);
        self.apply(|at| f64::from(x[at]));
        self.x = x;
        if let Some(ties) = &self.ties {
            ties.factors.solve(&mut self.forces);
        }
        let mut term = std::mem::take(&mut self.term);
        self.transpose(&mut term);
        self.term = term;
    }

    /// `forces = W₀ x`.
    fn apply(&mut self, x: impl Fn(usize) -> f64) {
        let mut forces = std::mem::take(&mut self.forces);
        forces.fill(0.0);
        for body in &self.bodies {
            let forces = &mut forces[body.first_row..body.first_row + body.rows];
            for (at, weights) in self.entries(body) {
                let x = x(at);
                forces.iter_mut().zip(weights).for_each(|(force, weight)| *force += weight * x);
            }
        }
        self.forces = forces;
    }

    /// `out = W₀ᵀ forces`.
    fn transpose(&self, out: &mut [f64]) {
        out.fill(0.0);
        for body in &self.bodies {
            let forces = &self.forces[body.first_row..body.first_row + body.rows];
            for (at, weights) in self.entries(body) {
                out[at] += forces.iter().zip(weights).map(|(force, weight)| force * weight).sum::<f64>();
            }
        }
    }

    /// One step: see the top. `x` gives values of the level's nodes, `others(index)` what further terms take from a row.
    pub fn relax(&mut self, x: impl Fn(Node) -> f32, others: impl Fn(usize) -> f64) {
        self.find_residual(x, others);
        for (change, ((residual, term), step)) in
            self.change.iter_mut().zip(self.residual.iter().zip(&self.term).zip(&self.step))
        {
            *change = step * (residual - term);
        }
        let change = std::mem::take(&mut self.change);
        self.apply(|at| change[at]);
        self.change = change;
        self.factors.solve(&mut self.forces);
        let mut term = std::mem::take(&mut self.term);
        self.transpose(&mut term);
        for (index, (change, term)) in self.change.iter_mut().zip(&term).enumerate() {
            let before = self.x[index];
            self.x[index] = (f64::from(before) + *change - self.step[index] * term) as f32;
            // As rounded: neighbours feel this much.
            *change = f64::from(self.x[index]) - f64::from(before);
        }
        self.term = term;
    }

    /// Nodes beside the block, and their parents, [`Node::NONE`] for none.
    pub fn beside(&self) -> &[(Node, Node)] {
        &self.beside
    }

    /// Calls `each(place in `[`Self::beside`]`, change)` with what the last step did to the residuals of nodes beside the block.
    pub fn each_outward(&self, mut each: impl FnMut(usize, f32)) {
        for &(index, place, link) in &self.outward {
            each(place as usize, (f64::from(link) * self.change[index as usize]) as f32);
        }
    }

    /// Restriction. Calls `add(index, residual, term)` for each unknown that is a node, with `b − L x` and `Wᵀ W x` of its row,
    /// and hands the residuals of the others to the coarser block.
    pub fn restrict(
        &mut self,
        x: impl Fn(Node) -> f32,
        coarse: &mut CoupledBlock,
        mut add: impl FnMut(&Self, usize, f32, f32),
    ) {
        self.find_residual(x, |_| 0.0);
        for index in 0..self.nodes.len() {
            match self.parents[index] {
                Parent::Orphan(orphan) => {
                    coarse.b[orphan as usize] = (self.residual[index] - self.term[index]) as f32;
                }
                Parent::Node(_) => add(self, index, self.residual[index] as f32, self.term[index] as f32),
            }
        }
    }

    /// The parent of an unknown among the nodes of the coarser level.
    pub fn parent(&self, index: usize) -> Option<Node> {
        match self.parents[index] {
            Parent::Node(node) => Some(node),
            Parent::Orphan(_) => None,
        }
    }

    /// Prolongation: adds the values of the coarser level, given by its nodes and its block.
    pub fn prolong(&mut self, coarse: &CoupledBlock, value: impl Fn(Node) -> f32) {
        for (x, &parent) in self.x.iter_mut().zip(&self.parents) {
            *x += match parent {
                Parent::Node(node) => value(node),
                Parent::Orphan(orphan) => coarse.x[orphan as usize],
            };
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let links = |row: &Row| row.links.capacity() * size_of::<(Node, f32)>() + size_of::<Row>();
        self.nodes.capacity() * (4 + 8 + 6 * 8)
            + self.rows.iter().map(links).sum::<usize>()
            + self.at.capacity() * 4
            + self.beside.capacity() * 8
            + self.outward.capacity() * 12
            + self.weights.capacity() * 8
            + self.factors.bytes()
    }
}
