//! Aggregation: which nodes of a block become one on the next coarser level.
//!
//! The rules are those of `linear::coarsen`: inside each aggregate of 2^D cells the nodes of one material that are
//! linked to each other become one. What becomes of a block depends on its pattern alone.

use crate::grid::masks;
use crate::math::{Sets, power, unflatten};

use super::super::coarsen::in_series;
use super::pattern::{Aggregate, Aggregation, End, NONE, NodeTerms, Pattern};
use super::rows;

/// Aggregates the nodes of a pattern; `h` is the width of its cells.
pub(super) fn aggregate<const D: usize>(pattern: &Pattern, h: f32) -> Aggregation {
    let mut aggregation =
        aggregate_by_masks::<D>(pattern).unwrap_or_else(|| aggregate_by_links::<D>(pattern));
    aggregation.sum_terms(pattern, h);
    aggregation
}

/// The coarse cell over a cell, four of them along each side of the block.
#[inline]
fn cover_of<const D: usize>(cell: usize) -> usize {
    (0..D).map(|axis| (cell >> (3 * axis + 1) & 3) << (2 * axis)).sum()
}

/// Aggregation of any pattern, by following links one by one.
fn aggregate_by_links<const D: usize>(pattern: &Pattern) -> Aggregation {
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
            coarse_cell[first + node] = cover_of::<D>(cell as usize) as u16;
            is_carried[first + node] = pattern.terms(colour, node).has_shared;
        }
        pattern.each_link(colour, 0.0, |node, _, _| is_carried[first + node] = true);
    }
    for colour in 0..2 {
        let mut unite = |node: usize, end: End| {
            if let End::Local(other, index) = end {
                let (a, b) = (id(colour, node), id(other, index));
                if coarse_cell[a] == coarse_cell[b]
                    && pattern.terms(colour, node).second == pattern.terms(other, index).second
                {
                    sets.join(a as u32, b as u32);
                }
            }
        };
        for axis in 0..D {
            // Even cells share an aggregate with their high neighbours.
            let (stride, cells) = (power(8, axis), &pattern.half[colour].cells);
            pattern.each_stencil_link(colour, 2 * axis + 1, 0.0, |node, end, _| {
                if (cells[node] as usize / stride).is_multiple_of(2) {
                    unite(node, end);
                }
            });
        }
        pattern.each_extra_link(colour, |node, end, _| unite(node, end));
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
    let mut aggregation = Aggregation {
        of: [vec![NONE; counts[0]], vec![NONE; counts[1]]],
        list: Vec::with_capacity(roots.len()),
        number: vec![NONE; power(4, D)],
        follows_rule: false,
    };
    let mut number = vec![NONE; total];
    for (index, &(cell, _, node)) in roots.iter().enumerate() {
        let before = roots[..index].iter().rev().take_while(|other| other.0 == cell).count();
        let at = unflatten::<D>(cell as usize, 4);
        let (colour, own) = split(node as usize);
        if before == 0 && !aggregation.number.is_empty() {
            aggregation.number[cell as usize] = index as u16;
        } else {
            aggregation.number.clear();
        }
        number[node as usize] = index as u16;
        aggregation.list.push(Aggregate {
            cell: std::array::from_fn(|axis| at.get(axis).map_or(0, |&c| c as u8)),
            ordinal: before as u8,
            merged: size[node as usize] > 1,
            terms: NodeTerms { second: pattern.terms(colour, own).second, ..NodeTerms::default() },
        });
    }
    for colour in 0..2 {
        for node in (0..counts[colour]).filter(|&node| is_carried[id(colour, node)]) {
            aggregation.of[colour][node] = number[sets.find(id(colour, node) as u32) as usize];
        }
    }
    aggregation
}

