//! Liquid shares and wall distances around a block.

use crate::geometry::FAR;
use crate::grid::{Halo, SIDE, block_cells, halo_cells, load_halo};
use crate::math::{power, unflatten};

use super::level::{Level, Places};
use super::{Problem, near_index};

/// A block with the faces and samples around it.
pub(super) const NEAR: Halo = Halo::new(1);
/// What is needed to know about those.
pub(super) const WIDE: Halo = Halo::new(2);
/// Most cells of a [`NEAR`] halo.
pub(super) const MOST_NEAR: usize = halo_cells(NEAR, 3);
const MOST_WIDE: usize = halo_cells(WIDE, 3);
const MOST_OCTANTS: usize = 8;

/// The share of an octant that nothing is known of, as it lies in a wall.
pub(super) const HIDDEN: f32 = -1.0;
/// Cells whose centre is that deep in a wall, in cells, are hidden: particles are not, and the surface is a guess there.
const DEEP: f32 = -0.5;

/// Cells whose centre is further from the surface, in cells, are full or empty.
const FAR_FROM_SURFACE: f32 = 0.9;

/// Cells and corners around a block, whatever its level.
pub(super) struct Surroundings<const D: usize> {
    /// Wall distance at low corners, in cells of the level: a [`WIDE`] halo.
    pub corner: [f32; MOST_WIDE],
    /// Liquid shares of the octants of cells (quadrants in 2D): a [`NEAR`] halo.
    pub octant: [[f32; MOST_OCTANTS]; MOST_NEAR],
    /// Whether every cell is stored: coarse levels store none where there is nothing finer.
    pub is_whole: bool,
}

impl<const D: usize> Surroundings<D> {
    fn empty() -> Self {
        Surroundings { corner: [FAR; MOST_WIDE], octant: [[0.0; MOST_OCTANTS]; MOST_NEAR], is_whole: true }
    }

    /// Wall distances alone, of a block of the grid.
    pub fn walls_of(problem: &Problem<'_, D>, slot: usize) -> Self {
        let mut found = Self::empty();
        load_halo(problem.blocks, &problem.boundary.corner, slot, WIDE, &mut found.corner);
        found
    }

    /// Whether there is nothing but liquid around a block of the grid.
    pub fn is_slot_inside(problem: &Problem<'_, D>, slot: usize) -> bool {
        let mut distance = [0f32; MOST_WIDE];
        load_halo(problem.blocks, problem.surface, slot, WIDE, &mut distance);
        let inside = -(problem.blocks.grid().dx as f32);
        distance[..halo_cells(WIDE, D)].iter().all(|&distance| distance < inside)
            && !Self::walls_of(problem, slot).has_walls()
    }

    /// What is around a block of the grid.
    pub fn of_slot(problem: &Problem<'_, D>, slot: usize) -> Self {
        let mut found = Self::walls_of(problem, slot);
        let mut distance = [0f32; MOST_WIDE];
        load_halo(problem.blocks, problem.surface, slot, WIDE, &mut distance);
        let inverse_dx = 1.0 / problem.blocks.grid().dx as f32;
        let distance = &mut distance[..halo_cells(WIDE, D)];
        distance.iter_mut().for_each(|distance| *distance *= inverse_dx);
        found.hide_deep(distance);
        for (at, octants) in found.octant.iter_mut().enumerate().take(halo_cells(NEAR, D)) {
            let cell = unflatten::<D>(at, NEAR.side).map(|c| c as i32 - 1);
            let here = WIDE.index(cell);
            if distance[here].abs() > FAR_FROM_SURFACE {
                octants.fill(f32::from(u8::from(distance[here] < 0.0)));
                continue;
            }
            for (octant, share) in octants.iter_mut().enumerate().take(power(2, D)) {
                *share = octant_share::<D>(distance, here, octant);
            }
        }
        found
    }

