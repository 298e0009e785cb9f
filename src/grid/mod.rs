//! The sparse staggered grid: space is cut into blocks of 8 cells a side, and only the blocks near the liquid
//! are stored and swept, so that cost follows the liquid and not the domain.
//!
//! * [`Grid`]: size of the domain in cells, and the cell width.
//! * [`Blocks`]: which blocks are active, and who is whose neighbour.
//! * [`Field`]: one value per cell (or per low face, or per low corner) of every active block.
//! * [`CellSet`]: some of those cells.
//! * [`FaceMask`] with [`extrapolate()`]: known face velocities spread into unknown faces; [`sample`] interpolates.
//! * [`Slots`] with [`for_each_block`]: deterministic parallel sweeps. [`lead`] makes short ones cheap.
//!
//! A face carries the index of the cell on its positive side, a corner that of the cell at whose low end it is.

mod blocks;
mod cells;
mod chunks;
mod disjoint;
mod extent;
mod extrapolate;
mod face;
mod field;
mod halo;
mod interpolate;
pub mod masks;
mod sweep;
mod team;

pub use blocks::{Activation, Blocks, VOID, across};
pub use cells::CellSet;
pub use chunks::{CHUNKS, for_each_block_collecting};
pub use disjoint::DisjointMut;
pub use extent::Grid;
pub use extrapolate::{ExtrapolateScratch, FaceMask, extrapolate, mask_parts};
pub use face::Face;
pub use field::{Blockwise, Field, Parts};
pub use halo::{Halo, halo_cells, load_halo};
pub use interpolate::{Stencil, row_weight, sample, stencil};
pub use sweep::{Slots, for_each_block, sum_over_blocks};
pub use team::{alone, lead, share};

/// Cells along one side of a block.
pub const SIDE: usize = 8;

/// Blocks start this many cells before the domain, and reach as many past its end: the layers around the domain that
/// walls, open sides and extrapolation need are stored in the blocks at its edge.
pub const PAD: i32 = 4;

/// Cells in a block.
#[inline]
pub const fn block_cells(dimension: usize) -> usize {
    crate::math::power(SIDE, dimension)
}
