//! Coarse blocks with one node in a cell at most and of one material: sums of links by cell and direction.

use macro_rules_attribute::apply;

use crate::grid::{block_cells, masks};
use crate::math::{Side, flatten, power, simd, unflatten};

use super::super::finest::pattern_of;
use super::super::network::Network;
use super::super::pattern::{DIRECTIONS, NodeTerms, Parents, Pattern, colour_of};
use super::super::row_layout::RowChoice;
use super::super::rows::{self, BlockContent};
use super::{ChildPatterns, cell_in, length_factor, listed, parents_of};

/// `links = sums · length_factor` for rows of cells, with a bit per cell for whether its own and the other end were aggregated of
/// several nodes. Cells that are no `nodes` have no links.
#[apply(simd)]
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

/// Scratch for a coarse block with one node in a cell at most: terms by cell, and by direction and cell the sums of fine links
/// and the coarse links.
pub(super) struct CoarseScratch {
    terms: Vec<NodeTerms>,
    sums: Vec<f64>,
    links: Vec<f32>,
}

/// The cells of a coarse block with one node in a cell at most.
pub(super) struct CoarseCells {
    nodes: masks::Bits,
    /// Nodes with a link in each direction.
    linked: [masks::Bits; DIRECTIONS],
    special: masks::Bits,
}

impl CoarseScratch {
    pub fn new<const D: usize>() -> CoarseScratch {
        let cells = block_cells(D);
        CoarseScratch {
            terms: vec![NodeTerms::default(); cells],
            sums: vec![0.0; DIRECTIONS * cells],
            links: vec![0.0; DIRECTIONS * cells],
        }
    }

    /// Sums up the fine links by cell and direction: with one node in a cell at most, here and beyond, these say where a link
    /// leads. None if it is not so, or there are two materials.
    pub fn sum_up<const D: usize>(
        &mut self,
        fine: &Network<D>,
        below: &ChildPatterns,
    ) -> Option<CoarseCells> {
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
            let (axis, side) = (direction / 2, Side::at(direction));
            *linked = masks::bits_of(sums, |sum| sum > 0.0);
            // Which nodes are linked to one that was made of several, here and beyond.
            let mut near = masks::beside::<D>(&merged, axis, side, &masks::NONE);
            let is_inside = masks::beside::<D>(&masks::all(D), axis, side, &masks::NONE);
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
pub(super) fn coarse_in_rows<const D: usize>(
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
pub(super) fn coarse_by_cell<const D: usize>(
    scratch: &CoarseScratch,
    cells: &CoarseCells,
    fine: &Network<D>,
    below: &ChildPatterns,
    whole: f32,
) -> Pattern {
    let (links, count) = (&scratch.links, block_cells(D));
    let link = |cell: usize, axis: usize, side: Side| links[(2 * axis + side.index()) * count + cell];
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
