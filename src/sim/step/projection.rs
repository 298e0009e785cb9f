//! The projection of a substep: unknowns, the air's momentum, and what the solver is told.

use crate::linear::SolverParams;
use crate::math::Real;
use crate::pressure::{self, BodyProvider, LetGo, Problem, RigidBodies, RigidMotion, Solved};
use crate::sim::bodies::take_motions;
use crate::sim::contacts::{ContactPlan, ContactStep, plan_contacts, plan_joints};
use crate::sim::{Params, Scratch, State};

use super::tiles::tile_rules;
use super::{GridPass, StepLength};

/// Carries the air's velocity through the substep, if air has mass; `velocity` is free before and afterwards.
pub(super) fn advect_gas<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    dt: Real,
) {
    let State { gas, blocks, velocity, earlier, .. } = state;
    if !params.model.has_gas() {
        return gas.clear();
    }
    for field in velocity.iter_mut().chain(&mut *earlier) {
        field.resize(blocks.slot_count());
        blocks.fresh().iter().for_each(|&slot| field.block_mut(slot as usize).fill(0.0));
    }
    scratch.resize(blocks.slot_count());
    if gas.resize(blocks, earlier) {
        gas.advect(blocks, &mut scratch.before, velocity, dt);
    }
}

/// Finds the cells that have a pressure.
pub(super) fn find_unknowns<const D: usize>(state: &State<D>, scratch: &mut Scratch<D>) {
    let roles = state.component_roles.roles(&scratch.air.components);
    pressure::find_unknowns(&state.blocks, &roles, &mut scratch.projection);
}

pub(super) fn project<const D: usize>(
    state: &mut State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    pass: &GridPass<'_>,
) -> Solved {
    let &GridPass { length: StepLength { dt, .. }, gravity, stop, .. } = pass;
    let is_step = pass.air_dt > 0.0;
    let plan = plan_contacts_of(state, params, scratch, is_step.then_some(dt));
    let solver = solver_params(params, state.blocks.grid().dx, dt);
    state.hands.note_forces(&plan.hands);
    let State {
        blocks, walls, surface, velocity, pressure, tiles, tracker, component_roles, gas, time, ..
    } = state;
    let Scratch { boundary, air, projection, valid, .. } = scratch;
    let problem = Problem {
        blocks,
        boundary,
        walls,
        surface,
        impulse: downward(gravity * dt),
        roles: component_roles.roles(&air.components),
        let_go: let_go(params, blocks.grid().dx, dt),
        time: *time,
    };
    let has_gas = problem.roles.has_gas();
    if has_gas {
        pressure::mix_velocities(&problem, projection, &gas.velocity, velocity);
    }
    let mut rigid = walls
        .has_bodies()
        .then(|| RigidBodies::new(walls, params.density, problem.time, &plan.impulses, &plan.holds));
    let mut bodies: Vec<&mut dyn BodyProvider<D>> = Vec::new();
    bodies.extend(rigid.as_mut().map(|rigid| rigid as &mut dyn BodyProvider<D>));
    let solved = pressure::project(
        velocity,
        valid,
        &problem,
        &solver,
        pressure,
        projection,
        &mut bodies,
        dt,
        Some(stop),
    );
    if has_gas {
        pressure::separate_velocities(&problem, projection, velocity, valid, &mut gas.velocity);
    }
    air.note_pressures(tracker, component_roles, blocks, projection, pressure);
    let motions: Vec<RigidMotion> = rigid.iter().flat_map(RigidBodies::motions).collect();
    take_motions(walls, &motions, &plan.holds, is_step.then_some(dt));
    tiles.note(tile_rules(params), projection.tiling.as_deref());
    solved
}

/// How liquid may leave walls in a substep of `dt` seconds.
fn let_go(params: &Params, dx: Real, dt: Real) -> Option<LetGo> {
    params.lets_go().then(|| LetGo {
        suction: params.suction * dt / (params.density * dx),
        needs_air: params.keeps_air(),
    })
}

/// What bodies touch in a substep, are tied to and held by, and which of that holds; of a projection that belongs to none, only joints.
fn plan_contacts_of<const D: usize>(
    state: &State<D>,
    params: &Params,
    scratch: &mut Scratch<D>,
    dt: Option<Real>,
) -> ContactPlan {
    let State { walls, joints, hands, time, blocks, .. } = state;
    if !walls.has_bodies() {
        return ContactPlan::default();
    }
    let Some(dt) = dt else { return plan_joints(walls, joints, *time) };
    let (dx, &Params { gravity, density, .. }) = (blocks.grid().dx, params);
    plan_contacts(
        walls,
        joints,
        hands.grips(),
        &mut scratch.contacts,
        &ContactStep { time: *time, dt, dx, gravity, density },
    )
}

/// What the parameters mean to the linear solver in a substep of `dt` seconds.
pub(in crate::sim) fn solver_params(params: &Params, dx: Real, dt: Real) -> SolverParams {
    SolverParams {
        tolerance: params.tolerance,
        // The residual is a net outflow in m/s; over dx and times dt it is the compression in this substep.
        floor: params.tolerance_floor * dx / dt,
        max_iterations: params.max_iterations as usize,
        preconditioner: params.preconditioner,
        sweeps: params.sweeps as usize,
        warm_start: params.warm_start,
    }
}

pub(super) fn downward<const D: usize>(amount: Real) -> [Real; D] {
    std::array::from_fn(|axis| if axis == 1 { -amount } else { 0.0 })
}
