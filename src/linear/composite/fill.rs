//! The level on which bodies become part of the network.
//!
//! Bodies matter as such while cells are smaller than half of them. From there on the pressure around a body is affine as far as
//! the nodes can tell, and to an affine pressure the links of the cells inside it respond as the body does. So on that level the
//! cells inside bodies become nodes, linked as everywhere else, and there and on all coarser levels there is no body term.

use rayon::prelude::*;

use crate::grid::masks::{self, Bits};
use crate::grid::{Blocks, Field, across, block_cells};
use crate::math::{Side, flatten};

use super::super::bodies::{Bodies, Body};
use super::components::Components;
use super::interner::NEW;
use super::network::{Colours, Network};
use super::pattern::{End, HaloNode, NodeTerms, Pattern, PatternBuilder, colour_of};
use super::shared::SharedEntry;
use super::surfaces::Surfaces;

/// From this level on, a cell covers whole blocks of the finest one.
const FIRST: usize = 3;
/// Blocks of the finest level that a thread goes through at a time.
const SLOTS: usize = 512;

/// The level for some bodies: its cells are half as wide as the largest of them.
pub(super) fn level_for(bodies: &[Body]) -> usize {
    let width = bodies.iter().map(|body| body.width).max().unwrap_or(0);
    (width.next_power_of_two().trailing_zeros() as usize).saturating_sub(1).max(FIRST)
}

/// A cell of the level: its block, and its place there.
type Place = (u32, u16);

/// What bodies fill of a level.
#[derive(Default)]
struct FilledCells {
    /// Cells, in order.
    cells: Vec<Place>,
    /// Pairs of cells, and the links through all faces between them that bound bodies or lie inside.
    links: Vec<(Place, Place, f64)>,
}

impl FilledCells {
    /// Of bodies whose cells are `inside`, on a level of `net`; `whole` is a link of the finest level.
    fn find<const D: usize>(
        blocks: &Blocks<D>,
        inside: &Field<Bits>,
        net: &Network<D>,
        level: usize,
        whole: f32,
    ) -> FilledCells {
        let cell_over = |block: [i32; D]| block.map(|c| c >> (level - FIRST));
        let place_of = |cell: [i32; D]| -> Place {
            let block = net.topology.find(cell.map(|c| c.div_euclid(8)));
            (block as u32, flatten(cell.map(|c| c.rem_euclid(8) as usize), 8) as u16)
        };
        // Links get longer from level to level.
        let each = f64::from(whole) * 0.5f64.powi(level as i32);
        let slots = blocks.slots().as_slice();
        let found: Vec<FilledCells> = slots
            .par_chunks(SLOTS)
            .map(|slots| {
                let mut filling = FilledCells::default();
                for slot in slots.iter().map(|&slot| slot as usize) {
                    let (block, here) = (blocks.coords(slot), &inside[slot]);
                    let cell = cell_over(block);
                    if *here != masks::NONE {
                        filling.cells.push(place_of(cell));
                    }
                    for axis in 0..D {
                        let mut next = block;
                        next[axis] += 1;
                        let next = cell_over(next);
                        let there = &inside[blocks.beside(slot, axis, Side::High) as usize];
                        if next == cell || *here == masks::NONE && *there == masks::NONE {
                            continue;
                        }
                        // No body reaches a surface: what lies beyond one of its faces is liquid too.
                        let faces = masks::plane::<D>(here, axis, Side::High)
                            | masks::plane::<D>(there, axis, Side::Low);
                        if faces != 0 {
                            let link = each * f64::from(faces.count_ones());
                            filling.links.push((place_of(cell), place_of(next), link));
                        }
                    }
                }
                filling
            })
            .collect();
        let mut filling = FilledCells::default();
        for FilledCells { cells, links } in found {
            filling.cells.extend(cells);
            filling.links.extend(links);
        }
        // A block with nothing but cells inside bodies is none of the network's.
        filling.cells.retain(|place| place.0 != 0);
        filling.cells.sort_unstable();
        filling.cells.dedup();
        filling
    }
}

/// A node of the level with bodies filled.
#[derive(Clone, Copy)]
struct Node {
    block: u32,
    colour: u8,
    /// Its place among those of its colour in the block.
    index: u16,
    cell: u16,
    /// How many others come before it in the same cell.
    ordinal: u8,
}

/// No node.
const NONE: u32 = u32::MAX;

/// What a node is made of: in the order of cells, and in each the filled ones first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    cell: u16,
    /// Not one with what is filled of the cell.
    is_apart: bool,
    /// Colour and place of a node there was; none for what is filled.
    was: Option<(usize, usize)>,
}

/// The nodes of the level with bodies filled.
struct Nodes {
    list: Vec<Node>,
    /// By block and colour, as a [`PatternBuilder`] wants them.
    by_block: Vec<[Vec<(u16, NodeTerms)>; 2]>,
    /// What has become of the nodes there were, by colour and place.
    of: Colours<u32>,
    /// By block and cell: the node that bodies there belong to, or that lies beside them.
    anchor: Vec<u32>,
}

