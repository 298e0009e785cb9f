//! The sparsity pattern and coefficients of a block: where its nodes lie and how they are linked.
//!
//! Deep inside tiled liquid one block equals another: a few sheets of cells between tiles. Such blocks share one pattern, so that
//! a sweep reads little more than the values themselves. Blocks at surfaces and walls have patterns of their own.

mod builder;
mod parents;

use std::borrow::Cow;

use crate::grid::masks;
use crate::math::power;

use super::interner::SameContent;
use super::rows::{self, Rows};
use super::visit::Form;

pub(super) use builder::PatternBuilder;
pub(super) use parents::{Aggregate, Aggregation, Parents, ParentsOf};

/// No node.
pub(super) const NONE: u16 = u16::MAX;

/// Ways to a neighbour: twice the axis, plus one for the high side.
pub(super) const DIRECTIONS: usize = 6;

/// A halo node, one of another block: across a side (numbered as directions are), in a cell of that block, and there the first node or
/// a further one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HaloNode {
    pub side: u8,
    pub ordinal: u8,
    pub cell: u16,
}

/// The other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A node of the same block: colour and index.
    Local(usize, usize),
    /// A node of another block, always of the other colour: its place in [`Half::halo`].
    Halo(usize),
}

/// A link beyond the first one of a node in its direction, or to a node of the same colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ExtraLink {
    pub node: u16,
    pub near: u16,
    pub link: f32,
}

/// The nodes of one colour, in the order of their cells, or in rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Half {
    /// The cell of each, by its natural index.
    pub cells: Cow<'static, [u16]>,
    /// Their neighbours, all those in one direction together, as places in a workspace: nothing, the nodes of the other
    /// colour, the halo, the nodes of their own colour. All are below [`Half::room`]. Empty in rows.
    near: Vec<u16>,
    /// The links to them, in the same order, or that of rows; empty where all are whole.
    pub links: Vec<f32>,
    /// Further links, by node.
    pub extra_links: Vec<ExtraLink>,
    /// The halo: neighbours in other blocks, all of the other colour.
    pub halo: Cow<'static, [HaloNode]>,
    /// Where a workspace keeps the nodes of this colour.
    pub own: usize,
    /// Sum of each node's links to others but shared ones, and its ground.
    pub diagonal: Vec<f64>,
    /// The diagonal, rounded.
    pub rounded: Vec<f32>,
    /// One over the diagonal, 0 where that is 0.
    pub inverse: Vec<f32>,
    /// Whether nothing was lost by rounding the diagonal.
    pub is_round: bool,
    /// Whether all nodes have the same diagonal.
    pub is_even: bool,
    /// Whether any of the nodes is linked to a shared one.
    pub has_shared: bool,
}

impl Half {
    /// Places that a workspace must have.
    #[inline]
    pub fn room(&self) -> usize {
        (self.own + self.cells.len()).max(1)
    }

    /// Places of the neighbours in a direction.
    #[inline]
    pub fn near(&self, direction: usize) -> &[u16] {
        let count = self.cells.len();
        &self.near[direction * count..(direction + 1) * count]
    }

    /// Rounds the diagonal, and finds one over it.
    pub fn find_inverse(&mut self) {
        self.rounded = self.diagonal.iter().map(|&sum| sum as f32).collect();
        self.is_round = self.diagonal.iter().zip(&self.rounded).all(|(&sum, &own)| sum == f64::from(own));
        self.is_even = self.diagonal.iter().all(|&sum| sum == self.diagonal[0]);
        let over = |&sum: &f64| if sum > 0.0 { (1.0 / sum) as f32 } else { 0.0 };
        self.inverse = self.diagonal.iter().map(over).collect();
    }

    /// Places of the neighbours in all directions.
    #[inline]
    pub fn all_near(&self) -> &[u16] {
        &self.near
    }
}

/// What a node has beside links to others, all of it rare: ground, material, links to shared nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct NodeTerms {
    pub ground: f32,
    pub area: f32,
    /// Whether it is of the second material.
    pub second: bool,
    /// Whether it is linked to shared nodes.
    pub has_shared: bool,
}

/// Nodes and links of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    pub half: [Half; 2],
    /// Terms of each node; empty where all have the default.
    pub terms: [Vec<NodeTerms>; 2],
    /// If they are kept in rows.
    pub rows: Option<Box<Rows>>,
    /// Index of the first node of each cell among those of its colour; not in rows.
    first: Vec<u16>,
    /// The aggregates of its nodes on the next coarser level.
    pub aggregation: Aggregation,
    /// On a coarse level: the parents of the nodes of the finer blocks below.
    pub parents: Parents,
}

