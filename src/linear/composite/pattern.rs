//! How the nodes of a block lie and how they are linked.
//!
//! Deep inside tiled liquid one block is like another: a few sheets of cells between tiles. Such blocks share one pattern,
//! so that a sweep reads little more than the values themselves. Blocks at surfaces and walls have patterns of their own.

use std::borrow::Cow;

use crate::grid::{block_cells, masks};
use crate::math::power;

use super::rows::{self, Rows};
use super::stock::Alike;
use super::visit::Form;

/// No node.
pub(super) const NONE: u16 = u16::MAX;

/// Ways to a neighbour: twice the axis, plus one for the high side.
pub(super) const DIRECTIONS: usize = 6;

/// At most so many places are needed for the values that the nodes of a block are linked to.
const MAX_ROOM: usize = 1 << 15;

/// A node of another block: across a side (numbered as directions are), in a cell of that block, and there the first node or
/// a further one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Beyond {
    pub side: u8,
    pub ordinal: u8,
    pub cell: u16,
}

/// The other end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A node of the same block: colour and index.
    Here(usize, usize),
    /// A node of another block, always of the other colour: its place in [`Half::beyond`].
    There(usize),
}

/// A link beyond the first one of a node in its direction, or to a node of the same colour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Further {
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
    /// colour, those beyond the block, the nodes of their own colour. All are below [`Half::room`]. Empty in rows.
    near: Vec<u16>,
    /// The links to them, in the same order, or that of rows; empty where all are whole.
    pub links: Vec<f32>,
    /// Further links, by node.
    pub further: Vec<Further>,
    /// The nodes beyond the block, all of the other colour.
    pub beyond: Cow<'static, [Beyond]>,
    /// Where a workspace keeps the nodes of this colour.
    pub own: usize,
    /// Sum of each node's links to others but shared ones, and its ground.
    pub diagonal: Vec<f64>,
    /// The same, rounded, and one over it, 0 where it is 0.
    pub rounded: Vec<f32>,
    pub inverse: Vec<f32>,
    /// Whether shared nodes are linked to any of these.
    pub is_tied: bool,
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
        let over = |&sum: &f64| if sum > 0.0 { (1.0 / sum) as f32 } else { 0.0 };
        self.inverse = self.diagonal.iter().map(over).collect();
    }

    /// Those in all directions.
    #[inline]
    pub fn all_near(&self) -> &[u16] {
        &self.near
    }
}

/// What a node has beside links; all that is rare.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traits {
    pub ground: f32,
    pub area: f32,
    /// Whether it is of the second material.
    pub second: bool,
    /// Whether shared nodes are linked to it.
    pub is_tied: bool,
}

/// Nodes and links of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Pattern {
    pub half: [Half; 2],
    /// Traits of each node; empty where all are as usual.
    pub traits: [Vec<Traits>; 2],
    /// If they are kept in rows.
    pub rows: Option<Box<Rows>>,
    /// Index of the first node of each cell among those of its colour; not in rows.
    first: Vec<u16>,
    /// What becomes of its nodes on the next coarser level.
    pub joined: Joined,
    /// On a coarse level: of the nodes of the finer blocks below.
    pub parents: Parents,
}

/// For each part of a coarse block and each colour, the parents of that finer block's nodes. Red nodes of the coarse block
/// are counted first and black ones after them; one more than the last stands for none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parents {
    list: Vec<u16>,
    /// Where each part and colour ends, and whether it has one entry for every two nodes.
    end: Vec<(u32, bool)>,
}

/// Parents of the nodes of a part of a coarse block and a colour.
#[derive(Clone, Copy)]
pub(super) enum ParentsOf<'a> {
    /// In rows, two cells side by side lie in the same coarse cell: one entry for both.
    Pairs(&'a [u16]),
    Each(&'a [u16]),
}

impl ParentsOf<'_> {
    /// That of a node.
    #[inline]
    pub fn get(&self, node: usize) -> u16 {
        match self {
            ParentsOf::Pairs(list) => list[node / 2],
            ParentsOf::Each(list) => list[node],
        }
    }
}