/// Aggregation of a pattern in rows of one material, 64 cells at a time; none if some aggregate falls apart. Finds what
/// [`aggregate_by_links`] does.
fn aggregate_by_masks<const D: usize>(pattern: &Pattern) -> Option<Aggregation> {
    let rows = pattern.rows.as_ref()?;
    let mut carried = rows.linked.iter().fold(masks::NONE, |all, linked| masks::or(&all, linked));
    for colour in 0..2 {
        for (terms, &cell) in pattern.terms[colour].iter().zip(pattern.half[colour].cells.iter()) {
            carried[cell as usize / 64] |= u64::from(terms.has_shared) << (cell % 64);
        }
    }
    let is_second = pattern.terms.iter().flatten().any(|terms| terms.second);
    let mut number = vec![NONE; power(4, D)];
    let mut aggregation = Aggregation { follows_rule: carried == rows.nodes, ..Aggregation::default() };
    for (coarse, number) in number.iter_mut().enumerate() {
        let at = unflatten::<D>(coarse, 4);
        let cells = rows::octet(&carried, at);
        if cells == 0 {
            continue;
        }
        let mut reached = cells & cells.wrapping_neg();
        let open: [u8; D] =
            std::array::from_fn(|axis| rows::octet(&rows.linked[2 * axis + 1], at) & rows::LOW[axis]);
        loop {
            let before = reached;
            for (axis, open) in open.iter().enumerate() {
                reached |= (reached & open) << (1 << axis) | reached >> (1 << axis) & open;
            }
            if reached == before {
                break;
            }
        }
        if reached != cells {
            return None;
        }
        *number = aggregation.list.len() as u16;
        aggregation.list.push(Aggregate {
            cell: std::array::from_fn(|axis| at.get(axis).map_or(0, |&c| c as u8)),
            ordinal: 0,
            merged: cells.count_ones() > 1,
            terms: NodeTerms { second: is_second, ..NodeTerms::default() },
        });
    }
    aggregation.of = [0, 1].map(|colour: usize| {
        let of = |&cell: &u16| {
            if masks::has(&carried, cell as usize) { number[cover_of::<D>(cell as usize)] } else { NONE }
        };
        pattern.half[colour].cells.iter().map(of).collect()
    });
    aggregation.number = number;
    Some(aggregation)
}

impl Aggregation {
    /// Whether no coarse cell has several aggregates.
    pub fn is_simple(&self) -> bool {
        !self.number.is_empty() || self.list.is_empty()
    }

