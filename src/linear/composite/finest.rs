//! The network of a system, stored without gaps.

use rayon::prelude::*;

use crate::grid::{across, block_cells, masks};

use super::super::level::Level;
use super::super::source::{Finest, Source};
use super::super::stencil::mask_words;
use super::super::system::System;
use super::frame::Choice;
use super::net::Net;
use super::pattern::{Beyond, DIRECTIONS, Draft, Pattern, Traits, colour_of};
use super::rows::{self, Content};
use super::stock::{NEW, Wanted, renew};
use super::ties::Tie;

/// What decides about a block with nothing but whole links: its cells, and those beyond each of its sides.
pub(super) type Key = (masks::Bits, [u64; 6]);

/// Usual patterns that a thread makes at a time.
const USUAL: usize = 16;

/// What a block is.
enum Kind {
    /// One of many.
    Usual(Key),
    /// One of its own.
    Own(Box<Pattern>),
}

/// Reads the network of a system whose unknowns `level` knows; `block_of` gives the block of each slot.
pub(super) fn read<const D: usize>(
    net: &mut Net<D>,
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
    let mut ties: Vec<(usize, usize, u32, f32, f32)> = Vec::new();
    for shared in 0..system.shared.len() {
        for (cell, link, area) in system.shared.links(shared) {
            let block = block_of[cell / cells] as usize;
            ties.push((block, cell % cells, shared as u32, link, area));
        }
    }
    ties.sort_by_key(|tie| (tie.0, tie.1));
    let ties_in = |block: usize| {
        let first = ties.partition_point(|tie| tie.0 < block);
        let count = ties[first..].iter().take_while(|tie| tie.0 == block).count();
        &ties[first..first + count]
    };

    let blocks = 1..level.topology.len();
    let kinds: Vec<Kind> = blocks
        .into_par_iter()
        .with_min_len(16)
        .with_max_len(64)
        .map(|block| {
            let ties = ties_in(block);
            let is_usual = level.stencil.is_known(block)
                || ties.is_empty()
                    && !level.stencil.has_partial_links(block)
                    && source.ground(block).iter().all(|&ground| ground == 0.0)
                    && source.material(block).is_none_or(|second| !second.contains(&true));
            if is_usual {
                return Kind::Usual(key_of(level, block));
            }
            let mut tied = masks::NONE;
            ties.iter().for_each(|tie| tied[tie.1 / 64] |= 1 << (tie.1 % 64));
            Kind::Own(Box::new(own_pattern(level, &source, block, &tied, net.whole)))
        })
        .collect();
    // Usual patterns come first.
    let mut wanted = Wanted::from(1);
    let mut patterns = vec![0];
    patterns.extend(kinds.iter().map(|kind| match kind {
        Kind::Usual(key) => wanted.number(*key),
        Kind::Own(_) => 0,
    }));
    let wanted = wanted.trace(&mut net.usual, &mut net.origin, |key| are_alike.then_some(*key));
    renew(
        &mut net.patterns,
        &net.origin,
        USUAL,
        || (),
        |(), place| match place {
            0 => Pattern::default(),
            place => usual_pattern::<D>(&wanted[place - 1], net.whole),
        },
    );
    for (block, kind) in kinds.into_iter().enumerate() {
        if let Kind::Own(pattern) = kind {
            patterns[block + 1] = net.patterns.len() as u32;
            net.patterns.push(*pattern);
        }
    }
    net.origin.resize(net.patterns.len(), NEW);
    net.lay_out(&patterns);
    let list = ties.iter().filter_map(|&(block, cell, shared, link, area)| {
        let colour = colour_of::<D>(cell);
        let node = net.pattern(block).find(cell, 0)? as u32 + net.blocks[block].nodes[colour];
        Some(Tie { node: (colour as u8, node), shared, link, area })
    });
    let list = list.collect();
    net.ties.set(system.shared.len(), list);
    net.ties.index(&net.blocks);
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
        for high in [false, true] {
            let other = live(level, level.topology.beside(block)[axis][high as usize] as usize);
            // Cells beyond count only where there is one before them.
            let own = masks::plane::<D>(&here, axis, high);
            sides[2 * axis + high as usize] = masks::plane::<D>(&other, axis, !high) & own;
        }
    }
    (here, sides)
}

