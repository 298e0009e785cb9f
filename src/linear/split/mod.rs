//! The careful path of coarsening: aggregates that fall into several parts, and (`links`) links of explicit nodes.

mod links;

use crate::grid::block_cells;
use crate::math::{flatten, power, unflatten};

use super::coarsen::{corner, in_series};
use super::explicit::HalfLink;
use super::layout::{Node, Place, split_index};
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
