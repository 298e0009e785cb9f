//! Grid to particles.

use rayon::prelude::*;

use crate::grid::{Blocks, DisjointMut, Field, halo_cells, load_halo};

use super::super::affine_cells::{AffineCells, each_stretch};
use super::super::kernel::{
    LaneStencil, lane_slope, lane_stencil, lane_value, load_vectors, relative, store_lanes, store_vectors,
};
use super::super::lanes::{Job, LANES, Wide, dispatch};
use super::super::{CellRanges, Particles};
use super::{HALO, MOST};

/// Gives the particles their new velocities: the share `flip` keeps each particle's own velocity and adds the
/// grid's change since `before`, the rest takes the grid's velocity and its gradient (APIC). `affine(slot)` says where
/// in a block `velocity` is an affine field.
pub fn grid_to_particles<const D: usize>(
    particles: &mut Particles<D>,
    ranges: &CellRanges,
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    before: &[Field<f32>; D],
    flip: f32,
    affine: impl Fn(usize) -> Option<AffineCells<D>> + Sync,
) {
    let out = ParticleOut::new(&mut particles.velocity, &mut particles.affine);
    let position = &particles.position;
    // The room for a block's faces is made once for many.
    let no_faces = || [[0f32; MOST]; D];
    let room = || (no_faces(), no_faces());
    blocks.slots().as_slice().par_iter().with_min_len(2).for_each_init(room, |(now, gain), &slot| {
        let (slot, out) = (slot as usize, &out);
        if ranges.of_block(slot).is_empty() {
            return;
        }
        // The share `flip` of a particle's new velocity is its own and the grid's change, the rest the grid's velocity:
        // all but its own is one field, `gain`.
        for axis in 0..D {
            load_halo(blocks, &velocity[axis], slot, HALO, &mut now[axis]);
            load_halo(blocks, &before[axis], slot, HALO, &mut gain[axis]);
            for (gain, now) in gain[axis].iter_mut().zip(&now[axis]).take(const { halo_cells(HALO, D) }) {
                *gain = now - flip * *gain;
            }
        }
        let first_cell = blocks.first_cell(slot).map(|c| c as f32);
        let affine = affine(slot);
        let slope = affine.as_ref().map(|affine| affine.packed_slope(1.0 - flip));
        each_stretch(ranges, slot, affine.as_ref().map(|affine| &affine.cells), |range, is_affine| {
            // SAFETY: blocks have disjoint ranges of particles.
            let (velocity, affine) = unsafe { out.range(range.clone()) };
            let position = &position[range];
            let gather = Gather { position, velocity, affine, first_cell, gain: &*gain, flip };
            match slope.filter(|_| is_affine) {
                Some(slope) => dispatch(GatherAffine { gather, slope }),
                None => dispatch(GatherBoth { gather, now: &*now }),
            }
        });
    });
}

/// Gives new particles, in disjoint ranges by the block they lie in, the grid's velocity and its gradient.
pub(in super::super) fn gather_new<const D: usize>(
    particles: &mut Particles<D>,
    ranges: impl IndexedParallelIterator<Item = (usize, std::ops::Range<usize>)>,
    blocks: &Blocks<D>,
    velocity: &[Field<f32>; D],
    flip: f32,
) {
    let out = ParticleOut::new(&mut particles.velocity, &mut particles.affine);
    let position = &particles.position;
    ranges.for_each(|(slot, range)| {
        let out = &out;
        let mut now = [[0f32; MOST]; D];
        for axis in 0..D {
            load_halo(blocks, &velocity[axis], slot, HALO, &mut now[axis]);
        }
        // SAFETY: the ranges are disjoint.
        let (velocity, affine) = unsafe { out.range(range.clone()) };
        // They have no velocity to keep a share of: all of it is the grid's.
        velocity.fill([0.0; D]);
        let first_cell = blocks.first_cell(slot).map(|c| c as f32);
        let position = &position[range];
        let gather = Gather { position, velocity, affine, first_cell, gain: &now, flip };
        dispatch(GatherBoth { gather, now: &now });
    });
}

/// The particles' arrays, written by several threads in disjoint ranges.
struct ParticleOut<'a, const D: usize> {
    velocity: DisjointMut<'a, [f32; D]>,
    affine: [DisjointMut<'a, [u16; D]>; D],
}

impl<'a, const D: usize> ParticleOut<'a, D> {
    fn new(velocity: &'a mut [[f32; D]], affine: &'a mut [Vec<[u16; D]>; D]) -> Self {
        ParticleOut {
            velocity: DisjointMut::new(velocity),
            affine: affine.each_mut().map(|row| DisjointMut::new(row)),
        }
    }

    /// # Safety
    /// The range must be inside the arrays and overlap no other one in use.
    unsafe fn range(&self, range: std::ops::Range<usize>) -> (&'a mut [[f32; D]], [&'a mut [[u16; D]]; D]) {
        // SAFETY: by the caller's promise.
        unsafe {
            (self.velocity.range(range.clone()), self.affine.each_ref().map(|row| row.range(range.clone())))
        }
    }
}

/// Interpolates at some of a block's particles.
struct Gather<'a, const D: usize> {
    position: &'a [[f32; D]],
    velocity: &'a mut [[f32; D]],
    affine: [&'a mut [[u16; D]]; D],
    first_cell: [f32; D],
    gain: &'a [[f32; MOST]; D],
    flip: f32,
}

impl<const D: usize> Gather<'_, D> {
    /// Sets velocities to what the grid gives and the share of their own, and gradients to what `slope(axis, place)`
    /// finds.
    #[inline(always)]
    fn run<W: Wide>(self, slope: impl Fn(usize, &LaneStencil<W, D>) -> [[u16; LANES]; D]) {
        let Gather { position, velocity, affine, first_cell, gain, flip } = self;
        let chunks = position.chunks(LANES).zip(velocity.chunks_mut(LANES)).enumerate();
        for (chunk, (position, velocity)) in chunks {
            let x = relative::<W, D>(&load_vectors::<W, D>(position), &first_cell);
            let mut own = load_vectors::<W, D>(velocity);
            for axis in 0..D {
                let at = lane_stencil::<W, D>(&x, axis, HALO);
                let gained = lane_value::<W, D, MOST>(&gain[axis], &at, HALO);
                own[axis] = W::splat(flip) * own[axis] + gained;
                store_lanes(&slope(axis, &at), &mut affine[axis][chunk * LANES..][..position.len()]);
            }
            store_vectors::<W, D>(&own, velocity);
        }
    }
}

/// The velocity and its gradient.
struct GatherBoth<'a, const D: usize> {
    gather: Gather<'a, D>,
    now: &'a [[f32; MOST]; D],
}

impl<const D: usize> Job for GatherBoth<'_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let GatherBoth { gather, now } = self;
        let share = W::splat(1.0 - gather.flip);
        gather.run::<W>(
            #[inline(always)]
            |axis, at| {
                let slope = lane_slope::<W, D, MOST>(&now[axis], at, HALO);
                let mut packed = [[0; LANES]; D];
                for k in 0..D {
                    packed[k] = W::pack(share * slope[k]);
                }
                packed
            },
        );
    }
}

/// The velocity, where its gradient is the same everywhere.
struct GatherAffine<'a, const D: usize> {
    gather: Gather<'a, D>,
    slope: [[u16; D]; D],
}

impl<const D: usize> Job for GatherAffine<'_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let slope = self.slope.map(|row| row.map(|slope| [slope; LANES]));
        self.gather.run::<W>(
            #[inline(always)]
            |axis, _| slope[axis],
        );
    }
}
