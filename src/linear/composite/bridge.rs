//! From the coarsest level with bodies to the levels of the network without.
//!
//! Nodes that hang together without the help of bodies also do so with it: a node of a level with bodies has one
//! counterpart on the same level of the filled network. Nearly always that is the cell of the same place.

use std::collections::BTreeMap;

use crate::grid::{block_cells, masks};

use super::super::hierarchy::Hierarchy;
use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::super::stencil::mask_words;
use super::super::transfer::cover_of;
use super::surfaces::place_of;

/// The parent of a node; [`Node::NONE`] if it has none.
pub(super) fn parent_of<const D: usize>(level: &Level<D>, node: Node) -> Node {
    let transfer = &level.transfer;
    match node.place() {
        _ if node == Node::NONE => Node::NONE,
        Place::Explicit(index) => transfer.of_explicit[index],
        Place::Cell { .. } => {
            let (block, local) = node.block_and_local::<D>();
            if transfer.follows_rule::<D>(node) {
                Node::cell::<D>(
                    transfer.parent[block] as usize,
                    cover_of(level.topology.octant(block), local),
                )
            } else {
                match transfer.strays.binary_search_by_key(&node, |&(cell, _)| cell) {
                    Ok(at) => Node::explicit(transfer.strays[at].1 as usize),
                    Err(_) => Node::NONE,
                }
            }
        }
    }
}

/// Where the nodes of the last level with bodies go.
#[derive(Clone, Debug, Default)]
pub(super) struct Bridge {
    /// Place of each node among the vectors of its level, and its parent on the other side.
    pub crossings: Vec<(u32, Node)>,
}

/// Counterparts of the nodes of one level.
struct Counterparts {
    /// Per block, the one in the same place.
    block: Vec<u32>,
    /// Nodes whose counterpart is not the cell in the same place.
    other: BTreeMap<Node, Node>,
}

impl Counterparts {
    fn of<const D: usize>(&self, node: Node) -> Node {
        match self.other.get(&node) {
            Some(&other) => other,
            None => self.same_place::<D>(node),
        }
    }

    fn same_place<const D: usize>(&self, node: Node) -> Node {
        if node.is_explicit() {
            return Node::NONE;
        }
        let (block, local) = node.block_and_local::<D>();
        match self.block[block] {
            0 => Node::NONE,
            block => Node::cell::<D>(block as usize, local),
        }
    }
}

impl Bridge {
    /// Leads from level `last` of `outside` to the next level of `full`. `live` are the slots of the finest blocks of the
    /// former.
    pub fn build<const D: usize>(
        &mut self,
        outside: &Hierarchy<D>,
        full: &Hierarchy<D>,
        live: &[u32],
        last: usize,
    ) {
        let same = std::iter::once(0).chain(live.iter().map(|&slot| full.block_of()[slot as usize]));
        let mut counterparts = Counterparts { block: same.collect(), other: BTreeMap::new() };
        for level in 0..last {
            counterparts = climb(&counterparts, outside, full, level);
        }
        self.crossings.clear();
        let (level, beyond) = (outside.level(last), full.level(last));
        let cells = level.topology.len() * block_cells(D);
        let words = mask_words(D);
        let mut cross = |node: Node| {
            let parent = parent_of(beyond, counterparts.of::<D>(node));
            if parent != Node::NONE {
                self.crossings.push((place_of::<D>(node, cells) as u32, parent));
            }
        };
        for block in 1..level.topology.len() {
            for word in 0..words {
                for bit in masks::each_in(level.stencil.carried[block * words + word]) {
                    cross(Node::cell::<D>(block, word * 64 + bit));
                }
            }
        }
        (0..level.explicit.ends[1]).for_each(|extra| cross(Node::explicit(extra)));
        let above = full.level(last + 1);
        for (node, parent) in level.explicit.shared().zip(above.explicit.shared()) {
            self.crossings.push(((cells + node) as u32, Node::explicit(parent)));
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.crossings.capacity() * 8
    }
}

/// Counterparts of the next coarser level's nodes.
fn climb<const D: usize>(
    finer: &Counterparts,
    outside: &Hierarchy<D>,
    full: &Hierarchy<D>,
    level: usize,
) -> Counterparts {
    let (here, there) = (outside.level(level), full.level(level));
    let (above, above_there) = (outside.level(level + 1), full.level(level + 1));
    let block = (0..above.topology.len()).map(|block| match block {
        0 => 0,
        block => above_there.topology.find(above.topology.coords(block)) as u32,
    });
    let mut coarser = Counterparts { block: block.collect(), other: BTreeMap::new() };
    let mut add = |node: Node| {
        let (parent, other) = (parent_of(here, node), parent_of(there, finer.of::<D>(node)));
        if parent != Node::NONE && other != coarser.same_place::<D>(parent) {
            coarser.other.insert(parent, other);
        }
    };
    here.transfer.strays.iter().for_each(|&(cell, _)| add(cell));
    (0..here.explicit.ends[1]).for_each(|extra| add(Node::explicit(extra)));
    finer.other.keys().for_each(|&node| add(node));
    // Cells that are strays only where bodies are filled in.
    if !there.transfer.strays.is_empty() {
        let mut back = vec![0u32; there.topology.len()];
        finer
            .block
            .iter()
            .enumerate()
            .skip(1)
            .for_each(|(block, &other)| back[other as usize] = block as u32);
        let words = mask_words(D);
        for &(cell, _) in &there.transfer.strays {
            let (block, local) = cell.block_and_local::<D>();
            let own = back[block] as usize;
            if own != 0 && here.stencil.carried[own * words + local / 64] >> (local % 64) & 1 == 1 {
                add(Node::cell::<D>(own, local));
            }
        }
    }
    coarser
}
