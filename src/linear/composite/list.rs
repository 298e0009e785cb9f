//! Cells listed one by one.

use rayon::prelude::*;

use crate::grid::block_cells;
use crate::math::power;

use super::super::layout::Node;
use super::super::level::Level;
use super::super::stencil::mask_words;
use super::super::system::System;

/// Nodes that a thread takes at a time.
pub(super) const GRAIN: usize = 4096;

/// What a sweep reads of a node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record {
    /// Neighbours along each axis, low and high, as places among the nodes of the other colour; 0 for none.
    pub near: [u32; 6],
    /// 1 over the diagonal and the shift; 0 for nodes that are no unknowns.
    pub inverse: f32,
    /// Where its [`Rest`] is; 0 if all its links are whole, and there is nothing else.
    pub rest: u32,
}

/// What a few nodes have beyond a [`Record`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    /// Links, as the neighbours.
    pub link: [f32; 6],
    /// Ties to zero, and the size of the surface they act through.
    pub ground: f32,
    pub area: f32,
    /// Links to shared nodes.
    pub shared: f32,
    /// Added to the diagonal so that a sweep with frozen bodies converges.
    pub shift: f32,
}

/// A link that has no place in a [`Record`]: to a node of the same place, or a second one along an axis. There is one in
/// each direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra {
    pub from: u32,
    pub to: u32,
    pub link: f32,
}

/// One level of listed nodes: a placeholder that stays zero, the red nodes, another placeholder, the black nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct List {
    pub records: Vec<Record>,
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
    /// Faces between a node and bodies, for bounds and statistics.
    pub contact: Vec<f32>,
    /// Nodes of the network with all cells that these stand for.
    pub node: Vec<Node>,
    /// Parents in the next coarser list; 0 for none. Before that list exists it is their position.
    pub parent: Vec<u32>,
    pub x: Vec<f32>,
    pub b: Vec<f32>,
    /// Right-hand side of a sweep: `b` less the bodies' part.
    pub rhs: Vec<f32>,
}

/// Cells along which the colours alternate: those of a word whose coordinates have an even sum, in a word of even index.
const EVEN: u64 = 0xaa55_aa55_aa55_aa55;

/// Cells of a colour in a word of a block's mask.
#[inline]
fn of_colour(colour: usize, word: usize) -> u64 {
    if (word + colour).is_multiple_of(2) { EVEN } else { !EVEN }
}

/// Where the cells of each block are listed.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbering {
    /// Per block: its unknown cells, as bits.
    active: Vec<[u64; 8]>,
    /// Per block: places of its first red and black cell, each counted from the placeholder of its colour.
    first: Vec<[u32; 2]>,
    /// Nodes of each colour, placeholders included.
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
        let mut next = [1u32; 2];
        for active in &self.active {
            self.first.push(next);
            for (colour, next) in next.iter_mut().enumerate() {
                *next += active[..words]
                    .iter()
                    .enumerate()
                    .map(|(word, bits)| (bits & of_colour(colour, word)).count_ones())
                    .sum::<u32>();
            }
        }
        self.counts = next.map(|count| count as usize);
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
        let colour = (local + local / 8 + local / 64) % 2;
        let active = &self.active[block];
        let mut place = self.first[block][colour];
        for below in 0..word {
            place += (active[below] & of_colour(colour, below)).count_ones();
        }
        place + (active[word] & of_colour(colour, word) & ((1 << bit) - 1)).count_ones()
    }

    /// Place of a listed cell among all nodes.
    #[inline]
    pub fn index(&self, block: usize, local: usize) -> usize {
        let colour = (local + local / 8 + local / 64) % 2;
        self.place(block, local) as usize + colour * self.counts[0]
    }

    /// Listed cells of a block with their places among all nodes.
    pub fn cells(&self, block: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut next = [self.first[block][0] as usize, self.first[block][1] as usize + self.counts[0]];
        self.active[block]
            .iter()
            .enumerate()
            .flat_map(|(word, &bits)| bits_of(bits).map(move |bit| word * 64 + bit))
            .map(move |local| {
                let next = &mut next[(local + local / 8 + local / 64) % 2];
                *next += 1;
                (local, *next - 1)
            })
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.active.capacity() * 64 + self.first.capacity() * 8
    }
}

fn bits_of(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        bit
    })
}

/// Values of all nodes, written from several threads at places that no two of them share.
pub(super) struct Scatter<T>(*mut T, usize);
// SAFETY: whoever writes sees to it that no two threads write to the same place.
unsafe impl<T: Send> Sync for Scatter<T> {}

impl<T: Copy> Scatter<T> {
    pub fn new(values: &mut [T]) -> Self {
        Scatter(values.as_mut_ptr(), values.len())
    }

    /// # Safety
    /// No other thread writes to or reads from this place.
    #[inline]
    pub unsafe fn put(&self, at: usize, value: T) {
        assert!(at < self.1);
        // SAFETY: inside the slice, and ours alone by the caller's promise.
        unsafe { *self.0.add(at) = value };
    }
}

