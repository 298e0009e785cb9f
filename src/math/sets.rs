//! Disjoint sets.

/// Sets of numbers that grow together. The smallest member stands for its set, so that the result does not depend on
/// the order of the unions.
#[derive(Clone, Debug, Default)]
pub struct Sets {
    parent: Vec<u32>,
}

impl Sets {
    /// `count` sets of one member each.
    pub fn reset(&mut self, count: usize) {
        self.parent.clear();
        self.parent.extend(0..count as u32);
    }

    /// Adds a set of one member.
    pub fn push(&mut self) -> u32 {
        self.parent.push(self.parent.len() as u32);
        self.parent.len() as u32 - 1
    }

    /// Members in all sets.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// The member that stands for a member's set.
    #[inline]
    pub fn find(&mut self, member: u32) -> u32 {
        let mut at = member;
        while self.parent[at as usize] != at {
            // Halve the path: later searches get shorter.
            self.parent[at as usize] = self.parent[self.parent[at as usize] as usize];
            at = self.parent[at as usize];
        }
        at
    }

    /// Makes one set of two.
    #[inline]
    pub fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        self.parent[a.max(b) as usize] = a.min(b);
    }
}
