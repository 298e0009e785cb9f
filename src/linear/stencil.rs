//! The coefficients of a level as its sweeps read them.
//!
//! Most blocks lie deep inside: all links equal, no ground. They share one entry and read nothing from memory. Blocks
//! at an edge, where links are either whole or lead to no unknown, have their own diagonal. Only blocks with partial
//! links keep all of them.

use macro_rules_attribute::apply;

use crate::grid::masks::{self, Bits};
use crate::grid::{SIDE, block_cells};
use crate::math::{Side, power, simd};

use super::explicit::Explicit;
use super::kernels::{Coefficients, ExactCoefficients};
use super::layout::{Row, half_rows, split_index};
use super::parallel::{cut, each_block};
use super::source::Source;
use super::topology::Topology;

/// Words of a bit mask over the cells of a block, in natural order.
pub(super) const fn mask_words(dimension: usize) -> usize {
    block_cells(dimension) / 64
}

/// Coefficients of a level.
#[derive(Clone, Debug, Default)]
pub(super) struct Stencil {
    /// What a whole link is on this level.
    pub constant: f32,
    /// Where each block's diagonal is kept; 0 for the common one.
    slot: Vec<u32>,
    /// Where each block's links are kept, plus 1; 0 for none.
    links_at: Vec<u32>,
    class: Vec<u8>,
    owners: Vec<u32>,
    link_owners: Vec<u32>,
    inverse: Vec<Row<f32>>,
    diagonal: Vec<Row<f32>>,
    exact: Vec<Row<f64>>,
    links: Vec<Row<f32>>,
    /// Which cells are unknowns, one bit each.
    pub live: Vec<u64>,
    /// Which cells are linked to another cell.
    pub linked: Vec<u64>,
    /// Which cells are linked to anything: the next coarser level needs them.
    pub carried: Vec<u64>,
}

const UNIFORM: u8 = 0;
const EDGE: u8 = 1;
const GENERAL: u8 = 2;
/// An edge block that the caller knew to be one.
const KNOWN: u8 = 3;

/// The cells of a block whose coordinate along an axis is 0.
fn low_face<const D: usize>(axis: usize) -> impl Iterator<Item = usize> {
    let stride = power(SIDE, axis);
    (0..block_cells(D) / SIDE).map(move |i| i / stride * stride * SIDE + i % stride)
}

/// A block's links to the high neighbours along an axis: the low links of those.
fn high_links<const D: usize, S: Source<D>>(
    source: &S,
    topology: &Topology<D>,
    block: usize,
    axis: usize,
    out: &mut [f32],
) {
    let stride = power(SIDE, axis);
    let low = source.link(axis, block);
    let beyond = source.link(axis, topology.beside(block)[axis][1] as usize);
    let cells = block_cells(D);
    out[..cells - stride].copy_from_slice(&low[stride..]);
    for cell in low_face::<D>(axis) {
        out[cell + 7 * stride] = beyond[cell];
    }
}

#[inline(always)]
fn all_equal(values: &[f32], wanted: f32) -> bool {
    values.iter().fold(true, |equal, &value| equal & (value == wanted))
}

/// One bit for each of 64 values that is positive.
#[apply(simd)]
fn positive_bits(values: &[f32; 64]) -> u64 {
    masks::word_of(values, |value| value > 0.0)
}

/// One bit for each of 64 values that equals `wanted`.
#[apply(simd)]
fn equal_bits(values: &[f32; 64], wanted: f32) -> u64 {
    masks::word_of(values, |value| value == wanted)
}

impl Stencil {
    /// Reads a level's coefficients. `exact` asks for the f64 diagonal as well.
    pub fn build<const D: usize, S: Source<D>>(
        &mut self,
        topology: &Topology<D>,
        source: &S,
        explicit: &Explicit<D>,
        constant: f32,
        exact: bool,
    ) {
        self.find_unknowns(topology, source, explicit, constant, |_| None);
        self.complete(topology, source, explicit, exact);
    }

    /// The rest of [`Self::build`], after [`Self::survey`].
    pub fn complete<const D: usize, S: Source<D>>(
        &mut self,
        topology: &Topology<D>,
        source: &S,
        explicit: &Explicit<D>,
        exact: bool,
    ) {
        self.find_partial_links(topology, source);
        self.number_blocks();
        self.fill(topology, source, explicit, exact);
    }

    /// Whether a block has a link that is neither whole nor leads to no unknown.
    pub fn has_partial_links(&self, block: usize) -> bool {
        self.class[block] == GENERAL
    }

