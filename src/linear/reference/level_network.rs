//! The network of a coarse level by position, whatever stores it: to compare hierarchies with each other.

use std::collections::BTreeMap;

use crate::grid::block_cells;
use crate::math::unflatten;

use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::super::source::Source;

/// Sums of coefficients by cell of a level. Nodes of one cell, where an aggregate fell into parts, count together; shared
/// nodes are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelNetwork<const D: usize> {
    /// Links between neighbouring cells, the lower one first.
    pub links: BTreeMap<[[i32; D]; 2], f64>,
    /// Grounds of cells.
    pub grounds: BTreeMap<[i32; D], f64>,
}

impl<const D: usize> LevelNetwork<D> {
    /// Adds a link between two cells.
    pub(in super::super) fn add_link(&mut self, a: [i32; D], b: [i32; D], link: f64) {
        if a != b && link > 0.0 {
            *self.links.entry([a.min(b), a.max(b)]).or_default() += link;
        }
    }

    /// Adds a ground of a cell.
    pub(in super::super) fn add_ground(&mut self, cell: [i32; D], ground: f32) {
        if ground > 0.0 {
            *self.grounds.entry(cell).or_default() += f64::from(ground);
        }
    }

    /// Reads a coarse level without bodies.
    pub(in super::super) fn of_level(level: &Level<D>) -> Self {
        let position = |block: usize, cell: usize| -> [i32; D] {
            let (first, at) = (level.topology.coords(block), unflatten::<D>(cell, 8));
            std::array::from_fn(|axis| 8 * first[axis] + at[axis] as i32)
        };
        let place = |node: Node| match node.place() {
            Place::Cell { .. } => {
                let (block, cell) = node.block_and_local::<D>();
                Some(position(block, cell))
            }
            Place::Explicit(index) => level.explicit.position.get(index).copied(),
        };
        let mut network = LevelNetwork::default();
        for block in 1..level.topology.len() {
            for cell in 0..block_cells(D) {
                let here = position(block, cell);
                network.add_ground(here, Source::<D>::ground(&level.sums, block)[cell]);
                for axis in 0..D {
                    let mut low = here;
                    low[axis] -= 1;
                    network.add_link(low, here, f64::from(Source::<D>::link(&level.sums, axis, block)[cell]));
                }
            }
        }
        for (extra, &here) in level.explicit.position.iter().enumerate() {
            network.add_ground(here, level.explicit.ground[extra]);
            for (to, link, _) in level.explicit.links(extra) {
                // Links between two extras are listed with both.
                let share = if to.is_explicit() { 0.5 } else { 1.0 };
                if let Some(there) = place(to) {
                    network.add_link(here, there, share * f64::from(link));
                }
            }
        }
        network
    }
}
