//! From the coarsest level with bodies to the levels of the network without.
//!
//! Nodes that hang together without the help of bodies also do so with it: a node of a level with bodies has one parent in
//! the filled network, that of any cell it was made of.

use rayon::prelude::*;

use super::super::hierarchy::Hierarchy;
use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::super::transfer::cover_of;
use super::net::{Colours, Net};

/// The parent of a node; [`Node::NONE`] if it has none.
fn parent_of<const D: usize>(level: &Level<D>, node: Node) -> Node {
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
    /// Parents in the filled network.
    pub parent: Colours<Node>,
    /// Those of shared nodes.
    pub shared: Vec<Node>,
}

impl Bridge {
    /// Leads from the last of `nets` to the next level of `full`. `live` are the slots of the finest blocks.
    pub fn build<const D: usize>(&mut self, nets: &[Net<D>], full: &Hierarchy<D>, live: &[u32]) {
        let last = nets.len() - 1;
        let climb = |block: usize, colour: usize, node: usize| {
            // Down to a cell, and up on the other side.
            let (mut block, mut colour, mut node) = (block, colour, node);
            if !nets[last].pattern(block).has_node(colour, node) {
                return Node::NONE;
            }
            for net in nets[1..].iter().rev() {
                let (octant, below, index) = net.pattern(block).member[colour][node];
                block = net.children[block][octant as usize] as usize;
                (colour, node) = (below as usize, index as usize);
            }
            let cell = nets[0].pattern(block).half[colour].cells[node] as usize;
            let there = full.block_of()[live[block - 1] as usize] as usize;
            (0..=last).fold(Node::cell::<D>(there, cell), |node, level| parent_of(full.level(level), node))
        };
        let net = &nets[last];
        self.parent = [0, 1].map(|colour| {
            (1..net.blocks.len() - 1)
                .into_par_iter()
                .with_min_len(16)
                .flat_map_iter(|block| {
                    (0..net.pattern(block).count(colour)).map(move |node| climb(block, colour, node))
                })
                .collect()
        });
        self.shared.clear();
        self.shared.extend(full.level(last + 1).explicit.shared().map(Node::explicit));
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.parent.iter().map(|list| list.capacity() * 4).sum::<usize>() + self.shared.capacity() * 4
    }
}
