//! Cells listed one by one.

use rayon::prelude::*;

use crate::grid::{Scatter, block_cells, masks};
use crate::math::power;

use super::super::layout::Node;
use super::super::level::Level;
use super::super::stencil::mask_words;
use super::super::system::System;

/// Nodes that a thread takes at a time.
pub(super) const GRAIN: usize = 4096;

/// Nodes that a sweep takes side by side.
pub(super) const LANES: usize = 16;

/// What a sweep reads of the nodes it takes side by side.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Group {
    /// Neighbours along each axis, low and high, as places among the nodes of the other colour; 0 for none.
    pub near: [[u32; LANES]; 6],
    /// 1 over the diagonal and the shift; 0 for nodes that are no unknowns.
    pub inverse: [f32; LANES],
}

/// What a few nodes have beyond a [`Group`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    /// Links, as the neighbours.
    pub link: [f32; 6],
    /// Ties to zero, and the size of the surface they act through.
    pub ground: f32,
    pub area: f32,
    /// Added to the diagonal so that a sweep with frozen bodies converges.
    pub shift: f32,
}

/// A link that has no place in a [`Group`]: to a node of the same place, or a second one along an axis. There is one in
/// each direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra {
    pub from: u32,
    pub to: u32,
    pub link: f32,
}

/// One level of listed nodes: the red ones, then the black ones. Each colour starts with a placeholder that stays zero,
/// and is filled up with placeholders to whole groups.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    pub groups: Vec<Group>,
    /// Per group, the nodes with a [`Rest`], a bit each.
    pub marks: Vec<u16>,
    /// Per node, where its [`Rest`] is; 0 if all its links are whole, and there is nothing else.
    pub special: Vec<u32>,
    pub rest: Vec<Rest>,
    /// Extra links, in the order of where they start. The finest level has none.
    pub extras: Vec<Extra>,
    /// What extra links brought before a sweep.
    pub pulled: Vec<f32>,
    /// Diagonal of the network, shift left out. For the finest level it is `exact`, rounded.
    pub diagonal: Vec<f32>,
    pub exact: Vec<f64>,
    /// What a whole link is.
    pub whole: f32,
    /// Where the black nodes' placeholder is.
    pub black: usize,
    /// Nodes of the network with all cells that these stand for.
    pub node: Vec<Node>,
    /// Parents in the next coarser list; 0 for none. Before that list exists it is their position.
    pub parent: Vec<u32>,
    pub x: Vec<f32>,
    pub b: Vec<f32>,
    /// What bodies and shared nodes take away from `b` while a sweep takes them as they are.
    pub frozen: Vec<f32>,
    pub residual: Vec<f32>,
}

/// Cells along which the colours alternate: those of a word whose coordinates have an even sum, in a word of even index.
const EVEN: u64 = 0xaa55_aa55_aa55_aa55;

/// Cells of a colour in a word of a block's mask.
#[inline]
fn of_colour(colour: usize, word: usize) -> u64 {
    if (word + colour).is_multiple_of(2) { EVEN } else { !EVEN }
}

/// The colour of a cell.
#[inline]
fn colour_of(local: usize) -> usize {
    (local + local / 8 + local / 64) % 2
}

/// Where the cells of each block are listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    /// Per block: its unknown cells, as bits.
    active: Vec<[u64; 8]>,
    /// Per block: places of its first red and black cell, each counted from the placeholder of its colour.
    first: Vec<[u32; 2]>,
    /// Per block and colour: cells in the words before each.
    before: Vec<[[u16; 8]; 2]>,
    /// Nodes of each colour, the first placeholder included.
    pub counts: [usize; 2],
}

impl Numbering {
    /// Numbers the unknown cells of a level that are not inside a body.
    pub fn read<const D: usize>(
        &mut self,
        level: &Level<D>,
        live: &[u32],
        inside: impl Fn(usize) -> [u64; 8] + Sync,
    ) {
        let words = mask_words(D);
        self.active.clear();
        self.active.resize(level.topology.len(), [0; 8]);
        self.active[1..].par_iter_mut().with_min_len(64).enumerate().for_each(|(index, active)| {
            let block = index + 1;
            let body = inside(live[index] as usize);
            for word in 0..words {
                active[word] = level.stencil.live[block * words + word] & !body[word];
            }
        });
        self.first.clear();
        self.before.clear();
        let mut next = [1u32; 2];
        for active in &self.active {
            self.first.push(next);
            let mut before = [[0; 8]; 2];
            for (colour, (next, before)) in next.iter_mut().zip(&mut before).enumerate() {
                let mut count = 0;
                for (word, bits) in active[..words].iter().enumerate() {
                    before[word] = count;
                    count += (bits & of_colour(colour, word)).count_ones() as u16;
                }
                *next += u32::from(count);
            }
            self.before.push(before);
        }
        self.counts = next.map(|count| count as usize);
    }

    /// Where the black nodes start.
    pub fn black(&self) -> usize {
        self.counts[0].next_multiple_of(LANES)
    }