/// The colour of a cell, given by its natural index.
#[inline]
pub(super) fn colour_of<const D: usize>(cell: usize) -> usize {
    (0..D).map(|axis| cell / power(8, axis)).sum::<usize>() % 2
}

impl SameContent for Pattern {
    fn is_same_as(&self, other: &Pattern) -> bool {
        // Aggregates are found later.
        (&self.half, &self.terms, &self.rows, &self.first, &self.parents)
            == (&other.half, &other.terms, &other.rows, &other.first, &other.parents)
    }
}

impl Pattern {
    /// How nodes are kept.
    pub fn form(&self) -> Form {
        match &self.rows {
            None => Form::Listed,
            Some(rows) if rows.kept_rows.is_some() => Form::SomeRows,
            Some(_) => Form::AllRows,
        }
    }

    /// Takes the values of a colour's nodes from those of all cells; 0 where it has no node.
    pub fn pick(&self, colour: usize, cells: &[f64], out: &mut [f64]) {
        for (value, &cell) in out.iter_mut().zip(self.half[colour].cells.iter()) {
            *value = cells[cell as usize];
        }
        self.clear_others(colour, out);
    }

    /// Sets values to 0 where a colour has no node.
    pub fn clear_others(&self, colour: usize, values: &mut [f64]) {
        let Some(rows) = &self.rows else { return };
        let half = &self.half[colour];
        if half.has_shared {
            for (value, &cell) in values.iter_mut().zip(half.cells.iter()) {
                *value = if masks::has(&rows.nodes, cell as usize) { *value } else { 0.0 };
            }
            return;
        }
        // Nodes in rows are held by something.
        for (value, &diagonal) in values.iter_mut().zip(&half.rounded) {
            *value = if diagonal > 0.0 { *value } else { 0.0 };
        }
    }

    /// Index, among those of its colour, of a node in a cell.
    #[inline]
    pub fn find(&self, cell: usize, ordinal: u8) -> Option<usize> {
        if let Some(rows) = &self.rows {
            return masks::has(&rows.nodes, cell).then(|| rows.place(cell));
        }
        match self.first.get(cell) {
            Some(&first) if first != NONE => Some(first as usize + ordinal as usize),
            _ => None,
        }
    }