/// A pattern of some cells, listed; `link(cell, axis, high)` is their link to the neighbour there, `traits(cell)` the rest.
pub(super) fn pattern_of<const D: usize>(
    cells: &masks::Bits,
    whole: f32,
    link: impl Fn(usize, usize, bool) -> f32,
    traits: impl Fn(usize) -> Traits,
) -> Pattern {
    let mut nodes: [Vec<(u16, Traits)>; 2] = Default::default();
    let mut index = [0u16; 512];
    for cell in masks::each(cells) {
        let nodes = &mut nodes[colour_of::<D>(cell)];
        index[cell] = nodes.len() as u16;
        nodes.push((cell as u16, traits(cell)));
    }
    let mut draft = Draft::new::<D>(&nodes);
    for cell in masks::each(cells) {
        let (colour, node) = (colour_of::<D>(cell), index[cell] as usize);
        for axis in 0..D {
            for high in [false, true] {
                let g = link(cell, axis, high);
                if g > 0.0 {
                    let direction = 2 * axis + high as usize;
                    match across(cell, axis, high) {
                        (other, false) => {
                            draft.link_here(colour, node, Some(direction), index[other] as usize, g);
                        }
                        (other, true) => {
                            let there = Beyond { side: direction as u8, ordinal: 0, cell: other as u16 };
                            draft.link_there(colour, node, Some(direction), there, g);
                        }
                    }
                }
            }
        }
    }
    draft.finish(whole)
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
        let near = masks::beside::<D>(nodes, side / 2, side % 2 == 1, &beside(side));
        std::array::from_fn(|word| near[word] & nodes[word])
    })
}

fn usual_pattern<const D: usize>(key: &Key, whole: f32) -> Pattern {
    let (cells, sides) = key;
    // Cells beyond each side that are unknowns, in their own block.
    let beyond: [masks::Bits; DIRECTIONS] = std::array::from_fn(|side| {
        let mut bits = masks::NONE;
        for bit in masks::each_in(sides[side]) {
            let cell = masks::plane_cell::<D>(bit, side / 2, side % 2 == 0);
            bits[cell / 64] |= 1 << (cell % 64);
        }
        bits
    });
    let linked = linked::<D>(cells, |side| beyond[side]);
    let content = Content { nodes: cells, linked: &linked, whole, special: &masks::NONE };
    if let Some(choice) = Choice::new::<D>(cells)
        && let Some(pattern) = rows::pattern_in_rows::<D>(choice, &content, None, |_| Traits::default())
    {
        return pattern;
    }
    let link = |cell: usize, axis: usize, high: bool| {
        if masks::has(&linked[2 * axis + high as usize], cell) { whole } else { 0.0 }
    };
    pattern_of::<D>(cells, whole, link, |_| Traits::default())
}

fn own_pattern<const D: usize>(
    level: &Level<D>,
    source: &Finest<'_, D>,
    block: usize,
    tied: &masks::Bits,
    whole: f32,
) -> Pattern {
    let beside = level.topology.beside(block);
    let links: [[&[f32]; 2]; D] =
        std::array::from_fn(|axis| [source.link(axis, block), source.link(axis, beside[axis][1] as usize)]);
    let link = |cell: usize, axis: usize, high: bool| match across(cell, axis, high) {
        _ if !high => links[axis][0][cell],
        (other, is_beyond) => links[axis][is_beyond as usize][other],
    };
    let (ground, area, second) = (source.ground(block), source.area(block), source.material(block));
    let traits = |cell: usize| Traits {
        ground: ground[cell],
        area: area[cell],
        second: second.is_some_and(|second| second[cell]),
        is_tied: masks::has(tied, cell),
    };
    let cells = live(level, block);
    let is_one_material = second.is_none_or(|second| {
        let all = masks::bits_of(second, |second| second);
        all == masks::NONE || (0..masks::words(D)).all(|word| cells[word] & !all[word] == 0)
    });
    if let Some(choice) = Choice::new::<D>(&cells).filter(|_| is_one_material) {
        let mut special = masks::or(tied, &masks::bits_of(ground, |ground| ground != 0.0));
        if let Some(second) = second {
            special = masks::or(&special, &masks::bits_of(second, |second| second));
        }
        let content = |linked| Content { nodes: &cells, linked, whole, special: &special };
        let pattern = if level.stencil.has_partial_links(block) {
            let (mut linked, mut table) = ([masks::NONE; DIRECTIONS], vec![0.0; DIRECTIONS * block_cells(D)]);
            let tables = table.chunks_exact_mut(block_cells(D));
            for ((direction, linked), table) in linked.iter_mut().enumerate().zip(tables).take(2 * D) {
                for cell in masks::each(&cells) {
                    table[cell] = link(cell, direction / 2, direction % 2 == 1);
                }
                *linked = masks::bits_of(table, |link| link > 0.0);
            }
            rows::pattern_in_rows::<D>(choice, &content(&linked), Some(&table), traits)
        } else {
            let linked = linked::<D>(&cells, |side| live(level, beside[side / 2][side % 2] as usize));
            rows::pattern_in_rows::<D>(choice, &content(&linked), None, traits)
        };
        if let Some(pattern) = pattern {
            return pattern;
        }
    }
    pattern_of::<D>(&cells, whole, link, traits)
}
