//! Links of split aggregates and of explicit nodes on the coarse level, and the transfers to them.

use crate::grid::block_cells;
use crate::math::{flatten, power, unflatten};

use super::super::coarsen::{corner, in_series};
use super::super::explicit::HalfLink;
use super::super::layout::{Node, Place, half_rows, split_index};
use super::super::level::Level;
use super::super::material;
use super::super::source::{Source, kind};
use super::super::stencil::mask_words;
use super::super::transfer::cover_of;
use super::{Splitter, coarse_cell};

impl Splitter {
    fn parent<const D: usize>(&self, fine: &Level<D>, coarse: &Level<D>, node: Node) -> Node {
        if let Place::Explicit(index) = node.place() {
            return fine.transfer.of_explicit[index];
        }
        let (block, local) = node.block_and_local::<D>();
        let (cover, target) = coarse_cell(fine, node);
        let kind = coarse.sums.kind[cover * block_cells(D) + target];
        if kind & kind::CAREFUL != 0 {
            self.map[(self.map_at[block] as usize - 1) * block_cells(D) + local]
        } else if kind == kind::EMPTY {
            Node::NONE
        } else {
            Node::cell::<D>(cover, target)
        }
    }

    fn is_merged<const D: usize>(&self, coarse: &Level<D>, node: Node) -> bool {
        match node.place() {
            Place::Cell { .. } => {
                let (block, local) = node.block_and_local::<D>();
                coarse.sums.kind[block * block_cells(D) + local] & kind::MERGED != 0
            }
            Place::Explicit(index) => coarse.explicit.merged[index],
        }
    }