impl Parents {
    /// For so many nodes.
    pub fn with_capacity(nodes: usize) -> Parents {
        Parents { list: Vec::with_capacity(nodes), end: Vec::with_capacity(16) }
    }

    /// Adds those of the next part and colour, given what its nodes were joined to, and the parents of that.
    pub fn push(&mut self, joined: &Joined, colour: usize, parents: &[u16], none: u16) {
        let parent = |own: u16| parents.get(own as usize).copied().unwrap_or(none);
        let of = joined.of[colour].as_slice();
        if joined.follows_rule {
            // A place without a node is of no account.
            let (pairs, _) = of.as_chunks();
            self.list.extend(pairs.iter().map(|&[one, other]| parent(if one == NONE { other } else { one })));
        } else {
            self.list.extend(of.iter().map(|&own| parent(own)));
        }
        self.end.push((self.list.len() as u32, joined.follows_rule));
    }

    /// The same with others for parents.
    pub fn renumbered(&self, other: impl Fn(u16) -> u16) -> Parents {
        Parents { list: self.list.iter().map(|&parent| other(parent)).collect(), end: self.end.clone() }
    }

    /// Those of a part and colour.
    #[inline]
    pub fn of(&self, part: usize, colour: usize) -> ParentsOf<'_> {
        let at = 2 * part + colour;
        let start = if at == 0 { 0 } else { self.end[at - 1].0 };
        let (end, is_paired) = self.end[at];
        let list = &self.list[start as usize..end as usize];
        if is_paired { ParentsOf::Pairs(list) } else { ParentsOf::Each(list) }
    }
}

/// Nodes joined into those of the next coarser level, inside one block.
#[derive(Clone, Debug, Default)]
pub(super) struct Joined {
    /// Per node: its aggregate.
    pub of: [Vec<u16>; 2],
    /// In the order of their cells.
    pub list: Vec<Aggregate>,
    /// By coarse cell: its aggregate; empty if one has several.
    pub number: Vec<u16>,
    /// Whether the block is kept in rows, and all nodes were joined with those in the same coarse cell.
    pub follows_rule: bool,
}

/// One node of the next coarser level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregate {
    /// Its coarse cell, four of them along each side of the block.
    pub cell: [u8; 3],
    /// How many others come before it in the same cell.
    pub ordinal: u8,
    /// Whether several nodes were joined.
    pub merged: bool,
    pub traits: Traits,
}

/// The colour of a cell, given by its natural index.
#[inline]
pub(super) fn colour_of<const D: usize>(cell: usize) -> usize {
    (0..D).map(|axis| cell / power(8, axis)).sum::<usize>() % 2
}

/// A pattern under construction.
pub(super) struct Draft {
    pattern: Pattern,
    counts: [usize; 2],
}

/// Marks a place among the nodes of the same colour, while their number is not known yet.
const OWN: u16 = 1 << 15;

impl Draft {
    /// Begins with the nodes, by colour, in the order of their cells.
    pub fn new<const D: usize>(nodes: &[Vec<(u16, Traits)>; 2]) -> Draft {
        let mut pattern = Pattern { first: vec![NONE; block_cells(D)], ..Pattern::default() };
        for (colour, nodes) in nodes.iter().enumerate() {
            for (index, (cell, _)) in nodes.iter().enumerate().rev() {
                pattern.first[*cell as usize] = index as u16;
            }
            let half = &mut pattern.half[colour];
            if nodes.iter().any(|(_, traits)| *traits != Traits::default()) {
                pattern.traits[colour] = nodes.iter().map(|(_, traits)| *traits).collect();
                half.is_tied = nodes.iter().any(|(_, traits)| traits.is_tied);
            }
            half.cells = nodes.iter().map(|(cell, _)| *cell).collect();
            half.diagonal = nodes.iter().map(|(_, traits)| f64::from(traits.ground)).collect();
            half.near = vec![0; DIRECTIONS * nodes.len()];
            half.links = vec![0.0; DIRECTIONS * nodes.len()];
        }
        Draft { pattern, counts: [nodes[0].len(), nodes[1].len()] }
    }

