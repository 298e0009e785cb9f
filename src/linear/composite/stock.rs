//! What many blocks have in common is made once, and kept from step to step as long as it is wanted.
//!
//! Deep in tiled liquid little changes from one step to the next: most of what is wanted there was wanted before. It is known
//! by what it is made of, and that by numbers, which change from step to step: so each thing knows its number in the step
//! before.

use std::collections::HashMap;
use std::hash::Hash;

use rayon::prelude::*;

/// Numbers of things. Keys are long: the hash of the standard library takes its time.
pub(super) type Known<K> = HashMap<K, u32, foldhash::fast::FixedState>;

/// The number, in the step before, of something that was not there.
pub(super) const NEW: u32 = u32::MAX;

/// What is wanted, numbered in the order in which it was first asked for.
pub(super) struct Wanted<K> {
    known: Known<K>,
    keys: Vec<K>,
    first: u32,
}

impl<K: Hash + Eq + Clone> Wanted<K> {
    /// Nothing yet; numbers begin with `first`.
    pub fn from(first: u32) -> Self {
        Wanted { known: Known::default(), keys: Vec::new(), first }
    }

    /// The number of something.
    pub fn number(&mut self, key: K) -> u32 {
        let next = self.first + self.keys.len() as u32;
        *self.known.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            next
        })
    }

    /// The number of something that nobody else will ask for, neither in this step nor in the next.
    pub fn number_alone(&mut self, key: K) -> u32 {
        self.keys.push(key);
        self.first + self.keys.len() as u32 - 1
    }

    /// What is wanted, in order. Sets `origin` to where that was in the step before, if `earlier(key)` is what `known` had it
    /// under; and `known` to what is known now.
    pub fn trace(
        self,
        known: &mut Known<K>,
        origin: &mut Vec<u32>,
        earlier: impl Fn(&K) -> Option<K>,
    ) -> Vec<K> {
        let find = |key: &K| earlier(key).and_then(|key| known.get(&key).copied()).unwrap_or(NEW);
        origin.clear();
        origin.extend(0..self.first);
        origin.extend(self.keys.iter().map(find));
        *known = self.known;
        self.keys
    }
}

/// Something that can be compared with what would be made instead of it, for checks in unoptimised builds.
pub(super) trait Alike {
    /// Whether both are the same.
    fn is_like(&self, other: &Self) -> bool;
}

/// Sets a list to what was in it at the places of `origin`, or to something made anew: `make(desk, place)`. What is not wanted
/// any more is given up meanwhile: such things hold many small parts. At most `grain` are made at a time.
pub(super) fn renew<T: Alike + Send, W>(
    list: &mut Vec<T>,
    origin: &[u32],
    grain: usize,
    desk: impl Fn() -> W + Sync + Send,
    make: impl Fn(&mut W, usize) -> T + Sync + Send,
) {
    let mut old: Vec<Option<T>> = std::mem::take(list).into_iter().map(Some).collect();
    let kept: Vec<Option<T>> =
        origin.iter().map(|&place| old.get_mut(place as usize).and_then(Option::take)).collect();
    debug_assert!(
        kept.iter().enumerate().all(|(place, kept)| {
            kept.as_ref().is_none_or(|kept| kept.is_like(&make(&mut desk(), place)))
        })
    );
    let missing: Vec<usize> = (0..kept.len()).filter(|&place| kept[place].is_none()).collect();
    let new = missing.par_iter().with_max_len(grain).map_init(desk, |desk, &place| make(desk, place));
    let (made, ()) = rayon::join(|| new.collect::<Vec<T>>(), || drop(old));
    let mut made = made.into_iter();
    list.extend(kept.into_iter().map(|kept| kept.unwrap_or_else(|| made.next().expect("all are made"))));
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Alike for String {
        fn is_like(&self, _: &String) -> bool {
            // Words tell here in which step they were made.
            true
        }
    }

    /// Things are words, made of letters that have numbers too.
    #[test]
    fn what_is_wanted_again_is_kept_and_the_rest_is_made() {
        let (mut known, mut origin, mut list) = (Known::default(), Vec::new(), vec![String::new()]);
        let mut step = |name: &str, keys: &[[u32; 2]], earlier: &[u32]| {
            let mut wanted = Wanted::from(1);
            let numbers: Vec<u32> = keys.iter().map(|&key| wanted.number(key)).collect();
            let keys = wanted.trace(&mut known, &mut origin, |key| {
                let [a, b] = key.map(|number| earlier[number as usize]);
                (a != NEW && b != NEW).then_some([a, b])
            });
            let make = |(): &mut (), place: usize| format!("{name} {:?}", keys[place.max(1) - 1]);
            renew(&mut list, &origin, 1, || (), make);
            (numbers, list.clone(), origin.clone())
        };
        let (numbers, list, origin) = step("first", &[[1, 2], [2, 2], [1, 2]], &[0, NEW, NEW]);
        assert_eq!(numbers, [1, 2, 1]);
        assert_eq!(list, ["", "first [1, 2]", "first [2, 2]"]);
        assert_eq!(origin, [0, NEW, NEW]);
        // What was 2 is 1 now, and 2 is new.
        let (numbers, list, origin) = step("second", &[[1, 2], [1, 1]], &[0, 2, NEW]);
        assert_eq!(numbers, [1, 2]);
        assert_eq!(list, ["", "second [1, 2]", "first [2, 2]"]);
        assert_eq!(origin, [0, NEW, 2]);
    }
}
