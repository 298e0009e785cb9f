//! What smoke weighs, and what heat lifts.

use crate::grid::{Blocks, Field, Halo, SIDE, for_each_block, halo_cells, load_halo};
use crate::math::unflatten;

use super::Smoke;

const HALO: Halo = Halo::new(1);
const MOST: usize = halo_cells(HALO, 3);

/// Upward velocity that air gains in a substep.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lift {
    /// Per density of smoke, m/s per kg/m³: usually below zero.
    pub per_density: f64,
    /// Per heat, m/s per K.
    pub per_heat: f64,
}

impl<const D: usize> Smoke<D> {
    /// Accelerates the air: on faces between two cells by the mean of both, on others by that of the one that holds air. On
    /// these the pressure at the wall takes it back.
    pub fn lift(&self, blocks: &Blocks<D>, lift: &Lift, velocity: &mut [Field<f32>; D]) {
        const UP: usize = 1;
        let [per_density, per_heat] = [lift.per_density, lift.per_heat].map(|per| per as f32);
        if per_density == 0.0 && per_heat == 0.0 {
            return;
        }
        for_each_block(blocks.slots(), velocity[UP].parts(), |slot, velocity| {
            let load = |field: &Field<f32>| {
                let mut values = [0f32; MOST];
                load_halo(blocks, field, slot, HALO, &mut values);
                values
            };
            let [density, heat, air] = [&self.density, &self.heat, &self.air].map(load);
            for (row, velocity) in velocity.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
                let at = HALO.index(unflatten::<D>(row * SIDE, SIDE).map(|c| c as i32));
                for x in 0..SIDE {
                    let [mut gain, mut cells] = [0f32; 2];
                    for cell in [at + x - HALO.stride(UP), at + x] {
                        let counts = if air[cell] > 0.0 { 1.0 } else { 0.0 };
                        gain += counts * (per_density * density[cell] + per_heat * heat[cell]);
                        cells += counts;
                    }
                    velocity[x] += gain / cells.max(1.0);
                }
            }
        });
    }
}