    /// Adds a link of a node to one of the other colour, the first one in some direction or a further one.
    #[inline]
    pub fn link_here(
        &mut self,
        colour: usize,
        node: usize,
        direction: Option<usize>,
        other: usize,
        link: f32,
    ) {
        self.link(colour, node, direction, 1 + other as u16, link);
    }

    /// Adds a link to a node of the same colour.
    pub fn link_own(&mut self, colour: usize, node: usize, other: usize, link: f32) {
        let half = &mut self.pattern.half[colour];
        half.diagonal[node] += f64::from(link);
        half.further.push(Further { node: node as u16, near: OWN | other as u16, link });
    }

    /// Adds a link to a node of another block.
    #[inline]
    pub fn link_there(
        &mut self,
        colour: usize,
        node: usize,
        direction: Option<usize>,
        other: Beyond,
        link: f32,
    ) {
        let beyond = self.pattern.half[colour].beyond.to_mut();
        beyond.push(other);
        let place = self.counts[1 - colour] + beyond.len();
        self.link(colour, node, direction, place as u16, link);
    }

    #[inline]
    fn link(&mut self, colour: usize, node: usize, direction: Option<usize>, place: u16, link: f32) {
        let half = &mut self.pattern.half[colour];
        half.diagonal[node] += f64::from(link);
        match direction {
            Some(direction) => {
                let at = direction * self.counts[colour] + node;
                debug_assert_eq!(half.near[at], 0);
                half.near[at] = place;
                half.links[at] = link;
            }
            None => half.further.push(Further { node: node as u16, near: place, link }),
        }
    }

    /// The pattern of these nodes; `whole` is the link that need not be kept.
    pub fn finish(mut self, whole: f32) -> Pattern {
        for colour in 0..2 {
            let half = &mut self.pattern.half[colour];
            half.own = 1 + self.counts[1 - colour] + half.beyond.len();
            assert!(half.room() <= MAX_ROOM, "a block with {:?} nodes", self.counts);
            assert!(half.near.iter().all(|&place| (place as usize) < half.own));
            for link in &mut half.further {
                if link.near & OWN != 0 {
                    link.near = half.own as u16 + (link.near & !OWN);
                }
            }
            half.further.sort_by_key(|link| link.node);
            half.find_inverse();
            if half.links.iter().all(|&link| link == whole || link == 0.0) {
                half.links = Vec::new();
            }
        }
        self.pattern
    }
}

impl Alike for Pattern {
    fn is_like(&self, other: &Pattern) -> bool {
        // What becomes of its nodes is found later.
        (&self.half, &self.traits, &self.rows, &self.first, &self.parents)
            == (&other.half, &other.traits, &other.rows, &other.first, &other.parents)
    }
}

impl Pattern {
    /// How nodes are kept.
    pub fn form(&self) -> Form {
        match &self.rows {
            None => Form::Listed,
            Some(rows) if rows.few.is_some() => Form::SomeRows,
            Some(_) => Form::AllRows,
        }
    }

    /// Takes the values of a colour's nodes from those of all cells; 0 where it has no node.
    pub fn pick(&self, colour: usize, cells: &[f64], out: &mut [f64]) {
        let places = out.iter_mut().zip(self.half[colour].cells.iter());
        match &self.rows {
            None => places.for_each(|(value, &cell)| *value = cells[cell as usize]),
            Some(rows) => places.for_each(|(value, &cell)| {
                *value = if masks::has(&rows.nodes, cell as usize) { cells[cell as usize] } else { 0.0 };
            }),
        }
    }