    /// Sums the grounds and areas of the nodes of each aggregate.
    fn sum_terms(&mut self, pattern: &Pattern, h: f32) {
        for (of, terms) in self.of.iter().zip(&pattern.terms) {
            for (&aggregate, terms) in of.iter().zip(terms) {
                let Some(own) = self.list.get_mut(aggregate as usize) else { continue };
                let (ground, area) = (terms.ground, terms.area);
                own.terms.ground += if own.merged { in_series(ground, area, h) } else { ground };
                own.terms.area += if ground > 0.0 { area } else { 0.0 };
                own.terms.has_shared |= terms.has_shared;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grid::block_cells;
    use crate::linear::composite::row_layout::RowChoice;
    use crate::linear::composite::rows::BlockContent;
    use crate::linear::composite::visit::Form;
    use crate::math::{Side, hash_unit};

    /// Cells of a block at random, with all links between them and some that are cut: whole ones, or of the size that
    /// `link(cell, direction)` tells.
    fn random_pattern<const D: usize>(
        salt: u64,
        share: f32,
        link: Option<fn(usize, usize) -> f32>,
    ) -> Option<Pattern> {
        let random = |salt: u64, share: f32| {
            let mut bits = masks::NONE;
            for cell in 0..block_cells(D) {
                bits[cell / 64] |= u64::from(hash_unit(salt * 1000 + cell as u64) < share) << (cell % 64);
            }
            bits
        };
        let mut nodes = random(8 * salt, share);
        if salt.is_multiple_of(2) {
            // A sheet two cells thick, so that some rows are kept.
            let (axis, first) = (salt as usize / 2 % D, 2 * (salt as usize / 6 % 4));
            let is_in = |cell: &usize| unflatten::<D>(*cell, 8)[axis] / 2 * 2 == first;
            for cell in (0..block_cells(D)).filter(|cell| !is_in(cell)) {
                nodes[cell / 64] &= !(1 << (cell % 64));
            }
        }
        let mut linked = [masks::NONE; 6];
        for axis in 0..D {
            let open = random(8 * salt + 1 + axis as u64, 0.97);
            let below = masks::beside::<D>(&nodes, axis, Side::Low, &masks::NONE);
            linked[2 * axis] = std::array::from_fn(|word| nodes[word] & below[word] & open[word]);
            linked[2 * axis + 1] = masks::beside::<D>(&linked[2 * axis], axis, Side::High, &masks::NONE);
        }
        let content = BlockContent { nodes: &nodes, linked: &linked, whole: 1.0, special: &masks::NONE };
        let choice = RowChoice::new::<D>(&nodes)?;
        let table = link.map(|link| -> Vec<f32> {
            let each = (0..6).flat_map(|direction| (0..block_cells(D)).map(move |cell| (direction, cell)));
            let of = |(direction, cell): (usize, usize)| match masks::has(&linked[direction], cell) {
                true => link(cell, direction),
                false => 0.0,
            };
            each.map(of).collect()
        });
        rows::pattern_in_rows::<D>(choice, &content, table.as_deref(), |_| NodeTerms::default())
    }

    fn share_of(salt: u64) -> f32 {
        0.9 + 0.02 * (salt % 6) as f32
    }

    fn words_join_as_single_links_do<const D: usize>() {
        let mut compared = [0; 2];
        for salt in 0..200 {
            let Some(pattern) = random_pattern::<D>(salt, share_of(salt), None) else {
                continue;
            };
            let slow = aggregate_by_links::<D>(&pattern);
            let Some(fast) = aggregate_by_masks::<D>(&pattern) else {
                assert!(
                    slow.list.iter().any(|aggregate| aggregate.ordinal > 0),
                    "{D}D {salt}: given up early"
                );
                continue;
            };
            compared[usize::from(pattern.form() == Form::SomeRows)] += 1;
            assert_eq!((&fast.of, &fast.number), (&slow.of, &slow.number), "{D}D {salt}");
            let of = |aggregation: &Aggregation| -> Vec<_> {
                aggregation.list.iter().map(|one| (one.cell, one.ordinal, one.merged)).collect()
            };
            assert_eq!(of(&fast), of(&slow), "{D}D {salt}");
        }
        assert!(compared.iter().all(|&count| count > 20), "only {compared:?} blocks hang together");
    }

    #[test]
    fn words_join_as_single_links_do_2d() {
        words_join_as_single_links_do::<2>();
    }

    #[test]
    fn words_join_as_single_links_do_3d() {
        words_join_as_single_links_do::<3>();
    }

    fn rows_sum_up_links_as_single_ones_do<const D: usize>() {
        let mut compared = 0;
        for salt in 0..100 {
            // The same from both ends: a face's own number.
            let link: fn(usize, usize) -> f32 = |cell, direction| {
                let (axis, high) = (direction / 2, direction % 2);
                0.5 + hash_unit((1000 * axis + cell + high * power(8, axis)) as u64)
            };
            let Some(mut pattern) = random_pattern::<D>(salt, share_of(salt), Some(link)) else { continue };
            pattern.aggregation = aggregate_by_links::<D>(&pattern);
            if !pattern.aggregates_by_cell() {
                continue;
            }
            compared += 1;
            let mut left = vec![0.0; 6 * power(4, D)];
            for (colour, direction) in (0..2).flat_map(|colour| (0..2 * D).map(move |side| (colour, side))) {
                pattern.each_stencil_link(colour, direction, 1.0, |node, _, found| {
                    let cell = pattern.half[colour].cells[node] as usize;
                    assert_eq!(found, link(cell, direction), "{D}D {salt}");
                    if cell / power(8, direction / 2) % 2 == direction % 2 {
                        left[direction * power(4, D) + cover_of::<D>(cell)] += f64::from(found);
                    }
                });
            }
            pattern.each_crossing::<D>(1.0, |coarse, direction, sum| {
                let cell = (0..D).map(|axis| (coarse[axis] as usize) << (2 * axis)).sum::<usize>();
                left[direction * power(4, D) + cell] -= sum;
            });
            assert!(left.iter().all(|left| left.abs() < 1e-12), "{D}D {salt}");
        }
        assert!(compared > 20, "only {compared} blocks hang together");
    }

    #[test]
    fn rows_sum_up_links_as_single_ones_do_2d() {
        rows_sum_up_links_as_single_ones_do::<2>();
    }

    #[test]
    fn rows_sum_up_links_as_single_ones_do_3d() {
        rows_sum_up_links_as_single_ones_do::<3>();
    }
}
