//! The finest network: reads a system into compact storage.

use rayon::prelude::*;

use crate::grid::{across, block_cells, masks};
use crate::math::Side;

use super::super::level::Level;
use super::super::source::{Finest, Source};
use super::super::stencil::mask_words;
use super::super::system::System;
use super::interner::{Interner, NEW, rebuild};
use super::network::Network;
use super::pattern::{DIRECTIONS, HaloNode, NodeTerms, Pattern, PatternBuilder, colour_of};
use super::row_layout::RowChoice;
use super::rows::{self, BlockContent};
use super::shared::SharedEntry;

/// Key of a block with nothing but whole links: its cells, and those beyond each of its sides.
pub(super) type Key = (masks::Bits, [u64; 6]);

/// Interned patterns that a thread builds at a time.
const INTERNED: usize = 16;

/// How the pattern of a block is kept.
enum Kind {
    /// Other blocks may have it too.
    Interned(Key),
    /// No other block has it.
    Unique(Box<Pattern>),
}

/// Reads the network of a system whose unknowns `level` knows; `block_of` gives the block of each slot.
pub(super) fn read<const D: usize>(
    net: &mut Network<D>,
    system: &System<'_, D>,
    level: &Level<D>,
    block_of: &[u32],
) {
    let source = Finest(system);
    net.topology.clone_from(&level.topology);
    let are_alike = (net.whole, net.whole_of) == (level.stencil.constant, level.whole);
    (net.whole, net.whole_of) = (level.stencil.constant, level.whole);
    net.children.clear();
    let cells = block_cells(D);
    let mut entries: Vec<(usize, usize, u32, f32, f32)> = Vec::new();
    for shared in 0..system.shared.len() {
        for (cell, link, area) in system.shared.links(shared) {
            let block = block_of[cell / cells] as usize;
            entries.push((block, cell % cells, shared as u32, link, area));
        }
    }
    entries.sort_by_key(|entry| (entry.0, entry.1));
    let entries_in = |block: usize| {
        let first = entries.partition_point(|entry| entry.0 < block);
        let count = entries[first..].iter().take_while(|entry| entry.0 == block).count();
        &entries[first..first + count]
    };

    let blocks = 1..level.topology.len();
    let kinds: Vec<Kind> = blocks
        .into_par_iter()
        .with_min_len(16)
        .with_max_len(64)
        .map(|block| {
            let entries = entries_in(block);
            let is_interned = level.stencil.is_known(block)
                || entries.is_empty()
                    && !level.stencil.has_partial_links(block)
                    && source.ground(block).iter().all(|&ground| ground == 0.0)
                    && source.material(block).is_none_or(|second| !second.contains(&true));
            if is_interned {
                return Kind::Interned(key_of(level, block));
            }
            let mut with_shared = masks::NONE;
            entries.iter().for_each(|entry| with_shared[entry.1 / 64] |= 1 << (entry.1 % 64));
            Kind::Unique(Box::new(unique_pattern(level, &source, block, &with_shared, net.whole)))
        })
        .collect();
    // Interned patterns come first.
    let mut interner = Interner::from(1);
    let mut patterns = vec![0];
    patterns.extend(kinds.iter().map(|kind| match kind {
        Kind::Interned(key) => interner.intern(*key),
        Kind::Unique(_) => 0,
    }));
    let keys = interner.match_previous(&mut net.interned, &mut net.previous, |key| are_alike.then_some(*key));
    rebuild(
        &mut net.patterns,
        &net.previous,
        INTERNED,
        || (),
        |(), place| match place {
            0 => Pattern::default(),
            place => interned_pattern::<D>(&keys[place - 1], net.whole),
        },
    );
    for (block, kind) in kinds.into_iter().enumerate() {
        if let Kind::Unique(pattern) = kind {
            patterns[block + 1] = net.patterns.len() as u32;
            net.patterns.push(*pattern);
        }
    }
    net.previous.resize(net.patterns.len(), NEW);
    net.lay_out(&patterns);
    let list = entries.iter().filter_map(|&(block, cell, shared, link, area)| {
        let colour = colour_of::<D>(cell);
        let node = net.pattern(block).find(cell, 0)? as u32 + net.blocks[block].nodes[colour];
        Some(SharedEntry { node: (colour as u8, node), shared, link, area })
    });
    let list = list.collect();
    net.shared.set(system.shared.len(), list);
    net.shared.index(&net.blocks);
}

fn live<const D: usize>(level: &Level<D>, block: usize) -> masks::Bits {
    let words = mask_words(D);
    let mut bits = masks::NONE;
    bits[..words].copy_from_slice(&level.stencil.live[block * words..(block + 1) * words]);
    bits
}

fn key_of<const D: usize>(level: &Level<D>, block: usize) -> Key {
    let mut sides = [0; 6];
    let here = live(level, block);
    for axis in 0..D {
        for side in Side::BOTH {
            let other = live(level, level.topology.beside(block)[axis][side.index()] as usize);
            // Cells beyond count only where there is one before them.
            let own = masks::plane::<D>(&here, axis, side);
            sides[2 * axis + side.index()] = masks::plane::<D>(&other, axis, side.opposite()) & own;
        }
    }
    (here, sides)
}

