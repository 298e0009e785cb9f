//! Aggregates of a block's nodes, and the parents of nodes on the next coarser level.

use super::{NONE, NodeTerms};

/// For each part of a coarse block and each colour, the parents of that finer block's nodes. Red nodes of the coarse block
/// are counted first and black ones after them; one more than the last stands for none.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in super::super) struct Parents {
    list: Vec<u16>,
    /// Where each part and colour ends, and whether it has one entry for every two nodes.
    end: Vec<(u32, bool)>,
}

/// Parents of the nodes of a part of a coarse block and a colour.
#[derive(Clone, Copy)]
pub(in super::super) enum ParentsOf<'a> {
    /// In rows, two cells side by side lie in the same coarse cell: one entry for both.
    Pairs(&'a [u16]),
    Each(&'a [u16]),
}

impl ParentsOf<'_> {
    /// The parent of a node.
    #[inline]
    pub fn get(&self, node: usize) -> u16 {
        match self {
            ParentsOf::Pairs(list) => list[node / 2],
            ParentsOf::Each(list) => list[node],
        }
    }
}

impl Parents {
    /// Makes room for a number of nodes.
    pub fn with_capacity(nodes: usize) -> Parents {
        Parents { list: Vec::with_capacity(nodes), end: Vec::with_capacity(16) }
    }

    /// Adds the parents of the next part and colour, given its aggregation and the parents of the aggregates.
    pub fn push(&mut self, aggregation: &Aggregation, colour: usize, parents: &[u16], none: u16) {
        let parent = |own: u16| parents.get(own as usize).copied().unwrap_or(none);
        let of = aggregation.of[colour].as_slice();
        if aggregation.follows_rule {
            // A place without a node is of no account.
            let (pairs, _) = of.as_chunks();
            self.list.extend(pairs.iter().map(|&[one, other]| parent(if one == NONE { other } else { one })));
        } else {
            self.list.extend(of.iter().map(|&own| parent(own)));
        }
        self.end.push((self.list.len() as u32, aggregation.follows_rule));
    }

    /// The list with every parent replaced.
    pub fn renumbered(&self, other: impl Fn(u16) -> u16) -> Parents {
        Parents { list: self.list.iter().map(|&parent| other(parent)).collect(), end: self.end.clone() }
    }

    /// The parents of a part and colour.
    #[inline]
    pub fn of(&self, part: usize, colour: usize) -> ParentsOf<'_> {
        let at = 2 * part + colour;
        let start = if at == 0 { 0 } else { self.end[at - 1].0 };
        let (end, is_paired) = self.end[at];
        let list = &self.list[start as usize..end as usize];
        if is_paired { ParentsOf::Pairs(list) } else { ParentsOf::Each(list) }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.list.capacity() * 2 + self.end.capacity() * size_of::<(u32, bool)>()
    }
}

/// The aggregates of a block's nodes.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Aggregation {
    /// Per node: its aggregate.
    pub of: [Vec<u16>; 2],
    /// In the order of their cells.
    pub list: Vec<Aggregate>,
    /// By coarse cell: its aggregate; empty if one has several.
    pub number: Vec<u16>,
    /// Whether the block is kept in rows, and every node's aggregate is its whole coarse cell.
    pub follows_rule: bool,
}

/// One node of the next coarser level.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Aggregate {
    /// Its coarse cell, four of them along each side of the block.
    pub cell: [u8; 3],
    /// How many others come before it in the same cell.
    pub ordinal: u8,
    /// Whether it is made of several nodes.
    pub merged: bool,
    pub terms: NodeTerms,
}
