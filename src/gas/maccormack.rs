//! MacCormack's scheme (Selle et al. 2008): a semi-Lagrangian step along third-order paths, and one back that tells the
//! error, taken away where it makes no new extreme. Second order where the flow is smooth, and stable for any step.
//!
//! Whoever meets a velocity that is not a number keeps what it had. The eight faces of a row are worked on side by side.

use crate::grid::{Blocks, Field, Halo, SIDE, for_each_block, halo_cells, load_halo};
use crate::liquid::{Job, LANES, Wide, dispatch, lane_sample, lane_stencil};
use crate::math::{power, unflatten};

/// How far a path may lead, in cells: whatever is faster comes from there.
const HALO: Halo = Halo::new(6);
const MOST: usize = halo_cells(HALO, 3);
/// The box of a block and its margin that has faces all around, in cells from the block's low corner.
const INSIDE: [f32; 2] = [0.5 - HALO.margin as f32, (HALO.side - HALO.margin) as f32 - 1.001];

const _: () = assert!(LANES == SIDE, "a row of faces is one group of lanes");

/// Carries a velocity along with itself. `first` and `better` are scratch memory.
pub(super) fn advect<const D: usize>(
    blocks: &Blocks<D>,
    velocity: &mut [Field<f32>; D],
    first: &mut [Field<f32>; D],
    better: &mut [Field<f32>; D],
    cells_per_speed: f32,
) {
    let old = &*velocity;
    for_each_block(blocks.slots(), first.each_mut().map(Field::parts), |slot, mut first| {
        match HaloVelocity::load(blocks, old, slot) {
            Some(around) => dispatch(Step { around: &around, scale: -cells_per_speed, out: &mut first }),
            None => first.into_iter().for_each(|first| first.fill(f32::NAN)),
        }
    });
    let first = &*first;
    for_each_block(blocks.slots(), better.each_mut().map(Field::parts), |slot, better| {
        let Some(around) = HaloVelocity::load(blocks, old, slot) else {
            return better.into_iter().for_each(|better| better.fill(f32::NAN));
        };
        for (axis, better) in better.into_iter().enumerate() {
            let mut once = [0f32; MOST];
            load_halo(blocks, &first[axis], slot, HALO, &mut once);
            dispatch(Correction { around: &around, axis, scale: cells_per_speed, once: &once, out: better });
        }
    });
    let better = &*better;
    for_each_block(blocks.slots(), velocity.each_mut().map(Field::parts), |slot, velocity| {
        velocity.into_iter().zip(better).for_each(|(to, from)| to.copy_from_slice(from.block(slot)));
    });
}

/// The velocities of a block and its margin.
struct HaloVelocity<const D: usize> {
    faces: [[f32; MOST]; D],
}

/// Where the paths from a row of faces end.
struct Ends<W: Wide, const D: usize> {
    x: [W::Eight; D],
    /// Zero, but no number where the path met what is not known.
    known: W::Eight,
}

impl<const D: usize> HaloVelocity<D> {
    /// Nothing if none of the block's own is known.
    fn load(blocks: &Blocks<D>, velocity: &[Field<f32>; D], slot: usize) -> Option<Self> {
        if velocity.iter().all(|field| field.block(slot).iter().all(|u| u.is_nan())) {
            return None;
        }
        let mut faces = [[0f32; MOST]; D];
        for (field, faces) in velocity.iter().zip(&mut faces) {
            load_halo(blocks, field, slot, HALO, faces);
        }
        Some(HaloVelocity { faces })
    }

    /// The values at the faces of a row.
    #[inline(always)]
    fn row(&self, axis: usize, row: usize) -> [f32; SIDE] {
        let at = place_of_row::<D>(row);
        std::array::from_fn(|x| self.faces[axis][at + x])
    }

    /// Where paths from a row of faces end, by Ralston's third-order scheme; `scale` is in cells per speed.
    #[inline(always)]
    fn trace<W: Wide>(&self, axis: usize, row: usize, scale: f32) -> Ends<W, D> {
        let cell = unflatten::<D>(row * SIDE, SIDE);
        let x: [W::Eight; D] = std::array::from_fn(|k| {
            let middle = if k == axis { 0.0 } else { 0.5 };
            match k {
                0 => W::load(&std::array::from_fn(|lane| lane as f32 + middle)),
                _ => W::splat(cell[k] as f32 + middle),
            }
        });
        let along = |step: &[W::Eight; D], share: f32| -> [W::Eight; D] {
            std::array::from_fn(|k| W::within(x[k] + W::splat(share) * step[k], INSIDE[0], INSIDE[1]))
        };
        let k1 = self.displacement::<W>(&x, scale);
        let k2 = self.displacement::<W>(&along(&k1, 0.5), scale);
        let k3 = self.displacement::<W>(&along(&k2, 0.75), scale);
        // What is not a number was cut to the box on its way: but the sum tells.
        let sum: [W::Eight; D] = std::array::from_fn(|k| {
            W::splat(2.0 / 9.0) * k1[k] + W::splat(3.0 / 9.0) * k2[k] + W::splat(4.0 / 9.0) * k3[k]
        });
        let known = sum.iter().fold(W::splat(0.0), |known, step| known + W::splat(0.0) * *step);
        Ends { x: along(&sum, 1.0), known }
    }

