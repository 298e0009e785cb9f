//! Parts of the network without ground.
//!
//! Bodies do not connect: a field without divergence has no net flow through any closed surface, so every part of the
//! network around and inside of bodies has a null vector of its own.

use crate::grid::block_cells;
use crate::math::power;

use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::super::source::Source;
use super::super::stencil::mask_words;

/// The components of one level's network.
#[derive(Clone, Debug, Default)]
pub(super) struct Components {
    /// Per node, cells in natural order first: another node of its component.
    set: Vec<u32>,
    /// Numbers of the components without ground, from 1, by their first node.
    number: Vec<u32>,
    has_ground: Vec<bool>,
    /// How many have none.
    pub count: usize,
}

impl Components {
    fn root(&mut self, mut node: usize) -> usize {
        while self.set[node] as usize != node {
            self.set[node] = self.set[self.set[node] as usize];
            node = self.set[node] as usize;
        }
        node
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.set[a.max(b)] = a.min(b) as u32;
    }

    /// Finds those of a level whose cell coefficients are in `source`.
    pub fn find<const D: usize, S: Source<D>>(&mut self, level: &Level<D>, source: &S) {
        let (cells, words) = (block_cells(D), mask_words(D));
        let first_explicit = level.topology.len() * cells;
        let len = first_explicit + level.explicit.count;
        self.set.clear();
        self.set.extend(0..len as u32);
        for block in 1..level.topology.len() {
            for axis in 0..D {
                let stride = power(8, axis);
                let below = level.topology.beside(block)[axis][0] as usize;
                for (local, _) in source.link(axis, block).iter().enumerate().filter(|(_, link)| **link > 0.0)
                {
                    let other = match local / stride % 8 {
                        0 => below * cells + local + 7 * stride,
                        _ => block * cells + local - stride,
                    };
                    self.join(block * cells + local, other);
                }
            }
        }
        let place = |node: Node| match node.place() {
            Place::Cell { .. } => {
                let (block, local) = node.block_and_local::<D>();
                block * cells + local
            }
            Place::Explicit(index) => first_explicit + index,
        };
        for node in 0..level.explicit.count {
            for (to, link, _) in level.explicit.links(node) {
                if link > 0.0 {
                    self.join(first_explicit + node, place(to));
                }
            }
        }
        self.has_ground.clear();
        self.has_ground.resize(len, false);
        for block in 1..level.topology.len() {
            for (local, _) in source.ground(block).iter().enumerate().filter(|(_, ground)| **ground > 0.0) {
                let root = self.root(block * cells + local);
                self.has_ground[root] = true;
            }
        }
        for (node, _) in level.explicit.ground.iter().enumerate().filter(|(_, ground)| **ground > 0.0) {
            let root = self.root(first_explicit + node);
            self.has_ground[root] = true;
        }
        self.number.clear();
        self.number.resize(len, 0);
        self.count = 0;
        let is_unknown = |node: usize| match node.checked_sub(first_explicit) {
            Some(index) => level.explicit.diagonal[index] > 0.0,
            None => {
                let (block, local) = (node / cells, node % cells);
                level.stencil.live[block * words + local / 64] >> (local % 64) & 1 == 1
            }
        };
        for node in (0..len).filter(|&node| is_unknown(node)) {
            let root = self.root(node);
            if !self.has_ground[root] && self.number[root] == 0 {
                self.count += 1;
                self.number[root] = self.count as u32;
            }
        }
    }

    /// Sets the level's `x` to the number of each node's component; 0 where there is a ground.
    pub fn write<const D: usize>(&mut self, level: &mut Level<D>) {
        let cells = block_cells(D);
        level.x.iter_mut().for_each(|x| x.fill([0.0; 8]));
        for node in cells..level.topology.len() * cells {
            let root = self.root(node);
            let number = self.number[root];
            if number != 0
                && let Place::Cell { colour, index } = Node::cell::<D>(node / cells, node % cells).place()
            {
                level.x[colour].as_flattened_mut()[index] = number as f32;
            }
        }
        for index in 0..level.explicit.count {
            let root = self.root(level.topology.len() * cells + index);
            level.explicit.x[index] = self.number[root] as f32;
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.set.capacity() + self.number.capacity()) * 4 + self.has_ground.capacity()
    }
}
