//! Whose name goes on, and what new ones look like.
//!
//! The largest part of a split and the largest parent of a merge carry the name on. Particles tell how much two
//! components have in common: of the smaller one's volume, the share that the votes for both have in all votes of
//! either. A bubble whose largest part is now outside has burst, and one that came from outside for the most part is
//! new.
//!
//! Bubbles are called 1, 2, 3, …, the largest of those that come at once first. Specks too small to watch come and go
//! by the thousand in falling water: they, and voids, have names far beyond those numbers.

use serde::{Deserialize, Serialize};

use crate::math::Real;

use super::Record;

/// Names of specks begin behind this one: trapped air of a few cells that is no bubble yet.
pub const FIRST_SPECK: u64 = 1 << 32;
/// Names of voids begin behind this one: holes without a cause, see [`Record::void`].
pub const FIRST_VOID: u64 = 1 << 33;

/// The number by which people call a component of air; `None` for specks and voids.
///
/// ```
/// assert_eq!(glug::bubbles::number(3), Some(3));
/// assert_eq!(glug::bubbles::number(glug::bubbles::FIRST_SPECK + 3), None);
/// ```
pub fn number(id: u64) -> Option<u64> {
    (NameKind::of_id(id) == NameKind::Number).then_some(id)
}

/// Closed air that would fit into three cells along each axis is a speck until it grows. In cells.
fn largest_speck(dimension: usize) -> Real {
    3f64.powi(dimension as i32)
}

/// What kind of name air has, from the least to the one that stays with it whatever becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameKind {
    /// Beyond [`FIRST_VOID`].
    Void,
    /// Beyond [`FIRST_SPECK`].
    Speck,
    /// Small and readable.
    Number,
}

impl NameKind {
    /// What air deserves; `known` is air that was there from the start or comes from a source.
    pub fn of(record: &Record, known: bool, dimension: usize) -> Self {
        match () {
            () if record.void => NameKind::Void,
            () if known || record.open || record.volume > largest_speck(dimension) => NameKind::Number,
            () => NameKind::Speck,
        }
    }

    /// What a name is.
    pub fn of_id(id: u64) -> Self {
        match id {
            _ if id > FIRST_VOID => NameKind::Void,
            _ if id > FIRST_SPECK => NameKind::Speck,
            _ => NameKind::Number,
        }
    }
}

/// An old component and a new one that have something in common.
#[derive(Clone, Copy, Debug)]
pub struct Tie {
    ends: [u32; 2],
    open: [bool; 2],
    votes: u32,
    /// Volume that is part of both, about; in cells.
    common: Real,
}

impl Tie {
    /// A tie between the old and the new component `ends`, of such `volumes`, by that many of `all` votes of each.
    pub fn new(ends: [u32; 2], open: [bool; 2], volumes: [Real; 2], votes: u32, all: [u32; 2]) -> Self {
        // In a split all votes of the part agree, in a merge all votes of the parent.
        let share = votes as Real / all[0].min(all[1]).max(1) as Real;
        Tie { ends, open, votes, common: volumes[0].min(volumes[1]) * share }
    }

    /// The strongest tie comes first: open air continues open air before anything else.
    fn compare(&self, other: &Tie) -> std::cmp::Ordering {
        let outside = |tie: &Tie| tie.open == [true, true];
        let order = outside(other).cmp(&outside(self)).then(other.common.total_cmp(&self.common));
        order.then(other.votes.cmp(&self.votes)).then(self.ends.cmp(&other.ends))
    }
}

/// What is found out about a component's ties to the other step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Fate {
    /// The component there with which it has most in common.
    pub kin: Option<u32>,
    /// The component there that has the same name.
    pub heir: Option<u32>,
    /// All votes of its particles.
    pub votes: u32,
    /// Of air that is new: touched by particles that cannot tell which air they were beside.
    pub touched: bool,
    /// It is known whether its name goes on.
    is_settled: bool,
}

impl Fate {
    /// It is the same as a component of the other step.
    pub fn unite(&mut self, other: u32) {
        (self.kin, self.heir, self.is_settled) = (Some(other), Some(other), true);
    }
}

/// Decides what becomes of every name, from the `fates` of the `old` components and those of the `new` ones.
pub fn decide_fates(ties: &mut [Tie], old: &mut [Fate], new: &mut [Fate]) {
    ties.sort_unstable_by(Tie::compare);
    for &Tie { ends: [from, to], open, .. } in &*ties {
        let (parent, child) = (&mut old[from as usize], &mut new[to as usize]);
        parent.kin.get_or_insert(to);
        child.kin.get_or_insert(from);
        match (parent.is_settled, child.is_settled) {
            (false, false) => {
                (parent.heir, parent.is_settled) = (Some(to), true);
                (child.heir, child.is_settled) = (Some(from), true);
            }
            // The better part of it goes on under the name of a larger one.
            (false, true) => parent.is_settled = true,
            // The better part of it was outside a moment ago.
            (true, false) if open == [true, false] => child.is_settled = true,
            _ => {}
        }
    }
}