impl List {
    /// Makes room for so many nodes of each colour, placeholders included; vectors are zero.
    pub fn resize(&mut self, counts: [usize; 2]) {
        let len = counts[0] + counts[1];
        self.black = counts[0];
        self.records.clear();
        self.records.resize(len, Record::default());
        self.node.clear();
        self.node.resize(len, Node::NONE);
        self.parent.clear();
        self.parent.resize(len, 0);
        for values in [&mut self.diagonal, &mut self.contact, &mut self.x, &mut self.b, &mut self.rhs] {
            values.clear();
            values.resize(len, 0.0);
        }
        self.rest.clear();
        self.rest.push(Rest::default());
    }

    /// All nodes, placeholders included.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Reads the finest level: links between listed cells, grounds, and links to shared nodes as grounds.
    pub fn read<const D: usize>(&mut self, system: &System<'_, D>, level: &Level<D>, numbering: &Numbering) {
        self.resize(numbering.counts);
        self.exact.clear();
        self.exact.resize(self.len(), 0.0);
        self.whole = level.stencil.constant;
        let (cells, whole) = (block_cells(D), self.whole);
        let records = Scatter::new(&mut self.records);
        let exact = Scatter::new(&mut self.exact);
        let nodes = Scatter::new(&mut self.node);
        let live = system.live.as_slice();
        // Nodes with anything special are few; they are collected per chunk of blocks and joined in order.
        let specials: Vec<Vec<(u32, Rest)>> = (1..level.topology.len())
            .into_par_iter()
            .with_min_len(16)
            .fold(Vec::new, |mut found, block| {
                let slot = live[block - 1] as usize;
                let beside = level.topology.beside(block);
                for (local, index) in numbering.cells(block) {
                    let mut record = Record::default();
                    let mut rest = Rest { ground: system.ground[slot * cells + local], ..Rest::default() };
                    rest.area = system.ground_area[slot * cells + local];
                    let mut is_plain = rest.ground == 0.0;
                    let mut diagonal = f64::from(rest.ground);
                    for axis in 0..D {
                        let stride = power(8, axis);
                        let at = local / stride % 8;
                        let (low_block, low) = match at {
                            0 => (beside[axis][0] as usize, local + 7 * stride),
                            _ => (block, local - stride),
                        };
                        let (high_block, high) = match at {
                            7 => (beside[axis][1] as usize, local - 7 * stride),
                            _ => (block, local + stride),
                        };
                        let ends = [(low_block, low, slot, local), (high_block, high, 0, high)];
                        for (side, (other, place, owner, face)) in ends.into_iter().enumerate() {
                            if other == 0 || !numbering.is_active(other, place) {
                                continue;
                            }
                            let owner = if side == 0 { owner } else { live[other - 1] as usize };
                            let link = system.link[axis][owner * cells + face];
                            if link > 0.0 {
                                record.near[2 * axis + side] = numbering.place(other, place);
                                rest.link[2 * axis + side] = link;
                                diagonal += f64::from(link);
                                is_plain &= link == whole;
                            }
                        }
                    }
                    if !is_plain {
                        found.push((index as u32, rest));
                    }
                    // SAFETY: every listed cell has a place of its own.
                    unsafe {
                        records.put(index, record);
                        exact.put(index, diagonal);
                        nodes.put(index, Node::cell::<D>(block, local));
                    }
                }
                found
            })
            .collect();
        for (index, rest) in specials.into_iter().flatten() {
            self.records[index as usize].rest = self.rest.len() as u32;
            self.rest.push(rest);
        }
    }

    /// Extra links of a node.
    pub fn extras_of(&self, node: usize) -> &[Extra] {
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
        let rest = self.rest_of(index);
        self.rest[rest].shared += link;
        if let Some(exact) = self.exact.get_mut(index) {
            *exact += f64::from(link);
        }
    }

    /// The [`Rest`] of a node, made for it if need be.
    fn rest_of(&mut self, index: usize) -> usize {
        let record = &mut self.records[index];
        if record.rest == 0 {
            record.rest = self.rest.len() as u32;
            let link = record.near.map(|near| if near == 0 { 0.0 } else { self.whole });
            self.rest.push(Rest { link, ..Rest::default() });
        }
        record.rest as usize
    }

    /// Once links and contacts with bodies are known: shifts and inverses. `bound` is, per node, the sum of
    /// `λ_b m_i` over the bodies beside it.
    pub fn finish(&mut self, bound: &[f32]) {
        for index in 0..self.len() {
            let diagonal = self.diagonal[index];
            // The frozen sweep and its mirror converge if D + 2S − B is positive.
            let shift = (0.5 * (1.05 * bound[index] - diagonal)).max(0.0);
            if shift > 0.0 {
                let rest = self.rest_of(index);
                self.rest[rest].shift = shift;
            }
            let total = diagonal + shift;
            self.records[index].inverse = if total > 0.0 { 1.0 / total } else { 0.0 };
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
            + self.rest.capacity() * size_of::<Rest>()
            + self.exact.capacity() * 8
            + (self.node.capacity() + self.parent.capacity()) * 4
            + [&self.diagonal, &self.contact, &self.x, &self.b, &self.rhs]
                .map(Vec::capacity)
                .iter()
                .sum::<usize>()
                * 4
    }
}
