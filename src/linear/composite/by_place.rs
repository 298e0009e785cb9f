//! Things sorted by where they are.

use rayon::prelude::*;

/// Items by place, for the places that have any.
#[derive(Clone, Debug, Default)]
pub(super) struct ByPlace<T> {
    /// Those places, in ascending order.
    pub places: Vec<u32>,
    /// Where the items of each start.
    start: Vec<u32>,
    items: Vec<T>,
    /// Working memory: where a place's next item goes.
    next: Vec<u32>,
}

impl<T: Copy + Default + Sync> ByPlace<T> {
    /// Takes items with their places, all below `len`. Those of one place keep their order.
    pub fn sort(&mut self, len: usize, items: impl Iterator<Item = (u32, T)> + Clone) {
        self.next.clear();
        self.next.resize(len, 0);
        for (place, _) in items.clone() {
            self.next[place as usize] += 1;
        }
        self.places.clear();
        self.start.clear();
        let mut end = 0;
        for (place, count) in self.next.iter_mut().enumerate().filter(|(_, count)| **count != 0) {
            self.places.push(place as u32);
            self.start.push(end);
            end += std::mem::replace(count, end);
        }
        self.start.push(end);
        self.items.resize(end as usize, T::default());
        for (place, item) in items {
            let next = &mut self.next[place as usize];
            self.items[*next as usize] = item;
            *next += 1;
        }
    }

    /// The items of one of the places.
    #[inline]
    pub fn of(&self, index: usize) -> &[T] {
        &self.items[self.start[index] as usize..self.start[index + 1] as usize]
    }

    /// Calls `work` with the index of every place; on several threads, `grain` at a time, if there are enough.
    pub fn each(&self, grain: usize, work: impl Fn(usize) + Sync + Send) {
        let count = self.places.len();
        if count > 2 * grain {
            (0..count).into_par_iter().with_min_len(grain).for_each(work);
        } else {
            (0..count).for_each(work);
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.places.capacity() + self.start.capacity() + self.next.capacity()) * 4
            + self.items.capacity() * size_of::<T>()
    }
}

/// What bodies have, one after the other; `start` becomes where each body's part across each axis starts, and where its
/// last one ends. A part comes with its ends.
pub(super) fn line_up<T>(parts: Vec<(Vec<T>, [u32; 4])>, all: &mut Vec<T>, start: &mut Vec<[u32; 4]>) {
    all.clear();
    start.clear();
    for (part, ends) in parts {
        let base = all.len() as u32;
        start.push(ends.map(|end| base + end));
        all.extend(part);
    }
}
