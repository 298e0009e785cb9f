//! Which tiles the cells of a block lie beside.

use crate::linear::{Body, BodyPatch};
use crate::math::sort_by_group;

/// Faces of a tile beside the cells of some block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Contact {
    pub tile: u32,
    /// Among all tiles' patches.
    pub patch: u32,
    /// The axis across the faces.
    pub axis: u8,
}

/// Contacts of all blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Contacts {
    /// Where the contacts of each slot start.
    start: Vec<u32>,
    list: Vec<Contact>,
}

impl Contacts {
    /// Finds the contacts of some bodies, on a grid with `slots` blocks.
    pub fn find<const D: usize>(&mut self, bodies: &[Body], patches: &[BodyPatch], slots: usize) {
        self.list.clear();
        self.list.resize(patches.len(), Contact::default());
        let contacts = bodies.iter().zip(0..).flat_map(|(body, tile)| {
            (0..D).flat_map(move |axis| {
                let patches = body.patches[axis]..body.patches[axis + 1];
                patches.map(move |patch| Contact { tile, patch, axis: axis as u8 })
            })
        });
        let slot = |contact: &Contact| patches[contact.patch as usize].slot;
        sort_by_group(&mut self.start, slots, contacts, slot, |at, contact| self.list[at] = contact);
    }

    /// Contacts of a slot.
    pub fn of(&self, slot: usize) -> &[Contact] {
        &self.list[self.start[slot] as usize..self.start[slot + 1] as usize]
    }
}
