//! Which tiles the cells of a block lie beside.

use crate::linear::{Body, BodyPatch};

/// Faces of a tile beside the cells of some block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contact {
    pub tile: u32,
    /// Among all tiles' patches.
    pub patch: u32,
    /// The axis across the faces.
    pub axis: u8,
}

/// Those of all blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Contacts {
    /// Where those of each slot start.
    start: Vec<u32>,
    list: Vec<Contact>,
}

impl Contacts {
    /// Of some bodies, in so many slots.
    pub fn find<const D: usize>(&mut self, bodies: &[Body], patches: &[BodyPatch], slots: usize) {
        // A counting sort: while contacts are placed, `start[slot + 1]` is where the next one of `slot` goes.
        self.start.clear();
        self.start.resize(slots + 2, 0);
        for patch in patches {
            self.start[patch.slot as usize + 2] += 1;
        }
        for slot in 2..self.start.len() {
            self.start[slot] += self.start[slot - 1];
        }
        self.list.clear();
        self.list.resize(patches.len(), Contact::default());
        for (tile, body) in bodies.iter().enumerate() {
            for axis in 0..D {
                for patch in body.patches[axis]..body.patches[axis + 1] {
                    let next = &mut self.start[patches[patch as usize].slot as usize + 1];
                    self.list[*next as usize] = Contact { tile: tile as u32, patch, axis: axis as u8 };
                    *next += 1;
                }
            }
        }
        self.start.pop();
    }

    /// Those of a slot.
    pub fn of(&self, slot: usize) -> &[Contact] {
        &self.list[self.start[slot] as usize..self.start[slot + 1] as usize]
    }
}
