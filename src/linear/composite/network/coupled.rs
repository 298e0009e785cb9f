//! Nodes of a network that touch bodies of any weights: see `linear::coupling`.

use crate::grid::block_cells;
use crate::math::flatten;

use super::super::super::coupling::{CoupledBlock, Couplings, LevelRows, Row, Unknown};
use super::super::super::layout::{Node, Place};
use super::super::pattern::{End, colour_of};
use super::super::surfaces::Surfaces;
use super::Network;

/// The rows of a network, and the parents that nodes of the finer one have there.
pub(in super::super) struct NetworkRows<'a, const D: usize> {
    pub network: &'a Network<D>,
    pub finer: Option<&'a Network<D>>,
}

/// The name of a node: a place in the array of a colour.
fn node_at(colour: usize, index: usize) -> Node {
    Node((colour << 30 | index) as u32)
}

impl<const D: usize> LevelRows for NetworkRows<'_, D> {
    fn row(&self, node: Node) -> Row {
        self.network.row(node)
    }

    fn parent(&self, node: Node) -> Option<Node> {
        let finer = self.finer?;
        match node.place() {
            Place::Explicit(_) => Some(node),
            Place::Cell { colour, index } => {
                let block = finer.block_of_node(colour, index);
                let (cover, octant) = (finer.cover[block] as usize, flatten(finer.topology.octant(block), 2));
                let parents = self.network.pattern(cover).parents.of(octant, colour);
                let local = index - finer.blocks[block].nodes[colour] as usize;
                let (colour, index) = self.network.node(cover, parents.get(local))?;
                Some(node_at(colour, index))
            }
        }
    }
}

impl<const D: usize> Network<D> {
    /// The block of a node.
    fn block_of_node(&self, colour: usize, index: usize) -> usize {
        self.blocks.partition_point(|block| block.nodes[colour] as usize <= index) - 1
    }

    /// The node of an unknown, if it is one. `block_of` gives the block of a slot.
    pub fn node_of(&self, unknown: Unknown, block_of: &[u32]) -> Option<Node> {
        match unknown {
            Unknown::Shared(shared) => {
                (self.shared.diagonal[shared as usize] > 0.0).then(|| Node::explicit(shared as usize))
            }
            Unknown::Cell(cell) => {
                let (slot, cell) = (cell as usize / block_cells(D), cell as usize % block_cells(D));
                let block = block_of.get(slot).copied().filter(|&block| block != 0)? as usize;
                let local = self.pattern(block).find(cell, 0)?;
                let colour = colour_of::<D>(cell);
                Some(node_at(colour, self.blocks[block].nodes[colour] as usize + local))
            }
        }
    }

    /// The row of a node.
    fn row(&self, node: Node) -> Row {
        let mut row = Row::default();
        match node.place() {
            Place::Explicit(shared) => {
                let links = self.shared.links_of(shared);
                row.links.extend(
                    links.map(|link| (node_at(link.node.0 as usize, link.node.1 as usize), link.link)),
                );
                row.diagonal = self.shared.diagonal[shared];
            }
            Place::Cell { colour, index } => {
                let block = self.block_of_node(colour, index);
                let first = self.blocks[block].nodes;
                let (pattern, local) = (self.pattern(block), index - first[colour] as usize);
                pattern.each_link(colour, self.whole, |own, end, link| {
                    if own == local {
                        let end = match end {
                            End::Local(other, at) => node_at(other, first[other] as usize + at),
                            End::Halo(halo) => node_at(1 - colour, self.find_halo(block, colour, halo)),
                        };
                        row.links.push((end, link));
                    }
                });
                row.diagonal = pattern.half[colour].diagonal[local];
                for entry in
                    self.shared.of(colour, block).iter().filter(|entry| entry.node.1 as usize == index)
                {
                    row.links.push((Node::explicit(entry.shared as usize), entry.link));
                    row.diagonal += f64::from(entry.link);
                }
            }
        }
        row
    }

    /// Takes the bodies of a system, on its own network.
    pub fn read_couplings(&mut self, couplings: Option<&Couplings>, block_of: &[u32]) {
        let mut coupled = CoupledBlock::default();
        if let Some(couplings) = couplings {
            let rows = NetworkRows { network: &*self, finer: None };
            coupled.read(couplings, &rows, |unknown| self.node_of(unknown, block_of));
        }
        self.coupled = coupled;
    }

