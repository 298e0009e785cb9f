//! Coarser lists.
//!
//! A coarse node stands for the listed nodes that share a parent in the network with all cells, so aggregates never join
//! what is not linked there either. Links become weaker with the distance (half their sum where something merged, as in
//! [`super::super::coarsen`]), but the pressure on a body is an integral over its surface, which aggregates reproduce:
//! bodies keep their full weight.

use rayon::prelude::*;

use crate::grid::block_cells;

use super::super::coarsen::in_series;
use super::super::layout::{Node, Place};
use super::super::level::Level;
use super::super::transfer::cover_of;
use super::list::{Extra, GRAIN, LANES, List, Rest};
use super::surfaces::{Faces, Patch, SharedTerms, Surfaces};

/// Children of the nodes of a coarse list.
#[derive(Clone, Debug, Default)]
pub(super) struct Family {
    pub start: Vec<u32>,
    pub child: Vec<u32>,
    lookup: Vec<u32>,
}

/// The parent of a node in the network with all cells; [`Node::NONE`] if it has none.
pub(super) fn parent_of<const D: usize>(level: &Level<D>, node: Node) -> Node {
    let transfer = &level.transfer;
    match node.place() {
        _ if node == Node::NONE => Node::NONE,
        Place::Explicit(index) => transfer.of_explicit[index],
        Place::Cell { .. } => {
            let (block, local) = node.block_and_local::<D>();
            if transfer.follows_rule::<D>(node) {
                Node::cell::<D>(
                    transfer.parent[block] as usize,
                    cover_of(level.topology.octant(block), local),
                )
            } else {
                match transfer.strays.binary_search_by_key(&node, |&(cell, _)| cell) {
                    Ok(at) => Node::explicit(transfer.strays[at].1 as usize),
                    Err(_) => Node::NONE,
                }
            }
        }
    }
}

/// Where a node of a level of the full network is kept in a table of all of them.
fn key<const D: usize>(level: &Level<D>, node: Node) -> usize {
    let half = level.topology.len() * block_cells(D) / 2;
    match node.place() {
        Place::Cell { colour, index } => colour * half + index,
        Place::Explicit(index) => 2 * half + index,
    }
}

impl Family {
    /// Finds the parents of all nodes of `fine`, numbers them, and lists their children. `full` is the level of the full
    /// network that `fine` stands on, `above` the one over it.
    pub fn found<const D: usize>(
        &mut self,
        fine: &mut List,
        full: &Level<D>,
        above: &Level<D>,
        coarse: &mut List,
    ) {
        let nodes = &fine.node;
        fine.parent.par_chunks_mut(GRAIN).enumerate().for_each(|(chunk, parents)| {
            for (parent, &node) in parents.iter_mut().zip(&nodes[chunk * GRAIN..]) {
                *parent = parent_of(full, node).0;
            }
        });
        let half = above.topology.len() * block_cells(D) / 2;
        let table = 2 * half + above.explicit.count;
        self.lookup.clear();
        self.lookup.resize(table, 0);
        for &parent in &fine.parent {
            if parent != Node::NONE.0 {
                self.lookup[key(above, Node(parent))] = 1;
            }
        }
        // Red cells, red extras, black cells, black extras: extras are numbered red first.
        let [red, black] = above.explicit.ends;
        let orders =
            [(0..half, 2 * half..2 * half + red), (half..2 * half, 2 * half + red..2 * half + black)];
        let mut counts = [1; 2];
        for (count, (cells, extras)) in counts.iter_mut().zip(orders.clone()) {
            for at in cells.chain(extras) {
                if self.lookup[at] != 0 {
                    self.lookup[at] = *count as u32;
                    *count += 1;
                }
            }
        }
        coarse.resize(counts);
        for (colour, (cells, extras)) in orders.into_iter().enumerate() {
            let base = colour * coarse.black;
            for at in cells.chain(extras) {
                if self.lookup[at] == 0 {
                    continue;
                }
                let index = base + self.lookup[at] as usize;
                coarse.node[index] = match at {
                    _ if at < half => Node(at as u32),
                    _ if at < 2 * half => Node(1 << 30 | (at - half) as u32),
                    _ => Node::explicit(at - 2 * half),
                };
                self.lookup[at] = index as u32;
            }
        }
        let lookup = &self.lookup;
        fine.parent.par_chunks_mut(GRAIN).for_each(|parents| {
            for parent in parents {
                *parent = match *parent {
                    none if none == Node::NONE.0 => 0,
                    node => lookup[key(above, Node(node))],
                };
            }
        });
        self.list_children(&fine.parent, coarse.len());
    }