    /// Sums the links that touch careful aggregates or explicit nodes, and completes the transfer.
    pub fn link<const D: usize, S: Source<D>>(
        &mut self,
        fine: &mut Level<D>,
        source: &S,
        coarse: &mut Level<D>,
        h: f32,
    ) {
        let mut crossing = std::mem::take(&mut self.crossing);
        crossing.clear();
        self.collect_cell_links(fine, source, coarse, &mut crossing);
        self.collect_explicit_links(fine, coarse, h, &mut crossing);
        crossing.sort_unstable_by(|a, b| {
            (a.from, a.to)
                .cmp(&(b.from, b.to))
                .then(a.link.total_cmp(&b.link))
                .then(a.area.total_cmp(&b.area))
        });
        let mut half = std::mem::take(&mut self.half);
        half.clear();
        for same in crossing.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to)) {
            let HalfLink { from, to, .. } = same[0];
            let sum = same.iter().map(|l| f64::from(l.link)).sum::<f64>() as f32;
            let area = same.iter().map(|l| l.area).sum::<f32>();
            let is_shared = matches!(to.place(), Place::Explicit(i) if i >= coarse.explicit.ends[1]);
            let steps = |node| if self.is_merged(coarse, node) { 2.0 } else { 1.0 };
            let apart = material::of(coarse, &coarse.sums, from) != material::of(coarse, &coarse.sums, to);
            let link = if is_shared || apart { sum } else { sum * (2.0 / (steps(from) + steps(to))) };
            if from.is_explicit() || to.is_explicit() {
                half.push(HalfLink { from, to, link, area });
                half.push(HalfLink { from: to, to: from, link, area });
            } else {
                set_cell_link(coarse, from, to, link);
            }
        }
        coarse.explicit.connect(&mut half);
        self.crossing = crossing;
        self.half = half;
        self.complete_transfer(fine, coarse);
    }

    /// A finer link between two coarse nodes.
    #[inline]
    fn crossing<const D: usize>(
        &self,
        fine: &Level<D>,
        coarse: &Level<D>,
        [a, b]: [Node; 2],
        link: f32,
    ) -> HalfLink {
        let mut link = link;
        let [one, other] = [a, b].map(|node| material::of(coarse, &coarse.sums, node));
        if one != other {
            let merged = [a, b].map(|node| self.is_merged(coarse, node));
            let merged = if one { [merged[1], merged[0]] } else { merged };
            link = material::in_series(link, merged, fine.whole);
        }
        HalfLink { from: a.min(b), to: a.max(b), link, area: 0.0 }
    }

    /// Links between cells of which at least one lies in a careful aggregate.
    fn collect_cell_links<const D: usize, S: Source<D>>(
        &self,
        fine: &Level<D>,
        source: &S,
        coarse: &Level<D>,
        crossing: &mut Vec<HalfLink>,
    ) {
        let cells = block_cells(D);
        for &(cover, local) in &self.groups {
            let at = unflatten::<D>(local as usize, 8);
            let block = fine.transfer.children[cover as usize][flatten(at.map(|c| c / 4), 2)] as usize;
            if block == 0 {
                continue;
            }
            let base = flatten(at.map(|c| c % 4 * 2), 8);
            for i in 0..power(2, D) {
                let cell = base + corner::<D>(i);
                let node = Node::cell::<D>(block, cell);
                let from = self.parent(fine, coarse, node);
                if from == Node::NONE {
                    continue;
                }
                for axis in 0..D {
                    let stride = power(8, axis);
                    let high = cell / stride % 2 == 1;
                    if high && coarse.explicit.entangled {
                        // Inside the aggregate, materials stay linked where they stay apart.
                        let (link, inner) = (source.link(axis, block)[cell], cell - stride);
                        let to = self.parent(fine, coarse, Node::cell::<D>(block, inner));
                        if link > 0.0 && to != from {
                            crossing.push(self.crossing(fine, coarse, [from, to], link));
                        }
                    }
                    // The neighbour outside the aggregate, and the link to it.
                    let (other_block, other) = match (high, cell / stride % 8) {
                        (false, 0) => (fine.topology.beside(block)[axis][0] as usize, cell + 7 * stride),
                        (false, _) => (block, cell - stride),
                        (true, 7) => (fine.topology.beside(block)[axis][1] as usize, cell - 7 * stride),
                        (true, _) => (block, cell + stride),
                    };
                    let link = if high {
                        source.link(axis, other_block)[other]
                    } else {
                        source.link(axis, block)[cell]
                    };
                    if link <= 0.0 || other_block == 0 {
                        continue;
                    }
                    let other = Node::cell::<D>(other_block, other);
                    let (other_cover, other_target) = coarse_cell(fine, other);
                    let other_kind = coarse.sums.kind[other_cover * cells + other_target];
                    if high && other_kind & kind::CAREFUL != 0 {
                        continue; // the other side lists it
                    }
                    let to = self.parent(fine, coarse, other);
                    crossing.push(self.crossing(fine, coarse, [from, to], link));
                }
            }
        }
    }

    /// Links of explicit nodes, each once.
    fn collect_explicit_links<const D: usize>(
        &self,
        fine: &Level<D>,
        coarse: &Level<D>,
        h: f32,
        crossing: &mut Vec<HalfLink>,
    ) {
        for index in 0..fine.explicit.count {
            let is_shared = index >= fine.explicit.ends[1];
            let from = fine.transfer.of_explicit[index];
            for (node, link, area) in fine.explicit.links(index) {
                let to = self.parent(fine, coarse, node);
                debug_assert!(from != Node::NONE && to != Node::NONE, "linked nodes are carried on");
                if is_shared {
                    let link = if self.is_merged(coarse, to) { in_series(link, area, h) } else { link };
                    crossing.push(HalfLink { from: to, to: from, link, area });
                } else {
                    let listed = matches!(node.place(), Place::Explicit(other) if other < index || other >= fine.explicit.ends[1]);
                    if !listed && from != to {
                        crossing.push(self.crossing(fine, coarse, [from, to], link));
                    }
                }
            }
        }
    }

    /// Masks and strays.
    fn complete_transfer<const D: usize>(&mut self, fine: &mut Level<D>, coarse: &Level<D>) {
        let (cells, rows, words) = (block_cells(D), 2 * half_rows(D), mask_words(D));
        let mut transfer = std::mem::take(&mut fine.transfer);
        transfer.keep_at.clear();
        transfer.keep_at.resize(fine.topology.len(), 0);
        transfer.keep.clear();
        transfer.strays.clear();
        for block in 1..fine.topology.len() {
            if self.map_at[block] == 0 {
                continue;
            }
            let map = &self.map[(self.map_at[block] as usize - 1) * cells..][..cells];
            let cover = transfer.parent[block] as usize;
            let octant = fine.topology.octant(block);
            for (cell, &parent) in map.iter().enumerate() {
                let target = cover_of(octant, cell);
                let live = fine.stencil.live[block * words + cell / 64] >> (cell % 64) & 1 != 0;
                let is_careful = coarse.sums.kind[cover * cells + target] & kind::CAREFUL != 0;
                if !live || !is_careful || parent == Node::cell::<D>(cover, target) {
                    continue;
                }
                if transfer.keep_at[block] == 0 {
                    transfer.keep_at[block] = (transfer.keep.len() / rows) as u32 + 1;
                    let len = transfer.keep.len() + rows;
                    transfer.keep.resize(len, [1.0; 8]);
                }
                let (colour, place) = split_index::<D>(cell);
                let start = (transfer.keep_at[block] as usize - 1) * rows + colour * rows / 2;
                transfer.keep[start + place / 8][place % 8] = 0.0;
                if parent != Node::NONE
                    && let Place::Explicit(index) = parent.place()
                {
                    transfer.strays.push((Node::cell::<D>(block, cell), index as u32));
                }
            }
        }
        transfer.strays.sort_unstable();
        fine.transfer = transfer;
    }
}

/// Sets the link between two neighbouring coarse cells.
fn set_cell_link<const D: usize>(coarse: &mut Level<D>, a: Node, b: Node, link: f32) {
    let position = |node: Node| {
        let (block, local) = node.block_and_local::<D>();
        let (first, offset) = (coarse.topology.coords(block).map(|c| c * 8), unflatten::<D>(local, 8));
        std::array::from_fn::<i32, D, _>(|axis| first[axis] + offset[axis] as i32)
    };
    let (at_a, at_b) = (position(a), position(b));
    let axis = (0..D).find(|&axis| at_a[axis] != at_b[axis]).expect("linked cells differ");
    let high = if at_a[axis] > at_b[axis] { a } else { b };
    let (block, local) = high.block_and_local::<D>();
    coarse.sums.link[(block * D + axis) * block_cells(D) + local] = link;
}