    /// How far the velocity at places leads, in cells.
    #[inline(always)]
    fn displacement<W: Wide>(&self, x: &[W::Eight; D], scale: f32) -> [W::Eight; D] {
        std::array::from_fn(|k| W::splat(scale) * lane_sample::<W, D, MOST>(&self.faces[k], x, k, HALO))
    }
}

/// A semi-Lagrangian step of all faces of a block.
struct Step<'a, 'o, const D: usize> {
    around: &'a HaloVelocity<D>,
    /// Cells per speed.
    scale: f32,
    out: &'a mut [&'o mut [f32]; D],
}

impl<const D: usize> Job for Step<'_, '_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let Step { around, scale, out } = self;
        for (axis, out) in out.iter_mut().enumerate() {
            for (row, out) in out.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
                let ends = around.trace::<W>(axis, row, scale);
                let value = lane_sample::<W, D, MOST>(&around.faces[axis], &ends.x, axis, HALO);
                let (value, own) = (W::store(value + ends.known), around.row(axis, row));
                for x in 0..SIDE {
                    out[x] = if value[x].is_nan() { own[x] } else { value[x] };
                }
            }
        }
    }
}

/// The better values of a block's faces across an axis.
struct Correction<'a, const D: usize> {
    around: &'a HaloVelocity<D>,
    axis: usize,
    /// Cells per speed.
    scale: f32,
    /// Values after the first step, with margins.
    once: &'a [f32; MOST],
    out: &'a mut [f32],
}

impl<const D: usize> Job for Correction<'_, D> {
    #[inline(always)]
    fn run<W: Wide>(self) {
        let Correction { around, axis, scale, once, out } = self;
        for (row, out) in out.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
            let [to, from] = [scale, -scale].map(|scale| around.trace::<W>(axis, row, scale));
            let back = lane_sample::<W, D, MOST>(once, &to.x, axis, HALO);
            let back = W::store(back + (to.known + from.known));
            let (own, at) = (around.row(axis, row), place_of_row::<D>(row));
            let [least, most, known] = range_of::<W, D>(&around.faces[axis], &from.x, axis);
            for x in 0..SIDE {
                let value = once[at + x];
                let error = 0.5 * (own[x] - back[x]);
                let better = value + error;
                let better = if better > most[x] { most[x] } else { better };
                let better = if better < least[x] { least[x] } else { better };
                out[x] = if (error + known[x]).is_nan() { value } else { better };
            }
        }
    }
}

/// Smallest and largest of the values that those at `x` are interpolated from, and zero, or no number if any is none.
#[inline(always)]
fn range_of<W: Wide, const D: usize>(
    values: &[f32; MOST],
    x: &[W::Eight; D],
    axis: usize,
) -> [[f32; SIDE]; 3] {
    let base = lane_stencil::<W, D>(x, axis, HALO).base;
    let [mut least, mut most, mut known] = [[f32::INFINITY; SIDE], [f32::NEG_INFINITY; SIDE], [0.0; SIDE]];
    for corner in 0..power(2, D - 1) {
        let offset: usize = (1..D).map(|k| (corner >> (k - 1) & 1) * HALO.stride(k)).sum();
        let (low, high) = W::apart(W::pairs(values, base, offset as u32));
        for values in [W::store(low), W::store(high)] {
            for x in 0..SIDE {
                least[x] = if values[x] < least[x] { values[x] } else { least[x] };
                most[x] = if values[x] > most[x] { values[x] } else { most[x] };
                known[x] += 0.0 * values[x];
            }
        }
    }
    [least, most, known]
}

/// Where a row of the block begins in the block with its margin.
#[inline(always)]
fn place_of_row<const D: usize>(row: usize) -> usize {
    HALO.index(unflatten::<D>(row * SIDE, SIDE).map(|c| c as i32))
}
