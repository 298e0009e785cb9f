//! The next coarser level of a network stored without gaps.
//!
//! The rules are those of `linear::coarsen`: inside each aggregate of 2^D cells the nodes of one material that are linked to
//! each other become one. What becomes of a block depends on its pattern alone, and a coarse block on the patterns below it
//! and beside those: blocks that are alike are worked out once.

use std::collections::HashMap;

use rayon::prelude::*;

use crate::math::{Sets, flatten, power, unflatten};

use super::super::coarsen::in_series;
use super::super::material;
use super::net::Net;
use super::pattern::{Aggregate, Beyond, DIRECTIONS, Draft, End, Joined, NONE, Pattern, Traits};

/// Patterns below a coarse block: those of its parts, then those beyond each of its sides. 0 where there is no block.
type Below = [u32; 32];

/// Sets `coarse` to the level above `fine`, whose cells are `h` wide.
pub(super) fn coarsen<const D: usize>(fine: &mut Net<D>, coarse: &mut Net<D>, h: f32) {
    let (whole, whole_of) = (fine.whole, fine.whole_of);
    fine.patterns.par_iter_mut().with_min_len(4).for_each(|pattern| {
        pattern.joined = join::<D>(pattern, h);
    });
    coarse.topology.cover(&fine.topology, &mut fine.cover);
    coarse.children.clear();
    coarse.children.resize(coarse.topology.len(), [0; 8]);
    for block in 1..fine.topology.len() {
        let octant = flatten(fine.topology.octant(block), 2);
        coarse.children[fine.cover[block] as usize][octant] = block as u32;
    }
    let scale = 0.5 * power(2, D - 1) as f32;
    coarse.whole = scale * whole;
    coarse.whole_of = whole_of.map(|whole| scale * whole);

    let mut known: HashMap<Below, u32> = HashMap::new();
    let mut wanted: Vec<Below> = Vec::new();
    let mut patterns = vec![0];
    for cover in 1..coarse.topology.len() {
        let below = patterns_below(fine, coarse, cover);
        let next = wanted.len() as u32 + 1;
        patterns.push(*known.entry(below).or_insert_with(|| {
            wanted.push(below);
            next
        }));
    }
    let (net, coarse_whole) = (&*fine, coarse.whole);
    coarse.patterns.clear();
    coarse.patterns.push(Pattern::default());
    coarse.patterns.par_extend(
        wanted.par_iter().with_min_len(4).map(|below| coarse_pattern::<D>(net, below, coarse_whole)),
    );
    coarse.lay_out(&patterns);

    let parent = |block: usize, colour: usize, node: usize| {
        let (cover, octant) = (fine.cover[block] as usize, flatten(fine.topology.octant(block), 2));
        let joined = &fine.pattern(block).joined;
        let (above, index) = coarse.node(cover, coarse.pattern(cover).parents[octant][colour][node])?;
        let merged = joined.list[joined.of[colour][node] as usize].merged;
        Some(((above as u8, index as u32), merged))
    };
    let mut ties = fine.ties.coarser(&fine.blocks, h, parent);
    ties.index(&coarse.blocks);
    coarse.ties = ties;
}

fn patterns_below<const D: usize>(fine: &Net<D>, coarse: &Net<D>, cover: usize) -> Below {
    let parts = power(2, D);
    let pattern = |block: u32| fine.blocks[block as usize].pattern;
    let mut below = [0; 32];
    for (part, &block) in coarse.children[cover].iter().enumerate() {
        below[part] = pattern(block);
    }
    for axis in 0..D {
        for high in 0..2 {
            let other = coarse.topology.beside(cover)[axis][high] as usize;
            for part in (0..parts).filter(|part| part >> axis & 1 == 1 - high) {
                below[listed::<D>(part, 2 * axis + high)] = pattern(coarse.children[other][part]);
            }
        }
    }
    below
}

/// Where the pattern beyond a side is listed in [`Below`], for a part of the block at that side.
fn listed<const D: usize>(part: usize, side: usize) -> usize {
    let axis = side / 2;
    // Parts at a side, counted without the bit of the axis across it.
    let rank = (part & ((1 << axis) - 1)) | (part >> (axis + 1) << axis);
    8 + 4 * side + rank
}