    /// Whether a block's unknowns were known without reading its links. It has whole links and no ground.
    pub fn is_known(&self, block: usize) -> bool {
        self.class[block] == KNOWN
    }

    /// Finds the unknowns and the blocks with partial links, and nothing else: enough for a level that is not swept.
    /// `known(block)` are the unknowns of blocks without partial links and grounds, if they are known.
    pub fn survey<const D: usize, S: Source<D>>(
        &mut self,
        topology: &Topology<D>,
        source: &S,
        explicit: &Explicit<D>,
        constant: f32,
        known: impl Fn(usize) -> Option<Bits> + Sync,
    ) {
        self.find_unknowns(topology, source, explicit, constant, known);
        self.find_partial_links(topology, source);
    }

    /// Finds the uniform blocks, and the unknowns of the others. See [`Self::survey`].
    pub fn find_unknowns<const D: usize, S: Source<D>>(
        &mut self,
        topology: &Topology<D>,
        source: &S,
        explicit: &Explicit<D>,
        constant: f32,
        known: impl Fn(usize) -> Option<Bits> + Sync,
    ) {
        self.constant = constant;
        let (blocks, words) = (topology.len(), mask_words(D));
        for mask in [&mut self.live, &mut self.linked, &mut self.carried] {
            mask.resize(blocks * words, 0);
            mask[..words].fill(0);
        }
        self.class.resize(blocks, EDGE);
        self.class[0] = EDGE;
        let parts = (
            cut(&mut self.live, words),
            cut(&mut self.linked, words),
            cut(&mut self.carried, words),
            cut(&mut self.class, 1),
        );
        each_block::<D, _>(parts, |block, (live, linked, carried, class)| {
            if let Some(known) = known(block) {
                class[0] = KNOWN;
                for mask in [live, linked, carried] {
                    mask.copy_from_slice(&known[..words]);
                }
                return;
            }
            let touched = explicit.has_contacts()
                && (0..2).any(|colour| explicit.contacts_in(colour, block).next().is_some());
            let whole = |axis: usize| {
                let beyond = topology.beside(block)[axis][1] as usize;
                beyond != 0
                    && all_equal(source.link(axis, block), constant)
                    && low_face::<D>(axis).all(|cell| source.link(axis, beyond)[cell] == constant)
            };
            if !touched && constant > 0.0 && (0..D).all(whole) && all_equal(source.ground(block), 0.0) {
                class[0] = UNIFORM;
                for mask in [live, linked, carried] {
                    mask.fill(u64::MAX);
                }
                return;
            }
            class[0] = EDGE;
            let (mut sum, mut high) = ([0.0f32; 512], [0.0f32; 512]);
            let cells = block_cells(D);
            for axis in 0..D {
                high_links(source, topology, block, axis, &mut high);
                for ((sum, low), high) in sum[..cells].iter_mut().zip(source.link(axis, block)).zip(&high) {
                    *sum += low + high;
                }
            }
            let ground = source.ground(block);
            for (word, (sum, ground)) in sum.as_chunks().0.iter().zip(ground.as_chunks().0).enumerate() {
                linked[word] = positive_bits(sum);
                live[word] = linked[word] | positive_bits(ground);
            }
            carried.copy_from_slice(linked);
            for colour in 0..2 {
                for (place, sum) in explicit.contacts_in(colour, block) {
                    if sum > 0.0 {
                        let cell = super::layout::natural_index::<D>(colour, place);
                        live[cell / 64] |= 1 << (cell % 64);
                        carried[cell / 64] |= 1 << (cell % 64);
                    }
                }
            }
        });
    }