/// A pattern of some cells, listed; `link(cell, axis, side)` is their link to the neighbour there, `terms(cell)` the rest.
pub(super) fn pattern_of<const D: usize>(
    cells: &masks::Bits,
    whole: f32,
    link: impl Fn(usize, usize, Side) -> f32,
    terms: impl Fn(usize) -> NodeTerms,
) -> Pattern {
    let mut nodes: [Vec<(u16, NodeTerms)>; 2] = Default::default();
    let mut index = [0u16; 512];
    for cell in masks::each(cells) {
        let nodes = &mut nodes[colour_of::<D>(cell)];
        index[cell] = nodes.len() as u16;
        nodes.push((cell as u16, terms(cell)));
    }
    let mut builder = PatternBuilder::new::<D>(&nodes);
    for cell in masks::each(cells) {
        let (colour, node) = (colour_of::<D>(cell), index[cell] as usize);
        for axis in 0..D {
            for side in Side::BOTH {
                let g = link(cell, axis, side);
                if g > 0.0 {
                    let direction = 2 * axis + side.index();
                    match across(cell, axis, side) {
                        (other, false) => {
                            builder.link_local(colour, node, Some(direction), index[other] as usize, g);
                        }
                        (other, true) => {
                            let there = HaloNode { side: direction as u8, ordinal: 0, cell: other as u16 };
                            builder.link_halo(colour, node, Some(direction), there, g);
                        }
                    }
                }
            }
        }
    }
    builder.finish(whole)
}

/// Cells with a link in each direction, if all links between nodes are there: `beside(side)` are the nodes of the block
/// beyond a side.
fn linked<const D: usize>(
    nodes: &masks::Bits,
    beside: impl Fn(usize) -> masks::Bits,
) -> [masks::Bits; DIRECTIONS] {
    std::array::from_fn(|side| {
        if side >= 2 * D {
            return masks::NONE;
        }
        let near = masks::beside::<D>(nodes, side / 2, Side::at(side), &beside(side));
        std::array::from_fn(|word| near[word] & nodes[word])
    })
}

fn interned_pattern<const D: usize>(key: &Key, whole: f32) -> Pattern {
    let (cells, sides) = key;
    // Cells beyond each side that are unknowns, in their own block.
    let halo: [masks::Bits; DIRECTIONS] = std::array::from_fn(|side| {
        let mut bits = masks::NONE;
        for bit in masks::each_in(sides[side]) {
            let cell = masks::plane_cell::<D>(bit, side / 2, Side::at(side).opposite());
            bits[cell / 64] |= 1 << (cell % 64);
        }
        bits
    });
    let linked = linked::<D>(cells, |side| halo[side]);
    let content = BlockContent { nodes: cells, linked: &linked, whole, special: &masks::NONE };
    if let Some(choice) = RowChoice::new::<D>(cells)
        && let Some(pattern) = rows::pattern_in_rows::<D>(choice, &content, None, |_| NodeTerms::default())
    {
        return pattern;
    }
    let link = |cell: usize, axis: usize, side: Side| {
        if masks::has(&linked[2 * axis + side.index()], cell) { whole } else { 0.0 }
    };
    pattern_of::<D>(cells, whole, link, |_| NodeTerms::default())
}

fn unique_pattern<const D: usize>(
    level: &Level<D>,
    source: &Finest<'_, D>,
    block: usize,
    with_shared: &masks::Bits,
    whole: f32,
) -> Pattern {
    let beside = level.topology.beside(block);
    let links: [[&[f32]; 2]; D] =
        std::array::from_fn(|axis| [source.link(axis, block), source.link(axis, beside[axis][1] as usize)]);
    let link = |cell: usize, axis: usize, side: Side| match across(cell, axis, side) {
        _ if side == Side::Low => links[axis][0][cell],
        (other, is_beyond) => links[axis][is_beyond as usize][other],
    };
    let (ground, area, second) = (source.ground(block), source.area(block), source.material(block));
    let terms = |cell: usize| NodeTerms {
        ground: ground[cell],
        area: area[cell],
        second: second.is_some_and(|second| second[cell]),
        has_shared: masks::has(with_shared, cell),
    };
    let cells = live(level, block);
    let is_one_material = second.is_none_or(|second| {
        let all = masks::bits_of(second, |second| second);
        all == masks::NONE || (0..masks::words(D)).all(|word| cells[word] & !all[word] == 0)
    });
    if let Some(choice) = RowChoice::new::<D>(&cells).filter(|_| is_one_material) {
        let mut special = masks::or(with_shared, &masks::bits_of(ground, |ground| ground != 0.0));
        if let Some(second) = second {
            special = masks::or(&special, &masks::bits_of(second, |second| second));
        }
        let content = |linked| BlockContent { nodes: &cells, linked, whole, special: &special };
        let pattern = if level.stencil.has_partial_links(block) {
            let (mut linked, mut table) = ([masks::NONE; DIRECTIONS], vec![0.0; DIRECTIONS * block_cells(D)]);
            let tables = table.chunks_exact_mut(block_cells(D));
            for ((direction, linked), table) in linked.iter_mut().enumerate().zip(tables).take(2 * D) {
                for cell in masks::each(&cells) {
                    table[cell] = link(cell, direction / 2, Side::at(direction));
                }
                *linked = masks::bits_of(table, |link| link > 0.0);
            }
            rows::pattern_in_rows::<D>(choice, &content(&linked), Some(&table), terms)
        } else {
            let linked = linked::<D>(&cells, |side| live(level, beside[side / 2][side % 2] as usize));
            rows::pattern_in_rows::<D>(choice, &content(&linked), None, terms)
        };
        if let Some(pattern) = pattern {
            return pattern;
        }
    }
    pattern_of::<D>(&cells, whole, link, terms)
}
