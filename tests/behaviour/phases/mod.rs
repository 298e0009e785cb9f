//! Two fluids: air with mass beside the liquid.

pub mod projection;
mod runs;

use glug::bubbles::Measure;
use glug::geometry::Settled;
use glug::pressure::{FREE, OWN};

use crate::bubbles::shapes::components_of;
use crate::tank::Tank;

/// Gives all air that touches liquid a density, over the liquid's.
pub fn weigh_air<const D: usize>(tank: &mut Tank<D>, density: f64) {
    let components = components_of(tank);
    let mut measure = Measure::new();
    measure.update(&tank.blocks, &tank.boundary, &tank.surface, &components, &Settled::default());
    tank.component = components.of.clone();
    tank.node = vec![FREE; components.len()];
    tank.outflow = vec![0.0; components.len()];
    tank.weight.clear();
    tank.air_mass = density;
    measure.touching().for_each(|(_, air, _)| tank.node[air as usize] = OWN);
}
