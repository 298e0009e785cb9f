//! MacCormack's scheme (Selle et al. 2008): a semi-Lagrangian step along third-order paths, and one back that tells the
//! error, taken away where it makes no new extreme. Second order where the flow is smooth, and stable for any step.
//!
//! Whoever meets a velocity that is not a number keeps what it had.

use crate::grid::{
    Blocks, Field, Halo, SIDE, Stencil, for_each_block, halo_cells, load_halo, sample, stencil,
};
use crate::math::{power, unflatten};

/// How far a path may lead, in cells: whatever is faster comes from there.
const HALO: Halo = Halo::new(6);
const MOST: usize = halo_cells(HALO, 3);

/// Carries a velocity along with itself. `first` and `better` are scratch memory.
pub(super) fn advect<const D: usize>(
    blocks: &Blocks<D>,
    velocity: &mut [Field<f32>; D],
    first: &mut [Field<f32>; D],
    better: &mut [Field<f32>; D],
    cells_per_speed: f32,
) {
    let old = &*velocity;
    for_each_block(blocks.slots(), first.each_mut().map(Field::parts), |slot, first| {
        if let Some(around) = HaloVelocity::load(blocks, old, slot) {
            let axes = first.into_iter().enumerate();
            axes.for_each(|(axis, first)| around.semi_lagrangian(axis, -cells_per_speed, first));
        } else {
            first.into_iter().for_each(|first| first.fill(f32::NAN));
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
            around.correct(axis, cells_per_speed, &once, better);
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

    /// The value at every face of the block after one semi-Lagrangian step; `scale` is in cells per speed.
    fn semi_lagrangian(&self, axis: usize, scale: f32, out: &mut [f32]) {
        for (local, out) in out.iter_mut().enumerate() {
            let (x, own) = self.face(axis, local);
            *out = own;
            if let Some(from) = self.trace(x, scale) {
                let value = sample(&self.faces[axis], &from, axis, HALO);
                *out = if value.is_nan() { own } else { value };
            }
        }
    }

    /// The better value at every face, from the values `once` after the first step, with margins.
    fn correct(&self, axis: usize, scale: f32, once: &[f32], out: &mut [f32]) {
        for (local, out) in out.iter_mut().enumerate() {
            let (x, own) = self.face(axis, local);
            *out = once[index::<D>(local)];
            let ends = [scale, -scale].map(|scale| self.trace(x, scale));
            let [Some(to), Some(from)] = ends else { continue };
            let error = 0.5 * (own - sample(once, &to, axis, HALO));
            let [least, most] = self.range(axis, &from);
            if !(error + least + most).is_nan() {
                *out = (*out + error).clamp(least, most);
            }
        }
    }

    /// Place and value of a face of the block.
    fn face(&self, axis: usize, local: usize) -> ([f32; D], f32) {
        let cell = unflatten::<D>(local, SIDE);
        let x = std::array::from_fn(|k| cell[k] as f32 + if k == axis { 0.0 } else { 0.5 });
        (x, self.faces[axis][index::<D>(local)])
    }

    /// Where a path from `x` ends, by Ralston's third-order scheme; nowhere if it leaves what is known.
    fn trace(&self, x: [f32; D], scale: f32) -> Option<[f32; D]> {
        let along = |step: &[f32; D], share: f32| inside(std::array::from_fn(|k| x[k] + share * step[k]));
        let k1 = self.displacement(&inside(x), scale);
        let k2 = self.displacement(&along(&k1, 0.5), scale);
        let k3 = self.displacement(&along(&k2, 0.75), scale);
        let sum: [f32; D] = std::array::from_fn(|k| (2.0 * k1[k] + 3.0 * k2[k] + 4.0 * k3[k]) / 9.0);
        sum.iter().all(|step| step.is_finite()).then(|| along(&sum, 1.0))
    }

    /// How far the velocity at `x` leads, in cells.
    fn displacement(&self, x: &[f32; D], scale: f32) -> [f32; D] {
        std::array::from_fn(|k| scale * sample(&self.faces[k], x, k, HALO))
    }

    /// Smallest and largest of the values that one at `x` is interpolated from; not numbers if any is not.
    fn range(&self, axis: usize, x: &[f32; D]) -> [f32; 2] {
        let Stencil { base, .. } = stencil(x, axis, HALO);
        let (mut range, mut sum) = ([f32::INFINITY, f32::NEG_INFINITY], 0.0);
        for corner in 0..power(2, D) {
            let offset: usize = (0..D).map(|k| (corner >> k & 1) * HALO.stride(k)).sum();
            let value = self.faces[axis][base + offset];
            sum += value;
            range = [range[0].min(value), range[1].max(value)];
        }
        if f32::is_nan(sum) { [f32::NAN; 2] } else { range }
    }
}

/// Where a face of the block lies in the block with its margin.
fn index<const D: usize>(local: usize) -> usize {
    HALO.index(unflatten::<D>(local, SIDE).map(|c| c as i32))
}

/// Cuts a place to the box; what is not a number stays so in the end, as no velocity is known there.
fn inside<const D: usize>(x: [f32; D]) -> [f32; D] {
    x.map(|x| x.max(0.5 - HALO.margin as f32).min((HALO.side - HALO.margin) as f32 - 1.001))
}
