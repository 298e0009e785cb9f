//! Parts of the network without ground.
//!
//! Tiles do not connect: a field without divergence has no net flow through any closed surface, so every part of the
//! network around and inside of bodies has a null vector of its own.

use crate::math::{Sets, flatten};

use super::network::{Colours, Network};
use super::visit::{PerBlock, both, visit};

/// The components of the coarsest network with bodies.
#[derive(Clone, Debug, Default)]
pub(super) struct Components {
    /// Nodes that hang together: red ones first, shared ones last.
    sets: Sets,
    /// Numbers of the components without ground, from 1, by their first node.
    number: Vec<u32>,
    /// How many have none.
    pub count: usize,
}

/// Components by number, from 1; 0 where there is a ground.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    /// Per block, or [`MIXED`].
    pub blocks: Vec<u32>,
    /// Per node.
    pub nodes: Colours<u32>,
    /// Per shared node.
    pub shared: Vec<u32>,
}

/// A block with nodes of several components.
pub(super) const MIXED: u32 = u32::MAX;

/// A node that is a component of its own, before it has a number.
const ALONE: u32 = u32::MAX;

impl Components {
    /// Finds the components of a network.
    pub fn find<const D: usize>(&mut self, net: &Network<D>) {
        let [red, black] = net.counts();
        let first = [0, red];
        let total = red + black + net.shared.x.len();
        self.sets.reset(total);
        // Places that are left over between blocks are no unknowns, and need none.
        let mut has_ground = vec![true; total];
        has_ground[red + black..].fill(false);
        for block in 1..net.blocks.len() - 1 {
            let (this, pattern) = (&net.blocks[block], net.pattern(block));
            for colour in 0..2 {
                let start = first[colour] + this.nodes[colour] as usize;
                for node in 0..pattern.count(colour) {
                    // Places without a node are no unknowns, and need none.
                    has_ground[start + node] =
                        pattern.terms(colour, node).ground > 0.0 || !pattern.has_node(colour, node);
                }
            }
        }
        net.each_link(|colour, node, other, index, _| {
            self.sets.join((first[colour] + node) as u32, (first[other] + index) as u32);
        });
        for entry in net.shared.list() {
            let node = first[entry.node.0 as usize] + entry.node.1 as usize;
            self.sets.join(node as u32, (red + black) as u32 + entry.shared);
        }
        for node in (0..total).filter(|&node| has_ground[node]).collect::<Vec<_>>() {
            has_ground[self.sets.find(node as u32) as usize] = true;
        }
        self.number.clear();
        self.number.resize(total, 0);
        self.count = 0;
        for node in 0..total {
            // A shared node without links is no unknown.
            let is_unknown = node < red + black || net.shared.diagonal[node - red - black] > 0.0;
            let root = self.sets.find(node as u32) as usize;
            if is_unknown && !has_ground[root] && self.number[root] == 0 {
                self.count += 1;
                self.number[root] = self.count as u32;
            }
        }
    }

    /// The first node of the part that a node belongs to; red ones are counted first.
    pub fn part_of(&mut self, node: usize) -> u32 {
        self.sets.find(node as u32)
    }

    /// The number of a node's component if that has no ground, from 1, or 0; red nodes are counted first and shared ones last.
    pub fn number_of(&mut self, node: usize) -> u32 {
        self.number[self.sets.find(node as u32) as usize]
    }

    /// Whether a node, red ones counted first and shared ones last, is the first one of a component without ground.
    pub fn is_first_of_closed(&self, node: usize) -> bool {
        self.number[node] > 0
    }

    /// Numbers of all nodes of the finest of some networks that hang on no ground, and of its shared nodes (0 where there
    /// is one), by the components of the last. Nodes that are a component of their own on a level in between get the next
    /// numbers.
    pub fn label<const D: usize>(&mut self, nets: &[Network<D>]) -> Labels {
        let Some(last) = nets.last() else { return Labels::default() };
        let [red, black] = last.counts();
        let Components { sets, number, count } = self;
        let mut of = |node: usize| number[sets.find(node as u32) as usize];
        let mut labels: Colours<u32> =
            [(0..red).map(&mut of).collect(), (red..red + black).map(&mut of).collect()];
        let shared = (red + black..red + black + last.shared.x.len()).map(of).collect();
        let mut next = *count as u32;
        for pair in nets.windows(2).rev() {
            let (fine, coarse) = (&pair[0], &pair[1]);
            let mut finer: Colours<u32> = fine.counts().map(|count| vec![0; count]);
            let mut has_single = vec![false; fine.blocks.len() - 1];
            let (red, black) = both(&mut finer);
            let parts = (red, black, PerBlock(&mut has_single));
            visit(&fine.blocks, parts, &|| (), &|(), block, (red, black, has_single)| {
                let (cover, pattern) = (fine.cover[block] as usize, fine.pattern(block));
                let (parents, octant) =
                    (&coarse.pattern(cover).parents, flatten(fine.topology.octant(block), 2));
                for (colour, out) in [red.0, black.0].into_iter().enumerate() {
                    let parents = parents.of(octant, colour);
                    for (node, out) in out.iter_mut().enumerate() {
                        *out = match coarse.node(cover, parents.get(node)) {
                            _ if !pattern.has_node(colour, node) => 0,
                            Some((above, index)) => labels[above][index],
                            None if pattern.is_closed(colour, node) => ALONE,
                            None => 0,
                        };
                        has_single.0[0] |= *out == ALONE;
                    }
                }
            });
            for block in (0..has_single.len()).filter(|&block| has_single[block]) {
                for colour in 0..2 {
                    let own = &mut finer[colour][fine.range(block, colour)];
                    for label in own.iter_mut().filter(|label| **label == ALONE) {
                        next += 1;
                        *label = next;
                    }
                }
            }
            labels = finer;
        }
        let net = &nets[0];
        let mut blocks = vec![0; net.blocks.len() - 1];
        visit(&net.blocks, PerBlock(&mut blocks), &|| (), &|(), block, label| {
            let pattern = net.pattern(block);
            let mut own = (0..2).flat_map(|colour| {
                let nodes = labels[colour][net.range(block, colour)].iter().enumerate();
                nodes.filter(move |&(node, _)| pattern.has_node(colour, node)).map(|(_, &label)| label)
            });
            label.0[0] = own.next().unwrap_or(0);
            if own.any(|other| other != label.0[0]) {
                label.0[0] = MIXED;
            }
        });
        Labels { blocks, nodes: labels, shared }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.sets.len() + self.number.capacity()) * 4
    }
}

/// Nodes without any link or ground on levels that others follow: components of their own.
pub(super) fn closed_nodes<const D: usize>(nets: &[Network<D>]) -> usize {
    let zeros = |net: &Network<D>| {
        let of_block = |block: usize| {
            let pattern = net.pattern(block);
            (0..2)
                .map(|colour| {
                    (0..pattern.count(colour)).filter(|&node| pattern.is_closed(colour, node)).count()
                })
                .sum::<usize>()
        };
        (1..net.blocks.len() - 1).map(of_block).sum::<usize>()
    };
    nets.iter().skip(1).rev().skip(1).map(zeros).sum()
}
