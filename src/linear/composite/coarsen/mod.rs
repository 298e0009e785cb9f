//! Builds the next coarser network: Galerkin sums of links over aggregates, with factors for the doubled distance (see
//! `linear::coarsen`).
//!
//! A coarse block depends on the patterns below it and beside those, and on their aggregates: equal blocks are built once.

mod by_cell;
mod by_links;

use rayon::prelude::*;

use crate::math::{flatten, power};

use super::aggregate::aggregate;
use super::interner::{Interner, NEW, rebuild};
use super::network::Network;
use super::pattern::{Parents, Pattern};
use by_cell::{CoarseScratch, coarse_by_cell, coarse_in_rows};
use by_links::coarse_listed;

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

/// The factor of a link whose ends were aggregated of several nodes, or not: the distance between them has grown.
#[inline]
fn length_factor(own: bool, other: bool) -> f64 {
    // Of single precision, so that products with links are exact, and sums do not depend on the end that they begin at.
    [1.0, f64::from(2.0f32 / 3.0), 0.5][own as usize + other as usize]
}

/// A coarse cell of one of the parts of a coarse block.
#[inline]
fn cell_in<const D: usize>(part: usize, cell: [u8; 3]) -> [usize; D] {
    std::array::from_fn(|axis| 4 * (part >> axis & 1) + cell[axis] as usize)
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