    /// Makes sweeps leave the nodes alone that touch bodies: their `inverse` becomes 0, and the blocks around them are swept with
    /// regard to what nodes were before.
    pub fn hold_coupled(&mut self) {
        self.coupled.factor();
        self.shared.held.clear();
        self.shared.held.resize(self.shared.x.len(), false);
        let coupled = std::mem::take(&mut self.coupled);
        for (index, &node) in coupled.nodes().iter().enumerate().filter(|(_, node)| **node != Node::NONE) {
            let ends = coupled.row(index).links.iter().map(|link| link.0);
            for end in ends.chain([node]) {
                if let Place::Cell { colour, index } = end.place() {
                    let block = self.block_of_node(colour, index);
                    (self.damped[block], self.blocks[block].is_plain) = (true, false);
                }
            }
            match node.place() {
                Place::Cell { colour, index } => self.inverse[colour][index] = 0.0,
                Place::Explicit(shared) => self.shared.held[shared] = true,
            }
        }
        self.coupled = coupled;
    }

    /// The value of a node.
    pub fn value(&self, node: Node) -> f32 {
        match node.place() {
            Place::Cell { colour, index } => self.x[colour][index],
            Place::Explicit(shared) => self.shared.x[shared],
        }
    }

    /// Sets the value of a node.
    pub fn set_value(&mut self, node: Node, value: f32) {
        match node.place() {
            Place::Cell { colour, index } => self.x[colour][index] = value,
            Place::Explicit(shared) => self.shared.x[shared] = value,
        }
    }

    /// The right-hand side of a node.
    pub fn rhs(&self, node: Node) -> f32 {
        match node.place() {
            Place::Cell { colour, index } => self.b[colour][index],
            Place::Explicit(shared) => self.shared.b[shared],
        }
    }

    /// Relaxes all nodes that touch bodies, as one block, after [`CoupledBlock::start`]. `tiles` move as last prepared.
    pub(super) fn relax_coupled(&mut self, tiles: Option<&Surfaces>) {
        if self.coupled.is_empty() {
            return;
        }
        let mut coupled = std::mem::take(&mut self.coupled);
        let others = tiles.map_or_else(Vec::new, |tiles| self.terms_of(tiles, coupled.nodes()));
        coupled.relax(|node| self.value(node), |index| others.get(index).copied().unwrap_or(0.0));
        coupled.values().for_each(|(node, value)| self.set_value(node, value));
        self.coupled = coupled;
    }

    /// Takes the right-hand side of the nodes that touch bodies; their values are zero.
    pub(super) fn start_coupled(&mut self) {
        let mut coupled = std::mem::take(&mut self.coupled);
        coupled.start(|node| self.rhs(node));
        self.coupled = coupled;
    }

    /// `Jᵀ v` of tiles for some nodes in ascending order.
    fn terms_of(&self, tiles: &Surfaces, nodes: &[Node]) -> Vec<f64> {
        let mut terms = vec![0.0; nodes.len()];
        let (mut room, mut last) = (Vec::new(), None);
        for (term, node) in terms.iter_mut().zip(nodes) {
            if *node == Node::NONE || node.is_explicit() {
                break;
            }
            let Place::Cell { colour, index } = node.place() else { break };
            let block = self.block_of_node(colour, index);
            if !self.touched[block] {
                continue;
            }
            let range = self.range(block, colour);
            if last != Some((block, colour)) {
                room.clear();
                room.resize(range.len(), 0.0f64);
                tiles.scatter_velocity(block, colour, &mut room, 1.0);
                last = Some((block, colour));
            }
            *term = room[index - range.start];
        }
        terms
    }

    /// Residuals of the nodes that touch bodies, after the others have theirs; those that are no nodes of the coarser level go to
    /// its block. Returns what the bodies' term takes from each shared node.
    pub(super) fn restrict_coupled(&mut self, coarse: &mut CoupledBlock) -> Vec<(usize, f32)> {
        let mut coupled = std::mem::take(&mut self.coupled);
        let mut residuals = std::mem::take(&mut self.residual);
        for &node in coupled.nodes().iter().filter(|&&node| node != Node::NONE && !node.is_explicit()) {
            if let Place::Cell { colour, index } = node.place() {
                residuals[colour][index] = 0.0;
            }
        }
        let (this, mut of_shared) = (&*self, Vec::new());
        coupled.restrict(
            |node| this.value(node),
            coarse,
            |coupled, index, residual, term| match coupled.nodes()[index].place() {
                Place::Cell { colour, index } => residuals[colour][index] = residual - term,
                Place::Explicit(shared) => of_shared.push((shared, term)),
            },
        );
        self.residual = residuals;
        self.coupled = coupled;
        of_shared
    }

    /// Gives the nodes that touch bodies what they had and the values of the coarser level.
    pub(super) fn prolong_coupled(&mut self, coarse: &Network<D>) {
        if self.coupled.is_empty() {
            return;
        }
        let mut coupled = std::mem::take(&mut self.coupled);
        coupled.prolong(&coarse.coupled, |node| coarse.value(node));
        coupled.values().for_each(|(node, value)| self.set_value(node, value));
        self.coupled = coupled;
    }
}