impl Nodes {
    /// Nodes `beside` bodies become one with what is filled of their cell; others stay as they are.
    fn new<const D: usize>(net: &Network<D>, filling: &FilledCells, beside: &Colours<bool>) -> Nodes {
        let cells = block_cells(D);
        let count = net.topology.len();
        let mut nodes = Nodes {
            list: Vec::new(),
            by_block: Vec::with_capacity(count),
            of: net.counts().map(|count| vec![NONE; count]),
            anchor: vec![NONE; count * cells],
        };
        let mut filled = filling.cells.as_slice();
        let mut members: Vec<Member> = Vec::new();
        for block in 0..count {
            let (own, rest) = filled.split_at(filled.partition_point(|place| place.0 as usize <= block));
            filled = rest;
            members.clear();
            members.extend(own.iter().map(|place| Member { cell: place.1, is_apart: false, was: None }));
            let pattern = net.pattern(block);
            for colour in 0..2 {
                for (index, &cell) in pattern.half[colour].cells.iter().enumerate() {
                    if pattern.has_node(colour, index) {
                        let at = net.range(block, colour).start + index;
                        let is_filled = || own.binary_search(&(block as u32, cell)).is_ok();
                        let is_apart = !(beside[colour][at] && is_filled());
                        members.push(Member { cell, is_apart, was: Some((colour, at)) });
                    }
                }
            }
            members.sort_unstable();
            nodes.by_block.push(Default::default());
            for of_cell in members.chunk_by(|a, b| a.cell == b.cell) {
                nodes.add_cell::<D>(net, block, of_cell, beside);
            }
        }
        nodes
    }

    fn add_cell<const D: usize>(
        &mut self,
        net: &Network<D>,
        block: usize,
        members: &[Member],
        beside: &Colours<bool>,
    ) {
        let cell = members[0].cell;
        let colour = colour_of::<D>(cell as usize);
        let anchor = &mut self.anchor[block * block_cells(D) + cell as usize];
        // Those that are filled make one node; each of the others is one.
        let same = members.chunk_by(|a, b| !a.is_apart && !b.is_apart);
        for (ordinal, same) in same.enumerate() {
            let number = self.list.len() as u32;
            let mut terms = NodeTerms::default();
            for &Member { is_apart, was, .. } in same {
                let is_beside = was.is_some_and(|(colour, at)| beside[colour][at]);
                if *anchor == NONE && (!is_apart || is_beside) {
                    *anchor = number;
                }
                if let Some((colour, at)) = was {
                    self.of[colour][at] = number;
                    let own = net.pattern(block).terms(colour, at - net.range(block, colour).start);
                    terms.ground += own.ground;
                    terms.area += own.area;
                    terms.has_shared |= own.has_shared;
                }
            }
            let list = &mut self.by_block[block][colour];
            let (index, ordinal) = (list.len() as u16, ordinal as u8);
            self.list.push(Node { block: block as u32, colour: colour as u8, index, cell, ordinal });
            list.push((cell, terms));
        }
    }

    /// The node of a cell that bodies there belong to or lie beside.
    fn anchor<const D: usize>(&self, (block, cell): Place) -> Option<u32> {
        let anchor = self.anchor[block as usize * block_cells(D) + cell as usize];
        (anchor != NONE).then_some(anchor)
    }
}

/// A link from one node to another.
type Link = (u32, u32, f64);

/// Makes the cells inside bodies nodes of a level of the network, as `net` has it without them. `finer` is the level below it,
/// with the bodies' surfaces there. Returns false, and leaves all as it is, if a body lies between parts of the network that
/// nothing else connects: bodies do not either.
pub(super) fn fill<const D: usize>(
    net: &mut Network<D>,
    finer: (&Network<D>, &Surfaces),
    blocks: &Blocks<D>,
    bodies: &Bodies<'_>,
    level: usize,
) -> bool {
    let Some(inside) = bodies.inside else { return false };
    let Some(beside) = nodes_beside(net, finer, bodies.list.len()) else { return false };
    let filling = FilledCells::find(blocks, inside, net, level, bodies.whole);
    let nodes = Nodes::new(net, &filling, &beside);
    let count = net.topology.len();
    let mut links: Vec<Vec<Link>> = vec![Vec::new(); count];
    for &(low, high, link) in &filling.links {
        if let (Some(a), Some(b)) = (nodes.anchor::<D>(low), nodes.anchor::<D>(high)) {
            links[low.0 as usize].push((a, b, link));
            links[high.0 as usize].push((b, a, link));
        }
    }
    let by_block = links.into_par_iter().enumerate().skip(1);
    let patterns: Vec<Pattern> =
        by_block.map(|(block, links)| pattern_of(net, block, &nodes, links)).collect();
    let entries: Vec<(u32, SharedEntry)> = net
        .shared
        .list()
        .iter()
        .map(|entry| (nodes.of[entry.node.0 as usize][entry.node.1 as usize], *entry))
        .collect();

    net.patterns.truncate(1);
    net.patterns.extend(patterns);
    net.previous.clear();
    net.previous.push(0);
    net.previous.resize(count, NEW);
    net.forget();
    net.lay_out(&(0..count as u32).collect::<Vec<_>>());
    let entries = entries.into_iter().map(|(node, entry)| {
        let Node { block, colour, index, .. } = nodes.list[node as usize];
        let first = net.blocks[block as usize].nodes[colour as usize];
        SharedEntry { node: (colour, first + u32::from(index)), ..entry }
    });
    let entries = entries.collect();
    net.shared.set(net.shared.x.len(), entries);
    net.shared.index(&net.blocks);
    true
}

