//! Interning cache: values that many blocks share are built once, and carried from step to step while they are in use.
//!
//! Deep in tiled liquid little changes from one step to the next. A value is known by its key, and keys are made of the indices
//! of other values, which change from step to step: so the index of each value in the step before is kept too.

use std::collections::HashMap;
use std::hash::Hash;

use rayon::prelude::*;

/// Indices of values by key. Keys are long: the hash of the standard library takes its time.
pub(super) type KeyIndex<K> = HashMap<K, u32, foldhash::fast::FixedState>;

/// Stands for the index, in the step before, of a value that was not there.
pub(super) const NEW: u32 = u32::MAX;

/// The keys of a step, indexed in the order in which they were first met.
pub(super) struct Interner<K> {
    known: KeyIndex<K>,
    keys: Vec<K>,
    first: u32,
}

impl<K: Hash + Eq + Clone> Interner<K> {
    /// No keys yet; indices begin with `first`.
    pub fn from(first: u32) -> Self {
        Interner { known: KeyIndex::default(), keys: Vec::new(), first }
    }

    /// The index of a key.
    pub fn intern(&mut self, key: K) -> u32 {
        let next = self.first + self.keys.len() as u32;
        *self.known.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            next
        })
    }

    /// An index of its own for a key that will not be met again, neither in this step nor in the next.
    pub fn intern_unique(&mut self, key: K) -> u32 {
        self.keys.push(key);
        self.first + self.keys.len() as u32 - 1
    }

    /// The keys in order. Sets `previous` to the index of each in the step before, where `known` has it under
    /// `previous_key(key)`; and `known` to the keys of this step.
    pub fn match_previous(
        self,
        known: &mut KeyIndex<K>,
        previous: &mut Vec<u32>,
        previous_key: impl Fn(&K) -> Option<K>,
    ) -> Vec<K> {
        let find = |key: &K| previous_key(key).and_then(|key| known.get(&key).copied()).unwrap_or(NEW);
        previous.clear();
        previous.extend(0..self.first);
        previous.extend(self.keys.iter().map(find));
        *known = self.known;
        self.keys
    }
}

/// A value that can be compared with what would be built instead of it, for checks in unoptimised builds.
pub(super) trait SameContent {
    /// Whether both have the same content.
    fn is_same_as(&self, other: &Self) -> bool;
}

/// Sets a list to the values it had at the indices of `previous`, or to values made anew by `make(scratch, index)`, at most
/// `grain` at a time on a thread. Values no longer in use are dropped meanwhile: they hold many small parts.
pub(super) fn rebuild<T: SameContent + Send, W>(
    list: &mut Vec<T>,
    previous: &[u32],
    grain: usize,
    scratch: impl Fn() -> W + Sync + Send,
    make: impl Fn(&mut W, usize) -> T + Sync + Send,
) {
    let mut old: Vec<Option<T>> = std::mem::take(list).into_iter().map(Some).collect();
    let kept: Vec<Option<T>> =
        previous.iter().map(|&place| old.get_mut(place as usize).and_then(Option::take)).collect();
    debug_assert!(kept.iter().enumerate().all(|(place, kept)| {
        kept.as_ref().is_none_or(|kept| kept.is_same_as(&make(&mut scratch(), place)))
    }));
    let missing: Vec<usize> = (0..kept.len()).filter(|&place| kept[place].is_none()).collect();
    let new =
        missing.par_iter().with_max_len(grain).map_init(scratch, |scratch, &place| make(scratch, place));
    let (made, ()) = rayon::join(|| new.collect::<Vec<T>>(), || drop(old));
    let mut made = made.into_iter();
    list.extend(kept.into_iter().map(|kept| kept.unwrap_or_else(|| made.next().expect("all are made"))));
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SameContent for String {
        fn is_same_as(&self, _: &String) -> bool {
            // Words tell here in which step they were made.
            true
        }
    }

    /// Things are words, made of letters that have numbers too.
    #[test]
    fn values_in_use_are_kept_and_the_rest_is_made() {
        let (mut known, mut previous, mut list) = (KeyIndex::default(), Vec::new(), vec![String::new()]);
        let mut step = |name: &str, keys: &[[u32; 2]], previous_key: &[u32]| {
            let mut interner = Interner::from(1);
            let numbers: Vec<u32> = keys.iter().map(|&key| interner.intern(key)).collect();
            let keys = interner.match_previous(&mut known, &mut previous, |key| {
                let [a, b] = key.map(|number| previous_key[number as usize]);
                (a != NEW && b != NEW).then_some([a, b])
            });
            let make = |(): &mut (), place: usize| format!("{name} {:?}", keys[place.max(1) - 1]);
            rebuild(&mut list, &previous, 1, || (), make);
            (numbers, list.clone(), previous.clone())
        };
        let (numbers, list, previous) = step("first", &[[1, 2], [2, 2], [1, 2]], &[0, NEW, NEW]);
        assert_eq!(numbers, [1, 2, 1]);
        assert_eq!(list, ["", "first [1, 2]", "first [2, 2]"]);
        assert_eq!(previous, [0, NEW, NEW]);
        // What was 2 is 1 now, and 2 is new.
        let (numbers, list, previous) = step("second", &[[1, 2], [1, 1]], &[0, 2, NEW]);
        assert_eq!(numbers, [1, 2]);
        assert_eq!(list, ["", "second [1, 2]", "first [2, 2]"]);
        assert_eq!(previous, [0, NEW, 2]);
    }
}