    /// Whether a cell is listed.
    #[inline]
    pub fn is_active(&self, block: usize, local: usize) -> bool {
        self.active[block][local / 64] >> (local % 64) & 1 == 1
    }

    /// Place of a listed cell among those of its colour.
    #[inline]
    pub fn place(&self, block: usize, local: usize) -> u32 {
        let (word, bit) = (local / 64, local % 64);
        let colour = colour_of(local);
        let own = self.active[block][word] & of_colour(colour, word) & ((1 << bit) - 1);
        self.first[block][colour] + u32::from(self.before[block][colour][word]) + own.count_ones()
    }

    /// Place of a listed cell among all nodes.
    #[inline]
    pub fn index(&self, block: usize, local: usize) -> usize {
        let colour = colour_of(local);
        self.place(block, local) as usize + colour * self.black()
    }

    /// Listed cells of a block with their places among all nodes.
    pub fn cells(&self, block: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut next = [self.first[block][0] as usize, self.first[block][1] as usize + self.black()];
        masks::each(&self.active[block]).map(move |local| {
            let next = &mut next[colour_of(local)];
            *next += 1;
            (local, *next - 1)
        })
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.active.capacity() * 64 + self.first.capacity() * 8 + self.before.capacity() * 32
    }
}

impl List {
    /// Makes room for so many nodes of each colour, the first placeholder included; vectors are zero.
    pub fn resize(&mut self, counts: [usize; 2]) {
        let [red, black] = counts.map(|count| count.next_multiple_of(LANES));
        let len = red + black;
        self.black = red;
        self.groups.clear();
        self.groups.resize(len / LANES, Group::default());
        self.marks.clear();
        self.marks.resize(len / LANES, 0);
        self.node.clear();
        self.node.resize(len, Node::NONE);
        for values in [&mut self.parent, &mut self.special] {
            values.clear();
            values.resize(len, 0);
        }
        for values in [&mut self.diagonal, &mut self.x, &mut self.b, &mut self.frozen, &mut self.residual] {
            values.clear();
            values.resize(len, 0.0);
        }
        self.rest.clear();
        self.rest.push(Rest::default());
        self.extras.clear();
    }

    /// All nodes, placeholders included.
    pub fn len(&self) -> usize {
        self.node.len()
    }

    /// A node's neighbour along an axis, `2 · axis + side`, as a place among the nodes of the other colour; 0 for none.
    #[inline(always)]
    pub fn near(&self, node: usize, k: usize) -> u32 {
        self.groups[node / LANES].near[k][node % LANES]
    }

    /// What a node has beyond whole links.
    #[inline(always)]
    pub fn rest(&self, node: usize) -> Option<&Rest> {
        match self.special[node] {
            0 => None,
            rest => Some(&self.rest[rest as usize]),
        }
    }

    /// Reads the finest level: links between listed cells, grounds, and links to shared nodes as grounds.
    pub fn read<const D: usize>(&mut self, system: &System<'_, D>, level: &Level<D>, numbering: &Numbering) {
        self.resize(numbering.counts);
        self.exact.clear();
        self.exact.resize(self.len(), 0.0);
        self.whole = level.stencil.constant;
        let whole = self.whole;
        let groups = Scatter::new(&mut self.groups);
        let exact = Scatter::new(&mut self.exact);
        let nodes = Scatter::new(&mut self.node);
        // Nodes with anything special are few; they are collected per chunk of blocks and joined in order.
        let specials: Vec<Vec<(u32, Rest)>> = (1..level.topology.len())
            .into_par_iter()
            .with_min_len(16)
            .fold(Vec::new, |mut found, block| {
                for_each_cell(system, level, numbering, block, |local, index, near, rest: Rest| {
                    let diagonal =
                        rest.link.iter().fold(f64::from(rest.ground), |sum, &link| sum + f64::from(link));
                    let is_plain = rest.ground == 0.0
                        && (0..2 * D).all(|k| near[k] == 0 || rest.link[k] == whole)
                        && f64::from(diagonal as f32) == diagonal;
                    if !is_plain {
                        found.push((index as u32, rest));
                    }
                    // SAFETY: every listed cell has a place of its own.
                    unsafe {
                        let group = groups.at(index / LANES);
                        for k in 0..2 * D {
                            (&raw mut (*group).near[k][index % LANES]).write(near[k]);
                        }
                        exact.put(index, diagonal);
                        nodes.put(index, Node::cell::<D>(block, local));
                    }
                });
                found
            })
            .collect();
        for (index, rest) in specials.into_iter().flatten() {
            self.set_rest(index as usize, rest);
        }
    }

    /// Gives a node something special.
    pub fn set_rest(&mut self, node: usize, rest: Rest) {
        self.special[node] = self.rest.len() as u32;
        self.marks[node / LANES] |= 1 << (node % LANES);
        self.rest.push(rest);
    }

    /// Extra links of a node.
    pub fn extras_of(&self, node: usize) -> &[Extra] {
        if self.extras.is_empty() {
            return &[];
        }
        let first = self.extras.partition_point(|extra| (extra.from as usize) < node);
        let count = self.extras[first..].iter().take_while(|extra| extra.from as usize == node).count();
        &self.extras[first..first + count]
    }