    /// Finds the blocks with a link that is neither whole nor leads to no unknown.
    fn find_partial_links<const D: usize, S: Source<D>>(&mut self, topology: &Topology<D>, source: &S) {
        let (constant, words, live) = (self.constant, mask_words(D), &self.live);
        each_block::<D, _>((cut(&mut self.class, 1),), |block, (class,)| {
            // What was known is checked where time does not matter.
            if class[0] == UNIFORM || class[0] == KNOWN && !cfg!(debug_assertions) {
                return;
            }
            let mask = |block: usize| -> Bits {
                let mut bits = masks::NONE;
                bits[..words].copy_from_slice(&live[block * words..(block + 1) * words]);
                bits
            };
            let here = mask(block);
            let fits = |link: f32, joins: bool| link == constant || (link == 0.0 && !joins);
            let plain = (0..D).all(|axis| {
                let [low, high] = topology.beside(block)[axis].map(|b| b as usize);
                let below = masks::beside::<D>(&here, axis, Side::Low, &mask(low));
                let links = source.link(axis, block).as_chunks().0;
                let is_plain = |(word, links): (usize, &[f32; 64])| {
                    let joins = here[word] & below[word];
                    equal_bits(links, constant) | equal_bits(links, 0.0) & !joins == u64::MAX
                };
                // Faces towards the block on the high side belong to it.
                let joins = masks::plane::<D>(&here, axis, Side::High)
                    & masks::plane::<D>(&mask(high), axis, Side::Low);
                let beyond = source.link(axis, high);
                links.iter().enumerate().all(is_plain)
                    && low_face::<D>(axis)
                        .enumerate()
                        .all(|(at, cell)| fits(beyond[cell], joins >> at & 1 == 1))
            });
            if class[0] == KNOWN {
                let is_exact = (0..D).all(|axis| {
                    let low = topology.beside(block)[axis][0] as usize;
                    let joins = masks::and(&here, &masks::beside::<D>(&here, axis, Side::Low, &mask(low)));
                    let links = source.link(axis, block).as_chunks().0.iter().enumerate();
                    links.fold(true, |is_exact, (word, links)| {
                        is_exact & (equal_bits(links, constant) == joins[word])
                    })
                });
                assert!(plain && is_exact, "a block that was known to have whole links only has others");
                assert!(
                    all_equal(source.ground(block), 0.0),
                    "a block that was known to have no ground has one"
                );
                return;
            }
            class[0] = if plain { EDGE } else { GENERAL };
        });
    }

    fn number_blocks(&mut self) {
        self.slot.clear();
        self.slot.resize(self.class.len(), 0);
        self.links_at.clear();
        self.links_at.resize(self.class.len(), 0);
        self.owners.clear();
        self.owners.push(0);
        self.link_owners.clear();
        self.link_owners.push(0);
        for (block, &class) in self.class.iter().enumerate().skip(1) {
            if class != UNIFORM {
                self.slot[block] = self.owners.len() as u32;
                self.owners.push(block as u32);
            }
            if class == GENERAL {
                self.links_at[block] = self.link_owners.len() as u32;
                self.link_owners.push(block as u32);
            }
        }
    }

    fn fill<const D: usize, S: Source<D>>(
        &mut self,
        topology: &Topology<D>,
        source: &S,
        explicit: &Explicit<D>,
        exact: bool,
    ) {
        let (rows, cells) = (2 * half_rows(D), block_cells(D));
        let len = self.owners.len() * rows;
        grow(&mut self.inverse, len);
        grow(&mut self.diagonal, len);
        grow(&mut self.exact, if exact { len } else { rows });
        let whole = 2.0 * D as f64 * f64::from(self.constant);
        self.exact[..rows].fill([whole; 8]);
        self.diagonal[..rows].fill([whole as f32; 8]);
        self.inverse[..rows].fill([if whole > 0.0 { (1.0 / whole) as f32 } else { 0.0 }; 8]);

        let owners = &self.owners;
        let diagonals =
            |slot: usize, diagonal: &mut [Row<f32>], inverse: &mut [Row<f32>], sums: &mut [f64]| {
                let block = owners[slot] as usize;
                let mut high = [0.0f32; 512];
                // Sums in natural order, then sorted by colour.
                let mut natural = [0.0f64; 512];
                for axis in 0..D {
                    high_links(source, topology, block, axis, &mut high);
                    for ((sum, &low), &high) in natural.iter_mut().zip(source.link(axis, block)).zip(&high) {
                        *sum += f64::from(low) + f64::from(high);
                    }
                }
                for (sum, &ground) in natural.iter_mut().zip(source.ground(block)) {
                    *sum += f64::from(ground);
                }
                for row in 0..rows {
                    let (colour, row_in_half) = (row / half_rows(D), row % half_rows(D));
                    let values =
                        super::layout::split_row::<f64, D>(natural.as_chunks::<8>().0, colour, row_in_half);
                    sums[row * 8..row * 8 + 8].copy_from_slice(&values);
                }
                for colour in 0..2 {
                    for (place, sum) in explicit.contacts_in(colour, block) {
                        sums[colour * cells / 2 + place] += sum;
                    }
                }
                for ((diagonal, inverse), &sum) in
                    diagonal.as_flattened_mut().iter_mut().zip(inverse.as_flattened_mut()).zip(sums.iter())
                {
                    *diagonal = sum as f32;
                    *inverse = if sum > 0.0 { (1.0 / sum) as f32 } else { 0.0 };
                }
            };
        let (diagonal, inverse) = (cut(&mut self.diagonal[..len], rows), cut(&mut self.inverse[..len], rows));
        if exact {
            each_block::<D, _>((diagonal, inverse, cut(&mut self.exact[..len], rows)), |slot, (d, i, e)| {
                diagonals(slot, d, i, e.as_flattened_mut());
            });
        } else {
            each_block::<D, _>((diagonal, inverse), |slot, (d, i)| {
                diagonals(slot, d, i, &mut [0.0; 512][..cells])
            });
        }
        self.fill_links(topology, source);
    }

