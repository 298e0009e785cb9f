//! Walls that move, and walls that liquid slips along.

use crate::geometry::Nearness;
use crate::grid::{SIDE, block_cells, halo_cells};
use crate::math::{Real, Vector, unflatten};

use super::coefficients::theta;
use super::surroundings::{MOST_NEAR, NEAR, Surroundings};
use super::{Problem, near_index};

/// The walls around a block of the grid.
pub(super) struct WallMotion<'a, const D: usize> {
    problem: &'a Problem<'a, D>,
    slot: usize,
}

impl<'a, const D: usize> WallMotion<'a, D> {
    pub fn new(problem: &'a Problem<'a, D>, slot: usize) -> Self {
        WallMotion { problem, slot }
    }

    /// The centre of a low face of a cell, moved by so many cells along an axis.
    fn place(&self, cell: [i32; D], axis: usize, (along, by): (usize, f32)) -> Vector<D> {
        let first = self.problem.blocks.first_cell(self.slot);
        Vector::from_fn(|k, _| {
            let half = if k == axis { 0.0 } else { 0.5 };
            let moved = if k == along { Real::from(by) } else { 0.0 };
            (Real::from(first[k] + cell[k]) + half + moved) * self.problem.blocks.grid().dx
        })
    }

    /// Velocity along its axis of the wall that the centre of a low face of a cell lies in.
    pub fn face_velocity(&self, local: usize, axis: usize) -> Real {
        if self.problem.boundary.nearness(self.slot) != Nearness::Moving {
            return 0.0;
        }
        let cell = unflatten::<D>(local, SIDE).map(|c| c as i32);
        self.problem.walls.velocity(&self.place(cell, axis, (axis, 0.0)), self.problem.time)[axis]
    }

    /// Whether liquid slips along that wall.
    pub fn slips(&self, local: usize, axis: usize) -> bool {
        let cell = unflatten::<D>(local, SIDE).map(|c| c as i32);
        let walls = self.problem.walls;
        walls.any_slip() && walls.slips(&self.place(cell, axis, (axis, 0.0)), self.problem.time)
    }

    /// What the ends of a difference along an axis add to it, those that lie in walls.
    fn difference(&self, cell: [i32; D], axis: usize, along: usize, ends: [f32; 2]) -> Real {
        let velocity = |low_end: bool, by: f32| {
            let mut face = cell;
            face[along] -= i32::from(low_end);
            self.problem.walls.velocity(&self.place(face, axis, (along, by)), self.problem.time)[axis]
        };
        match ends.map(|end| end <= 0.0) {
            [false, false] => 0.0,
            [true, true] => velocity(false, 0.0) - velocity(true, 0.0),
            // From the face outside to the wall.
            [true, false] => -velocity(false, -theta(ends)),
            [false, true] => velocity(true, theta(ends)),
        }
    }

    /// Adds the stress that the motion of walls causes on the faces of the block, some of which are near walls.
    pub fn add_stress(&self, around: &Surroundings<D>, weights: &[f32], out: &mut [f64]) {
        let cells = halo_cells(NEAR, D);
        let distance: [[f32; MOST_NEAR]; D] = std::array::from_fn(|axis| around.face_distances(axis));
        let cell_at = |at: usize| unflatten::<D>(at, NEAR.side).map(|c| c as i32 - 1);
        let mut stress = [0f64; MOST_NEAR];
        for a in 0..D {
            let (own, across) = (&weights[(a * D + a) * cells..][..cells], NEAR.stride(a));
            stress.fill(0.0);
            for at in (0..cells).filter(|&at| own[at] > 0.0) {
                let mut high = cell_at(at);
                high[a] += 1;
                let ends = [distance[a][at], distance[a][at + across]];
                stress[at] = f64::from(own[at]) * self.difference(high, a, a, ends);
            }
            for local in 0..block_cells(D) {
                let at = near_index::<D>(local);
                out[a * block_cells(D) + local] += stress[at - across] - stress[at];
            }
            for b in a + 1..D {
                let weight: [&[f32]; 2] =
                    [a * D + b, b * D + a].map(|pair| &weights[pair * cells..][..cells]);
                stress.fill(0.0);
                for at in (0..cells).filter(|&at| weight[0][at] > 0.0 || weight[1][at] > 0.0) {
                    for (k, [axis, along]) in [[a, b], [b, a]].into_iter().enumerate() {
                        let ends = [distance[axis][at - NEAR.stride(along)], distance[axis][at]];
                        let difference = self.difference(cell_at(at), axis, along, ends);
                        stress[at] += f64::from(weight[k][at]) * difference;
                    }
                }
                for (k, [axis, along]) in [[a, b], [b, a]].into_iter().enumerate() {
                    for local in 0..block_cells(D) {
                        let low = near_index::<D>(local);
                        let high = low + NEAR.stride(along);
                        out[axis * block_cells(D) + local] += f64::from(weight[k][low]) * stress[low]
                            - f64::from(weight[k][high]) * stress[high];
                    }
                }
            }
        }
    }
}