    /// Sets values to 0 where a colour has no node.
    pub fn clear_others(&self, colour: usize, values: &mut [f64]) {
        let Some(rows) = &self.rows else { return };
        if self.nodes() == self.count(0) + self.count(1) {
            return;
        }
        for (value, &cell) in values.iter_mut().zip(self.half[colour].cells.iter()) {
            *value = if masks::has(&rows.nodes, cell as usize) { *value } else { 0.0 };
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

    /// Whether each node of a colour has one.
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

    /// Traits of a node.
    #[inline]
    pub fn traits(&self, colour: usize, node: usize) -> Traits {
        self.traits[colour].get(node).copied().unwrap_or_default()
    }

    /// Whether a node has neither link nor ground.
    pub fn is_closed(&self, colour: usize, node: usize) -> bool {
        self.rows.is_none() && self.half[colour].rounded[node] == 0.0 && !self.traits(colour, node).is_tied
    }

    /// What is in a place of the workspace for a colour's nodes; it is not nothing.
    #[inline]
    fn end(&self, colour: usize, place: u16) -> End {
        let (place, other) = (place as usize - 1, self.count(1 - colour));
        match place.checked_sub(other) {
            None => End::Here(1 - colour, place),
            Some(beyond) => match beyond.checked_sub(self.half[colour].beyond.len()) {
                None => End::There(beyond),
                Some(own) => End::Here(colour, own),
            },
        }
    }

    /// Calls `each(node, end, link)` for the first links of a colour's nodes in a direction. Links that are not kept are
    /// `whole`.
    #[inline]
    pub fn each_first(
        &self,
        colour: usize,
        direction: usize,
        whole: f32,
        mut each: impl FnMut(usize, End, f32),
    ) {
        let half = &self.half[colour];
        if let Some(rows) = &self.rows {
            for (word, &coloured) in rows.frame.coloured[colour].iter().enumerate() {
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
        (0..DIRECTIONS).for_each(|direction| self.each_first(colour, direction, whole, &mut each));
        self.each_further(colour, each);
    }

    /// Calls `each(node, end, link)` for the further links of a colour's nodes.
    pub fn each_further(&self, colour: usize, mut each: impl FnMut(usize, End, f32)) {
        for link in &self.half[colour].further {
            each(link.node as usize, self.end(colour, link.near), link.link);
        }
    }

    /// Whether it is known what becomes of its nodes.
    pub fn is_joined(&self) -> bool {
        (0..2).all(|colour| self.joined.of[colour].len() == self.count(colour))
    }

    /// Whether every coarse cell is one node at most, and nothing but links between neighbours leads there.
    pub fn joins_into_cells(&self) -> bool {
        self.joined.is_simple() && self.half.iter().all(|half| half.further.is_empty())
    }

    /// Calls `each(coarse cell, direction, sum)` with sums of links that lead to another coarse cell. In rows there is one
    /// call for all links of an aggregate in a direction.
    pub fn each_crossing<const D: usize>(&self, whole: f32, mut each: impl FnMut([u8; 3], usize, f64)) {
        if let Some(rows) = &self.rows {
            if self.half.iter().any(|half| !half.links.is_empty()) {
                return rows.each_sum_of_links::<D>(self, each);
            }
            for aggregate in &self.joined.list {
                let at: [usize; D] = std::array::from_fn(|axis| aggregate.cell[axis] as usize);
                for direction in 0..2 * D {
                    let low = rows::LOW[direction / 2];
                    let facing = if direction % 2 == 1 { !low } else { low };
                    let cells = rows::octet(&rows.linked[direction], at) & facing;
                    if cells != 0 {
                        each(aggregate.cell, direction, f64::from(whole) * f64::from(cells.count_ones()));
                    }
                }
            }
            return;
        }
        for colour in 0..2 {
            let (cells, of) = (&self.half[colour].cells, &self.joined.of[colour]);
            for direction in 0..2 * D {
                let stride = power(8, direction / 2);
                self.each_first(colour, direction, whole, |node, _, link| {
                    if cells[node] as usize / stride % 2 == direction % 2 {
                        each(self.joined.list[of[node] as usize].cell, direction, f64::from(link));
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
                + half.further.capacity() * size_of::<Further>()
                + half.beyond.len() * size_of::<Beyond>()
                + half.diagonal.capacity() * 8
        });
        halves.sum::<usize>()
            + self.first.capacity() * 2
            + self.traits.iter().map(|traits| traits.capacity() * size_of::<Traits>()).sum::<usize>()
            + self.joined.of.iter().map(|of| of.capacity() * 2).sum::<usize>()
            + self.joined.list.capacity() * size_of::<Aggregate>()
            + self.parents.list.capacity() * 2
    }
}
