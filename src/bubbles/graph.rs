//! Rest volumes through splits and merges (CBAR eq. 26).
//!
//! Old and new components form a bipartite graph: an edge says that air of the one is now in the other. All old
//! components of a connected part of that graph pool their rest volumes, and the new ones share the pool in proportion
//! to their sizes. A pure split, a pure merge and a split while merging (CBAR fig. 15) are one and the same case.
//!
//! Air that is open to the outside is a pool without a bottom: what joins it is gone, and what it gives off is measured
//! when it comes. A bubble that exchanges air with it keeps its *relative* deviation from its rest volume.

use crate::math::Sets;

/// A component on one side of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vertex {
    /// What it should measure; of no meaning for new components.
    pub rest: f64,
    /// What it measures.
    pub volume: f64,
    /// Whether it is open to the outside.
    pub open: bool,
}

/// Memory of the redistribution.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    sets: Sets,
    pool: Vec<Pool>,
}

/// What a connected part of the graph brings and wants.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    rest: f64,
    old_volume: f64,
    new_volume: f64,
    /// Closed components exchange air with open ones.
    leaks: bool,
}

/// What a new component gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// A rest volume out of its part of the graph.
    Rest(f64),
    /// It came out of open air alone: what it measures now is what it should be.
    Measured,
    /// No old component leads to it.
    Nothing,
}

