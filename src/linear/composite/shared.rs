//! Rows of the shared nodes (bubbles) of a compact network, and their links to its nodes.

use rayon::prelude::*;

use crate::math::sort_by_group;

use super::super::coarsen::in_series;
use super::visit::Block;

/// A link between a node and a shared node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SharedEntry {
    /// Colour and index of the node.
    pub node: (u8, u32),
    pub shared: u32,
    pub link: f32,
    pub area: f32,
}

/// All shared nodes of a level, with their row of `A x = b`.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedRows {
    /// By node.
    list: Vec<SharedEntry>,
    /// By shared node: where its links start in `order`, which has their places in `list`.
    start: Vec<u32>,
    order: Vec<u32>,
    /// By colour and block: where its links start in `list`.
    of_block: [Vec<u32>; 2],
    pub x: Vec<f32>,
    pub b: Vec<f32>,
    pub diagonal: Vec<f64>,
    /// Whether each is left alone by sweeps; empty if none is.
    pub held: Vec<bool>,
}

impl SharedRows {
    /// Takes the number of shared nodes, and their links in any order.
    pub fn set(&mut self, count: usize, mut list: Vec<SharedEntry>) {
        list.sort_unstable_by_key(|entry| (entry.node, entry.shared));
        self.diagonal.clear();
        self.diagonal.resize(count, 0.0);
        for entry in &list {
            self.diagonal[entry.shared as usize] += f64::from(entry.link);
        }
        self.order.clear();
        self.order.resize(list.len(), 0);
        let (order, entries) = (&mut self.order, list.iter().zip(0..));
        sort_by_group(
            &mut self.start,
            count,
            entries,
            |(entry, _)| entry.shared,
            |at, (_, index)| order[at] = index,
        );
        for values in [&mut self.x, &mut self.b] {
            values.clear();
            values.resize(count, 0.0);
        }
        self.list = list;
    }

    /// The rows of the shared nodes on the next coarser level. `parent` gives the parent of a node, by its block, colour and place
    /// there, and whether that was made of several; `h` is the width of the finer cells.
    pub fn coarser(
        &self,
        blocks: &[Block],
        h: f32,
        parent: impl Fn(usize, usize, usize) -> Option<((u8, u32), bool)>,
    ) -> SharedRows {
        let mut list: Vec<SharedEntry> = Vec::with_capacity(self.list.len());
        for colour in 0..2 {
            for block in 1..blocks.len() - 1 {
                for entry in self.of(colour, block) {
                    let node = (entry.node.1 - blocks[block].nodes[colour]) as usize;
                    if let Some((node, merged)) = parent(block, colour, node) {
                        let link = if merged { in_series(entry.link, entry.area, h) } else { entry.link };
                        list.push(SharedEntry { node, link, ..*entry });
                    }
                }
            }
        }
        list.sort_by_key(|entry| (entry.node, entry.shared));
        list.dedup_by(|entry, kept| {
            let same = (entry.node, entry.shared) == (kept.node, kept.shared);
            if same {
                kept.link += entry.link;
                kept.area += entry.area;
            }
            same
        });
        let mut coarse = SharedRows::default();
        coarse.set(self.x.len(), list);
        coarse
    }

    /// Whether no node is linked to a shared one.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All links.
    pub fn list(&self) -> &[SharedEntry] {
        &self.list
    }

    /// The links of a shared node.
    pub fn links_of(&self, shared: usize) -> impl Iterator<Item = &SharedEntry> {
        let order = &self.order[self.start[shared] as usize..self.start[shared + 1] as usize];
        order.iter().map(|&index| &self.list[index as usize])
    }

    /// Calls `each(colour, node, sum of its entries)`.
    pub fn each_sum(&self, mut each: impl FnMut(usize, usize, f64)) {
        for entries in self.list.chunk_by(|a, b| a.node == b.node) {
            let sum = entries.iter().map(|entry| f64::from(entry.link)).sum();
            each(entries[0].node.0 as usize, entries[0].node.1 as usize, sum);
        }
    }

