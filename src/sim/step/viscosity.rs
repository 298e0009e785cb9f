//! What viscosity does to the velocities of a substep.

use crate::linear::StoppingRule;
use crate::math::Real;
use crate::sim::{Params, Scratch, State};
use crate::viscosity::{EarlierPressure, Problem, Solved, diffuse};

use super::GridPass;
use super::projection::downward;

/// Residual of the viscous step that is small enough, relative to the stress it starts from.
const TOLERANCE: Real = 1e-4;
/// Stress too small to care about, relative to the fastest face: velocities are kept in single precision.
const FLOOR: Real = 1e-7;
/// The most that motion spreads in a substep: a thousand cells, where all moves as one. The cycle works in single precision.
const MOST_SPREAD: Real = 1e6;
/// Iterations with multigrid after which the diagonal takes over: sheets and threads of few cells are small problems.
const MOST_CYCLES: usize = 40;

/// Lets viscosity act on the velocities before they are projected. Does nothing, and costs nothing, if there is none.
pub(super) fn apply_viscosity<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    pass: &GridPass<'_>,
) -> Option<Solved> {
    // Before the first substep there is a projection that belongs to none.
    if params.viscosity == 0.0 || pass.air_dt == 0.0 {
        scratch.viscosity.clear();
        return None;
    }
    let (dt, fall) = (pass.length.dt, pass.gravity * pass.length.dt);
    let State { blocks, walls, surface, velocity, pressure, max_component, time, .. } = state;
    let factor = pressure.factor_for(blocks, dt);
    let problem = Problem {
        blocks,
        boundary: &scratch.boundary,
        walls,
        surface,
        label: &scratch.projection.label,
        gravity: downward(fall),
        earlier: factor.map(|factor| EarlierPressure { q: &pressure.q, factor }),
        alpha: params.viscous_spread(blocks.grid().dx, dt).min(MOST_SPREAD),
        time: *time,
    };
    let rule = StoppingRule {
        tolerance: TOLERANCE,
        floor: FLOOR * (*max_component + fall),
        max_iterations: params.max_iterations as usize,
        fallback_after: Some(MOST_CYCLES),
        ..StoppingRule::default()
    };
    Some(diffuse(velocity, &problem, &rule, &mut scratch.viscosity, Some(pass.stop)))
}

/// Share of FLIP when velocities return to the particles. What viscosity smooths on the grid would live on in the differences
/// between particles, which the grid does not see.
pub(super) fn flip_share(params: &Params, dx: Real, dt: Real) -> f32 {
    (params.flip * (-4.0 * params.viscous_spread(dx, dt)).exp()) as f32
}