/// Joins the nodes of a pattern; `h` is the width of its cells.
fn join<const D: usize>(pattern: &Pattern, h: f32) -> Joined {
    let counts = [pattern.count(0), pattern.count(1)];
    let total = counts[0] + counts[1];
    let id = |colour: usize, node: usize| colour * counts[0] + node;
    let split = |id: usize| if id < counts[0] { (0, id) } else { (1, id - counts[0]) };
    let mut coarse_cell = vec![0u16; total];
    let mut sets = Sets::default();
    sets.reset(total);
    let mut is_carried = vec![false; total];
    for colour in 0..2 {
        let first = id(colour, 0);
        for (node, &cell) in pattern.half[colour].cells.iter().enumerate() {
            coarse_cell[first + node] = flatten(unflatten::<D>(cell as usize, 8).map(|c| c / 2), 4) as u16;
            is_carried[first + node] = pattern.traits(colour, node).is_tied;
        }
        for direction in 0..DIRECTIONS {
            let carried = &mut is_carried[first..first + counts[colour]];
            for (carried, &place) in carried.iter_mut().zip(pattern.half[colour].near(direction)) {
                *carried |= place != 0;
            }
        }
        pattern.half[colour].further.iter().for_each(|link| is_carried[first + link.node as usize] = true);
    }
    for colour in 0..2 {
        let half = &pattern.half[colour];
        let mut unite = |node: usize, place: u16| {
            if let End::Here(other, index) = pattern.end(colour, place) {
                let (a, b) = (id(colour, node), id(other, index));
                if coarse_cell[a] == coarse_cell[b]
                    && pattern.traits(colour, node).second == pattern.traits(other, index).second
                {
                    sets.join(a as u32, b as u32);
                }
            }
        };
        for axis in 0..D {
            // Even cells share an aggregate with their high neighbours.
            let stride = power(8, axis);
            for ((node, &place), &cell) in half.near(2 * axis + 1).iter().enumerate().zip(&half.cells) {
                if place != 0 && (cell as usize / stride).is_multiple_of(2) {
                    unite(node, place);
                }
            }
        }
        half.further.iter().for_each(|link| unite(link.node as usize, link.near));
    }
    // Roots by coarse cell; among several in one cell the one with the most nodes comes first.
    let mut size = vec![0u16; total];
    for node in (0..total).filter(|&node| is_carried[node]) {
        size[sets.find(node as u32) as usize] += 1;
    }
    let mut roots: Vec<(u16, u16, u16)> = (0..total)
        .filter(|&node| size[node] > 0)
        .map(|node| (coarse_cell[node], u16::MAX - size[node], node as u16))
        .collect();
    roots.sort_unstable();
    let mut joined =
        Joined { of: [vec![NONE; counts[0]], vec![NONE; counts[1]]], list: Vec::with_capacity(roots.len()) };
    let mut number = vec![NONE; total];
    for (index, &(cell, _, node)) in roots.iter().enumerate() {
        let before = roots[..index].iter().rev().take_while(|other| other.0 == cell).count();
        let at = unflatten::<D>(cell as usize, 4);
        let (colour, own) = split(node as usize);
        number[node as usize] = index as u16;
        joined.list.push(Aggregate {
            cell: std::array::from_fn(|axis| at.get(axis).map_or(0, |&c| c as u8)),
            ordinal: before as u8,
            merged: size[node as usize] > 1,
            traits: Traits { second: pattern.traits(colour, own).second, ..Traits::default() },
        });
    }
    for colour in 0..2 {
        for node in (0..counts[colour]).filter(|&node| is_carried[id(colour, node)]) {
            let aggregate = number[sets.find(id(colour, node) as u32) as usize];
            joined.of[colour][node] = aggregate;
            let Some(traits) = pattern.traits[colour].get(node) else { continue };
            let own = &mut joined.list[aggregate as usize];
            let (ground, area) = (traits.ground, traits.area);
            own.traits.ground += if own.merged { in_series(ground, area, h) } else { ground };
            own.traits.area += if ground > 0.0 { area } else { 0.0 };
            own.traits.is_tied |= traits.is_tied;
        }
    }
    joined
}

/// The other end of a coarse link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    None,
    /// A node of the same coarse block, as [`Pattern::parents`] counts them.
    Here(u16),
    There(Beyond),
}

/// Links of one coarse node: the first one in each direction.
type Sums = [(Target, f64); DIRECTIONS];