    /// What is around a block of a coarser level, from the level below it.
    pub fn of_children(places: &Places<D>, finer: &Level<D>, block: usize) -> Self {
        let mut found = Self::empty();
        let cells = block_cells(D);
        for (at, corner) in found.corner.iter_mut().enumerate().take(halo_cells(WIDE, D)) {
            let cell = unflatten::<D>(at, WIDE.side).map(|c| c as i32 - 2);
            let (child, local) = places.child_cell(block, cell, 0);
            let distance = if child == 0 { FAR } else { finer.corner()[child * cells + local] };
            // What is cut off is far away on every level.
            *corner = if distance.abs() < FAR { 0.5 * distance } else { distance };
        }
        for (at, octants) in found.octant.iter_mut().enumerate().take(halo_cells(NEAR, D)) {
            let cell = unflatten::<D>(at, NEAR.side).map(|c| c as i32 - 1);
            for (octant, share) in octants.iter_mut().enumerate().take(power(2, D)) {
                let (child, local) = places.child_cell(block, cell, octant);
                *share = if child == 0 { 0.0 } else { finer.share()[child * cells + local] };
                found.is_whole &= child != 0;
            }
        }
        found
    }

    /// Whether a wall comes near any face or sample.
    pub fn has_walls(&self) -> bool {
        self.corner[..halo_cells(WIDE, D)].iter().any(|&distance| distance < 1.5)
    }

    /// Whether there is nothing but liquid.
    pub fn is_inside(&self) -> bool {
        let full = |octants: &[f32; MOST_OCTANTS]| octants[..power(2, D)].iter().all(|&share| share == 1.0);
        self.is_whole && self.octant[..halo_cells(NEAR, D)].iter().all(full) && !self.has_walls()
    }

    /// Wall distance at the centre of a low face of a cell, in cells.
    #[inline]
    pub fn face_distance(&self, cell: [i32; D], axis: usize) -> f32 {
        let base = WIDE.index(cell);
        let mut sum = 0.0;
        for corner in (0..power(2, D)).filter(|corner| corner & (1 << axis) == 0) {
            sum += self.corner[base + offset::<D>(WIDE, corner)];
        }
        sum / power(2, D - 1) as f32
    }

    /// Wall distances at the centres of the low faces across an axis, as a [`NEAR`] halo.
    pub fn face_distances(&self, axis: usize) -> [f32; MOST_NEAR] {
        let mut found = [FAR; MOST_NEAR];
        for (at, found) in found.iter_mut().enumerate().take(halo_cells(NEAR, D)) {
            *found = self.face_distance(unflatten::<D>(at, NEAR.side).map(|c| c as i32 - 1), axis);
        }
        found
    }

    /// Whether the centre of a low face of a cell of the block lies in a wall.
    pub fn is_in_wall(&self, local: usize, axis: usize) -> bool {
        self.face_distance(unflatten::<D>(local, SIDE).map(|c| c as i32), axis) <= 0.0
    }

    /// Zeroes the velocities of faces in walls; `faces` holds a [`NEAR`] halo per axis.
    pub fn clear_walls(&self, faces: &mut [f64]) {
        let cells = halo_cells(NEAR, D);
        for axis in 0..D {
            let distances = self.face_distances(axis);
            for (face, &distance) in faces[axis * cells..][..cells].iter_mut().zip(&distances) {
                *face = if distance <= 0.0 { 0.0 } else { *face };
            }
        }
    }