    /// Extra links of the nodes of a colour.
    pub fn extras_from(&self, colour: usize) -> std::ops::Range<usize> {
        let black = self.extras.partition_point(|extra| (extra.from as usize) < self.black);
        if colour == 0 { 0..black } else { black..self.extras.len() }
    }

    /// Adds a node's links to shared nodes to its diagonal.
    pub fn add_shared(&mut self, index: usize, link: f32) {
        // Such a sum is not the same in both precisions: the node is special.
        self.rest_of(index);
        if let Some(exact) = self.exact.get_mut(index) {
            *exact += f64::from(link);
        }
    }

    /// The [`Rest`] of a node, made for it if need be.
    fn rest_of(&mut self, node: usize) -> &mut Rest {
        if self.special[node] == 0 {
            let link = std::array::from_fn(|k| if self.near(node, k) == 0 { 0.0 } else { self.whole });
            self.set_rest(node, Rest { link, ..Rest::default() });
        }
        &mut self.rest[self.special[node] as usize]
    }

    /// Once links and contacts with bodies are known: shifts and inverses. `bound` is, per node, the sum of
    /// `λ_b m_i` over the bodies beside it.
    pub fn finish(&mut self, bound: &[f32]) {
        // The frozen sweep and its mirror converge if D + 2S − B is positive.
        let shift = |bound: f32, diagonal: f32| (0.5 * (1.05 * bound - diagonal)).max(0.0);
        let diagonal = &self.diagonal;
        let shifted: Vec<Vec<u32>> = self
            .groups
            .par_iter_mut()
            .with_min_len(GRAIN / LANES)
            .enumerate()
            .fold(Vec::new, |mut shifted, (group, own)| {
                for lane in 0..LANES {
                    let node = group * LANES + lane;
                    let shift = shift(bound[node], diagonal[node]);
                    if shift > 0.0 {
                        shifted.push(node as u32);
                    }
                    let total = diagonal[node] + shift;
                    own.inverse[lane] = if total > 0.0 { 1.0 / total } else { 0.0 };
                }
                shifted
            })
            .collect();
        for node in shifted.into_iter().flatten() {
            let node = node as usize;
            self.rest_of(node).shift = shift(bound[node], self.diagonal[node]);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Group>()
            + self.rest.capacity() * size_of::<Rest>()
            + self.exact.capacity() * 8
            + (self.node.capacity() + self.parent.capacity() + self.special.capacity()) * 4
            + [&self.diagonal, &self.x, &self.b, &self.frozen, &self.residual]
                .map(Vec::capacity)
                .iter()
                .sum::<usize>()
                * 4
    }
}

/// Calls `each(local, node, neighbours, links)` for every listed cell of a block.
#[inline(always)]
fn for_each_cell<const D: usize>(
    system: &System<'_, D>,
    level: &Level<D>,
    numbering: &Numbering,
    block: usize,
    mut each: impl FnMut(usize, usize, [u32; 6], Rest),
) {
    let (cells, live) = (block_cells(D), system.live.as_slice());
    let slot = live[block - 1] as usize;
    let beside = level.topology.beside(block);
    // Places of the block's own cells, 0 for cells that are not listed.
    let mut own = [0u32; 512];
    let base = [0, numbering.black() as u32];
    for (local, index) in numbering.cells(block) {
        own[local] = index as u32 - base[colour_of(local)];
    }
    let first = slot * cells;
    for (local, index) in numbering.cells(block) {
        let mut near = [0; 6];
        let mut rest = Rest { ground: system.ground[first + local], ..Rest::default() };
        rest.area = system.ground_area[first + local];
        for axis in 0..D {
            let stride = power(8, axis);
            let at = local / stride % 8;
            let elsewhere = |side: usize, cell: usize| {
                let other = beside[axis][side] as usize;
                (other != 0 && numbering.is_active(other, cell)).then_some((other, cell))
            };
            let low = match at {
                0 => elsewhere(0, local + 7 * stride).map_or(0, |(other, cell)| numbering.place(other, cell)),
                _ => own[local - stride],
            };
            if low != 0 {
                (near[2 * axis], rest.link[2 * axis]) = (low, system.link[axis][first + local]);
            }
            if at < 7 {
                if own[local + stride] != 0 {
                    (near[2 * axis + 1], rest.link[2 * axis + 1]) =
                        (own[local + stride], system.link[axis][first + local + stride]);
                }
            } else if let Some((other, cell)) = elsewhere(1, local - 7 * stride) {
                let face = live[other - 1] as usize * cells + cell;
                (near[2 * axis + 1], rest.link[2 * axis + 1]) =
                    (numbering.place(other, cell), system.link[axis][face]);
            }
        }
        // A closed face leads nowhere.
        for k in 0..2 * D {
            if rest.link[k] <= 0.0 {
                (near[k], rest.link[k]) = (0, 0.0);
            }
        }
        each(local, index, near, rest);
    }
}
