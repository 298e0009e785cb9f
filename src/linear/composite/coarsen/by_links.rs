//! Coarse blocks of any kind, link by link: with several nodes in a cell, with links that lead further, or of two materials.

use crate::math::{flatten, power};

use super::super::super::material;
use super::super::network::Network;
use super::super::pattern::{Aggregate, DIRECTIONS, End, HaloNode, NodeTerms, Pattern, PatternBuilder};
use super::{ChildPatterns, cell_in, length_factor, listed, parents_of};

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

/// Adds up what leads from a node to the same other one in several directions.
///
/// Both ends of a link must keep it whole: what becomes of it on the next level, in series with part of a cell, is not the
/// sum of what becomes of its pieces, and each end would have others. A network that is not symmetric has no Cholesky
/// factors, and is no preconditioner.
fn keep_one_link_a_pair(sums: &mut [Sums], extra_links: &mut Vec<(u16, Target, f64)>) {
    for sums in &mut *sums {
        for later in 1..DIRECTIONS {
            let (target, value) = sums[later];
            if let Some(first) = (0..later).find(|&first| target != Target::None && sums[first].0 == target) {
                sums[first].1 += value;
                sums[later] = (Target::None, 0.0);
            }
        }
    }
    extra_links.retain(|&(node, target, value)| {
        let first = sums[node as usize].iter_mut().find(|sum| sum.0 == target);
        let is_alone = first.is_none();
        if let Some(sum) = first {
            sum.1 += value;
        }
        is_alone
    });
}

/// A coarse block with several nodes in a cell, with links that lead further, or of two materials.
pub(super) fn coarse_listed<const D: usize>(fine: &Network<D>, below: &ChildPatterns, whole: f32) -> Pattern {
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

    let LinkSums { parent_of, mut sums, mut extra_links, .. } = sum_links(fine, below, parent_of, total);
    keep_one_link_a_pair(&mut sums, &mut extra_links);
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