/// A coarse block in the making.
struct Making<'a, const D: usize> {
    fine: &'a Net<D>,
    below: &'a Below,
    /// Per part and aggregate: its coarse node.
    parent_of: Vec<Vec<u16>>,
    sums: Vec<Sums>,
    /// Further links: node and target.
    further: Vec<(u16, Target, f64)>,
}

impl<const D: usize> Making<'_, D> {
    fn pattern(&self, at: usize) -> &Pattern {
        &self.fine.patterns[self.below[at] as usize]
    }

    /// The other end of a fine link, and what it has become; none if the link is inside one coarse node.
    #[inline]
    fn target(&self, part: usize, colour: usize, aggregate: u16, place: u16) -> Option<(Target, &Aggregate)> {
        let this = self.pattern(part);
        match this.end(colour, place) {
            End::Here(other, index) => {
                let other = this.joined.of[other][index];
                (other != aggregate).then(|| {
                    let other = other as usize;
                    (Target::Here(self.parent_of[part][other]), &this.joined.list[other])
                })
            }
            End::There(beyond) => {
                let beyond = this.half[colour].beyond[beyond];
                let (axis, high) = (beyond.side as usize / 2, beyond.side as usize % 2);
                let (is_inside, across) = (part >> axis & 1 != high, part ^ 1 << axis);
                let at = if is_inside { across } else { listed::<D>(part, beyond.side as usize) };
                let there = self.pattern(at);
                let index = there.find(beyond.cell as usize, beyond.ordinal).expect("links have two ends");
                let other = there.joined.of[1 - colour][index] as usize;
                let found = &there.joined.list[other];
                let target = if is_inside {
                    Target::Here(self.parent_of[across][other])
                } else {
                    let cell = flatten(cell_in::<D>(across, found.cell), 8) as u16;
                    Target::There(Beyond { side: beyond.side, ordinal: found.ordinal, cell })
                };
                Some((target, found))
            }
        }
    }

    /// Takes over a fine link; its mirror image too, if so asked.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn add(
        &mut self,
        part: usize,
        colour: usize,
        node: usize,
        direction: Option<usize>,
        place: u16,
        link: f32,
        mirrored: bool,
    ) {
        let this = self.pattern(part);
        let aggregate = this.joined.of[colour][node];
        let Some((target, other)) = self.target(part, colour, aggregate, place) else { return };
        let own = &this.joined.list[aggregate as usize];
        let value = if own.traits.second == other.traits.second {
            f64::from(link) * [1.0, 2.0 / 3.0, 0.5][own.merged as usize + other.merged as usize]
        } else {
            let merged = [own.merged, other.merged];
            let merged = if own.traits.second { [merged[1], merged[0]] } else { merged };
            f64::from(material::in_series(link, merged, self.fine.whole_of))
        };
        let own = self.parent_of[part][aggregate as usize];
        self.put(own, direction, target, value);
        if let (true, Target::Here(other)) = (mirrored, target) {
            self.put(other, direction.map(|direction| direction ^ 1), Target::Here(own), value);
        }
    }

    #[inline]
    fn put(&mut self, own: u16, direction: Option<usize>, target: Target, value: f64) {
        if let Some(direction) = direction {
            let sum = &mut self.sums[own as usize][direction];
            if sum.0 == Target::None {
                *sum = (target, value);
                return;
            }
            if sum.0 == target {
                sum.1 += value;
                return;
            }
        }
        self.further.push((own, target, value));
    }
}

/// A coarse cell of one of the parts of a coarse block.
#[inline]
fn cell_in<const D: usize>(part: usize, cell: [u8; 3]) -> [usize; D] {
    std::array::from_fn(|axis| 4 * (part >> axis & 1) + cell[axis] as usize)
}

