//! The careful path of coarsening: aggregates that fall into several parts, and links of explicit nodes.

use crate::grid::block_cells;
use crate::math::{flatten, power, unflatten};

use super::coarsen::{corner, in_series};
use super::explicit::HalfLink;
use super::layout::{Node, Place, half_rows, split_index};
use super::level::Level;
use super::material;
use super::source::{Source, kind};
use super::stencil::mask_words;
use super::transfer::cover_of;

/// Working memory, and what the two halves of the path tell each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Splitter {
    /// The careful aggregates: coarse block and cell.
    groups: Vec<(u32, u32)>,
    /// Where each fine block's parents are listed, plus 1; 0 where every parent is the covering cell.
    map_at: Vec<u32>,
    map: Vec<Node>,
    /// Fine extras by coarse cell.
    extras: Vec<(u64, u32)>,
    members: Vec<Node>,
    part: Vec<u32>,
    /// New extra nodes: colour.
    colours: Vec<u8>,
    renumber: Vec<u32>,
    crossing: Vec<HalfLink>,
    half: Vec<HalfLink>,
    /// Order of the new extras as [`super::explicit::Explicit`] keeps them.
    order: Vec<u32>,
}

/// The cell of the coarse level over a position of the finer one, as block and natural index.
fn coarse_cell<const D: usize>(fine: &Level<D>, node: Node) -> (usize, usize) {
    let (block, local) = node.block_and_local::<D>();
    (fine.transfer.parent[block] as usize, cover_of(fine.topology.octant(block), local))
}

impl Splitter {
    /// Finds the parts of the careful aggregates and makes a coarse node of each.
    pub fn split<const D: usize, S: Source<D>>(
        &mut self,
        fine: &mut Level<D>,
        source: &S,
        coarse: &mut Level<D>,
        h: f32,
    ) {
        self.find_groups(fine, coarse);
        coarse.explicit.clear();
        coarse.explicit.entangled = source.material(0).is_some();
        fine.transfer.of_explicit.clear();
        fine.transfer.of_explicit.resize(fine.explicit.count, Node::NONE);
        self.colours.clear();
        for index in 0..self.groups.len() {
            let (cover, local) = self.groups[index];
            self.collect_members(fine, cover as usize, local as usize);
            self.join_members(fine, source);
            self.make_nodes(fine, source, coarse, cover as usize, local as usize, h);
        }
        self.number_extras(fine, coarse);
    }

    fn find_groups<const D: usize>(&mut self, fine: &Level<D>, coarse: &mut Level<D>) {
        let cells = block_cells(D);
        self.extras.clear();
        for (extra, position) in fine.explicit.position.iter().enumerate() {
            // An extra lies in the same place as a cell, so its cover exists.
            let (cover, local) = self.locate::<D>(coarse, position.map(|c| c.div_euclid(2)));
            coarse.sums.kind[cover * cells + local] = kind::CAREFUL;
            self.extras.push(((cover * cells + local) as u64, extra as u32));
        }
        self.extras.sort_unstable();
        self.groups.clear();
        for (index, kinds) in coarse.sums.kind.chunks_exact(64).enumerate() {
            if kinds.iter().fold(0, |any, k| any | k) & kind::CAREFUL == 0 {
                continue;
            }
            for (i, &k) in kinds.iter().enumerate() {
                if k & kind::CAREFUL != 0 {
                    let cell = index * 64 + i;
                    self.groups.push(((cell / cells) as u32, (cell % cells) as u32));
                }
            }
        }
        self.map_at.clear();
        self.map_at.resize(fine.topology.len(), 0);
        self.map.clear();
        for &(cover, local) in &self.groups {
            let octant = flatten(unflatten::<D>(local as usize, 8).map(|c| c / 4), 2);
            let block = fine.transfer.children[cover as usize][octant] as usize;
            if block != 0 && self.map_at[block] == 0 {
                self.map_at[block] = (self.map.len() / cells) as u32 + 1;
                let len = self.map.len() + cells;
                self.map.resize(len, Node::NONE);
            }
        }
    }

