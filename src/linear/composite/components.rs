//! Parts of the network without ground.
//!
//! Bodies do not connect: a field without divergence has no net flow through any closed surface, so every part of the
//! network around and inside of bodies has a null vector of its own.

use crate::math::{Sets, flatten};

use super::net::{Colours, Net};
use super::pattern::End;

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

/// Components by number, from 1.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels {
    /// Nodes of components without ground, by colour, with the number of theirs.
    pub nodes: Colours<(u32, u32)>,
    /// Per shared node; 0 where there is a ground.
    pub shared: Vec<u32>,
}

impl Components {
    /// Finds those of a network.
    pub fn find<const D: usize>(&mut self, net: &Net<D>) {
        let [red, black] = net.counts();
        let first = [0, red];
        let total = red + black + net.ties.x.len();
        self.sets.reset(total);
        let mut has_ground = vec![false; total];
        for block in 1..net.blocks.len() - 1 {
            let (this, pattern) = (&net.blocks[block], net.pattern(block));
            for colour in 0..2 {
                let start = first[colour] + this.nodes[colour] as usize;
                for node in 0..pattern.count(colour) {
                    has_ground[start + node] = pattern.traits(colour, node).ground > 0.0;
                }
                pattern.each_end(colour, |node, end| {
                    let other = match end {
                        End::Here(other, index) => first[other] + this.nodes[other] as usize + index,
                        End::There(beyond) => {
                            let at = this.beyond[colour] as usize + beyond;
                            first[1 - colour] + net.beyond[colour][at] as usize
                        }
                    };
                    self.sets.join((start + node) as u32, other as u32);
                });
            }
        }
        for tie in net.ties.list() {
            let node = first[tie.node.0 as usize] + tie.node.1 as usize;
            self.sets.join(node as u32, (red + black) as u32 + tie.shared);
        }
        for node in (0..total).filter(|&node| has_ground[node]).collect::<Vec<_>>() {
            has_ground[self.sets.find(node as u32) as usize] = true;
        }
        self.number.clear();
        self.number.resize(total, 0);
        self.count = 0;
        for node in 0..total {
            // A shared node without ties is no unknown.
            let is_unknown = node < red + black || net.ties.diagonal[node - red - black] > 0.0;
            let root = self.sets.find(node as u32) as usize;
            if is_unknown && !has_ground[root] && self.number[root] == 0 {
                self.count += 1;
                self.number[root] = self.count as u32;
            }
        }
    }

    /// Numbers of all nodes of the finest of some networks that hang on no ground, and of its shared nodes (0 where there
    /// is one), by the components of the last. Nodes that are a component of their own on a level in between get the next
    /// numbers.
    pub fn label<const D: usize>(&mut self, nets: &[Net<D>]) -> Labels {
        let Some(last) = nets.last() else { return Labels::default() };
        let [red, black] = last.counts();
        let Components { sets, number, count } = self;
        let mut of = |node: usize| number[sets.find(node as u32) as usize];
        let mut labels: Colours<u32> =
            [(0..red).map(&mut of).collect(), (red..red + black).map(&mut of).collect()];
        let shared = (red + black..red + black + last.ties.x.len()).map(of).collect();
        let mut next = *count as u32;
        for pair in nets.windows(2).rev() {
            let (fine, coarse) = (&pair[0], &pair[1]);
            let counts = fine.counts();
            let mut finer: Colours<u32> = [vec![0; counts[0]], vec![0; counts[1]]];
            for block in 1..fine.blocks.len() - 1 {
                let cover = fine.cover[block] as usize;
                let parents = &coarse.pattern(cover).parents[flatten(fine.topology.octant(block), 2)];
                for colour in 0..2 {
                    let start = fine.blocks[block].nodes[colour] as usize;
                    for (node, &parent) in parents[colour].iter().enumerate() {
                        finer[colour][start + node] = match coarse.node(cover, parent) {
                            Some((above, index)) => labels[above][index],
                            None if fine.pattern(block).is_closed(colour, node) => {
                                next += 1;
                                next
                            }
                            None => 0,
                        };
                    }
                }
            }
            labels = finer;
        }
        let is_named = |(_, label): &(usize, u32)| *label != 0;
        let nodes = labels.map(|labels| {
            labels
                .into_iter()
                .enumerate()
                .filter(is_named)
                .map(|(node, label)| (node as u32, label))
                .collect()
        });
        Labels { nodes, shared }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.sets.len() + self.number.capacity()) * 4
    }
}

/// Nodes without any link or ground on levels that others follow: components of their own.
pub(super) fn closed_nodes<const D: usize>(nets: &[Net<D>]) -> usize {
    let zeros = |net: &Net<D>| {
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
