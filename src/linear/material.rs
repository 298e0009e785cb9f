//! Keeping two materials apart on all levels.
//!
//! Where links differ by orders of magnitude between two materials, as between air and water, an aggregate with cells of
//! both would follow its strong links alone, and corrections of the weakly linked material would be lost. So aggregates
//! are split by material. Splitting by the strength of links does not do it: it is the material that coarse cells must
//! remember, down to the coarsest level.
//!
//! A link between the materials may be as strong as those of the stronger one, where the surface touches the centre of a
//! cell of the weaker one. It then ties that cell, but not the aggregate around it, which hangs on it by weak links: so
//! such links are put in series with part of a cell of either material.

use crate::math::{flatten, power, unflatten};

use super::coarsen::{corner, quarter_rows};
use super::layout::{Node, Place};
use super::level::Level;
use super::parallel::{cut, each_block};
use super::source::{Source, kind};
use super::stencil::mask_words;
use crate::grid::block_cells;

/// Whether a node is of the second material.
#[inline]
pub(super) fn of<const D: usize, S: Source<D>>(level: &Level<D>, source: &S, node: Node) -> bool {
    match node.place() {
        Place::Cell { .. } => {
            let (block, cell) = node.block_and_local::<D>();
            source.material(block).is_some_and(|material| material[cell])
        }
        Place::Explicit(index) => level.explicit.material.get(index).copied().unwrap_or(false),
    }
}

/// Finds the material of every coarse cell; those over cells of both need the careful path.
pub(super) fn keep_apart<const D: usize, S: Source<D>>(fine: &Level<D>, source: &S, coarse: &mut Level<D>) {
    if source.material(0).is_none() {
        return;
    }
    let (cells, words, corners) = (block_cells(D), mask_words(D), power(2, D));
    let sums = &mut coarse.sums;
    sums.material.resize(coarse.topology.len() * cells, false);
    let parts = (cut(&mut sums.kind, cells), cut(&mut sums.material, cells));
    each_block::<D, _>(parts, |cover, (kinds, found)| {
        for (octant, &block) in fine.transfer.children[cover][..corners].iter().enumerate() {
            let block = block as usize;
            let Some(material) = source.material(block).filter(|_| block != 0) else { continue };
            let carried = &fine.stencil.carried[block * words..(block + 1) * words];
            for (base, target) in quarter_rows::<D>(octant) {
                for (base, target) in (0..4).map(|x| (base + 2 * x, target + x)) {
                    let (mut first, mut second) = (false, false);
                    for cell in (0..corners).map(|i| base + corner::<D>(i)) {
                        let counts = carried[cell / 64] >> (cell % 64) & 1 != 0;
                        first |= counts && !material[cell];
                        second |= counts && material[cell];
                    }
                    if first && second {
                        kinds[target] = kind::CAREFUL;
                    }
                    found[target] = second && !first;
                }
            }
        }
    });
}

/// That part of a cell; a quarter or an eighth takes an iteration more.
const PART: f32 = 0.2;

/// A link between the materials on the coarser level. `merged` says of the node of each material whether it was made of
/// several, `whole` is a whole link of each on the finer level.
pub(super) fn in_series(link: f32, merged: [bool; 2], whole: [f32; 2]) -> f32 {
    let mut resistance = 1.0 / link;
    for (merged, whole) in merged.into_iter().zip(whole) {
        if merged {
            // Not more surface than the link can have, were it as strong as its material's.
            resistance += PART / link.min(whole);
        }
    }
    1.0 / resistance
}

/// Sets the links between neighbouring coarse cells of different materials, except where one of them needs the careful
/// path.
pub(super) fn link<const D: usize, S: Source<D>>(fine: &Level<D>, source: &S, coarse: &mut Level<D>) {
    let Level { sums, topology, .. } = coarse;
    if sums.material.is_empty() {
        return;
    }
    let (cells, corners) = (block_cells(D), power(2, D));
    let (kinds, materials) = (&sums.kind, &sums.material);
    each_block::<D, _>((cut(&mut sums.link, D * cells),), |cover, (links,)| {
        for axis in 0..D {
            let stride = power(8, axis);
            for (target, link) in links[axis * cells..(axis + 1) * cells].iter_mut().enumerate() {
                let here = cover * cells + target;
                let there = match target / stride % 8 {
                    0 => topology.beside(cover)[axis][0] as usize * cells + target + 7 * stride,
                    _ => here - stride,
                };
                if *link == 0.0 || materials[here] == materials[there] {
                    continue;
                }
                let merged = [here, there].map(|cell| kinds[cell] == kind::MERGED);
                let merged = if materials[here] { [merged[1], merged[0]] } else { merged };
                let at = unflatten::<D>(target, 8);
                let block = fine.transfer.children[cover][flatten(at.map(|c| c / 4), 2)] as usize;
                let base = flatten(at.map(|c| c % 4 * 2), 8);
                let crossing = (0..corners).filter(|i| i >> axis & 1 == 0);
                let strengths = crossing.map(|i| source.link(axis, block)[base + corner::<D>(i)]);
                *link = strengths.filter(|&g| g > 0.0).map(|g| in_series(g, merged, fine.whole)).sum();
            }
        }
    });
}
