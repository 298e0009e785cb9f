//! The V-cycle: an approximate inverse that is linear, symmetric and positive.

use super::coarsest::Coarsest;
use super::level::Level;
use super::transfer;

/// Sets the first level's `x` from its `b`.
pub(super) fn cycle<const D: usize>(levels: &mut [Level<D>], coarsest: &mut Coarsest, sweeps: usize) {
    let Some((fine, rest)) = levels.split_first_mut() else { return };
    let Some(coarse) = rest.first_mut() else {
        coarsest.solve(fine);
        return;
    };
    fine.sweep_down(sweeps);
    transfer::restrict(fine, coarse);
    cycle(rest, coarsest, sweeps);
    transfer::prolong(fine, &rest[0]);
    fine.sweep_up(sweeps);
    fine.explicit.restore_base(&mut fine.b);
}
