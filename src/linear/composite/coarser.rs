//! The next coarser level of a network stored without gaps.
//!
//! A coarse block depends on the patterns below it and beside those, and on how their nodes were joined: blocks that are
//! alike are worked out once.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::{block_cells, masks};
use crate::math::{flatten, power, unflatten};

use super::super::material;
use super::finest::pattern_of;
use super::frame::Choice;
use super::join::join;
use super::net::Net;
use super::pattern::{Aggregate, Beyond, DIRECTIONS, Draft, End, Parents, Pattern, Traits, colour_of};
use super::rows::{self, Content};
use super::stock::{NEW, Wanted, renew};

/// Patterns below a coarse block: those of its parts, then those beyond each of its sides. 0 where there is no block.
pub(super) type Below = [u32; 32];

/// Patterns that a thread makes at a time: some take ten times as long as others.
const FEW: usize = 4;

/// Sets `coarse` to the level above `fine`, whose cells are `h` wide.
pub(super) fn coarsen<const D: usize>(fine: &mut Net<D>, coarse: &mut Net<D>, h: f32) {
    let (whole, whole_of) = (fine.whole, fine.whole_of);
    fine.patterns.par_iter_mut().with_min_len(FEW).for_each(|pattern| {
        if !pattern.is_joined() {
            pattern.joined = join::<D>(pattern, h);
        }
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

    let mut wanted = Wanted::from(1);
    let mut patterns = vec![0];
    patterns
        .extend((1..coarse.topology.len()).map(|cover| wanted.number(patterns_below(fine, coarse, cover))));
    let wanted = wanted.trace(&mut coarse.below, &mut coarse.origin, |below| earlier(below, &fine.origin));
    let (net, coarse_whole) = (&*fine, coarse.whole);
    renew(&mut coarse.patterns, &coarse.origin, FEW, Desk::new::<D>, |desk, place| match place {
        0 => Pattern::default(),
        place => coarse_pattern::<D>(desk, net, &wanted[place - 1], coarse_whole),
    });
    coarse.lay_out(&patterns);

    let parent = |block: usize, colour: usize, node: usize| {
        let (cover, octant) = (fine.cover[block] as usize, flatten(fine.topology.octant(block), 2));
        let joined = &fine.pattern(block).joined;
        let (above, index) =
            coarse.node(cover, coarse.pattern(cover).parents.of(octant, colour).get(node))?;
        let merged = joined.list[joined.of[colour][node] as usize].merged;
        Some(((above as u8, index as u32), merged))
    };
    let mut ties = fine.ties.coarser(&fine.blocks, h, parent);
    ties.index(&coarse.blocks);
    coarse.ties = ties;
}

/// The same blocks' patterns in the step before, if all were there.
fn earlier(below: &Below, origin: &[u32]) -> Option<Below> {
    let before = below.map(|pattern| origin[pattern as usize]);
    (!before.contains(&NEW)).then_some(before)
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
    fn target(&self, part: usize, colour: usize, aggregate: u16, end: End) -> Option<(Target, &Aggregate)> {
        let this = self.pattern(part);
        match end {
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
        end: End,
        link: f32,
        mirrored: bool,
    ) {
        let this = self.pattern(part);
        let aggregate = this.joined.of[colour][node];
        let Some((target, other)) = self.target(part, colour, aggregate, end) else { return };
        let own = &this.joined.list[aggregate as usize];
        let value = if own.traits.second == other.traits.second {
            f64::from(link) * stretched(own.merged, other.merged)
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

/// What becomes of a link as the distance between its ends grows: whether each of them was made of several nodes.
#[inline]
fn stretched(own: bool, other: bool) -> f64 {
    [1.0, 2.0 / 3.0, 0.5][own as usize + other as usize]
}

/// The same for the links of rows of cells, a bit for each: whether its own and the other end was. Others than `nodes` have none.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn stretch(
    sums: &[[f64; 8]],
    links: &mut [[f32; 8]],
    nodes: &masks::Bits,
    own: &masks::Bits,
    other: &masks::Bits,
) {
    for (row, (sums, links)) in sums.iter().zip(links).enumerate() {
        if masks::row(nodes, row) == 0 {
            *links = [0.0; 8];
            continue;
        }
        let [own, other] = [own, other].map(|bits| masks::row(bits, row));
        let [any, both] = [own | other, own & other];
        for lane in 0..8 {
            let one = if any >> lane & 1 == 1 { stretched(true, false) } else { 1.0 };
            let factor = if both >> lane & 1 == 1 { stretched(true, true) } else { one };
            links[lane] = (sums[lane] * factor) as f32;
        }
    }
}

/// A coarse cell of one of the parts of a coarse block.
#[inline]
fn cell_in<const D: usize>(part: usize, cell: [u8; 3]) -> [usize; D] {
    std::array::from_fn(|axis| 4 * (part >> axis & 1) + cell[axis] as usize)
}

/// Sums up the fine links of all parts, given the coarse nodes of their aggregates.
fn sum_links<'a, const D: usize>(
    fine: &'a Net<D>,
    below: &'a Below,
    parent_of: Vec<Vec<u16>>,
    total: usize,
) -> Making<'a, D> {
    let sums = vec![[(Target::None, 0.0); DIRECTIONS]; total];
    let mut making = Making { fine, below, parent_of, sums, further: Vec::new() };
    for part in 0..power(2, D) {
        let this = &fine.patterns[below[part] as usize];
        let is_simple = this.half.iter().all(|half| half.further.is_empty());
        let is_one_material = this.joined.list.iter().all(|aggregate| !aggregate.traits.second);
        for colour in 0..2 {
            let half = &this.half[colour];
            for direction in 0..2 * D {
                let (stride, high) = (power(8, direction / 2), direction % 2);
                this.each_first(colour, direction, fine.whole, |node, end, link| {
                    // Towards the other half of the same coarse cell there is nothing but the same node, in one material.
                    let is_inside = half.cells[node] as usize / stride % 2 != high;
                    if is_inside && is_one_material {
                        return;
                    }
                    // Links inside the block are taken over from their low end, for both ends.
                    let is_here = matches!(end, End::Here(..));
                    if is_simple && high == 0 && is_here {
                        return;
                    }
                    let mirrored = is_simple && high == 1 && is_here;
                    making.add(part, colour, node, Some(direction), end, link, mirrored);
                });
            }
            this.each_further(colour, |node, end, link| {
                making.add(part, colour, node, None, end, link, false);
            });
        }
    }
    making
}

/// Coarse nodes of the fine nodes of each part; `total` where there is none.
fn parents_of<const D: usize>(
    fine: &Net<D>,
    below: &Below,
    parent_of: impl Fn(usize, usize) -> u16,
    total: usize,
) -> Parents {
    let parts = || (0..power(2, D)).map(|part| &fine.patterns[below[part] as usize].joined);
    let mut parents = Parents::with_capacity(parts().flat_map(|joined| &joined.of).map(Vec::len).sum());
    let mut parent_of_all = Vec::new();
    for (part, joined) in parts().enumerate() {
        parent_of_all.clear();
        parent_of_all.extend((0..joined.list.len()).map(|aggregate| parent_of(part, aggregate)));
        (0..2).for_each(|colour| parents.push(joined, colour, &parent_of_all, total as u16));
    }
    parents
}

fn coarse_pattern<const D: usize>(desk: &mut Desk, fine: &Net<D>, below: &Below, whole: f32) -> Pattern {
    let Some(cells) = desk.sum_up(fine, below) else { return coarse_listed::<D>(fine, below, whole) };
    let in_rows = coarse_in_rows::<D>(desk, &cells, fine, below, whole);
    in_rows.unwrap_or_else(|| coarse_by_cell::<D>(desk, &cells, fine, below, whole))
}

/// What a coarse block with one node in a cell at most is worked out with: by cell what it has become, if anything; by
/// direction and cell, sums of fine links and what becomes of these.
struct Desk {
    traits: Vec<Traits>,
    sums: Vec<f64>,
    links: Vec<f32>,
}

/// The cells of such a block.
struct Cells {
    nodes: masks::Bits,
    /// Those that are linked, by direction.
    linked: [masks::Bits; DIRECTIONS],
    special: masks::Bits,
}

impl Desk {
    fn new<const D: usize>() -> Desk {
        let cells = block_cells(D);
        Desk {
            traits: vec![Traits::default(); cells],
            sums: vec![0.0; DIRECTIONS * cells],
            links: vec![0.0; DIRECTIONS * cells],
        }
    }

    /// Sums up the fine links by cell and direction: with one node in a cell at most, here and beyond, these say where a link
    /// leads. None if it is not so, or there are two materials.
    fn sum_up<const D: usize>(&mut self, fine: &Net<D>, below: &Below) -> Option<Cells> {
        let count = block_cells(D);
        let pattern = |at: usize| &fine.patterns[below[at] as usize];
        let parts = || (0..power(2, D)).map(pattern);
        if !parts().all(Pattern::joins_into_cells) {
            return None;
        }
        let Desk { traits, sums, links } = self;
        let (mut nodes, mut merged, mut special) = (masks::NONE, masks::NONE, masks::NONE);
        let mut second = None;
        for (part, pattern) in parts().enumerate() {
            for aggregate in &pattern.joined.list {
                let cell = flatten(cell_in::<D>(part, aggregate.cell), 8);
                nodes[cell / 64] |= 1 << (cell % 64);
                merged[cell / 64] |= u64::from(aggregate.merged) << (cell % 64);
                traits[cell] = aggregate.traits;
                special[cell / 64] |= u64::from(aggregate.traits != Traits::default()) << (cell % 64);
                if *second.get_or_insert(aggregate.traits.second) != aggregate.traits.second {
                    return None;
                }
            }
        }
        sums.fill(0.0);
        for (part, pattern) in parts().enumerate() {
            pattern.each_crossing::<D>(fine.whole, |coarse, direction, sum| {
                sums[direction * count + flatten(cell_in::<D>(part, coarse), 8)] += sum;
            });
        }
        let mut linked = [masks::NONE; DIRECTIONS];
        let tables = sums.chunks_exact(count).zip(links.chunks_exact_mut(count));
        for (direction, (linked, (sums, links))) in linked.iter_mut().zip(tables).enumerate().take(2 * D) {
            let (axis, high) = (direction / 2, direction % 2 == 1);
            *linked = masks::bits_of(sums, |sum| sum > 0.0);
            // Which nodes are linked to one that was made of several, here and beyond.
            let mut near = masks::beside::<D>(&merged, axis, high, &masks::NONE);
            let is_inside = masks::beside::<D>(&masks::all(D), axis, high, &masks::NONE);
            let outward = masks::without(linked, &is_inside);
            for cell in masks::each(&outward) {
                let at = unflatten::<D>(cell, 8);
                let part = flatten(at.map(|c| c / 4), 2);
                let mut there = at.map(|c| c % 4);
                there[axis] = 3 - there[axis];
                let joined = &pattern(listed::<D>(part, direction)).joined;
                let other = joined.list.get(*joined.number.get(flatten(there, 4))? as usize)?;
                if Some(other.traits.second) != second {
                    return None;
                }
                near[cell / 64] |= u64::from(other.merged) << (cell % 64);
            }
            stretch(sums.as_chunks().0, links.as_chunks_mut().0, &nodes, &merged, &near);
        }
        Some(Cells { nodes, linked, special })
    }
}

/// A coarse block in rows; none if these would be mostly empty, or it has nodes that rows have no place for.
fn coarse_in_rows<const D: usize>(
    desk: &Desk,
    cells: &Cells,
    fine: &Net<D>,
    below: &Below,
    whole: f32,
) -> Option<Pattern> {
    let Cells { nodes, linked, special } = cells;
    let choice = Choice::new::<D>(nodes)?;
    let content = Content { nodes, linked, whole, special };
    let table = Some(desk.links.as_slice());
    let mut coarse = rows::pattern_in_rows::<D>(choice, &content, table, |cell| desk.traits[cell])?;
    let (counts, kept) = ([coarse.count(0), coarse.count(1)], coarse.rows.as_ref()?);
    let parent_of = |cell: usize| (kept.colour(cell) * counts[0] + kept.place(cell)) as u16;
    coarse.parents = parents_by_cell::<D>(fine, below, parent_of, counts[0] + counts[1]);
    Some(coarse)
}

/// The same with its nodes listed.
fn coarse_by_cell<const D: usize>(
    desk: &Desk,
    cells: &Cells,
    fine: &Net<D>,
    below: &Below,
    whole: f32,
) -> Pattern {
    let (links, count) = (&desk.links, block_cells(D));
    let link = |cell: usize, axis: usize, high: bool| links[(2 * axis + usize::from(high)) * count + cell];
    let mut coarse = pattern_of::<D>(&cells.nodes, whole, link, |cell| desk.traits[cell]);
    let counts = [coarse.count(0), coarse.count(1)];
    let place = |cell: usize| coarse.find(cell, 0).expect("the cell has a node");
    let parent_of = |cell: usize| (colour_of::<D>(cell) * counts[0] + place(cell)) as u16;
    coarse.parents = parents_by_cell::<D>(fine, below, parent_of, counts[0] + counts[1]);
    coarse
}

/// Coarse nodes of the fine nodes of each part, where there is one in a cell at most.
fn parents_by_cell<const D: usize>(
    fine: &Net<D>,
    below: &Below,
    parent_of: impl Fn(usize) -> u16,
    total: usize,
) -> Parents {
    let joined = |part: usize| &fine.patterns[below[part] as usize].joined;
    let cell = |part: usize, aggregate: usize| cell_in::<D>(part, joined(part).list[aggregate].cell);
    parents_of(fine, below, |part, aggregate| parent_of(flatten(cell(part, aggregate), 8)), total)
}

/// A coarse block with several nodes in a cell, with links that lead further, or of two materials.
fn coarse_listed<const D: usize>(fine: &Net<D>, below: &Below, whole: f32) -> Pattern {
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

    let Making { parent_of, sums, mut further, .. } = sum_links(fine, below, parent_of, total);
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
    coarse.parents = parents_of::<D>(fine, below, |part, aggregate| parent_of[part][aggregate], total);
    coarse
}
