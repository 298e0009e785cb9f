//! Builds the next coarser network: Galerkin sums of links over aggregates, with factors for the doubled distance (see
//! `linear::coarsen`).
//!
//! A coarse block depends on the patterns below it and beside those, and on their aggregates: equal blocks are built once.

use multiversion::multiversion;
use rayon::prelude::*;

use crate::grid::{block_cells, masks};
use crate::math::{flatten, power, unflatten};

use super::super::material;
use super::aggregate::aggregate;
use super::finest::pattern_of;
use super::interner::{Interner, NEW, rebuild};
use super::network::Network;
use super::pattern::{
    Aggregate, DIRECTIONS, End, HaloNode, NodeTerms, Parents, Pattern, PatternBuilder, colour_of,
};
use super::row_layout::RowChoice;
use super::rows::{self, BlockContent};

/// Patterns below a coarse block: those of its parts, then those beyond each of its sides. 0 where there is no block.
pub(super) type ChildPatterns = [u32; 32];

/// Patterns that a thread makes at a time: some take ten times as long as others.
const FEW: usize = 4;

/// Sets `coarse` to the level above `fine`, whose cells are `h` wide.
pub(super) fn coarsen<const D: usize>(fine: &mut Network<D>, coarse: &mut Network<D>, h: f32) {
    let (whole, whole_of) = (fine.whole, fine.whole_of);
    fine.patterns.par_iter_mut().with_min_len(FEW).for_each(|pattern| {
        if !pattern.is_aggregated() {
            pattern.aggregation = aggregate::<D>(pattern, h);
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

    let mut interner = Interner::from(1);
    let mut patterns = vec![0];
    patterns
        .extend((1..coarse.topology.len()).map(|cover| interner.intern(patterns_below(fine, coarse, cover))));
    let keys = interner
        .match_previous(&mut coarse.below, &mut coarse.previous, |below| previous_key(below, &fine.previous));
    let (net, coarse_whole) = (&*fine, coarse.whole);
    rebuild(
        &mut coarse.patterns,
        &coarse.previous,
        FEW,
        CoarseScratch::new::<D>,
        |scratch, place| match place {
            0 => Pattern::default(),
            place => coarse_pattern::<D>(scratch, net, &keys[place - 1], coarse_whole),
        },
    );
    coarse.lay_out(&patterns);

    let parent = |block: usize, colour: usize, node: usize| {
        let (cover, octant) = (fine.cover[block] as usize, flatten(fine.topology.octant(block), 2));
        let aggregation = &fine.pattern(block).aggregation;
        let (above, index) =
            coarse.node(cover, coarse.pattern(cover).parents.of(octant, colour).get(node))?;
        let merged = aggregation.list[aggregation.of[colour][node] as usize].merged;
        Some(((above as u8, index as u32), merged))
    };
    let mut entries = fine.shared.coarser(&fine.blocks, h, parent);
    entries.index(&coarse.blocks);
    coarse.shared = entries;
}

/// The key of a coarse block in the step before, if all patterns below it were there.
fn previous_key(below: &ChildPatterns, previous: &[u32]) -> Option<ChildPatterns> {
    let before = below.map(|pattern| previous[pattern as usize]);
    (!before.contains(&NEW)).then_some(before)
}

fn patterns_below<const D: usize>(fine: &Network<D>, coarse: &Network<D>, cover: usize) -> ChildPatterns {
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

/// Where the pattern beyond a side is listed in [`ChildPatterns`], for a part of the block at that side.
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
    Local(u16),
    Halo(HaloNode),
}

/// Links of one coarse node: the first one in each direction.
type Sums = [(Target, f64); DIRECTIONS];

/// Sums of links of a coarse block.
struct LinkSums<'a, const D: usize> {
    fine: &'a Network<D>,
    below: &'a ChildPatterns,
    /// Per part and aggregate: its coarse node.
    parent_of: Vec<Vec<u16>>,
    sums: Vec<Sums>,
    /// Links beyond the first one in a direction: node, target and sum.
    extra_links: Vec<(u16, Target, f64)>,
}

impl<const D: usize> LinkSums<'_, D> {
    fn pattern(&self, at: usize) -> &Pattern {
        &self.fine.patterns[self.below[at] as usize]
    }

    /// The other end of a fine link, and what it has become; none if the link is inside one coarse node.
    #[inline]
    fn target(&self, part: usize, colour: usize, aggregate: u16, end: End) -> Option<(Target, &Aggregate)> {
        let this = self.pattern(part);
        match end {
            End::Local(other, index) => {
                let other = this.aggregation.of[other][index];
                (other != aggregate).then(|| {
                    let other = other as usize;
                    (Target::Local(self.parent_of[part][other]), &this.aggregation.list[other])
                })
            }
            End::Halo(halo) => {
                let halo = this.half[colour].halo[halo];
                let (axis, high) = (halo.side as usize / 2, halo.side as usize % 2);
                let (is_inside, across) = (part >> axis & 1 != high, part ^ 1 << axis);
                let at = if is_inside { across } else { listed::<D>(part, halo.side as usize) };
                let there = self.pattern(at);
                let index = there.find(halo.cell as usize, halo.ordinal).expect("links have two ends");
                let other = there.aggregation.of[1 - colour][index] as usize;
                let found = &there.aggregation.list[other];
                let target = if is_inside {
                    Target::Local(self.parent_of[across][other])
                } else {
                    let cell = flatten(cell_in::<D>(across, found.cell), 8) as u16;
                    Target::Halo(HaloNode { side: halo.side, ordinal: found.ordinal, cell })
                };
                Some((target, found))
            }
        }
    }

    /// Adds a fine link to the coarse one it is part of, and to the mirror image of that if `mirrored`.
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
        let aggregate = this.aggregation.of[colour][node];
        let Some((target, other)) = self.target(part, colour, aggregate, end) else { return };
        let own = &this.aggregation.list[aggregate as usize];
        let value = if own.terms.second == other.terms.second {
            f64::from(link) * length_factor(own.merged, other.merged)
        } else {
            let merged = [own.merged, other.merged];
            let merged = if own.terms.second { [merged[1], merged[0]] } else { merged };
            f64::from(material::in_series(link, merged, self.fine.whole_of))
        };
        let own = self.parent_of[part][aggregate as usize];
        self.put(own, direction, target, value);
        if let (true, Target::Local(other)) = (mirrored, target) {
            self.put(other, direction.map(|direction| direction ^ 1), Target::Local(own), value);
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
        self.extra_links.push((own, target, value));
    }
}

/// The factor of a link whose ends were aggregated of several nodes, or not: the distance between them has grown.
#[inline]
fn length_factor(own: bool, other: bool) -> f64 {
    [1.0, 2.0 / 3.0, 0.5][own as usize + other as usize]
}

/// `links = sums · length_factor` for rows of cells, with a bit per cell for whether its own and the other end were aggregated of
/// several nodes. Cells that are no `nodes` have no links.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw+avx2+fma", "x86_64+avx2+fma"))]
fn scale_by_length(
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
            let one = if any >> lane & 1 == 1 { length_factor(true, false) } else { 1.0 };
            let factor = if both >> lane & 1 == 1 { length_factor(true, true) } else { one };
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
    fine: &'a Network<D>,
    below: &'a ChildPatterns,
    parent_of: Vec<Vec<u16>>,
    total: usize,
) -> LinkSums<'a, D> {
    let sums = vec![[(Target::None, 0.0); DIRECTIONS]; total];
    let mut sums_of_links = LinkSums { fine, below, parent_of, sums, extra_links: Vec::new() };
    for part in 0..power(2, D) {
        let this = &fine.patterns[below[part] as usize];
        let is_simple = this.half.iter().all(|half| half.extra_links.is_empty());
        let is_one_material = this.aggregation.list.iter().all(|aggregate| !aggregate.terms.second);
        for colour in 0..2 {
            let half = &this.half[colour];
            for direction in 0..2 * D {
                let (stride, high) = (power(8, direction / 2), direction % 2);
                this.each_stencil_link(colour, direction, fine.whole, |node, end, link| {
                    // Towards the other half of the same coarse cell there is nothing but the same node, in one material.
                    let is_inside = half.cells[node] as usize / stride % 2 != high;
                    if is_inside && is_one_material {
                        return;
                    }
                    // Links inside the block are taken over from their low end, for both ends.
                    let is_here = matches!(end, End::Local(..));
                    if is_simple && high == 0 && is_here {
                        return;
                    }
                    let mirrored = is_simple && high == 1 && is_here;
                    sums_of_links.add(part, colour, node, Some(direction), end, link, mirrored);
                });
            }
            this.each_extra_link(colour, |node, end, link| {
                sums_of_links.add(part, colour, node, None, end, link, false);
            });
        }
    }
    sums_of_links
}

