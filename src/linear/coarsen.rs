//! Builds the next coarser level.
//!
//! Inside each aggregate of 2^D cells the nodes that are linked to each other become one coarse node; nodes that are
//! not, or that are of different materials, stay apart. Nodes without any link to others need no coarse correction (a sweep solves their row) and are not
//! carried on. Coefficients of the coarse network, between nodes A and B, with `L` = 2 for a node made of several
//! finer ones and 1 otherwise, and `h` the spacing of the finer level:
//! * cell–cell: sum of the crossing links times `2 / (L(A) + L(B))`: the distance has doubled where something merged;
//! * cell–cell of different materials: as ground and shared nodes, on both sides;
//! * ground and shared nodes: `Σ 1 / (1/c + h / (4 s))`, in series with a quarter cell, where something merged.

use crate::math::{flatten, power};

use super::level::Level;
use super::material;
use super::parallel::{cut, each_block};
use super::source::{Source, kind};
use super::split::Splitter;
use super::stencil::mask_words;
use crate::grid::block_cells;

/// A link in series with a quarter of a cell of width `h`, through a surface of size `area`.
#[inline]
pub(super) fn in_series(link: f32, area: f32, h: f32) -> f32 {
    if link > 0.0 && area > 0.0 { 1.0 / (1.0 / link + h / (4.0 * area)) } else { link }
}

/// Sets `coarse` to the level above `fine`, whose coefficients are in `source` and whose cells are `h` wide.
pub(super) fn coarsen<const D: usize, S: Source<D>>(
    fine: &mut Level<D>,
    source: &S,
    coarse: &mut Level<D>,
    h: f32,
    splitter: &mut Splitter,
) {
    coarse.topology.cover(&fine.topology, &mut fine.transfer.parent);
    let children = &mut fine.transfer.children;
    children.clear();
    children.resize(coarse.topology.len(), [0; 8]);
    for block in 1..fine.topology.len() {
        let octant = flatten(fine.topology.octant(block), 2);
        children[fine.transfer.parent[block] as usize][octant] = block as u32;
    }
    coarse.sums.reserve::<D>(coarse.topology.len());
    aggregate(fine, source, coarse, h);
    material::keep_apart(fine, source, coarse);
    splitter.split(fine, source, coarse, h);
    sum_links(fine, source, coarse);
    material::link(fine, source, coarse);
    splitter.link(fine, source, coarse, h);
    let whole = |fine: f32| fine * power(2, D - 1) as f32 * 0.5;
    coarse.whole = fine.whole.map(whole);
    let Level { topology, stencil, explicit, sums, .. } = &mut *coarse;
    stencil.find_unknowns(topology, &*sums, explicit, whole(fine.stencil.constant), |_| None);
    coarse.make_ready();
    coarse.count_nodes();
}

/// Offsets of the 2^D cells of an aggregate inside a block, first axis in the lowest bit.
pub(super) fn corner<const D: usize>(index: usize) -> usize {
    (0..D).map(|axis| (index >> axis & 1) * power(8, axis)).sum()
}

/// Finds out what each coarse cell is made of, and sums its grounds.
fn aggregate<const D: usize, S: Source<D>>(fine: &Level<D>, source: &S, coarse: &mut Level<D>, h: f32) {
    let (cells, words, corners) = (block_cells(D), mask_words(D), power(2, D));
    let sums = &mut coarse.sums;
    let parts = (cut(&mut sums.kind, cells), cut(&mut sums.ground, cells), cut(&mut sums.area, cells));
    each_block::<D, _>(parts, |cover, (kinds, ground, area)| {
        kinds.fill(kind::EMPTY);
        ground.fill(0.0);
        area.fill(0.0);
        for (octant, &block) in fine.transfer.children[cover][..corners].iter().enumerate() {
            let block = block as usize;
            if block == 0 {
                continue;
            }
            if fine.stencil.is_uniform(block) {
                for (_, target) in quarter_rows::<D>(octant) {
                    kinds[target..target + 4].fill(kind::MERGED);
                }
                continue;
            }
            let mask = |mask: &[u64], base: usize| {
                (0..corners).fold(0u8, |bits, i| {
                    let cell = base + corner::<D>(i);
                    bits | ((mask[block * words + cell / 64] >> (cell % 64) & 1) as u8) << i
                })
            };
            for (base, target) in quarter_rows::<D>(octant) {
                let whole = whole_aggregates::<D, S>(source, block, base);
                for (x, whole) in whole.into_iter().enumerate() {
                    let (base, target) = (base + 2 * x, target + x);
                    if !whole {
                        let carried = mask(&fine.stencil.carried, base);
                        if carried == 0 {
                            continue;
                        }
                        if carried != mask(&fine.stencil.live, base)
                            || !is_connected::<D, S>(source, block, base, carried)
                        {
                            kinds[target] = kind::CAREFUL;
                            continue;
                        }
                        if carried.count_ones() == 1 {
                            let cell = base + corner::<D>(carried.trailing_zeros() as usize);
                            kinds[target] = kind::SINGLE;
                            ground[target] = source.ground(block)[cell];
                            area[target] = source.area(block)[cell];
                            continue;
                        }
                    }
                    kinds[target] = kind::MERGED;
                    for cell in (0..corners).map(|i| base + corner::<D>(i)) {
                        let (d, s) = (source.ground(block)[cell], source.area(block)[cell]);
                        if d > 0.0 {
                            ground[target] += in_series(d, s, h);
                            area[target] += s;
                        }
                    }
                }
            }
        }
    });
}