/// A bubble that ended a moment ago.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Lost {
    /// Its name.
    pub id: u64,
    /// When it came into being, simulated seconds.
    pub since: Real,
    /// What it measured, in cells.
    pub volume: Real,
    /// A block that it had a part in.
    pub home: [i32; 3],
    /// When it ended, simulated seconds.
    pub time: Real,
}

/// How long the name of a bubble is kept for it, simulated seconds: a film that is too thin for the grid may open for a
/// few steps and close again.
const KEPT: Real = 0.1;

/// By how much of its volume a bubble may differ that comes back.
const MOST_CHANGE: Real = 0.2;

/// The names given so far.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Names {
    /// How many, by [`NameKind`], and to liquid.
    given: [u64; 4],
    /// Bubbles that may come back.
    lost: Vec<Lost>,
}

impl Names {
    /// A new name for air.
    pub fn next(&mut self, kind: NameKind) -> u64 {
        let before = match kind {
            NameKind::Void => FIRST_VOID,
            NameKind::Speck => FIRST_SPECK,
            NameKind::Number => 0,
        };
        before + self.count(kind as usize)
    }

    /// A new name for liquid.
    pub fn next_liquid(&mut self) -> u64 {
        self.count(NameKind::Number as usize + 1)
    }

    fn count(&mut self, kind: usize) -> u64 {
        self.given[kind] += 1;
        self.given[kind]
    }

    /// Remembers a bubble that ended.
    pub fn keep(&mut self, bubble: Lost) {
        self.lost.push(bubble);
    }

    /// Forgets bubbles that ended too long before some time.
    pub fn forget_before(&mut self, time: Real) {
        self.lost.retain(|bubble| time - bubble.time <= KEPT);
    }

