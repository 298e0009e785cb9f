//! From pressures to velocities.

use crate::geometry::Nearness;
use crate::grid::{Field, SIDE, for_each_block, load_halo};
use crate::liquid::{FaceMask, mask_parts};
use crate::math::{power, unflatten};

use super::assemble::{HALO, MOST};
use super::phases::{Masses, Part, cast};
use super::{Problem, Projection};

/// Adds gravity and subtracts the pressure gradient on every open face that touches an unknown, and marks those faces
/// in `valid`. Other faces keep their values, unmarked.
pub(super) fn update_velocity<const D: usize>(
    problem: &Problem<'_, D>,
    from: &Projection<D>,
    velocity: &mut [Field<f32>; D],
    valid: &mut [FaceMask; D],
) {
    let (blocks, masses) = (problem.blocks, Masses::new(&problem.roles));
    let faces = velocity.each_mut().map(Field::parts);
    for_each_block(blocks.slots(), (faces, mask_parts(valid)), |slot, (faces, valid)| {
        let mut valid = valid;
        valid.iter_mut().for_each(|bits| bits.fill(0));
        // A face belongs to the block on its high side: an unknown on its low side is one block further down.
        let touches = from.live_flag[slot]
            || (0..D).any(|axis| from.live_flag[blocks.beside(slot, axis, crate::math::Side::Low) as usize]);
        if !touches {
            return;
        }
        let parts = cast(problem, &from.label, &from.gas, slot);
        let mut distance = [0f32; MOST];
        load_halo(blocks, problem.surface, slot, HALO, &mut distance);
        let mut q = [0f64; MOST];
        load_halo(blocks, &from.q, slot, HALO, &mut q);
        let roles = &problem.roles;
        let mut region = [0u32; MOST];
        if !roles.all_free() {
            load_halo(blocks, roles.region, slot, HALO, &mut region);
            // Air cells next to liquid hold no pressure of their own, but their bubble's.
            for ((q, part), &region) in q.iter_mut().zip(&parts).zip(&region) {
                if *part == Part::Air {
                    *q = roles.node_of(region).map_or(0.0, |node| from.shared_q[node]);
                }
            }
        }
        let interior = problem.boundary.nearness(slot) == Nearness::Clear
            && parts[0].is_own()
            && parts[..power(HALO.side, D)].iter().all(|&part| part == parts[0]);
        let mass_of = |share: f32, mass: f32| match roles.has_gas() {
            // Exactly what the link in the matrix stands for: heavy columns of gas would not stay at rest otherwise.
            true => share as f64 / (share / mass) as f64,
            false => mass as f64,
        };
        for (axis, (faces, valid)) in faces.into_iter().zip(valid).enumerate() {
            if interior {
                let mass = mass_of(1.0, masses.within(parts[0]));
                update_interior::<D>(faces, &q, axis, problem.impulse[axis], mass);
                valid.fill(0xff);
                continue;
            }
            let open = problem.boundary.open[axis].block(slot);
            let stride = HALO.stride(axis);
            for (local, face) in faces.iter_mut().enumerate() {
                let at = HALO.index(unflatten::<D>(local, SIDE).map(|c| c as i32));
                let low = at - stride;
                let sides = [low, at].map(|at| (parts[at], distance[at]));
                let Some(mass) = masses.between(sides[0], sides[1]).filter(|_| open[local] > 0.0) else {
                    continue;
                };
                let push = (q[at] - q[low]) / mass_of(open[local], mass);
                *face = (*face as f64 + problem.impulse[axis] - push) as f32;
                valid[local / SIDE] |= 1 << (local % SIDE);
            }
        }
    });
}

/// The common case: one phase all around and no wall.
fn update_interior<const D: usize>(faces: &mut [f32], q: &[f64; MOST], axis: usize, impulse: f64, mass: f64) {
    let lightness = 1.0 / mass;
    for (row, faces) in faces.chunks_exact_mut(SIDE).enumerate() {
        let at = HALO.index(unflatten::<D>(row * SIDE, SIDE).map(|c| c as i32));
        let (high, low) = (&q[at..at + SIDE], &q[at - HALO.stride(axis)..][..SIDE]);
        for ((face, high), low) in faces.iter_mut().zip(high).zip(low) {
            *face = (*face as f64 + impulse - (high - low) * lightness) as f32;
        }
    }
}
