//! Two fluids: air with mass beside the liquid.

pub mod projection;
mod runs;

use glug::bubbles::Measure;
use glug::geometry::Settled;
use glug::pressure::{FREE, OWN};

use crate::bubbles::shapes::regions_of;
use crate::tank::Tank;

/// Gives all air that touches liquid a density, over the liquid's.
pub fn weigh_air<const D: usize>(tank: &mut Tank<D>, density: f64) {
    let regions = regions_of(tank);
    let mut measure = Measure::new();
    measure.update(&tank.blocks, &tank.boundary, &tank.surface, &regions, &Settled::default());
    tank.region = regions.of.clone();
    tank.node = vec![FREE; regions.len()];
    tank.outflow = vec![0.0; regions.len()];
    tank.weight.clear();
    tank.air_mass = density;
    measure.touching().for_each(|(_, air, _)| tank.node[air as usize] = OWN);
}