    fn list_children(&mut self, parents: &[u32], count: usize) {
        self.start.clear();
        self.start.resize(count + 2, 0);
        for &parent in parents.iter().filter(|&&parent| parent != 0) {
            self.start[parent as usize + 2] += 1;
        }
        for at in 2..self.start.len() {
            self.start[at] += self.start[at - 1];
        }
        self.child.clear();
        self.child.resize(self.start[count + 1] as usize, 0);
        for (child, &parent) in parents.iter().enumerate().filter(|(_, parent)| **parent != 0) {
            let next = &mut self.start[parent as usize + 1];
            self.child[*next as usize] = child as u32;
            *next += 1;
        }
        self.start.pop();
    }

    /// Children of a node.
    #[inline]
    pub fn of(&self, node: usize) -> &[u32] {
        &self.child[self.start[node] as usize..self.start[node + 1] as usize]
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.start.capacity() + self.child.capacity() + self.lookup.capacity()) * 4
    }
}

/// Links of one coarse node.
struct Row {
    near: [u32; 6],
    rest: Rest,
    extras: std::ops::Range<usize>,
}

/// The rows of some coarse nodes, and their extra links.
type Rows = (Vec<Row>, Vec<Extra>);

/// Fills in the network of a coarse list. `h` is the width of the finer level's cells.
pub(super) fn link_up<const D: usize>(fine: &List, family: &Family, coarse: &mut List, h: f32) {
    coarse.whole = fine.whole * (1 << (D - 1)) as f32 * 0.5;
    let this = &*coarse;
    let built: Vec<Rows> = (0..coarse.len().div_ceil(GRAIN))
        .into_par_iter()
        .map(|chunk| {
            let mut extras = Vec::new();
            let nodes = chunk * GRAIN..((chunk + 1) * GRAIN).min(this.len());
            (nodes.map(|node| link_node::<D>(fine, family, this, node, h, &mut extras)).collect(), extras)
        })
        .collect();
    coarse.extras.clear();
    let mut node = 0;
    for (rows, extras) in built {
        for Row { near, rest, extras: own } in rows {
            let plain = |k: usize| near[k] == 0 || rest.link[k] == coarse.whole;
            if rest.ground != 0.0 || !(0..2 * D).all(plain) {
                coarse.set_rest(node, rest);
            }
            let group = &mut coarse.groups[node / LANES];
            (0..2 * D).for_each(|k| group.near[k][node % LANES] = near[k]);
            let more = extras[own].iter().map(|extra| extra.link).sum::<f32>();
            coarse.diagonal[node] = rest.link.iter().sum::<f32>() + rest.ground + more;
            node += 1;
        }
        coarse.extras.extend(extras);
    }
}

/// Adds up the links of a coarse node's children. Where a neighbouring place holds several nodes, or the own one does,
/// the second and further links along an axis are extra ones.
fn link_node<const D: usize>(
    fine: &List,
    family: &Family,
    coarse: &List,
    node: usize,
    h: f32,
    extras: &mut Vec<Extra>,
) -> Row {
    let steps = |node: usize| if family.of(node).len() > 1 { 2.0f32 } else { 1.0 };
    let (base, fine_base) = ([coarse.black, 0], [fine.black, 0]);
    let first = extras.len();
    let (mut near, mut rest) = ([0; 6], Rest::default());
    let colour = (node >= coarse.black) as usize;
    let is_merged = family.of(node).len() > 1;
    let mut add = |k: Option<usize>, other: usize, link: f32| {
        if other == node || other == 0 {
            return;
        }
        let is_across = ((other >= coarse.black) as usize) != colour;
        if is_across {
            let place = (other - base[colour]) as u32;
            let free = k.filter(|&k| near[k] == place || near[k] == 0);
            if let Some(k) = free.or_else(|| (0..2 * D).find(|&k| near[k] == place)) {
                near[k] = place;
                rest.link[k] += link;
                return;
            }
        }
        match extras[first..].iter_mut().find(|extra| extra.to == other as u32) {
            Some(extra) => extra.link += link,
            None => extras.push(Extra { from: node as u32, to: other as u32, link }),
        }
    };
    for &child in family.of(node) {
        let child = child as usize;
        let special = fine.rest(child);
        let child_colour = (child >= fine.black) as usize;
        for k in (0..2 * D).filter(|&k| fine.near(child, k) != 0) {
            let other = fine.parent[fine.near(child, k) as usize + fine_base[child_colour]] as usize;
            add(Some(k), other, special.map_or(fine.whole, |special| special.link[k]));
        }
        for extra in fine.extras_of(child) {
            add(None, fine.parent[extra.to as usize] as usize, extra.link);
        }
        if let Some(special) = special {
            rest.ground +=
                if is_merged { in_series(special.ground, special.area, h) } else { special.ground };
            rest.area += special.area;
        }
    }
    // The distance has doubled where something merged.
    let factor = |other: usize| 2.0 / (steps(node) + steps(other));
    for k in (0..2 * D).filter(|&k| near[k] != 0) {
        rest.link[k] *= factor(near[k] as usize + base[colour]);
    }
    for extra in &mut extras[first..] {
        extra.link *= factor(extra.to as usize);
    }
    Row { near, rest, extras: first..extras.len() }
}