/// Which of four aggregates in a row have all their inner links: the quick test that settles most of them.
fn whole_aggregates<const D: usize, S: Source<D>>(source: &S, block: usize, base: usize) -> [bool; 4] {
    // Smallest link so far: those along x count in odd lanes only.
    let (mut along, mut across) = ([f32::MAX; 8], [f32::MAX; 8]);
    for i in (0..power(2, D)).step_by(2) {
        let start = base + corner::<D>(i);
        for axis in (0..D).filter(|&axis| axis == 0 || i >> axis & 1 == 1) {
            let least = if axis == 0 { &mut along } else { &mut across };
            for (least, &link) in least.iter_mut().zip(&source.link(axis, block)[start..start + 8]) {
                *least = if link < *least { link } else { *least };
            }
        }
    }
    std::array::from_fn(|x| along[2 * x + 1] > 0.0 && across[2 * x] > 0.0 && across[2 * x + 1] > 0.0)
}

/// Whether the cells of an aggregate given by `mask` hang together by links inside it.
fn is_connected<const D: usize, S: Source<D>>(source: &S, block: usize, base: usize, mask: u8) -> bool {
    let mut edges = [0u8; 12];
    let mut count = 0;
    for axis in 0..D {
        let links = source.link(axis, block);
        for i in (0..power(2, D)).filter(|i| i >> axis & 1 == 1) {
            if links[base + corner::<D>(i)] > 0.0 {
                edges[count] = 1 << i | 1 << (i ^ 1 << axis);
                count += 1;
            }
        }
    }
    let mut reached = mask & mask.wrapping_neg();
    loop {
        let before = reached;
        for &edge in &edges[..count] {
            if edge & reached != 0 {
                reached |= edge;
            }
        }
        if reached == mask || reached == before {
            return reached == mask;
        }
    }
}

/// The rows of four coarse cells over a fine block: where the finer cells start, and where the coarse ones do.
pub(super) fn quarter_rows<const D: usize>(octant: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..power(4, D - 1)).map(move |row| {
        let (mut rest, mut base, mut target) = (row, 0, 4 * (octant & 1));
        for axis in 1..D {
            base += 2 * (rest % 4) * power(8, axis);
            target += (4 * (octant >> axis & 1) + rest % 4) * power(8, axis);
            rest /= 4;
        }
        (base, target)
    })
}

/// Sums the links between neighbouring coarse cells, except where one of them needs the careful path.
fn sum_links<const D: usize, S: Source<D>>(fine: &Level<D>, source: &S, coarse: &mut Level<D>) {
    let (cells, corners) = (block_cells(D), power(2, D));
    let (kinds, topology) = (&coarse.sums.kind, &coarse.topology);
    // Factors by the sum of two kinds; 0 unless both are single or merged.
    let factor = |here: u8, there: u8| match (here, there) {
        (kind::SINGLE, kind::SINGLE) => 1.0f32,
        (kind::MERGED, kind::MERGED) => 0.5,
        (kind::SINGLE, kind::MERGED) | (kind::MERGED, kind::SINGLE) => 2.0 / 3.0,
        _ => 0.0,
    };
    each_block::<D, _>((cut(&mut coarse.sums.link, D * cells),), |cover, (links,)| {
        links.fill(0.0);
        for (octant, &block) in fine.transfer.children[cover][..corners].iter().enumerate() {
            let block = block as usize;
            if block == 0 {
                continue;
            }
            for axis in 0..D {
                let stride = power(8, axis);
                let beside = topology.beside(cover)[axis][0] as usize;
                let low = fine.topology.beside(block)[axis][0] as usize;
                if low != 0 && [block, low].iter().all(|&block| fine.stencil.is_uniform(block)) {
                    // Whole links all around, and nothing but merged cells.
                    let whole = 0.5 * power(2, D - 1) as f32 * fine.stencil.constant;
                    for (_, target) in quarter_rows::<D>(octant) {
                        links[axis * cells + target..axis * cells + target + 4].fill(whole);
                    }
                    continue;
                }
                let fine_links = source.link(axis, block);
                for (base, target) in quarter_rows::<D>(octant) {
                    // Only the links on the low side of the aggregates cross between them.
                    let mut row = [0.0f32; 8];
                    for i in (0..corners).filter(|i| i & 1 == 0 && i >> axis & 1 == 0) {
                        let start = base + corner::<D>(i);
                        for (sum, link) in row.iter_mut().zip(&fine_links[start..start + 8]) {
                            *sum += link;
                        }
                    }
                    let mut sums = [0.0f32; 4];
                    for (x, sum) in sums.iter_mut().enumerate() {
                        *sum = if axis == 0 { row[2 * x] } else { row[2 * x] + row[2 * x + 1] };
                    }
                    let here: [u8; 4] = std::array::from_fn(|x| kinds[cover * cells + target + x]);
                    let there: [u8; 4] = std::array::from_fn(|x| match (target + x) / stride % 8 {
                        0 => kinds[beside * cells + target + x + 7 * stride],
                        _ => kinds[cover * cells + target + x - stride],
                    });
                    let links = &mut links[axis * cells + target..axis * cells + target + 4];
                    if here == [kind::MERGED; 4] && there == [kind::MERGED; 4] {
                        links.iter_mut().zip(sums).for_each(|(link, sum)| *link = 0.5 * sum);
                    } else {
                        for x in 0..4 {
                            links[x] = sums[x] * factor(here[x], there[x]);
                        }
                    }
                }
            }
        }
    });
}