/// The nodes of a level beside bodies, by the surfaces of the finer one. None if some body lies beside several parts of the network.
fn nodes_beside<const D: usize>(
    net: &Network<D>,
    (finer, surfaces): (&Network<D>, &Surfaces),
    bodies: usize,
) -> Option<Colours<bool>> {
    let mut components = Components::default();
    components.find(net);
    let mut beside = net.counts().map(|count| vec![false; count]);
    let (reds, mut is_one) = (net.counts()[0], true);
    let mut part_of = vec![NONE; bodies];
    surfaces.each_run(|block, shape, bodies| {
        let (cover, octant) = (finer.cover[block] as usize, flatten(finer.topology.octant(block), 2));
        let mut common = NONE;
        for colour in 0..2 {
            let parents = net.pattern(cover).parents.of(octant, colour);
            for (node, _) in shape.each(colour) {
                // A node without links has no parent.
                let Some((colour, index)) = net.node(cover, parents.get(node)) else { continue };
                beside[colour][index] = true;
                let part = components.part_of(colour * reds + index);
                is_one &= common == NONE || common == part;
                common = part;
            }
        }
        for body in bodies.filter(|_| common != NONE) {
            is_one &= part_of[body] == NONE || part_of[body] == common;
            part_of[body] = common;
        }
    });
    is_one.then_some(beside)
}

/// A block of the level with bodies filled; `links` are those of its nodes that are new.
fn pattern_of<const D: usize>(
    net: &Network<D>,
    block: usize,
    nodes: &Nodes,
    mut links: Vec<Link>,
) -> Pattern {
    let old = net.pattern(block);
    for colour in 0..2 {
        let first = net.range(block, colour).start;
        old.each_link(colour, net.whole, |node, end, link| {
            let other = match end {
                End::Local(other, index) => nodes.of[other][net.range(block, other).start + index],
                End::Halo(halo) => nodes.of[1 - colour][net.find_halo(block, colour, halo)],
            };
            let own = nodes.of[colour][first + node];
            if own != other {
                links.push((own, other, f64::from(link)));
            }
        });
    }
    links.sort_unstable_by_key(|link| (link.0, link.1));

    let own = &nodes.by_block[block];
    let mut builder = PatternBuilder::new::<D>(own);
    // Directions in which the node at hand has a link; further ones go without.
    let (mut node, mut taken) = (NONE, 0u8);
    for same in links.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        if std::mem::replace(&mut node, same[0].0) != node {
            taken = 0;
        }
        let sum = same.iter().map(|link| link.2).sum::<f64>() as f32;
        let [Node { colour, index, cell, .. }, other] =
            [same[0].0, same[0].1].map(|node| nodes.list[node as usize]);
        let (colour, index) = (colour as usize, index as usize);
        let is_here = other.block as usize == block;
        let direction = if is_here {
            direction_to::<D>(cell, other.cell)
        } else {
            let is_there = |side: &usize| net.topology.beside(block)[side / 2][side % 2] == other.block;
            (0..2 * D).find(is_there)
        };
        let first = direction.filter(|direction| taken >> direction & 1 == 0);
        taken |= first.map_or(0, |direction| 1 << direction);
        match direction {
            Some(side) if !is_here => {
                let there = HaloNode { side: side as u8, ordinal: other.ordinal, cell: other.cell };
                builder.link_halo(colour, index, first, there, sum);
            }
            _ if other.colour as usize == colour => {
                builder.link_same_colour(colour, index, other.index as usize, sum)
            }
            _ => builder.link_local(colour, index, first, other.index as usize, sum),
        }
    }
    let mut pattern = builder.finish(net.whole);
    let (reds, total) = (own[0].len(), own[0].len() + own[1].len());
    pattern.parents = old.parents.renumbered(|parent| match net.node(block, parent) {
        Some((colour, index)) => {
            let Node { colour, index, .. } = nodes.list[nodes.of[colour][index] as usize];
            (colour as usize * reds) as u16 + index
        }
        None => total as u16,
    });
    pattern
}

/// The way from a cell of a block to a neighbour there.
fn direction_to<const D: usize>(from: u16, to: u16) -> Option<usize> {
    (0..2 * D).find(|side| across(from as usize, side / 2, Side::at(*side)) == (to as usize, false))
}