    /// Finds the links of each block; they must be set.
    pub fn index(&mut self, blocks: &[Block]) {
        for colour in 0..2 {
            let start = &mut self.of_block[colour];
            start.clear();
            let mut at = self.list.partition_point(|entry| (entry.node.0 as usize) < colour);
            for block in blocks {
                let is_before = |entry: &SharedEntry| entry.node < (colour as u8, block.nodes[colour]);
                at += self.list[at..].iter().take_while(|entry| is_before(entry)).count();
                start.push(at as u32);
            }
        }
    }

    /// The links of a colour's nodes in a block.
    #[inline]
    pub fn of(&self, colour: usize, block: usize) -> &[SharedEntry] {
        let start = &self.of_block[colour];
        &self.list[start[block] as usize..start[block + 1] as usize]
    }

    /// `Σ g x` over a shared node's links, in f64: there may be many thousands. Parts of the sum are made side by side.
    pub fn pull<T: Copy + Into<f64> + Sync>(&self, shared: usize, x: [&[T]; 2]) -> f64 {
        const GRAIN: usize = 2048;
        let term = |&index: &u32| {
            let entry = &self.list[index as usize];
            f64::from(entry.link) * x[entry.node.0 as usize][entry.node.1 as usize].into()
        };
        let order = &self.order[self.start[shared] as usize..self.start[shared + 1] as usize];
        if order.len() <= GRAIN {
            return order.iter().map(term).sum();
        }
        let sums: Vec<f64> = order.par_chunks(GRAIN).map(|part| part.iter().map(term).sum()).collect();
        sums.iter().sum()
    }

    /// The first pass over the shared nodes, while all others are zero.
    pub fn start_from_zero(&mut self) {
        for ((x, &b), &diagonal) in self.x.iter_mut().zip(&self.b).zip(&self.diagonal) {
            *x = if diagonal > 0.0 { (f64::from(b) / diagonal) as f32 } else { 0.0 };
        }
        self.x.iter_mut().zip(&self.held).filter(|(_, held)| **held).for_each(|(x, _)| *x = 0.0);
    }

    /// Gauss–Seidel over the shared nodes: solves their rows.
    pub fn relax(&mut self, x: [&[f32]; 2]) {
        for shared in 0..self.x.len() {
            if self.diagonal[shared] > 0.0 && self.held.get(shared) != Some(&true) {
                let value = (f64::from(self.b[shared]) + self.pull(shared, x)) / self.diagonal[shared];
                self.x[shared] = value as f32;
            }
        }
    }

    /// Residual of a shared node.
    pub fn residual(&self, shared: usize, x: [&[f32]; 2]) -> f32 {
        match self.diagonal[shared] {
            diagonal if diagonal > 0.0 => {
                let own = diagonal * f64::from(self.x[shared]);
                (f64::from(self.b[shared]) + self.pull(shared, x) - own) as f32
            }
            _ => 0.0,
        }
    }

    /// Restriction: hands residuals to the coarser level.
    pub fn restrict(&self, x: [&[f32]; 2], coarse: &mut SharedRows) {
        for shared in 0..self.x.len() {
            coarse.b[shared] = self.residual(shared, x);
        }
    }

    /// Prolongation: adds the values of the coarser level.
    pub fn prolong(&mut self, coarse: &SharedRows) {
        self.x.iter_mut().zip(&coarse.x).for_each(|(x, coarse)| *x += coarse);
    }

    /// `x·b`.
    pub fn dot_xb(&self) -> f64 {
        self.x.iter().zip(&self.b).map(|(&x, &b)| f64::from(x) * f64::from(b)).sum()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.list.capacity() * size_of::<SharedEntry>()
            + (self.start.capacity() + self.order.capacity()) * 4
            + (self.x.capacity() + self.b.capacity()) * 4
            + self.diagonal.capacity() * 8
    }
}