/// Coarse nodes of the fine nodes of each part; `total` where there is none.
fn parents_of<const D: usize>(
    fine: &Network<D>,
    below: &ChildPatterns,
    parent_of: impl Fn(usize, usize) -> u16,
    total: usize,
) -> Parents {
    let parts = || (0..power(2, D)).map(|part| &fine.patterns[below[part] as usize].aggregation);
    let mut parents =
        Parents::with_capacity(parts().flat_map(|aggregation| &aggregation.of).map(Vec::len).sum());
    let mut parent_of_all = Vec::new();
    for (part, aggregation) in parts().enumerate() {
        parent_of_all.clear();
        parent_of_all.extend((0..aggregation.list.len()).map(|aggregate| parent_of(part, aggregate)));
        (0..2).for_each(|colour| parents.push(aggregation, colour, &parent_of_all, total as u16));
    }
    parents
}

fn coarse_pattern<const D: usize>(
    scratch: &mut CoarseScratch,
    fine: &Network<D>,
    below: &ChildPatterns,
    whole: f32,
) -> Pattern {
    let Some(cells) = scratch.sum_up(fine, below) else { return coarse_listed::<D>(fine, below, whole) };
    let in_rows = coarse_in_rows::<D>(scratch, &cells, fine, below, whole);
    in_rows.unwrap_or_else(|| coarse_by_cell::<D>(scratch, &cells, fine, below, whole))
}

