//! Which blocks a level has, and who is whose neighbour.

use crate::grid::{Blocks, Slots, VOID};
use crate::math::Side;

/// The blocks of one level, numbered from 1 in the order of their coordinates; 0 stands for all absent blocks.
#[derive(Clone, Debug)]
pub(super) struct Topology<const D: usize> {
    coords: Vec<[i32; D]>,
    /// Low and high neighbour along each axis.
    beside: Vec<[[u32; 2]; D]>,
    low: [i32; D],
    extent: [usize; D],
    lookup: Vec<u32>,
}

impl<const D: usize> Default for Topology<D> {
    fn default() -> Self {
        Topology { coords: Vec::new(), beside: Vec::new(), low: [0; D], extent: [0; D], lookup: Vec::new() }
    }
}

impl<const D: usize> Topology<D> {
    /// The live blocks of the finest level; `block_of` becomes the block of each slot.
    pub fn read(&mut self, blocks: &Blocks<D>, live: &Slots, block_of: &mut Vec<u32>) {
        block_of.clear();
        block_of.resize(blocks.slot_count(), 0);
        self.coords.clear();
        self.coords.push([i32::MIN; D]);
        for (index, &slot) in live.as_slice().iter().enumerate() {
            block_of[slot as usize] = index as u32 + 1;
            self.coords.push(blocks.coords(slot as usize));
        }
        self.beside.clear();
        self.beside.push([[0; 2]; D]);
        for &slot in live.as_slice() {
            self.beside.push(std::array::from_fn(|axis| {
                Side::BOTH.map(|side| match blocks.beside(slot as usize, axis, side) {
                    VOID => 0,
                    other => block_of[other as usize],
                })
            }));
        }
    }

    /// The blocks of half the resolution that cover those of `fine`; `parent` becomes the cover of each fine block.
    pub fn cover(&mut self, fine: &Topology<D>, parent: &mut Vec<u32>) {
        let halves = || fine.coords[1..].iter().map(|coords| coords.map(|c| c.div_euclid(2)));
        let low = halves().fold([i32::MAX; D], |low, c| std::array::from_fn(|a| low[a].min(c[a])));
        let high = halves().fold([i32::MIN; D], |high, c| std::array::from_fn(|a| high[a].max(c[a])));
        self.low = low;
        self.extent = std::array::from_fn(|a| (high[a] - low[a] + 1).max(0) as usize);
        self.lookup.clear();
        self.lookup.resize(self.extent.iter().product(), 0);
        for coords in halves() {
            let index = self.lookup_index(coords).expect("inside the box of all covers");
            self.lookup[index] = 1;
        }
        self.coords.clear();
        self.coords.push([i32::MIN; D]);
        for index in 0..self.lookup.len() {
            if self.lookup[index] != 0 {
                self.lookup[index] = self.coords.len() as u32;
                let mut rest = index;
                self.coords.push(std::array::from_fn(|axis| {
                    let c = rest % self.extent[axis];
                    rest /= self.extent[axis];
                    c as i32 + low[axis]
                }));
            }
        }
        self.beside.clear();
        self.beside.push([[0; 2]; D]);
        for block in 1..self.coords.len() {
            let coords = self.coords[block];
            self.beside.push(std::array::from_fn(|axis| {
                [-1, 1].map(|step| {
                    let mut next = coords;
                    next[axis] += step;
                    self.lookup_index(next).map_or(0, |index| self.lookup[index])
                })
            }));
        }
        parent.clear();
        parent.push(0);
        for coords in halves() {
            parent.push(self.lookup_index(coords).map_or(0, |index| self.lookup[index]));
        }
    }

    fn lookup_index(&self, coords: [i32; D]) -> Option<usize> {
        let mut index = 0;
        for axis in (0..D).rev() {
            let shifted = coords[axis] - self.low[axis];
            if shifted < 0 || shifted as usize >= self.extent[axis] {
                return None;
            }
            index = index * self.extent[axis] + shifted as usize;
        }
        Some(index)
    }

    /// The block at some coordinates, 0 if there is none. Only for covers.
    pub fn find(&self, coords: [i32; D]) -> usize {
        self.lookup_index(coords).map_or(0, |index| self.lookup[index] as usize)
    }

    /// How many blocks a field of this level holds, the absent one included.
    pub fn len(&self) -> usize {
        self.coords.len()
    }

    /// Coordinates of a block, in blocks of this level.
    pub fn coords(&self, block: usize) -> [i32; D] {
        self.coords[block]
    }

    /// Which of the 2^D parts of its cover a block is: 0 or 1 along each axis.
    #[inline]
    pub fn octant(&self, block: usize) -> [usize; D] {
        self.coords[block].map(|c| c.rem_euclid(2) as usize)
    }

    /// The neighbours of a block along each axis, low and high.
    #[inline]
    pub fn beside(&self, block: usize) -> &[[u32; 2]; D] {
        &self.beside[block]
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.coords.capacity() * size_of::<[i32; D]>()
            + self.beside.capacity() * size_of::<[[u32; 2]; D]>()
            + self.lookup.capacity() * 4
    }
}
