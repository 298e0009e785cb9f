//! Where the coefficients of a level come from: the caller's fields, or the sums made by coarsening.

use crate::grid::block_cells;

use super::system::System;

/// Coefficients per block of a level, in natural order. Block 0 is absent: all zero.
pub(super) trait Source<const D: usize>: Sync {
    /// Links to the low neighbours along an axis.
    fn link(&self, axis: usize, block: usize) -> &[f32];
    /// Grounds.
    fn ground(&self, block: usize) -> &[f32];
    /// Surfaces through which the grounds act.
    fn area(&self, block: usize) -> &[f32];
    /// Which cells are of the second material, if there are two.
    fn material(&self, block: usize) -> Option<&[bool]>;
}

/// The finest level: blocks are the live slots of a [`System`].
pub(super) struct Finest<'a, const D: usize>(pub &'a System<'a, D>);

impl<const D: usize> Finest<'_, D> {
    #[inline]
    fn slot(&self, block: usize) -> usize {
        if block == 0 { 0 } else { self.0.live.as_slice()[block - 1] as usize }
    }
}

impl<const D: usize> Source<D> for Finest<'_, D> {
    #[inline]
    fn link(&self, axis: usize, block: usize) -> &[f32] {
        self.0.link[axis].block(self.slot(block))
    }
    #[inline]
    fn ground(&self, block: usize) -> &[f32] {
        self.0.ground.block(self.slot(block))
    }
    #[inline]
    fn area(&self, block: usize) -> &[f32] {
        self.0.ground_area.block(self.slot(block))
    }
    #[inline]
    fn material(&self, block: usize) -> Option<&[bool]> {
        self.0.materials.map(|materials| materials.second.block(self.slot(block)))
    }
}

/// What a coarse cell is made of.
pub(super) mod kind {
    /// No node.
    pub const EMPTY: u8 = 0;
    /// One finer node.
    pub const SINGLE: u8 = 1;
    /// An aggregate of several finer nodes.
    pub const MERGED: u8 = 2;
    /// Needs the careful path: several nodes in this place.
    pub const CAREFUL: u8 = 4;
}

/// Coefficients of a coarse level: the Galerkin sums that coarsening makes.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// `D` arrays per block.
    pub link: Vec<f32>,
    pub ground: Vec<f32>,
    pub area: Vec<f32>,
    /// See [`kind`].
    pub kind: Vec<u8>,
    /// Empty unless there are two materials.
    pub material: Vec<bool>,
}

impl Sums {
    /// Makes room for a number of blocks; only the absent one is zero yet.
    pub fn reserve<const D: usize>(&mut self, blocks: usize) {
        let each = block_cells(D);
        for (values, block) in [(&mut self.link, D * each), (&mut self.ground, each), (&mut self.area, each)]
        {
            super::stencil::grow(values, blocks * block);
            values[..block].fill(0.0);
        }
        super::stencil::grow(&mut self.kind, blocks * each);
        self.kind[..each].fill(kind::EMPTY);
        self.material.clear();
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.link.capacity() + self.ground.capacity() + self.area.capacity()) * 4
            + self.kind.capacity()
            + self.material.capacity()
    }
}

impl<const D: usize> Source<D> for Sums {
    #[inline]
    fn link(&self, axis: usize, block: usize) -> &[f32] {
        let cells = block_cells(D);
        &self.link[(block * D + axis) * cells..(block * D + axis + 1) * cells]
    }
    #[inline]
    fn ground(&self, block: usize) -> &[f32] {
        &self.ground[block * block_cells(D)..(block + 1) * block_cells(D)]
    }
    #[inline]
    fn area(&self, block: usize) -> &[f32] {
        &self.area[block * block_cells(D)..(block + 1) * block_cells(D)]
    }
    #[inline]
    fn material(&self, block: usize) -> Option<&[bool]> {
        let cells = block_cells(D);
        (!self.material.is_empty()).then(|| &self.material[block * cells..(block + 1) * cells])
    }
}