impl Graph {
    /// Shares the old rest volumes among the new components. `edges` are pairs of an old and a new component.
    pub fn redistribute(
        &mut self,
        old: &[Vertex],
        new: &[Vertex],
        edges: impl Iterator<Item = (usize, usize)> + Clone,
        mut give: impl FnMut(usize, Share),
    ) {
        self.sets.reset(old.len() + new.len());
        // Open air does not tie the bubbles that touch it together: only closed components do.
        for (from, to) in edges.clone().filter(|&(from, to)| !old[from].open && !new[to].open) {
            self.sets.join(from as u32, (old.len() + to) as u32);
        }
        self.pool.clear();
        self.pool.resize(old.len() + new.len(), Pool::default());
        for (index, party) in old.iter().enumerate().filter(|(_, party)| !party.open) {
            let pool = &mut self.pool[self.sets.find(index as u32) as usize];
            pool.rest += party.rest;
            pool.old_volume += party.volume;
        }
        for (index, party) in new.iter().enumerate().filter(|(_, party)| !party.open) {
            let pool = &mut self.pool[self.sets.find((old.len() + index) as u32) as usize];
            pool.new_volume += party.volume;
        }
        for (from, to) in edges.clone() {
            let closed = match (old[from].open, new[to].open) {
                (true, false) => old.len() + to,
                (false, true) => from,
                _ => continue,
            };
            let root = self.sets.find(closed as u32) as usize;
            self.pool[root].leaks = true;
        }
        for (index, party) in new.iter().enumerate() {
            let pool = self.pool[self.sets.find((old.len() + index) as u32) as usize];
            let share = match () {
                () if party.open => Share::Measured,
                () if pool.rest > 0.0 && pool.leaks && pool.old_volume > 0.0 => {
                    Share::Rest(party.volume * pool.rest / pool.old_volume)
                }
                () if pool.rest > 0.0 && pool.new_volume > 0.0 => {
                    Share::Rest(pool.rest * (party.volume / pool.new_volume))
                }
                () if pool.leaks => Share::Measured,
                () => Share::Nothing,
            };
            give(index, share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{hash_unit, mix};

    fn closed(rest: f64, volume: f64) -> Vertex {
        Vertex { rest, volume, open: false }
    }

    fn shares(old: &[Vertex], new: &[Vertex], edges: &[(usize, usize)]) -> Vec<Share> {
        let mut found = vec![Share::Nothing; new.len()];
        Graph::default().redistribute(old, new, edges.iter().copied(), |i, share| found[i] = share);
        found
    }

    #[test]
    fn one_to_one_copies_exactly() {
        let rest = 0.1 + 0.2;
        assert_eq!(shares(&[closed(rest, 5.0)], &[closed(0.0, 4.7)], &[(0, 0)]), [Share::Rest(rest)]);
    }

    #[test]
    fn split_while_merging_shares_by_new_size() {
        // CBAR fig. 15: two bubbles meet while one of them loses a part.
        let old = [closed(10.0, 9.0), closed(6.0, 6.0)];
        let new = [closed(0.0, 12.0), closed(0.0, 4.0)];
        let found = shares(&old, &new, &[(0, 0), (0, 1), (1, 0)]);
        assert_eq!(found, [Share::Rest(12.0), Share::Rest(4.0)]);
    }

    #[test]
    fn open_air_swallows_and_gives_without_a_debt() {
        let old = [Vertex { rest: 0.0, volume: 1e6, open: true }, closed(10.0, 8.0)];
        let new = [Vertex { rest: 0.0, volume: 1e6, open: true }, closed(0.0, 4.0), closed(0.0, 3.0)];
        // Half of the bubble bursts into the open, and the open air traps another one.
        let found = shares(&old, &new, &[(0, 0), (1, 0), (1, 1), (0, 2)]);
        assert_eq!(found, [Share::Measured, Share::Rest(5.0), Share::Measured]);
    }

    #[test]
    fn nobody_inherits_from_nobody() {
        assert_eq!(shares(&[closed(1.0, 1.0)], &[closed(0.0, 2.0)], &[]), [Share::Nothing]);
    }

    /// A random graph: every old component leads somewhere.
    fn random_case(salt: u64) -> (Vec<Vertex>, Vec<Vertex>, Vec<(usize, usize)>) {
        let draw = |i: u64| hash_unit(mix(salt).wrapping_add(i)) as f64;
        let (olds, news) = (1 + (draw(0) * 40.0) as usize, 1 + (draw(1) * 40.0) as usize);
        let old = (0..olds).map(|i| closed(0.01 + draw(10 + i as u64), 1.0)).collect();
        let new = (0..news).map(|i| closed(0.0, 0.01 + 100.0 * draw(100 + i as u64))).collect();
        let mut edges: Vec<(usize, usize)> =
            (0..olds).map(|i| (i, (draw(200 + i as u64) * news as f64) as usize)).collect();
        let more = (draw(2) * 30.0) as u64;
        edges.extend(
            (0..more)
                .map(|i| ((draw(300 + i) * olds as f64) as usize, (draw(400 + i) * news as f64) as usize)),
        );
        (old, new, edges)
    }

    fn total(found: &[Share]) -> f64 {
        found.iter().map(|share| if let Share::Rest(rest) = share { *rest } else { 0.0 }).sum()
    }

    #[test]
    fn thousands_of_random_graphs_conserve_and_do_not_care_about_names() {
        for salt in 0..5000 {
            let (old, new, edges) = random_case(salt);
            let found = shares(&old, &new, &edges);
            let before: f64 = old.iter().map(|party| party.rest).sum();
            assert!((total(&found) - before).abs() <= 1e-12 * before, "case {salt}");
            // The same with all names reversed and the edges in another order.
            let (olds, news) = (old.len(), new.len());
            let flipped_old: Vec<Vertex> = old.iter().rev().copied().collect();
            let flipped_new: Vec<Vertex> = new.iter().rev().copied().collect();
            let flipped_edges: Vec<(usize, usize)> =
                edges.iter().rev().map(|&(a, b)| (olds - 1 - a, news - 1 - b)).collect();
            let mut flipped = shares(&flipped_old, &flipped_new, &flipped_edges);
            flipped.reverse();
            for (a, b) in found.iter().zip(&flipped) {
                match (a, b) {
                    (Share::Rest(a), Share::Rest(b)) => {
                        assert!((a - b).abs() <= 1e-12 * before, "case {salt}")
                    }
                    _ => assert_eq!(a, b, "case {salt}"),
                }
            }
        }
    }
}
