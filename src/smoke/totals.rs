//! How much smoke there is.

use crate::grid::{Blocks, block_cells};
use crate::math::Real;

use super::Smoke;

/// Smoke and heat as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals<const D: usize> {
    /// Smoke, kg (kg per metre of depth in 2D).
    pub mass: Real,
    /// Heat over that of the surroundings, summed over the air: K·m³ (K·m² in 2D).
    pub heat: Real,
    /// The densest cell, kg/m³.
    pub max_density: Real,
    /// The middle of the smoke, metres; the origin if there is none.
    pub centroid: [Real; D],
}

impl<const D: usize> Smoke<D> {
    /// Adds everything up, block by block.
    pub fn totals(&self, blocks: &Blocks<D>) -> Totals<D> {
        let (grid, mut sum, mut moment) = (blocks.grid(), [0.0; 2], [0.0; D]);
        let mut densest = 0f32;
        for slot in blocks.slots().as_slice().iter().map(|&slot| slot as usize) {
            let fields = [&self.air, &self.density, &self.heat].map(|field| field.block(slot));
            let reaches_out = blocks.reaches_out(slot);
            // A block by itself first, so that its few numbers are added before they meet large ones.
            let (mut of_block, mut moment_of_block) = ([0.0; 2], [0.0; D]);
            for local in 0..block_cells(D) {
                let [air, density, heat] = fields.map(|field| field[local]);
                if density == 0.0 && heat == 0.0 {
                    continue;
                }
                let cell = blocks.cell_at(slot, local);
                if reaches_out && !grid.contains(cell) {
                    continue;
                }
                let [mass, hot] = [density, heat].map(|value| Real::from(air) * Real::from(value));
                of_block = [of_block[0] + mass, of_block[1] + hot];
                (0..D).for_each(|k| moment_of_block[k] += mass * (Real::from(cell[k]) + 0.5));
                densest = if air > 0.0 { densest.max(density) } else { densest };
            }
            (0..2).for_each(|k| sum[k] += of_block[k]);
            (0..D).for_each(|k| moment[k] += moment_of_block[k]);
        }
        let volume = grid.cell_volume();
        Totals {
            mass: sum[0] * volume,
            heat: sum[1] * volume,
            max_density: densest.into(),
            centroid: moment.map(|moment| if sum[0] > 0.0 { moment / sum[0] * grid.dx } else { 0.0 }),
        }
    }
}