    /// How many places for nodes of a colour: in rows, some may be empty.
    #[inline]
    pub fn count(&self, colour: usize) -> usize {
        self.half[colour].cells.len()
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> usize {
        match &self.rows {
            Some(rows) => masks::count(&rows.nodes),
            None => self.count(0) + self.count(1),
        }
    }

    /// How many nodes have a link to another that is not a shared one.
    pub fn linked_nodes(&self) -> usize {
        if let Some(rows) = &self.rows {
            let linked = rows.linked.iter().fold(masks::NONE, |all, linked| masks::or(&all, linked));
            return masks::count(&linked);
        }
        (0..2).map(|colour| self.linked(colour).into_iter().filter(|&linked| linked).count()).sum()
    }

    /// Whether each node of a colour has a link to another that is not a shared one.
    pub fn linked(&self, colour: usize) -> Vec<bool> {
        let mut linked = vec![false; self.count(colour)];
        self.each_link(colour, 0.0, |node, _, _| linked[node] = true);
        linked
    }

    /// Whether there is a node in a place.
    #[inline]
    pub fn has_node(&self, colour: usize, node: usize) -> bool {
        let cell = || self.half[colour].cells[node] as usize;
        self.rows.as_ref().is_none_or(|rows| masks::has(&rows.nodes, cell()))
    }

    /// Terms of a node.
    #[inline]
    pub fn terms(&self, colour: usize, node: usize) -> NodeTerms {
        self.terms[colour].get(node).copied().unwrap_or_default()
    }

    /// Whether a node has neither link nor ground.
    pub fn is_closed(&self, colour: usize, node: usize) -> bool {
        self.rows.is_none() && self.half[colour].rounded[node] == 0.0 && !self.terms(colour, node).has_shared
    }

    /// What is in a place of the workspace for a colour's nodes; it is not nothing.
    #[inline]
    fn end(&self, colour: usize, place: u16) -> End {
        let (place, other) = (place as usize - 1, self.count(1 - colour));
        match place.checked_sub(other) {
            None => End::Local(1 - colour, place),
            Some(halo) => match halo.checked_sub(self.half[colour].halo.len()) {
                None => End::Halo(halo),
                Some(own) => End::Local(colour, own),
            },
        }
    }

    /// Calls `each(node, end, link)` for the first links of a colour's nodes in a direction. Links that are not kept are
    /// `whole`.
    #[inline]
    pub fn each_stencil_link(
        &self,
        colour: usize,
        direction: usize,
        whole: f32,
        mut each: impl FnMut(usize, End, f32),
    ) {
        let half = &self.half[colour];
        if let Some(rows) = &self.rows {
            for (word, &coloured) in rows.layout.coloured[colour].iter().enumerate() {
                for bit in masks::each_in(rows.linked[direction][word] & coloured) {
                    let cell = word * 64 + bit;
                    let link = rows.link(&half.links, cell, direction, whole);
                    each(rows.place(cell), rows.end(cell, direction), link);
                }
            }
            return;
        }
        let links = half.links.get(direction * half.cells.len()..).unwrap_or_default();
        for (node, &place) in half.near(direction).iter().enumerate().filter(|(_, place)| **place != 0) {
            each(node, self.end(colour, place), links.get(node).copied().unwrap_or(whole));
        }
    }

    /// Calls `each(node, end, link)` for all links of a colour's nodes. Links that are not kept are `whole`.
    pub fn each_link(&self, colour: usize, whole: f32, mut each: impl FnMut(usize, End, f32)) {
        (0..DIRECTIONS).for_each(|direction| self.each_stencil_link(colour, direction, whole, &mut each));
        self.each_extra_link(colour, each);
    }

    /// Calls `each(node, end, link)` for the further links of a colour's nodes.
    pub fn each_extra_link(&self, colour: usize, mut each: impl FnMut(usize, End, f32)) {
        for link in &self.half[colour].extra_links {
            each(link.node as usize, self.end(colour, link.near), link.link);
        }
    }

    /// Whether its nodes are aggregated.
    pub fn is_aggregated(&self) -> bool {
        (0..2).all(|colour| self.aggregation.of[colour].len() == self.count(colour))
    }

    /// Whether every coarse cell is one node at most, and nothing but links between neighbours leads there.
    pub fn aggregates_by_cell(&self) -> bool {
        self.aggregation.is_simple() && self.half.iter().all(|half| half.extra_links.is_empty())
    }

    /// Calls `each(coarse cell, direction, sum)` with sums of links that lead to another coarse cell. In rows there is one
    /// call for all links of an aggregate in a direction.
    pub fn each_crossing<const D: usize>(&self, whole: f32, mut each: impl FnMut([u8; 3], usize, f64)) {
        if let Some(rows) = &self.rows {
            if self.half.iter().any(|half| !half.links.is_empty()) {
                return rows.each_sum_of_links::<D>(self, each);
            }
            for (direction, linked) in rows.linked.iter().enumerate().take(2 * D) {
                rows::each_count::<D>(linked, direction, |cell, count| {
                    each(cell, direction, f64::from(whole) * f64::from(count));
                });
            }
            return;
        }
        for colour in 0..2 {
            let (cells, of) = (&self.half[colour].cells, &self.aggregation.of[colour]);
            for direction in 0..2 * D {
                let stride = power(8, direction / 2);
                self.each_stencil_link(colour, direction, whole, |node, _, link| {
                    if cells[node] as usize / stride % 2 == direction % 2 {
                        each(self.aggregation.list[of[node] as usize].cell, direction, f64::from(link));
                    }
                });
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let halves = self.half.iter().map(|half| {
            (half.cells.len() + half.near.capacity()) * 2
                + (half.links.capacity() + half.rounded.capacity() + half.inverse.capacity()) * 4
                + half.extra_links.capacity() * size_of::<ExtraLink>()
                + half.halo.len() * size_of::<HaloNode>()
                + half.diagonal.capacity() * 8
        });
        halves.sum::<usize>()
            + self.first.capacity() * 2
            + self.terms.iter().map(|terms| terms.capacity() * size_of::<NodeTerms>()).sum::<usize>()
            + self.aggregation.of.iter().map(|of| of.capacity() * 2).sum::<usize>()
            + self.aggregation.list.capacity() * size_of::<Aggregate>()
            + self.parents.bytes()
    }
}
