//! Velocities at closed faces.

use crate::geometry::{BodyShare, Boundary, FAR, Nearness, SolidsNear, Walls};
use crate::grid::{Blocks, Face, Field, SIDE, VOID, for_each_block};
use crate::math::{Real, Side, Vector, flatten, unflatten};

use super::LooseCells;
use super::bodies::cell_below;

/// What walls sweep through a cell, and how much of that there is room for.
///
/// The surface that one wall shows to a cell is, as a vector, the sum of the cell's open faces: it displaces no more than its speed
/// over these, however it lies. Two walls that meet in a cell, one of them moving, know no such bound. Each closed face has the
/// velocity of the wall that it lies in, and what they displace together would have to go through whatever slit is left between
/// them: at hundreds of times their speed, through a thousandth of a face. Liquid there rather gives way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SweptFlow {
    outflow: Real,
    open: Real,
    fastest: Real,
}

/// How much faster than its walls a cell's liquid may be pressed out: as out of a gap of a sixteenth of a cell, in 2D.
const MOST_SQUEEZE: Real = 8.0;

impl SweptFlow {
    /// Adds a face that is open by some share, with what walls push through the rest of it.
    #[inline]
    pub fn add(&mut self, side: Side, share: Real, flow: Real) {
        self.outflow += side.sign() * flow;
        self.open += share;
        if flow != 0.0 {
            self.fastest = self.fastest.max(flow.abs() / (1.0 - share));
        }
    }

    /// The part of the walls' outflow that there is no room for: none, but where walls close on each other.
    #[inline]
    pub fn excess(&self) -> Real {
        let most = MOST_SQUEEZE * self.fastest * self.open;
        self.outflow - self.outflow.clamp(-most, most)
    }
}

/// Gives closed faces along a wall the wall's own velocity, so that particles next to it are not carried into it.
/// Faces oblique to the wall keep what was extrapolated: half of that is flow along the wall. So do those beside liquid that is
/// leaving the wall, as far as that leads away from it: it would be left behind there.
pub fn stop_at_walls<const D: usize>(
    blocks: &Blocks<D>,
    boundary: &Boundary<D>,
    walls: &Walls<D>,
    time: Real,
    loose: &LooseCells,
    velocity: &mut [Field<f32>; D],
) {
    for_each_block(blocks.slots(), velocity.each_mut().map(Field::parts), |slot, velocity| {
        let nearness = boundary.nearness(slot);
        if nearness == Nearness::Clear {
            return;
        }
        let near = match nearness {
            Nearness::Moving => Some(solids_near(blocks, walls, slot)),
            _ => None,
        };
        for (axis, velocity) in velocity.into_iter().enumerate() {
            for (row, &bits) in
                boundary.along[axis].block(slot).iter().enumerate().filter(|(_, bits)| **bits != 0)
            {
                for x in (0..SIDE).filter(|x| bits & (1 << x) != 0) {
                    let local = row * SIDE + x;
                    let of_wall = near.as_ref().map_or(0.0, |near| {
                        let centre =
                            face_centre(blocks, slot, Face::of(unflatten(local, SIDE), axis, Side::Low));
                        walls.velocity_of(near, &centre, time)[axis] as f32
                    });
                    velocity[local] = if loose.is_empty() {
                        of_wall
                    } else {
                        let (low_slot, low) = cell_below(blocks, slot, local, axis);
                        match (loose.has(low_slot, low), loose.has(slot, local)) {
                            (true, false) => velocity[local].min(of_wall),
                            (false, true) => velocity[local].max(of_wall),
                            _ => of_wall,
                        }
                    };
                }
            }
        }
    });
}

/// The solids that may be nearest to a place in a block where a wall is near.
fn solids_near<const D: usize>(blocks: &Blocks<D>, walls: &Walls<D>, slot: usize) -> SolidsNear {
    let (first, dx, half) = (blocks.first_cell(slot), blocks.grid().dx, 0.5 * SIDE as Real);
    let middle = Vector::from_fn(|k, _| (Real::from(first[k]) + half) * dx);
    walls.near(&middle, (half * (D as Real).sqrt() + Real::from(FAR)) * dx)
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
    if !boundary.is_swept(slot) {
        return 0.0;
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::hash_unit;

    /// Open shares of a unit cell's faces where a plane cuts a corner off it, and what a wall behind the plane sweeps.
    fn swept_behind_plane(salt: u64) -> SweptFlow {
        let random = |k: u64| Real::from(hash_unit(salt * 16 + k)) - 0.5;
        // The corner's edges, so that the plane is x/a + y/b = 1 and the faces at the corner are open by a and b.
        let [a, b] = [0, 1].map(|k| random(k) + 0.5);
        let mut swept = SweptFlow::default();
        for (axis, share) in [(0, b), (1, a)] {
            let wall = random(2 + axis);
            swept.add(Side::Low, share, (1.0 - share) * wall);
            swept.add(Side::High, 0.0, wall);
        }
        swept
    }

    #[test]
    fn one_wall_has_room_for_all_it_sweeps() {
        for salt in 0..200 {
            assert_eq!(swept_behind_plane(salt).excess(), 0.0, "{salt}");
        }
    }

    /// A wall behind one face, another one that stands still behind the opposite one, and a slit along them.
    #[test]
    fn walls_that_meet_press_out_eight_times_their_speed() {
        for gap in [0.5, 0.0625, 0.01, 0.001] {
            let mut swept = SweptFlow::default();
            swept.add(Side::Low, 0.0, 0.4);
            swept.add(Side::High, 0.0, 0.0);
            swept.add(Side::Low, gap, 0.0);
            swept.add(Side::High, gap, 0.0);
            let pressed_out = (swept.excess() + 0.4) / (2.0 * gap);
            let expected = (0.4 / (2.0 * gap)).min(8.0 * 0.4);
            assert!((pressed_out - expected).abs() < 1e-12, "a gap of {gap}: {pressed_out} m/s");
        }
    }
}