    /// A bubble that ended a moment ago with about this volume, in a block that the new one `is_near`.
    pub fn take_back(&mut self, volume: Real, is_near: impl Fn([i32; 3]) -> bool) -> Option<Lost> {
        let off = |bubble: &Lost| (bubble.volume - volume).abs();
        let known = self.lost.iter().enumerate();
        let known = known.filter(|(_, lost)| off(lost) <= MOST_CHANGE * lost.volume && is_near(lost.home));
        let best = known.min_by(|(_, a), (_, b)| off(a).total_cmp(&off(b)))?.0;
        Some(self.lost.remove(best))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{hash_unit, mix};

    /// A component: volume in cells, and whether it is open to the outside.
    type Air = (Real, bool);

    /// Who carries the name of each old component on, and where each came from for the most part: by the votes between
    /// old and new components.
    fn heirs(old: &[Air], new: &[Air], votes: &[(usize, usize, u32)]) -> Vec<Option<u32>> {
        let mut fates = vec![Fate::default(); old.len() + new.len()];
        for &(from, to, votes) in votes {
            fates[from].votes += votes;
            fates[old.len() + to].votes += votes;
        }
        let tie = |&(from, to, votes): &(usize, usize, u32)| {
            let all = [fates[from].votes, fates[old.len() + to].votes];
            let (a, b) = (old[from], new[to]);
            Tie::new([from as u32, to as u32], [a.1, b.1], [a.0, b.0], votes, all)
        };
        let mut ties: Vec<Tie> = votes.iter().map(tie).collect();
        let (before, now) = fates.split_at_mut(old.len());
        decide_fates(&mut ties, before, now);
        for (index, fate) in now.iter().enumerate() {
            if let Some(parent) = fate.heir {
                assert_eq!(before[parent as usize].heir, Some(index as u32), "a name is a pair");
            }
        }
        before.iter().map(|fate| fate.heir).collect()
    }

    #[test]
    fn the_largest_part_of_a_split_carries_the_name_on() {
        // The larger part is dry: few particles speak for it.
        let found = heirs(&[(1000.0, false)], &[(400.0, false), (600.0, false)], &[(0, 0, 990), (0, 1, 10)]);
        assert_eq!(found, [Some(1)]);
    }

    #[test]
    fn the_largest_parent_of_a_merge_carries_the_name_on() {
        // The air in a bottle touches less water than the torn bubble that rises into it.
        let found = heirs(&[(500.0, false), (9000.0, false)], &[(9500.0, false)], &[(0, 0, 700), (1, 0, 90)]);
        assert_eq!(found, [None, Some(0)]);
    }

    #[test]
    fn a_chance_encounter_takes_no_name_away() {
        // The first bubble halves itself, and some of its particles end up beside a large one that goes on as it is.
        let old = [(1000.0, false), (900.0, false)];
        let new = [(520.0, false), (480.0, false), (905.0, false)];
        let votes = [(0, 0, 500), (0, 1, 480), (0, 2, 30), (1, 2, 900)];
        assert_eq!(heirs(&old, &new, &votes), [Some(0), Some(2)]);
    }

    #[test]
    fn a_smaller_parent_names_what_the_larger_one_left() {
        // Most of the first one goes its own way, a part of it joins the second.
        let old = [(1000.0, false), (300.0, false)];
        let new = [(600.0, false), (700.0, false)];
        assert_eq!(heirs(&old, &new, &[(0, 0, 600), (0, 1, 400), (1, 1, 300)]), [Some(0), Some(1)]);
    }

    #[test]
    fn what_a_burst_leaves_behind_is_another_bubble() {
        let (outside, bubble) = ((1e6, true), (1000.0, false));
        let votes = [(0, 0, 5000), (1, 0, 900), (1, 1, 40)];
        assert_eq!(heirs(&[outside, bubble], &[outside, (30.0, false)], &votes), [Some(0), None]);
        // One that only loses a little to the outside goes on.
        let votes = [(0, 0, 5000), (1, 0, 40), (1, 1, 900)];
        assert_eq!(heirs(&[outside, bubble], &[outside, (950.0, false)], &votes), [Some(0), Some(1)]);
    }

    #[test]
    fn what_is_trapped_is_new_even_with_a_bubble_in_it() {
        let (outside, bubble) = ((1e6, true), (30.0, false));
        let votes = [(0, 0, 5000), (0, 1, 900), (1, 1, 60)];
        assert_eq!(heirs(&[outside, bubble], &[outside, (930.0, false)], &votes), [Some(0), None]);
    }

    #[test]
    fn the_last_opening_may_close_and_open_again() {
        for (before, after) in [(true, false), (false, true)] {
            assert_eq!(heirs(&[(1e5, before)], &[(1e5, after)], &[(0, 0, 100)]), [Some(0)]);
        }
    }

    #[test]
    fn thousands_of_random_ties_are_decided_alike_in_any_order() {
        for salt in 0..2000 {
            let draw = |i: u64| hash_unit(mix(salt).wrapping_add(i)) as f64;
            let air = |i: u64| (1.0 + 99.0 * draw(i), draw(1000 + i) < 0.2);
            let old: Vec<Air> = (0..1 + (draw(0) * 12.0) as u64).map(|i| air(10 + i)).collect();
            let new: Vec<Air> = (0..1 + (draw(1) * 12.0) as u64).map(|i| air(100 + i)).collect();
            let mut votes: Vec<(usize, usize, u32)> = (0..old.len() * new.len())
                .filter(|&i| draw(2000 + i as u64) < 0.3)
                .map(|i| (i / new.len(), i % new.len(), 1 + (draw(4000 + i as u64) * 50.0) as u32))
                .collect();
            let found = heirs(&old, &new, &votes);
            votes.reverse();
            assert_eq!(heirs(&old, &new, &votes), found, "case {salt}");
            let mut taken: Vec<u32> = found.into_iter().flatten().collect();
            let heirs = taken.len();
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(taken.len(), heirs, "case {salt}: two names for one");
        }
    }

    #[test]
    fn every_kind_of_name_is_told_from_the_others() {
        let mut names = Names::default();
        for kind in [NameKind::Void, NameKind::Speck, NameKind::Number] {
            for count in 1..=3 {
                let id = names.next(kind);
                assert_eq!(NameKind::of_id(id), kind);
                assert_eq!(number(id), (kind == NameKind::Number).then_some(count));
            }
        }
        assert_eq!(names.next_liquid(), 1, "liquid is counted by itself");
    }

    #[test]
    fn a_bubble_comes_back_soon_at_its_place_and_with_its_size_or_not_at_all() {
        let home = [3, 4, 5];
        let lost = Lost { id: 7, since: 0.5, volume: 100.0, home, time: 1.0 };
        let back = |time: Real, volume: Real, place: [i32; 3]| {
            let mut names = Names::default();
            names.keep(lost);
            names.keep(Lost { id: 8, volume: 125.0, ..lost });
            names.forget_before(time);
            let found = names.take_back(volume, |home| home == place).map(|bubble| bubble.id);
            let again = names.take_back(volume, |home| home == place).map(|bubble| bubble.id);
            assert!(found.is_none() || found != again, "nobody comes back twice");
            found
        };
        assert_eq!(back(1.01, 108.0, home), Some(7));
        assert_eq!(back(1.01, 118.0, home), Some(8));
        assert_eq!(back(1.01, 200.0, home), None);
        assert_eq!(back(1.01, 108.0, [0; 3]), None);
        assert_eq!(back(2.0, 108.0, home), None);
    }
}