/// Scratch for a coarse block with one node in a cell at most: terms by cell, and by direction and cell the sums of fine links
/// and the coarse links.
struct CoarseScratch {
    terms: Vec<NodeTerms>,
    sums: Vec<f64>,
    links: Vec<f32>,
}

/// The cells of a coarse block with one node in a cell at most.
struct CoarseCells {
    nodes: masks::Bits,
    /// Nodes with a link in each direction.
    linked: [masks::Bits; DIRECTIONS],
    special: masks::Bits,
}

impl CoarseScratch {
    fn new<const D: usize>() -> CoarseScratch {
        let cells = block_cells(D);
        CoarseScratch {
            terms: vec![NodeTerms::default(); cells],
            sums: vec![0.0; DIRECTIONS * cells],
            links: vec![0.0; DIRECTIONS * cells],
        }
    }

    /// Sums up the fine links by cell and direction: with one node in a cell at most, here and beyond, these say where a link
    /// leads. None if it is not so, or there are two materials.
    fn sum_up<const D: usize>(&mut self, fine: &Network<D>, below: &ChildPatterns) -> Option<CoarseCells> {
        let count = block_cells(D);
        let pattern = |at: usize| &fine.patterns[below[at] as usize];
        let parts = || (0..power(2, D)).map(pattern);
        if !parts().all(Pattern::aggregates_by_cell) {
            return None;
        }
        let CoarseScratch { terms, sums, links } = self;
        let (mut nodes, mut merged, mut special) = (masks::NONE, masks::NONE, masks::NONE);
        let mut second = None;
        for (part, pattern) in parts().enumerate() {
            for aggregate in &pattern.aggregation.list {
                let cell = flatten(cell_in::<D>(part, aggregate.cell), 8);
                nodes[cell / 64] |= 1 << (cell % 64);
                merged[cell / 64] |= u64::from(aggregate.merged) << (cell % 64);
                terms[cell] = aggregate.terms;
                special[cell / 64] |= u64::from(aggregate.terms != NodeTerms::default()) << (cell % 64);
                if *second.get_or_insert(aggregate.terms.second) != aggregate.terms.second {
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
            let halo_rows = masks::without(linked, &is_inside);
            for cell in masks::each(&halo_rows) {
                let at = unflatten::<D>(cell, 8);
                let part = flatten(at.map(|c| c / 4), 2);
                let mut there = at.map(|c| c % 4);
                there[axis] = 3 - there[axis];
                let aggregation = &pattern(listed::<D>(part, direction)).aggregation;
                let other = aggregation.list.get(*aggregation.number.get(flatten(there, 4))? as usize)?;
                if Some(other.terms.second) != second {
                    return None;
                }
                near[cell / 64] |= u64::from(other.merged) << (cell % 64);
            }
            scale_by_length(sums.as_chunks().0, links.as_chunks_mut().0, &nodes, &merged, &near);
        }
        Some(CoarseCells { nodes, linked, special })
    }
}

/// A coarse block in rows; none if these would be mostly empty, or it has nodes that rows have no place for.
fn coarse_in_rows<const D: usize>(
    scratch: &CoarseScratch,
    cells: &CoarseCells,
    fine: &Network<D>,
    below: &ChildPatterns,
    whole: f32,
) -> Option<Pattern> {
    let CoarseCells { nodes, linked, special } = cells;
    let choice = RowChoice::new::<D>(nodes)?;
    let content = BlockContent { nodes, linked, whole, special };
    let table = Some(scratch.links.as_slice());
    let mut coarse = rows::pattern_in_rows::<D>(choice, &content, table, |cell| scratch.terms[cell])?;
    let (counts, kept) = ([coarse.count(0), coarse.count(1)], coarse.rows.as_ref()?);
    let parent_of = |cell: usize| (kept.colour(cell) * counts[0] + kept.place(cell)) as u16;
    coarse.parents = parents_by_cell::<D>(fine, below, parent_of, counts[0] + counts[1]);
    Some(coarse)
}

/// A coarse block with one node in a cell at most, with its nodes listed.
fn coarse_by_cell<const D: usize>(
    scratch: &CoarseScratch,
    cells: &CoarseCells,
    fine: &Network<D>,
    below: &ChildPatterns,
    whole: f32,
) -> Pattern {
    let (links, count) = (&scratch.links, block_cells(D));
    let link = |cell: usize, axis: usize, high: bool| links[(2 * axis + usize::from(high)) * count + cell];
    let mut coarse = pattern_of::<D>(&cells.nodes, whole, link, |cell| scratch.terms[cell]);
    let counts = [coarse.count(0), coarse.count(1)];
    let place = |cell: usize| coarse.find(cell, 0).expect("the cell has a node");
    let parent_of = |cell: usize| (colour_of::<D>(cell) * counts[0] + place(cell)) as u16;
    coarse.parents = parents_by_cell::<D>(fine, below, parent_of, counts[0] + counts[1]);
    coarse
}

/// Coarse nodes of the fine nodes of each part, where there is one in a cell at most.
fn parents_by_cell<const D: usize>(
    fine: &Network<D>,
    below: &ChildPatterns,
    parent_of: impl Fn(usize) -> u16,
    total: usize,
) -> Parents {
    let aggregation = |part: usize| &fine.patterns[below[part] as usize].aggregation;
    let cell = |part: usize, aggregate: usize| cell_in::<D>(part, aggregation(part).list[aggregate].cell);
    parents_of(fine, below, |part, aggregate| parent_of(flatten(cell(part, aggregate), 8)), total)
}

/// A coarse block with several nodes in a cell, with links that lead further, or of two materials.
fn coarse_listed<const D: usize>(fine: &Network<D>, below: &ChildPatterns, whole: f32) -> Pattern {
    let parts = power(2, D);
    let pattern = |at: usize| &fine.patterns[below[at] as usize];
    // Nodes by colour: coarse cell, ordinal, part, aggregate.
    let mut order: [Vec<(u16, u8, u8, u16)>; 2] = Default::default();
    for part in 0..parts {
        for (index, aggregate) in pattern(part).aggregation.list.iter().enumerate() {
            let at = cell_in::<D>(part, aggregate.cell);
            let colour = at.iter().sum::<usize>() % 2;
            order[colour].push((flatten(at, 8) as u16, aggregate.ordinal, part as u8, index as u16));
        }
    }
    let counts = [order[0].len(), order[1].len()];
    let total = counts[0] + counts[1];
    let mut parent_of: Vec<Vec<u16>> =
        (0..parts).map(|part| vec![total as u16; pattern(part).aggregation.list.len()]).collect();
    let mut nodes: [Vec<(u16, NodeTerms)>; 2] = Default::default();
    for (colour, order) in order.iter_mut().enumerate() {
        order.sort_unstable();
        for (index, &(cell, _, part, aggregate)) in order.iter().enumerate() {
            parent_of[part as usize][aggregate as usize] = (colour * counts[0] + index) as u16;
            nodes[colour].push((cell, pattern(part as usize).aggregation.list[aggregate as usize].terms));
        }
    }

    let LinkSums { parent_of, sums, mut extra_links, .. } = sum_links(fine, below, parent_of, total);
    extra_links.sort_by_key(|&(node, target, _)| (node, target));
    let split = |node: usize| if node < counts[0] { (0, node) } else { (1, node - counts[0]) };
    let mut builder = PatternBuilder::new::<D>(&nodes);
    let mut link = |node: usize, direction: Option<usize>, target: Target, sum: f64| {
        let (colour, node) = split(node);
        match target {
            Target::None => {}
            Target::Halo(there) => builder.link_halo(colour, node, direction, there, sum as f32),
            Target::Local(other) => match split(other as usize) {
                (same, other) if same == colour => builder.link_same_colour(colour, node, other, sum as f32),
                (_, other) => builder.link_local(colour, node, direction, other, sum as f32),
            },
        }
    };
    for (node, sums) in sums.iter().enumerate() {
        for (direction, &(target, sum)) in sums.iter().enumerate() {
            link(node, Some(direction), target, sum);
        }
    }
    for same in extra_links.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let sum = same.iter().map(|entry| entry.2).sum::<f64>();
        link(same[0].0 as usize, None, same[0].1, sum);
    }
    let mut coarse = builder.finish(whole);
    coarse.parents = parents_of::<D>(fine, below, |part, aggregate| parent_of[part][aggregate], total);
    coarse
}