/// Sums the bodies' surfaces over the children of each of `nodes` coarse nodes.
pub(super) fn join_patches<const D: usize, P: Patch>(
    fine: &Surfaces<P>,
    parents: &[u32],
    nodes: usize,
    coarse: &mut Surfaces<Faces>,
) {
    let join = |place: &mut Vec<u32>, start: &[u32; 4]| {
        let mut all: Vec<Faces> = Vec::new();
        let mut ends = [0; 4];
        for axis in 0..D {
            let from = all.len();
            for patch in &fine.patches[start[axis] as usize..start[axis + 1] as usize] {
                let (node, twice) = (parents[patch.node()], patch.twice());
                if node == 0 {
                    continue;
                }
                // Where a node's faces are, if these are not its first.
                match all.get_mut(place[node as usize] as usize).filter(|faces| faces.node == node) {
                    Some(faces) if place[node as usize] as usize >= from => {
                        faces.twice.iter_mut().zip(twice).for_each(|(sum, twice)| *sum += twice);
                    }
                    _ => {
                        place[node as usize] = all.len() as u32;
                        all.push(Faces { node, twice });
                    }
                }
            }
            ends[axis + 1] = all.len() as u32;
        }
        (all, ends)
    };
    let joined: Vec<(Vec<Faces>, [u32; 4])> = fine
        .start
        .par_iter()
        .with_min_len(fine.start.len().div_ceil(64).max(1))
        .map_init(|| vec![0; nodes], join)
        .collect();
    coarse.patches.clear();
    coarse.start.clear();
    for (patches, ends) in joined {
        let base = coarse.patches.len() as u32;
        coarse.start.push(ends.map(|end| base + end));
        coarse.patches.extend(patches);
    }
}

/// The shared nodes' links on the coarse level.
pub(super) fn join_shared(
    fine: &SharedTerms,
    areas: &[f32],
    family: &Family,
    parents: &[u32],
    h: f32,
    coarse: (&mut SharedTerms, &mut Vec<f32>, &mut List),
) {
    let (terms, coarse_areas, list) = coarse;
    terms.clear();
    coarse_areas.clear();
    let mut found: Vec<(u32, f32, f32)> = Vec::new();
    for shared in 0..fine.inverse.len() {
        let from = fine.start[shared] as usize;
        found.clear();
        found.extend(fine.of(shared).iter().zip(&areas[from..]).filter_map(|(&(node, link), &area)| {
            let parent = parents[node as usize];
            let is_merged = family.of(parent as usize).len() > 1;
            let link = if is_merged { in_series(link, area, h) } else { link };
            (parent != 0).then_some((parent, link, area))
        }));
        found.sort_by_key(|&(node, ..)| node);
        for same in found.chunk_by(|a, b| a.0 == b.0) {
            let link: f32 = same.iter().map(|&(_, link, _)| link).sum();
            terms.links.push((same[0].0, link));
            coarse_areas.push(same.iter().map(|&(.., area)| area).sum());
            list.add_shared(same[0].0 as usize, link);
            list.diagonal[same[0].0 as usize] += link;
        }
        terms.close();
    }
}