    fn locate<const D: usize>(&self, coarse: &Level<D>, position: [i32; D]) -> (usize, usize) {
        let block = coarse.topology.find(position.map(|c| c.div_euclid(8)));
        (block, flatten(position.map(|c| c.rem_euclid(8) as usize), 8))
    }

    /// Lists the finer nodes in an aggregate that are linked to anything.
    fn collect_members<const D: usize>(&mut self, fine: &Level<D>, cover: usize, local: usize) {
        self.members.clear();
        let at = unflatten::<D>(local, 8);
        let block = fine.transfer.children[cover][flatten(at.map(|c| c / 4), 2)] as usize;
        if block != 0 {
            let base = flatten(at.map(|c| c % 4 * 2), 8);
            let words = mask_words(D);
            for i in 0..power(2, D) {
                let cell = base + corner::<D>(i);
                let node = Node::cell::<D>(block, cell);
                if fine.stencil.carried[block * words + cell / 64] >> (cell % 64) & 1 != 0 {
                    self.members.push(node);
                }
            }
        }
        let key = (cover * block_cells(D) + local) as u64;
        let first = self.extras.partition_point(|&(k, _)| k < key);
        for &(_, extra) in self.extras[first..].iter().take_while(|&&(k, _)| k == key) {
            if fine.explicit.links(extra as usize).next().is_some() {
                self.members.push(Node::explicit(extra as usize));
            }
        }
    }

    fn root(&mut self, mut member: usize) -> usize {
        while self.part[member] as usize != member {
            self.part[member] = self.part[self.part[member] as usize];
            member = self.part[member] as usize;
        }
        member
    }

    fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.part[a.max(b)] = a.min(b) as u32;
    }

    /// Joins members of the same material that are linked to each other.
    fn join_members<const D: usize, S: Source<D>>(&mut self, fine: &Level<D>, source: &S) {
        self.part.clear();
        self.part.extend(0..self.members.len() as u32);
        for a in 0..self.members.len() {
            let own = material::of(fine, source, self.members[a]);
            match self.members[a].place() {
                Place::Cell { .. } => {
                    let (block, cell) = self.members[a].block_and_local::<D>();
                    for axis in 0..D {
                        let stride = power(8, axis);
                        if cell / stride % 2 == 1 && source.link(axis, block)[cell] > 0.0 {
                            let other = Node::cell::<D>(block, cell - stride);
                            if let Some(b) = self.members.iter().position(|&m| m == other)
                                && material::of(fine, source, other) == own
                            {
                                self.union(a, b);
                            }
                        }
                    }
                }
                Place::Explicit(extra) => {
                    for (to, link, _) in fine.explicit.links(extra) {
                        if link > 0.0
                            && material::of(fine, source, to) == own
                            && let Some(b) = self.members.iter().position(|&m| m == to)
                        {
                            self.union(a, b);
                        }
                    }
                }
            }
        }
        for member in 0..self.members.len() {
            let root = self.root(member);
            self.part[member] = root as u32;
        }
    }

    /// The largest part becomes the coarse cell, the others new extra nodes.
    fn make_nodes<const D: usize, S: Source<D>>(
        &mut self,
        fine: &mut Level<D>,
        source: &S,
        coarse: &mut Level<D>,
        cover: usize,
        local: usize,
        h: f32,
    ) {
        let size = |part: &[u32], root: usize| part.iter().filter(|&&p| p as usize == root).count();
        let main = (0..self.members.len()).rev().max_by_key(|&root| size(&self.part, root));
        for root in 0..self.members.len() {
            let children = size(&self.part, root);
            if children == 0 {
                continue;
            }
            let merged = children > 1;
            let (mut ground, mut area) = (0.0, 0.0);
            let parent = if Some(root) == main {
                Node::cell::<D>(cover, local)
            } else {
                Node::explicit(self.colours.len())
            };
            for member in 0..self.members.len() {
                if self.part[member] as usize != root {
                    continue;
                }
                let (d, s) = match self.members[member].place() {
                    Place::Cell { .. } => {
                        let (block, cell) = self.members[member].block_and_local::<D>();
                        let at = (self.map_at[block] as usize - 1) * block_cells(D);
                        self.map[at + cell] = parent;
                        (source.ground(block)[cell], source.area(block)[cell])
                    }
                    Place::Explicit(extra) => {
                        fine.transfer.of_explicit[extra] = parent;
                        (fine.explicit.ground[extra], fine.explicit.area[extra])
                    }
                };
                ground += if merged { in_series(d, s, h) } else { d };
                area += s;
            }
            let material = material::of(fine, source, self.members[root]);
            if Some(root) == main {
                let index = cover * block_cells(D) + local;
                if coarse.explicit.entangled {
                    coarse.sums.material[index] = material;
                }
                coarse.sums.kind[index] = kind::CAREFUL | if merged { kind::MERGED } else { kind::SINGLE };
                coarse.sums.ground[index] = ground;
                coarse.sums.area[index] = area;
            } else {
                let first = coarse.topology.coords(cover).map(|c| c * 8);
                let offset = unflatten::<D>(local, 8);
                coarse.explicit.position.push(std::array::from_fn(|a| first[a] + offset[a] as i32));
                coarse.explicit.merged.push(merged);
                coarse.explicit.material.push(material);
                coarse.explicit.ground.push(ground);
                coarse.explicit.area.push(area);
                self.colours.push(split_index::<D>(local).0 as u8);
            }
        }
    }

    /// Sorts the new extras by colour and appends the shared nodes.
    fn number_extras<const D: usize>(&mut self, fine: &mut Level<D>, coarse: &mut Level<D>) {
        let (count, colours) = (self.colours.len(), &self.colours);
        self.order.clear();
        self.order.extend(0..count as u32);
        self.order.sort_unstable_by_key(|&extra| (colours[extra as usize], extra));
        self.renumber.clear();
        self.renumber.resize(count, 0);
        for (new, &old) in self.order.iter().enumerate() {
            self.renumber[old as usize] = new as u32;
        }
        let explicit = &mut coarse.explicit;
        // Follow the cycles of the permutation by swapping each entry into its place.
        for target in 0..count {
            let mut source = self.order[target] as usize;
            while source < target {
                source = self.order[source] as usize;
            }
            explicit.position.swap(target, source);
            explicit.merged.swap(target, source);
            explicit.material.swap(target, source);
            explicit.ground.swap(target, source);
            explicit.area.swap(target, source);
        }
        let red = self.colours.iter().filter(|&&c| c == 0).count();
        let shared = fine.explicit.shared().len();
        explicit.ends = [red, count];
        explicit.count = count + shared;
        explicit.ground.resize(explicit.count, 0.0);
        explicit.area.resize(explicit.count, 0.0);
        let renumber = |node: &mut Node| {
            if *node != Node::NONE
                && let Place::Explicit(old) = node.place()
            {
                *node = Node::explicit(self.renumber[old] as usize);
            }
        };
        self.map.iter_mut().for_each(renumber);
        fine.transfer.of_explicit.iter_mut().for_each(renumber);
        for (k, index) in fine.explicit.shared().enumerate() {
            fine.transfer.of_explicit[index] = Node::explicit(count + k);
        }
    }

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

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.groups.capacity() * 8
            + (self.map_at.capacity() + self.map.capacity() + self.renumber.capacity()) * 4
            + self.extras.capacity() * 16
            + (self.members.capacity() + self.part.capacity() + self.order.capacity()) * 4
            + self.colours.capacity()
            + (self.crossing.capacity() + self.half.capacity()) * size_of::<HalfLink>()
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