    /// Gives cells deep in walls the surface of the cells around them, and marks those that have none.
    fn hide_deep(&self, distance: &mut [f32]) {
        if !self.has_walls() {
            return;
        }
        let centre = |cell: [i32; D]| {
            // The corners beyond the halo are those of its last layer.
            let base = cell.map(|c| c.min(SIDE as i32));
            let corners =
                (0..power(2, D)).map(|corner| self.corner[WIDE.index(base) + offset::<D>(WIDE, corner)]);
            corners.sum::<f32>() / power(2, D) as f32
        };
        let place = |at: usize| unflatten::<D>(at, WIDE.side).map(|c| c as i32 - 2);
        let mut is_deep = [false; MOST_WIDE];
        for (at, is_deep) in is_deep.iter_mut().enumerate().take(distance.len()) {
            *is_deep = centre(place(at)) < DEEP;
        }
        let before: [f32; MOST_WIDE] = std::array::from_fn(|at| distance.get(at).copied().unwrap_or(0.0));
        for (at, distance) in distance.iter_mut().enumerate().filter(|&(at, _)| is_deep[at]) {
            let (mut sum, mut count) = (0.0, 0.0);
            for step in 0..power(3, D) {
                let step = unflatten::<D>(step, 3);
                let cell: [i32; D] = std::array::from_fn(|k| place(at)[k] + step[k] as i32 - 1);
                if cell.iter().all(|c| (-2..SIDE as i32 + 2).contains(c)) && !is_deep[WIDE.index(cell)] {
                    sum += before[WIDE.index(cell)];
                    count += 1.0;
                }
            }
            *distance = if count > 0.0 { sum / count } else { f32::NAN };
        }
    }

    /// Mean share of the octants of a cell and of its lower neighbours along some axes, those next to their common corner, edge
    /// or face: the box around that.
    #[inline]
    pub fn box_share(&self, at: usize, axes: usize) -> f32 {
        let (mut sum, mut count) = (0.0, 0.0);
        for octant in 0..power(2, D) {
            // Of the lower neighbour along an axis, the half that is higher.
            let lower = octant & axes;
            let share = self.octant[at - offset::<D>(NEAR, lower)][octant];
            if share != HIDDEN {
                sum += share;
                count += 1.0;
            }
        }
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// Liquid shares of the block's own cells, [`HIDDEN`] where nothing is known.
    pub fn cell_shares(&self, shares: &mut [f32]) {
        for (local, share) in shares.iter_mut().enumerate() {
            let octants = &self.octant[near_index::<D>(local)][..power(2, D)];
            let known = octants.iter().filter(|&&share| share != HIDDEN);
            let count = known.clone().count();
            *share = if count > 0 { known.sum::<f32>() / count as f32 } else { HIDDEN };
        }
    }
}

/// How far a corner of a cell is from its lowest one in memory; a bit for each axis.
#[inline(always)]
fn offset<const D: usize>(halo: Halo, corner: usize) -> usize {
    (0..D).filter(|k| corner & (1 << k) != 0).map(|k| halo.stride(k)).sum()
}

/// The liquid's share of an octant of a cell, as if the surface were flat there; from distances in cells.
fn octant_share<const D: usize>(distance: &[f32], at: usize, octant: usize) -> f32 {
    let (mut sum, mut weights, mut slope) = (0.0, 0.0, [0.0; 3]);
    // The cells around the octant: towards it along some of the axes.
    for corner in 0..power(2, D) {
        let (mut place, mut weight) = (at, 1.0);
        for k in 0..D {
            let is_beyond = corner & (1 << k) != 0;
            let stride = WIDE.stride(k);
            place = match (is_beyond, octant & (1 << k) != 0) {
                (false, _) => place,
                (true, true) => place + stride,
                (true, false) => place - stride,
            };
            weight *= if is_beyond { 0.25 } else { 0.75 };
        }
        let distance = distance[place];
        if distance.is_nan() {
            continue;
        }
        sum += weight * distance;
        weights += weight;
        for (k, slope) in slope.iter_mut().enumerate().take(D) {
            let is_beyond = corner & (1 << k) != 0;
            *slope += if is_beyond { weight / 0.25 } else { -weight / 0.75 } * distance;
        }
    }
    if weights == 0.0 {
        return HIDDEN;
    }
    let norm = slope.iter().map(|s| s * s).sum::<f32>().sqrt();
    let width = if norm > 0.1 { slope.iter().map(|s| s.abs()).sum::<f32>() / norm } else { 1.0 };
    // An octant is half a cell wide.
    (0.5 - sum / weights / (0.5 * width)).clamp(0.0, 1.0)
}
