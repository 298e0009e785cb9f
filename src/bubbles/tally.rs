//! Counting pairs and adding up per component, chunk by chunk.

/// How often each pair of numbers was met.
#[derive(Clone, Debug)]
pub struct Pairs {
    counts: Vec<(u64, u32)>,
}

/// Room at the start: enough for most scenes, so that counting asks for no memory.
const ROOM: usize = 256;
/// How many entries back a pair is looked for before it gets a new one.
const LOOK_BACK: usize = 4;

impl Default for Pairs {
    fn default() -> Self {
        Pairs { counts: Vec::with_capacity(ROOM) }
    }
}

impl Pairs {
    /// No pair met yet.
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Meets a pair `count` times. The same few pairs are mostly met many times in a row.
    #[inline]
    pub fn add(&mut self, a: u32, b: u32, count: u32) {
        let key = (a as u64) << 32 | b as u64;
        match self.counts.iter_mut().rev().take(LOOK_BACK).find(|entry| entry.0 == key) {
            Some(entry) => entry.1 += count,
            None => self.push(key, count),
        }
    }

    fn push(&mut self, key: u64, count: u32) {
        if self.counts.len() == self.counts.capacity() {
            // Most are repetitions; only a list that stays long gets more room.
            self.fold();
            if self.counts.len() > self.counts.capacity() / 2 {
                self.counts.reserve(self.counts.capacity());
            }
        }
        self.counts.push((key, count));
    }

    /// Takes over all pairs of others, and lists every pair once, sorted.
    pub fn merge<'a>(&mut self, others: impl Iterator<Item = &'a Pairs>) {
        self.counts.clear();
        others.for_each(|other| self.counts.extend_from_slice(&other.counts));
        self.fold();
    }

    /// All pairs with their counts; sorted after a merge.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.counts.iter().map(|&(key, count)| ((key >> 32) as u32, key as u32, count))
    }

    fn fold(&mut self) {
        self.counts.sort_unstable_by_key(|&(key, _)| key);
        self.counts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }
}
