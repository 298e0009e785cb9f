//! The liquid's surface as it is shown: where water lies against a wall it ends there.
//!
//! Along curved and slanted walls the solver's distance ends now before the wall and now inside it, different from cell
//! to cell. That means nothing to the flow, but behind glass every step of it would shine. Here the liquid is first
//! continued into the wall and then cut off a little behind its face.

use crate::geometry::Nearness;
use crate::grid::{Blocks, Field, SIDE, for_each_block};
use crate::math::{flatten, power, unflatten};
use crate::sim::Simulation;

use super::calm::Calm;

/// Corners along a side of a block.
const CORNERS: usize = SIDE + 1;
/// Cells whose centre is closer to a wall than this, in cells, look farther out.
const NEAR: f32 = 1.1;
/// How far from the wall they look, in cells: liquid there reaches the wall.
const OUT: f32 = 1.7;
/// How far from the wall those inside it look first.
const FACE: f32 = 0.6;
/// Walls are thin if a cell in them has cells beyond them on both sides within so many cells along an axis.
const THIN: i32 = 2;
/// How far behind the wall's face the liquid ends, in cells.
const BEHIND: f32 = 0.3;

/// Copies of what the shown surface is found from, so that it can be found while the simulation goes on.
pub struct WallSurface<const D: usize> {
    pub blocks: Blocks<D>,
    /// The liquid's signed distance at cell centres, metres.
    surface: Field<f32>,
    /// The walls' signed distance at low corners, cells.
    corner: Field<f32>,
    /// Whether walls come near, by slot.
    near: Vec<bool>,
    calm: Calm,
}

impl<const D: usize> WallSurface<D> {
    pub fn of(simulation: &Simulation<D>) -> Self {
        let (blocks, boundary) = (simulation.blocks(), simulation.boundary());
        let mut near = vec![false; blocks.slot_count()];
        for &slot in blocks.slots().as_slice() {
            near[slot as usize] = boundary.nearness(slot as usize) != Nearness::Clear;
        }
        let (surface, corner) = (simulation.surface().clone(), boundary.corner.clone());
        WallSurface { blocks: blocks.clone(), surface, corner, near, calm: Calm::of(simulation) }
    }

    /// Signed distance to the liquid's surface at cell centres, metres, negative inside; smooth where the water is calm.
    pub fn up_to_walls(&self) -> Field<f32> {
        let blocks = &self.blocks;
        let dx = blocks.grid().dx as f32;
        let surface = self.calm.smooth(blocks, &self.surface);
        let mut shown = surface.clone();
        let at = |field: &Field<f32>, cell: [i32; D]| {
            let (slot, local) = blocks.locate(cell);
            field.block(slot as usize)[local]
        };
        // The first cell beyond a wall along an axis, if that is thin: how far its surface is.
        let beyond = |cell: [i32; D], axis: usize, step: i32| {
            (1..=THIN).find_map(|far| {
                let mut there = cell;
                there[axis] += step * far;
                (self.wall_at(there) > 0.0).then(|| at(&surface, there))
            })
        };
        // Liquid on both sides of a thin wall is drawn as one: cells that happen to lie in the wall would make shards of it.
        let liquid_through = |cell: [i32; D]| {
            let both = |axis| Some(beyond(cell, axis, -1)?.max(beyond(cell, axis, 1)?));
            (0..D).filter_map(both).filter(|&value| value < 0.0).min_by(f32::total_cmp)
        };
        for_each_block(blocks.slots(), shown.parts(), |slot, values| {
            if !self.near[slot] {
                return;
            }
            let first = blocks.first_cell(slot);
            let corners = self.corners_of(first);
            for (local, value) in values.iter_mut().enumerate() {
                let offset = unflatten::<D>(local, SIDE);
                let cell: [i32; D] = std::array::from_fn(|axis| first[axis] + offset[axis] as i32);
                // Distance to the wall and its slope, from the corners of the cell.
                let (mut distance, mut slope) = (0.0, [0.0; D]);
                let count = power(2, D);
                for corner in 0..count {
                    let up = |axis: usize| corner >> axis & 1;
                    let place: [usize; D] = std::array::from_fn(|axis| offset[axis] + up(axis));
                    let wall = corners[flatten(place, CORNERS)];
                    distance += wall / count as f32;
                    (0..D).for_each(|axis| slope[axis] += wall * (2.0 * up(axis) as f32 - 1.0));
                }
                if distance > NEAR {
                    continue;
                }
                let length = slope.iter().map(|s| s * s).sum::<f32>().sqrt();
                if distance > -NEAR && length > 0.0 {
                    let beside = |out: f32| {
                        let steps = |axis: usize| ((out - distance) * slope[axis] / length).round() as i32;
                        at(&surface, std::array::from_fn(|axis| cell[axis] + steps(axis)))
                    };
                    // A film on the wall stays what it is; what is inside the wall does not count.
                    let own = if distance > 0.0 { *value } else { beside(FACE) };
                    *value = own.min(beside(OUT));
                }
                let through = if distance < 0.0 { liquid_through(cell) } else { None };
                *value = through.unwrap_or(value.max(-(BEHIND + distance) * dx));
            }
        });
        shown
    }

    /// The walls' distance at the centre of a cell, nearly: the mean of two opposite corners.
    fn wall_at(&self, cell: [i32; D]) -> f32 {
        let corner = |cell: [i32; D]| {
            let (slot, local) = self.blocks.locate(cell);
            self.corner.block(slot as usize)[local]
        };
        0.5 * (corner(cell) + corner(cell.map(|c| c + 1)))
    }

    /// The walls' distance at all corners of the cells of a block, from its low corner on.
    fn corners_of(&self, first: [i32; D]) -> [f32; CORNERS.pow(3)] {
        let mut corners = [0.0; CORNERS.pow(3)];
        for (row, values) in corners.chunks_exact_mut(CORNERS).take(power(CORNERS, D - 1)).enumerate() {
            let mut cell = first;
            let mut rest = row;
            for axis in 1..D {
                cell[axis] += (rest % CORNERS) as i32;
                rest /= CORNERS;
            }
            // A row of a block lies together; the last corner belongs to the next block.
            let (slot, local) = self.blocks.locate(cell);
            values[..SIDE].copy_from_slice(&self.corner.block(slot as usize)[local..local + SIDE]);
            cell[0] += SIDE as i32;
            let (slot, local) = self.blocks.locate(cell);
            values[SIDE] = self.corner.block(slot as usize)[local];
        }
        corners
    }
}
