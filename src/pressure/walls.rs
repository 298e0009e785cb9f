//! Velocities at closed faces.

use crate::geometry::{BodyShare, Boundary, Nearness, Walls};
use crate::grid::{Blocks, Face, Field, SIDE, VOID, for_each_block};
use crate::math::{Real, Side, Vector, flatten, unflatten};

/// Gives closed faces along a wall the wall's own velocity, so that particles next to it are not carried into it.
/// Faces oblique to the wall keep what was extrapolated: half of that is flow along the wall.
pub fn stop_at_walls<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    walls: &Walls<D>,
    time: Real,
    velocity: &mut [Field<f32>; D],
) {
    for_each_block(blocks.slots(), velocity.each_mut().map(Field::parts), |slot, velocity| {
        let nearness = boundary.nearness(slot);
        if nearness == Nearness::Clear {
            return;
        }
        for (axis, velocity) in velocity.into_iter().enumerate() {
            for (row, &bits) in
                boundary.along[axis].block(slot).iter().enumerate().filter(|(_, bits)| **bits != 0)
            {
                for x in (0..SIDE).filter(|x| bits & (1 << x) != 0) {
                    let local = row * SIDE + x;
                    velocity[local] = match nearness {
                        Nearness::Moving => {
                            let face = Face::of(unflatten(local, SIDE), axis, Side::Low);
                            face_velocity(blocks, walls, slot, face, time) as f32
                        }
                        _ => 0.0,
                    };
                }
            }
        }
    });
}

/// Velocity of the walls at the centre of a face, along the face's axis.
pub fn face_velocity<const D: usize>(
    blocks: &Blocks<D>,
    walls: &Walls<D>,
    slot: usize,
    face: Face<D>,
    time: Real,
) -> Real {
    walls.velocity(&face_centre(blocks, slot, face), time)[face.axis]
}

/// The centre of a face of a block, metres.
pub(super) fn face_centre<const D: usize>(
    blocks: &Blocks<D>,
    slot: usize,
    Face { axis, cell }: Face<D>,
) -> Vector<D> {
    let first = blocks.first_cell(slot);
    Vector::from_fn(|k, _| {
        let half = if k == axis { 0.0 } else { 0.5 };
        ((first[k] + cell[k] as i32) as Real + half) * blocks.grid().dx
    })
}

/// What bodies close of a face of a block near solids that move.
fn bodies_at<'a, const D: usize>(
    blocks: &Blocks<D>,
    boundary: &'a Boundary<D>,
    slot: usize,
    Face { axis, mut cell }: Face<D>,
) -> &'a [BodyShare] {
    let mut slot = slot;
    if cell[axis] == SIDE {
        // The face belongs to the next block.
        slot = blocks.beside(slot, axis, Side::High) as usize;
        cell[axis] = 0;
    }
    boundary.bodies_at(slot, axis, flatten(cell, SIDE))
}

/// What solids that are no bodies push along its axis through the closed share of a face, m/s.
pub(super) fn scripted_flow<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    walls: &Walls<D>,
    slot: usize,
    face: Face<D>,
    open: Real,
    time: Real,
) -> Real {
    let held: Real = bodies_at(blocks, boundary, slot, face).iter().map(|share| share.share).sum();
    let closed = (1.0 - open) - held;
    // The share of bodies is known to rounding.
    if held > 0.0 && closed < 1e-9 {
        return 0.0;
    }
    closed * walls.scripted_velocity(&face_centre(blocks, slot, face), time)[face.axis]
}

/// What solids push along its axis through the closed share of a face, m/s, in a block near solids that move; bodies as they move
/// now.
pub fn solid_flow<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    walls: &Walls<D>,
    slot: usize,
    face: Face<D>,
    open: Real,
    time: Real,
) -> Real {
    let centre = face_centre(blocks, slot, face);
    let bodies = bodies_at(blocks, boundary, slot, face).iter();
    let of_bodies =
        bodies.map(|held| held.share * walls.solids[held.solid as usize].velocity(&centre, time)[face.axis]);
    of_bodies.fold(scripted_flow(blocks, boundary, walls, slot, face, open, time), |sum, flow| sum + flow)
}

/// Whether a face of a block's air cell leads into a block that is not stored. The face belongs to that block and reads as
/// closed; but behind an air cell there is nothing but air, and no wall.
pub fn leads_into_far_air<const D: usize>(
    blocks: &Blocks<D>,
    slot: usize,
    Face { axis, cell }: Face<D>,
) -> bool {
    cell[axis] == SIDE && blocks.beside(slot, axis, Side::High) == VOID
}
