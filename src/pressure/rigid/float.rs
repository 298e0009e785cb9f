//! Archimedes: what the discrete lift of a body lacks.

use crate::geometry::fraction::{positive_segment, positive_square};
use crate::geometry::{Body, MOST_MOTIONS, Nearness, PosedSolid, Twist, motions};
use crate::grid::{Face, SIDE, block_cells};
use crate::math::{Real, Side, Vector, power, unflatten};

use super::super::bodies::{CoupledSystem, Solution, cell_below};
use super::super::walls::face_centre;
use super::{Member, Moved, RigidBodies};

/// How fast pressure grows downwards around a body, over what it does in liquid at rest.
pub(super) fn gauge<const D: usize>(member: &Member, solution: &Solution<'_, D>) -> Real {
    let (mut sum, mut weight) = (0.0, 0.0);
    for &(low, high, share) in &member.gauge {
        sum += share * (solution.q[low] - solution.q[high]);
        weight += share;
    }
    let fall = -solution.impulse[UP];
    if fall > 0.0 && weight > 0.0 { (sum / (weight * fall)).clamp(0.0, 2.0) } else { member.rest }
}

/// What still liquid does to a body.
pub(super) struct Floating {
    /// What the discrete lift lacks, in the units of the solve.
    pub lift: Twist,
    /// Share of the volume under liquid.
    pub submerged: Real,
    pub rest: Real,
    pub gauge: Vec<(usize, usize, f64)>,
}

/// The axis that gravity points down along.
const UP: usize = 1;

/// Finds what the lift of a body lacks.
pub(super) fn float<const D: usize>(
    of: &RigidBodies<'_, D>,
    index: usize,
    faces: &[Moved],
    to: &CoupledSystem<'_, D>,
) -> Floating {
    let problem = to.problem;
    let (blocks, dx) = (problem.blocks, problem.blocks.grid().dx);
    let member = &of.bodies[index];
    let body = of.body(member);
    let size = motions(D);
    // The lift by a pressure that grows by one per cell downwards from the height of the centre of mass.
    let height = body.position()[UP] / dx;
    let (mut lift, mut area) = ([0.0; MOST_MOTIONS], 0.0);
    let (mut wet, mut dry, mut alone) = (0usize, 0usize, true);
    // Where liquid ends along the body: heights, and how much of them.
    let (mut line, mut marks) = (0.0, 0.0);
    let (mut gauge, mut component) = (Vec::new(), None);
    for (face, motion) in faces {
        let (slot, local, axis) = (face.slot as usize, face.local as usize, usize::from(face.axis));
        let below = cell_below(blocks, slot, local, axis);
        let first = blocks.first_cell(slot);
        let cell = unflatten::<D>(local, SIDE);
        let y = (first[UP] + cell[UP] as i32) as Real + 0.5;
        let down = if axis == UP { 1.0 } else { 0.0 };
        for ((slot, local), sign, y) in [(below, 1.0, y - down), ((slot, local), -1.0, y)] {
            if to.is_liquid(slot, local) {
                component = component.or(Some(problem.roles.component.block(slot)[local]));
                wet += 1;
                let under = cell_below(blocks, slot, local, UP);
                if to.is_liquid(under.0, under.1) {
                    let index = |(slot, local): (usize, usize)| slot * block_cells(D) + local;
                    gauge.push((index(under), index((slot, local)), face.share));
                }
                let q = height - y;
                for motion_index in 0..size {
                    lift[motion_index] += sign * face.share * motion[motion_index] * q;
                }
                area += sign * face.share * motion[UP];
            } else if to.is_air(slot, local) {
                dry += 1;
            }
            // Air right above liquid.
            let above_liquid = to.is_air(slot, local) && {
                let (slot, local) = cell_below(blocks, slot, local, UP);
                to.is_liquid(slot, local)
            };
            if above_liquid && axis != UP {
                line += face.share * (y - 0.5);
                marks += face.share;
            }
        }
        let open = f64::from(problem.boundary.open[axis].block(slot)[local]);
        alone &= open + face.share > 1.0 - 1e-9;
    }
    let volume = body.volume / dx.powi(D as i32);
    let submerged = match (wet, dry) {
        (0, _) => 0.0,
        (_, 0) => 1.0,
        _ if marks > 0.0 => ((lift[UP] + area * (line / marks - height)) / volume).clamp(0.0, 1.0),
        _ => wet as Real / (wet + dry) as Real,
    };
    let fall = -problem.impulse[UP];
    let mut floating = Floating { lift: [0.0; MOST_MOTIONS], submerged, rest: member.rest, gauge };
    let Some(component) = component.filter(|_| fall != 0.0) else { return floating };
    if floating.rest < 0.0 {
        floating.rest = if is_held_up(to, component) { 1.0 } else { 0.0 };
    }
    let fall = fall * floating.rest;
    let missing = &mut floating.lift;
    if dry == 0 && alone {
        // Its own volume of liquid is lifted at its centre, which is that of its mass.
        missing[..size].iter_mut().zip(&lift).for_each(|(missing, lift)| *missing = -lift * fall);
        missing[UP] += volume * fall;
        return floating;
    }
    let posed = of.walls.solids[member.solid].at(problem.time);
    for &slot in blocks.slots().as_slice() {
        let slot = slot as usize;
        if problem.boundary.nearness(slot) != Nearness::Moving {
            continue;
        }
        let first = blocks.first_cell(slot);
        let half = 0.5 * SIDE as Real;
        let middle = Vector::<D>::from_fn(|k, _| (first[k] as Real + half) * dx);
        let reach = ((half + 1.0) * (D as Real).sqrt()) * dx;
        if !of.walls.solids[member.solid].may_reach(&middle, reach) || posed.distance(&middle).abs() > reach {
            continue;
        }
        for local in 0..block_cells(D) {
            let cell = unflatten::<D>(local, SIDE);
            let centre = face_centre(blocks, slot, Face::of(cell, UP, Side::Low));
            // Further away both shares are none, or all.
            if (centre - body.position()).norm() > body.radius + 0.5 * (D as Real).sqrt() * dx {
                continue;
            }
            if posed.distance(&centre).abs() > 0.5 * (D as Real).sqrt() * dx {
                continue;
            }
            let below = cell_below(blocks, slot, local, UP);
            if to.is_air(slot, local) || to.is_air(below.0, below.1) {
                continue;
            }
            let own = problem.boundary.bodies_at(slot, UP, local).iter();
            let closed: Real =
                own.filter(|held| held.solid as usize == member.solid).map(|held| held.share).sum();
            let share = share_around(&posed, &centre, dx) - closed;
            let direction = Vector::<D>::from_fn(|k, _| if k == UP { 1.0 } else { 0.0 });
            let motion = Body::motion_at(&((centre - body.position()) / dx), &direction);
            missing[..size].iter_mut().zip(&motion).for_each(|(missing, c)| *missing += share * c * fall);
        }
    }
    floating
}

