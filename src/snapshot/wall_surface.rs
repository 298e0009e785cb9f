//! The liquid's surface as it is shown: where water lies against a wall it ends there.
//!
//! Along curved and slanted walls the solver's distance ends now before the wall and now inside it, different from cell
//! to cell. That means nothing to the flow, but behind glass every step of it would shine. Here the liquid is first
//! continued into the wall and then cut off a little behind its face.

use crate::geometry::Nearness;
use crate::grid::{Field, SIDE, for_each_block};
use crate::math::{power, unflatten};
use crate::sim::Simulation;

/// Cells whose centre is closer to a wall than this, in cells, look farther out.
const NEAR: f32 = 1.1;
/// How far from the wall they look, in cells: liquid there reaches the wall.
const OUT: f32 = 1.7;
/// How far from the wall those inside it look first.
const FACE: f32 = 0.6;
/// How far behind the wall's face the liquid ends, in cells.
const BEHIND: f32 = 0.3;

/// Signed distance to the liquid's surface at cell centres, metres, negative inside.
pub fn surface_up_to_walls<const D: usize>(simulation: &Simulation<D>) -> Field<f32> {
    let (state, blocks) = (simulation.state(), simulation.blocks());
    let dx = blocks.grid().dx as f32;
    let mut shown = state.surface.clone();
    let at = |field: &Field<f32>, cell: [i32; D]| {
        let (slot, local) = blocks.locate(cell);
        field.block(slot as usize)[local]
    };
    for_each_block(blocks.slots(), shown.parts(), |slot, values| {
        if state.boundary.nearness(slot) == Nearness::Clear {
            return;
        }
        let first = blocks.first_cell(slot);
        for (local, value) in values.iter_mut().enumerate() {
            let offset = unflatten::<D>(local, SIDE);
            let cell: [i32; D] = std::array::from_fn(|axis| first[axis] + offset[axis] as i32);
            // Distance to the wall and its slope, from the corners of the cell.
            let (mut distance, mut slope) = (0.0, [0.0; D]);
            let corners = power(2, D);
            for corner in 0..corners {
                let up = |axis: usize| (corner >> axis & 1) as i32;
                let wall = at(&state.boundary.corner, std::array::from_fn(|axis| cell[axis] + up(axis)));
                distance += wall / corners as f32;
                (0..D).for_each(|axis| slope[axis] += wall * (2 * up(axis) - 1) as f32);
            }
            if distance > NEAR {
                continue;
            }
            let length = slope.iter().map(|s| s * s).sum::<f32>().sqrt();
            if distance > -NEAR && length > 0.0 {
                let beside = |out: f32| {
                    let steps = |axis: usize| ((out - distance) * slope[axis] / length).round() as i32;
                    at(&state.surface, std::array::from_fn(|axis| cell[axis] + steps(axis)))
                };
                // A film on the wall stays what it is; what is inside the wall does not count.
                let own = if distance > 0.0 { *value } else { beside(FACE) };
                *value = own.min(beside(OUT));
            }
            *value = value.max(-(BEHIND + distance) * dx);
        }
    });
    shown
}
