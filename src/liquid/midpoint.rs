//! The velocity that carries particles through a substep.
//!
//! A substep that moved particles with the velocity of its beginning would fall behind whatever accelerates: too far up
//! in free fall, and the liquid would gain energy from it. What the velocity will be half a substep later follows from
//! its change since the substep before (the second-order scheme of Adams and Bashforth). Both velocities are
//! divergence-free, hence so is the result; and where nothing changes, as in still water, nothing is added.

use macro_rules_attribute::apply;

use crate::grid::{Blocks, Field, for_each_block};
use crate::math::simd;

/// Turns `earlier`, the velocity of the substep before, into `now` and a share of the change since then: half the ratio
/// of the coming substep's length to the last one's gives the velocity in the coming one's middle.
///
/// At most `most` m/s are added: the sudden change of an impact does not go on. Nothing is added where `earlier` is
/// zero, which stands for faces that no liquid was near.
pub fn extrapolate_to_midpoint<const D: usize>(
    blocks: &Blocks<D>,
    now: &[Field<f32>; D],
    earlier: &mut [Field<f32>; D],
    share: f32,
    most: f32,
) {
    earlier.iter_mut().for_each(|field| field.resize(blocks.slot_count()));
    for_each_block(blocks.slots(), earlier.each_mut().map(Field::parts), |slot, earlier| {
        for (earlier, now) in earlier.into_iter().zip(now) {
            continue_change(earlier, now.block(slot), share, most);
        }
    });
}

/// Adds to the velocities of now a share of their change, and puts them in the place of the earlier ones.
#[apply(simd)]
fn continue_change(earlier: &mut [f32], now: &[f32], share: f32, most: f32) {
    for (earlier, &now) in earlier.iter_mut().zip(now) {
        let more = (share * (now - *earlier)).clamp(-most, most);
        *earlier = if *earlier == 0.0 { now } else { now + more };
    }
}