    fn fill_links<const D: usize, S: Source<D>>(&mut self, topology: &Topology<D>, source: &S) {
        let rows = 2 * half_rows(D) * 2 * D;
        let len = self.link_owners.len() * rows;
        grow(&mut self.links, len);
        let owners = &self.link_owners;
        each_block::<D, _>((cut(&mut self.links[..len], rows),), |slot, (links,)| {
            let block = owners[slot] as usize;
            let links = links.as_flattened_mut();
            let mut high = [0.0f32; 512];
            for axis in 0..D {
                high_links(source, topology, block, axis, &mut high);
                for (cell, (&low, &high)) in source.link(axis, block).iter().zip(&high).enumerate() {
                    let (colour, place) = split_index::<D>(cell);
                    let base = (colour * half_rows(D) + place / 8) * 2 * D;
                    // The order of `kernels::neighbours`.
                    let (low_at, high_at) = if axis == 0 {
                        (0, 1)
                    } else if axis == D - 1 {
                        // The lower cell of a pair has its partner above it.
                        if (cell / power(SIDE, axis)).is_multiple_of(2) { (3, 2) } else { (2, 3) }
                    } else {
                        (4, 5)
                    };
                    links[(base + low_at) * 8 + place % 8] = low;
                    links[(base + high_at) * 8 + place % 8] = high;
                }
            }
        });
    }

    /// Coefficients of one colour of a block, for the sweeps of the preconditioner.
    #[inline]
    pub fn of<const D: usize>(&self, block: usize, colour: usize) -> Coefficients<'_> {
        let half = half_rows(D);
        let start = self.slot[block] as usize * 2 * half + colour * half;
        Coefficients {
            constant: self.constant,
            links: self.links_of::<D>(block, colour),
            inverse: &self.inverse[start..start + half],
            diagonal: &self.diagonal[start..start + half],
        }
    }

    /// Coefficients of one colour of a block, for the operator.
    #[inline]
    pub fn exact_of<const D: usize>(&self, block: usize, colour: usize) -> ExactCoefficients<'_> {
        let half = half_rows(D);
        let start = self.slot[block] as usize * 2 * half + colour * half;
        ExactCoefficients {
            constant: f64::from(self.constant),
            links: self.links_of::<D>(block, colour),
            diagonal: &self.exact[start..start + half],
        }
    }

    #[inline]
    fn links_of<const D: usize>(&self, block: usize, colour: usize) -> Option<&[Row<f32>]> {
        let rows = half_rows(D) * 2 * D;
        match self.links_at[block] as usize {
            0 => None,
            slot => Some(&self.links[(2 * slot + colour) * rows..(2 * slot + colour + 1) * rows]),
        }
    }

    /// Whether all cells of a block are alike and joined to all their neighbours.
    #[inline]
    pub fn is_uniform(&self, block: usize) -> bool {
        self.class[block] == UNIFORM
    }

    /// Whether any block is uniform.
    pub fn has_uniform_block(&self) -> bool {
        self.class.contains(&UNIFORM)
    }

    /// How many cells are unknowns.
    pub fn unknowns(&self) -> usize {
        self.live.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.slot.capacity() + self.links_at.capacity()) * 4
            + (self.owners.capacity() + self.link_owners.capacity()) * 4
            + self.class.capacity()
            + (self.inverse.capacity() + self.diagonal.capacity() + self.links.capacity()) * 32
            + self.exact.capacity() * 64
            + (self.live.capacity() + self.linked.capacity() + self.carried.capacity()) * 8
    }
}

/// Lengthens a buffer whose contents are about to be overwritten; keeps an eighth in reserve.
pub(super) fn grow<T: Copy + Default>(values: &mut Vec<T>, len: usize) {
    if len > values.capacity() {
        values.clear();
        values.reserve_exact(len + len / 8);
    }
    values.resize(len, T::default());
}
