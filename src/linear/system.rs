//! What a solve is given.

use super::coupling::Couplings;
use crate::grid::{Blocks, Field, Slots};
use crate::math::sort_by_group;

/// A link between a shared node and a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedLink {
    /// Index of the node.
    pub node: u32,
    /// The cell, `slot · 8^D + local`.
    pub cell: u32,
    /// Strength, positive.
    pub link: f32,
    /// Size of the surface it acts through, positive, in the units of `link`.
    pub area: f32,
}

/// Nodes that are linked to many cells, one list of links per node.
///
/// A node without links is no unknown: its right-hand side is ignored, its value is 0.
#[derive(Clone, Debug, Default)]
pub struct SharedNodes {
    start: Vec<u32>,
    cell: Vec<u32>,
    link: Vec<f32>,
    area: Vec<f32>,
    weight: Vec<f64>,
}

impl SharedNodes {
    /// Forgets all nodes, keeps the memory.
    pub fn clear(&mut self) {
        self.start.clear();
        self.cell.clear();
        self.link.clear();
        self.area.clear();
        self.weight.clear();
    }

    /// Makes one node per weight, linked as listed in any order; links of a node keep that order. Takes time linear in
    /// the number of links, and no memory beyond what an earlier call of this size needed.
    pub fn rebuild(&mut self, weights: &[f64], links: &[SharedLink]) {
        self.weight.clear();
        self.weight.extend_from_slice(weights);
        let count = weights.len();
        let node = |link: &&SharedLink| {
            assert!((link.node as usize) < count, "link to node {} of {count}", link.node);
            link.node
        };
        self.cell.resize(links.len(), 0);
        self.link.resize(links.len(), 0.0);
        self.area.resize(links.len(), 0.0);
        sort_by_group(&mut self.start, count, links.iter(), node, |at, link| {
            (self.cell[at], self.link[at], self.area[at]) = (link.cell, link.link, link.area);
        });
    }

    /// Begins a new node that counts as `weight` cells in the mean of a component.
    pub fn push_node(&mut self, weight: f64) {
        if self.start.is_empty() {
            self.start.push(0);
        }
        self.start.push(self.cell.len() as u32);
        self.weight.push(weight);
    }

    /// Links the last node to a cell (`slot · 8^D + local`) by `link > 0`, through a surface of size `area > 0`.
    pub fn push_link(&mut self, cell: usize, link: f32, area: f32) {
        self.cell.push(u32::try_from(cell).expect("cell indices fit into 32 bits"));
        self.link.push(link);
        self.area.push(area);
        *self.start.last_mut().expect("a node was pushed before its links") = self.cell.len() as u32;
    }

    /// How many nodes.
    pub fn len(&self) -> usize {
        self.weight.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.weight.is_empty()
    }

    /// How many cells a node counts as.
    pub fn weight(&self, node: usize) -> f64 {
        self.weight[node]
    }

    /// The links of a node: cell, link, area.
    pub fn links(&self, node: usize) -> impl Iterator<Item = (usize, f32, f32)> + '_ {
        let range = self.start[node] as usize..self.start[node + 1] as usize;
        range.map(|i| (self.cell[i] as usize, self.link[i], self.area[i]))
    }
}

/// A symmetric network of links between the cells of a block-sparse grid, with the terms of bodies if there are any.
///
/// The unknowns are the cells with a positive diagonal: the sum of a cell's links, ground and links to shared nodes.
/// The f32 coefficients are the definition of the matrix; everything outside the preconditioner works in f64.
#[derive(Clone, Copy)]
pub struct System<'a, const D: usize> {
    /// The blocks that all fields refer to.
    pub blocks: &'a Blocks<D>,
    /// Blocks that hold an unknown: a part of `blocks.slots()`, in the same order.
    pub live: &'a Slots,
    /// `link[axis][i] ≥ 0`: between cell `i` and its low neighbour along the axis. Nonzero only between unknowns;
    /// zero in every block that is not live. Blocks in which all links have exactly the largest value of the whole
    /// system (with two materials: the largest of most blocks) (or lead to no unknown) are swept much faster than others.
    pub link: &'a [Field<f32>; D],
    /// `ground[i] ≥ 0`: ties the cell to the value zero.
    pub ground: &'a Field<f32>,
    /// Size of the surface through which the ground acts, wherever `ground` is positive, in the units of `link` (a whole
    /// face counts as much as a whole link). The coarse levels need it: a strong ground behind a small surface still
    /// holds a large aggregate only weakly.
    pub ground_area: &'a Field<f32>,
    /// Nodes that touch many cells.
    pub shared: &'a SharedNodes,
    /// The materials, if there are two whose links differ by orders of magnitude.
    pub materials: Option<Materials<'a>>,
    /// Terms `Jᵀ K J` of bodies that push cells and shared nodes with weights of their own.
    pub couplings: Option<&'a Couplings>,
}

/// Two materials. Aggregates keep to one of them; otherwise the strong links of one would decide for the weak ones of the
/// other.
#[derive(Clone, Copy)]
pub struct Materials<'a> {
    /// Which cells are of the second one.
    pub second: &'a Field<bool>,
    /// A whole link between two cells of the first, and of the second.
    pub whole: [f32; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rebuilding_sorts_links_by_node_and_keeps_their_order() {
        let link = |node: u32, cell: u32| SharedLink { node, cell, link: cell as f32, area: 0.5 };
        let mut shared = SharedNodes::default();
        for _ in 0..2 {
            shared.rebuild(
                &[1.0, 2.0, 3.0, 4.0],
                &[link(2, 9), link(0, 4), link(2, 1), link(3, 5), link(0, 4), link(2, 8)],
            );
            let cells: Vec<Vec<_>> =
                (0..4).map(|node| shared.links(node).map(|(cell, _, _)| cell).collect()).collect();
            assert_eq!(cells, [vec![4, 4], vec![], vec![9, 1, 8], vec![5]]);
            assert_eq!(shared.weight(2), 3.0);
        }
        shared.push_node(5.0);
        shared.push_link(7, 1.0, 1.0);
        assert_eq!((shared.len(), shared.links(4).count(), shared.links(3).count()), (5, 1, 1));
        shared.rebuild(&[], &[]);
        assert!(shared.is_empty());
        shared.push_node(1.0);
        assert_eq!(shared.links(0).count(), 0);
    }
}