/// Whether a component of liquid touches anything but bodies.
fn is_held_up<const D: usize>(to: &CoupledSystem<'_, D>, component: u32) -> bool {
    let problem = to.problem;
    let near = problem.blocks.slots().as_slice().iter().map(|&slot| slot as usize);
    near.filter(|&slot| problem.boundary.nearness(slot) != Nearness::Clear).any(|slot| {
        (0..block_cells(D)).any(|local| {
            (0..D).any(|axis| {
                let below = cell_below(problem.blocks, slot, local, axis);
                let is_wet = [(slot, local), below].into_iter().any(|(slot, local)| {
                    to.is_liquid(slot, local) && problem.roles.component.block(slot)[local] == component
                });
                let open = f64::from(problem.boundary.open[axis].block(slot)[local]);
                is_wet && open < 1.0 && {
                    let held = problem.boundary.bodies_at(slot, axis, local).iter();
                    open + held.map(|held| held.share).sum::<Real>() < 1.0 - 1e-6
                }
            })
        })
    })
}

/// The share of the box of one cell around the centre of a face across the vertical that a body fills: the mean over planes of
/// what it covers of each.
fn share_around<const D: usize>(posed: &PosedSolid<'_, D>, centre: &Vector<D>, dx: Real) -> Real {
    const PLANES: [Real; 4] = [-0.375, -0.125, 0.125, 0.375];
    const SIDES: [[Real; 2]; 4] = [[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]];
    let covered = PLANES.map(|offset| {
        let corner: [f32; 4] = std::array::from_fn(|corner| {
            if corner >= power(2, D - 1) {
                return 0.0;
            }
            let arm = [SIDES[corner][0], offset, SIDES[corner][1]];
            (posed.distance(&Vector::<D>::from_fn(|k, _| centre[k] + arm[k] * dx)) / dx) as f32
        });
        let open = if D == 2 { positive_segment(corner[0], corner[1]) } else { positive_square(corner) };
        1.0 - f64::from(open)
    });
    covered.iter().sum::<Real>() / PLANES.len() as Real
}
