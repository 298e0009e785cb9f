//! A network by the positions of its nodes.

use std::collections::BTreeMap;

use crate::math::power;

use super::super::super::reference::LevelNetwork;
use super::Network;

impl<const D: usize> Network<D> {
    /// Links and grounds by cell. The bodies' term is no part of them.
    pub fn by_position(&self) -> LevelNetwork<D> {
        let mut network = LevelNetwork::default();
        let mut positions: [BTreeMap<usize, [i32; D]>; 2] = Default::default();
        for block in 1..self.blocks.len() - 1 {
            let (pattern, first) = (self.pattern(block), self.topology.coords(block));
            for (colour, positions) in positions.iter_mut().enumerate() {
                for (node, &cell) in pattern.half[colour].cells.iter().enumerate() {
                    if pattern.has_node(colour, node) {
                        let at: [i32; D] = std::array::from_fn(|axis| {
                            8 * first[axis] + (cell as usize / power(8, axis) % 8) as i32
                        });
                        positions.insert(self.range(block, colour).start + node, at);
                        network.add_ground(at, pattern.terms(colour, node).ground);
                    }
                }
            }
        }
        // Links are listed from both ends.
        self.each_link(|colour, node, other, index, link| {
            network.add_link(positions[colour][&node], positions[other][&index], 0.5 * f64::from(link));
        });
        network
    }
}