fn coarse_pattern<const D: usize>(fine: &Net<D>, below: &Below, whole: f32) -> Pattern {
    let parts = power(2, D);
    let pattern = |at: usize| &fine.patterns[below[at] as usize];
    // Nodes by colour: coarse cell, ordinal, part, aggregate.
    let mut order: [Vec<(u16, u8, u8, u16)>; 2] = Default::default();
    for part in 0..parts {
        for (index, aggregate) in pattern(part).joined.list.iter().enumerate() {
            let at = cell_in::<D>(part, aggregate.cell);
            let colour = at.iter().sum::<usize>() % 2;
            order[colour].push((flatten(at, 8) as u16, aggregate.ordinal, part as u8, index as u16));
        }
    }
    let counts = [order[0].len(), order[1].len()];
    let total = counts[0] + counts[1];
    let mut parent_of: Vec<Vec<u16>> =
        (0..parts).map(|part| vec![total as u16; pattern(part).joined.list.len()]).collect();
    let mut nodes: [Vec<(u16, Traits)>; 2] = Default::default();
    for (colour, order) in order.iter_mut().enumerate() {
        order.sort_unstable();
        for (index, &(cell, _, part, aggregate)) in order.iter().enumerate() {
            parent_of[part as usize][aggregate as usize] = (colour * counts[0] + index) as u16;
            nodes[colour].push((cell, pattern(part as usize).joined.list[aggregate as usize].traits));
        }
    }

    let sums = vec![[(Target::None, 0.0); DIRECTIONS]; total];
    let mut making = Making { fine, below, parent_of, sums, further: Vec::new() };
    let mut member = vec![(u8::MAX, 0, 0); total];
    for part in 0..parts {
        let this = pattern(part);
        let is_simple = this.half.iter().all(|half| half.further.is_empty());
        let is_one_material = this.traits.iter().flatten().all(|traits| !traits.second);
        for colour in 0..2 {
            let half = &this.half[colour];
            for (node, &aggregate) in this.joined.of[colour].iter().enumerate() {
                if aggregate != NONE {
                    let member = &mut member[making.parent_of[part][aggregate as usize] as usize];
                    if member.0 == u8::MAX {
                        *member = (part as u8, colour as u8, node as u16);
                    }
                }
            }
            for direction in 0..2 * D {
                let (stride, high) = (power(8, direction / 2), direction % 2);
                let links = half.links.get(direction * half.cells.len()..).unwrap_or_default();
                let here = this.count(1 - colour) as u16;
                for (node, &place) in half.near(direction).iter().enumerate().filter(|(_, p)| **p != 0) {
                    // Towards the other half of the same coarse cell there is nothing but the same node, in one material.
                    let is_inside = half.cells[node] as usize / stride % 2 != high;
                    if is_inside && is_one_material {
                        continue;
                    }
                    // Links inside the block are taken over from their low end, for both ends.
                    if is_simple && high == 0 && place <= here {
                        continue;
                    }
                    let link = links.get(node).copied().unwrap_or(fine.whole);
                    let mirrored = is_simple && high == 1 && place <= here;
                    making.add(part, colour, node, Some(direction), place, link, mirrored);
                }
            }
            for link in &half.further {
                making.add(part, colour, link.node as usize, None, link.near, link.link, false);
            }
        }
    }
    let Making { parent_of, sums, mut further, .. } = making;
    further.sort_by_key(|&(node, target, _)| (node, target));
    let split = |node: usize| if node < counts[0] { (0, node) } else { (1, node - counts[0]) };
    let mut draft = Draft::new::<D>(&nodes);
    let mut link = |node: usize, direction: Option<usize>, target: Target, sum: f64| {
        let (colour, node) = split(node);
        match target {
            Target::None => {}
            Target::There(there) => draft.link_there(colour, node, direction, there, sum as f32),
            Target::Here(other) => match split(other as usize) {
                (same, other) if same == colour => draft.link_own(colour, node, other, sum as f32),
                (_, other) => draft.link_here(colour, node, direction, other, sum as f32),
            },
        }
    };
    for (node, sums) in sums.iter().enumerate() {
        for (direction, &(target, sum)) in sums.iter().enumerate() {
            link(node, Some(direction), target, sum);
        }
    }
    for same in further.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let sum = same.iter().map(|entry| entry.2).sum::<f64>();
        link(same[0].0 as usize, None, same[0].1, sum);
    }
    let mut coarse = draft.finish(whole);
    let black = member.split_off(counts[0]);
    coarse.member = [member, black];
    coarse.parents = (0..parts)
        .map(|part| {
            let of = &pattern(part).joined.of;
            [0, 1].map(|colour| {
                let parent = |&aggregate: &u16| match aggregate {
                    NONE => total as u16,
                    aggregate => parent_of[part][aggregate as usize],
                };
                of[colour].iter().map(parent).collect()
            })
        })
        .collect();
    coarse
}
