//! Builds a pattern link by link.

use crate::grid::block_cells;

use super::{DIRECTIONS, ExtraLink, HaloNode, NONE, NodeTerms, Pattern};

/// The most places that a workspace may need.
const MAX_ROOM: usize = 1 << 15;

/// A pattern under construction.
pub(in super::super) struct PatternBuilder {
    pattern: Pattern,
    counts: [usize; 2],
}

/// Marks a place among the nodes of the same colour, while their number is not known yet.
const OWN: u16 = 1 << 15;

impl PatternBuilder {
    /// Begins with the nodes, by colour, in the order of their cells.
    pub fn new<const D: usize>(nodes: &[Vec<(u16, NodeTerms)>; 2]) -> PatternBuilder {
        let mut pattern = Pattern { first: vec![NONE; block_cells(D)], ..Pattern::default() };
        for (colour, nodes) in nodes.iter().enumerate() {
            for (index, (cell, _)) in nodes.iter().enumerate().rev() {
                pattern.first[*cell as usize] = index as u16;
            }
            let half = &mut pattern.half[colour];
            if nodes.iter().any(|(_, terms)| *terms != NodeTerms::default()) {
                pattern.terms[colour] = nodes.iter().map(|(_, terms)| *terms).collect();
                half.has_shared = nodes.iter().any(|(_, terms)| terms.has_shared);
            }
            half.cells = nodes.iter().map(|(cell, _)| *cell).collect();
            half.diagonal = nodes.iter().map(|(_, terms)| f64::from(terms.ground)).collect();
            half.near = vec![0; DIRECTIONS * nodes.len()];
            half.links = vec![0.0; DIRECTIONS * nodes.len()];
        }
        PatternBuilder { pattern, counts: [nodes[0].len(), nodes[1].len()] }
    }

    /// Adds a link of a node to one of the other colour, the first one in some direction or a further one.
    #[inline]
    pub fn link_local(
        &mut self,
        colour: usize,
        node: usize,
        direction: Option<usize>,
        other: usize,
        link: f32,
    ) {
        self.link(colour, node, direction, 1 + other as u16, link);
    }

    /// Adds a link to a node of the same colour.
    pub fn link_same_colour(&mut self, colour: usize, node: usize, other: usize, link: f32) {
        let half = &mut self.pattern.half[colour];
        half.diagonal[node] += f64::from(link);
        half.extra_links.push(ExtraLink { node: node as u16, near: OWN | other as u16, link });
    }

    /// Adds a link to a node of another block.
    #[inline]
    pub fn link_halo(
        &mut self,
        colour: usize,
        node: usize,
        direction: Option<usize>,
        other: HaloNode,
        link: f32,
    ) {
        let halo = self.pattern.half[colour].halo.to_mut();
        halo.push(other);
        let place = self.counts[1 - colour] + halo.len();
        self.link(colour, node, direction, place as u16, link);
    }

    #[inline]
    fn link(&mut self, colour: usize, node: usize, direction: Option<usize>, place: u16, link: f32) {
        let half = &mut self.pattern.half[colour];
        half.diagonal[node] += f64::from(link);
        match direction {
            Some(direction) => {
                let at = direction * self.counts[colour] + node;
                debug_assert_eq!(half.near[at], 0);
                half.near[at] = place;
                half.links[at] = link;
            }
            None => half.extra_links.push(ExtraLink { node: node as u16, near: place, link }),
        }
    }

    /// The pattern of these nodes; `whole` is the link that need not be kept.
    pub fn finish(mut self, whole: f32) -> Pattern {
        for colour in 0..2 {
            let half = &mut self.pattern.half[colour];
            half.own = 1 + self.counts[1 - colour] + half.halo.len();
            assert!(half.room() <= MAX_ROOM, "a block with {:?} nodes", self.counts);
            assert!(half.near.iter().all(|&place| (place as usize) < half.own));
            for link in &mut half.extra_links {
                if link.near & OWN != 0 {
                    link.near = half.own as u16 + (link.near & !OWN);
                }
            }
            half.extra_links.sort_by_key(|link| link.node);
            half.find_inverse();
            if half.links.iter().all(|&link| link == whole || link == 0.0) {
                half.links = Vec::new();
            }
        }
        self.pattern
    }
}
