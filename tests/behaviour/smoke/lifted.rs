//! Smoke that sinks, and hot air that rises.

use glug::math::Vector;
use glug::sim::{Setup, Simulation};

use crate::sim::advance;

use super::{ball, box_of_air, totals};

/// The velocity upwards of what is hot, or smoky, as a mean by how much it is so.
fn rise<const D: usize>(simulation: &Simulation<D>) -> f64 {
    let (state, blocks) = (simulation.state(), simulation.blocks());
    let (mut sum, mut moment) = (0.0, 0.0);
    for slot in blocks.slots().as_slice().iter().map(|&slot| slot as usize) {
        for local in 0..glug::grid::block_cells(D) {
            let share =
                f64::from(state.smoke.heat.block(slot)[local] + state.smoke.density.block(slot)[local]);
            if share > 0.0 {
                let mut above = blocks.cell_at(slot, local);
                above[1] += 1;
                let (next, high) = blocks.locate(above);
                let velocity = &state.gas.velocity[1];
                let [low, high] = [velocity.block(slot)[local], velocity.block(next as usize)[high]];
                sum += share;
                moment += share * 0.5 * f64::from(low + high);
            }
        }
    }
    moment / sum
}

/// A light ball in much air accelerates as if the air around it had half its mass, a disc as if it had all of it: by 2/3 and
/// 1/2 of what it would alone (FSCG §6.2 for the force; Lamb, *Hydrodynamics*, for the added mass).
fn what_is_light_rises_with_its_added_mass<const D: usize>(cells: usize) {
    let (alone, share) = (9.81 * 0.0034 * 30.0, [0.5, 2.0 / 3.0][D - 2]);
    let dt = 1e-3;
    let mut hot =
        Simulation::new(&box_of_air::<D>(cells, vec![(ball(0.5, 0.5, 0.1), 0.0, 30.0)], Vec::new()))
            .expect("hot air is enough to start");
    advance(&mut hot, dt);
    let found = rise(&hot) / dt;
    let expected = share * alone;
    // The walls are five radii away.
    assert!((found / expected - 1.0).abs() < 0.05, "{D}D: {found:.4} m/s², expected {expected:.4}");
    // Smoke of a tenth of the air's density sinks by as much as air that is lighter by a tenth rises.
    let mut smoky =
        Simulation::new(&box_of_air::<D>(cells, vec![(ball(0.5, 0.5, 0.1), 0.1, 0.0)], Vec::new()))
            .expect("smoke is enough to start");
    advance(&mut smoky, dt);
    let (found, expected) = (rise(&smoky) / dt, -share * 9.81 * 0.1);
    assert!((found / expected - 1.0).abs() < 0.05, "{D}D: {found:.4} m/s², expected {expected:.4}");
}

#[test]
fn what_is_light_rises_with_its_added_mass_2d() {
    what_is_light_rises_with_its_added_mass::<2>(120);
}

#[test]
fn what_is_light_rises_with_its_added_mass_3d() {
    what_is_light_rises_with_its_added_mass::<3>(40);
}

/// Smoke in layers, the heavier below: nothing moves.
fn layers_stay_at_rest<const D: usize>(cells: usize) {
    let mut max = Vector::<D>::repeat(1.0);
    max[1] = 0.4;
    let layer = glug::geometry::Shape::Box { min: Vector::zeros(), max };
    let setup = box_of_air::<D>(cells, vec![(layer, 0.5, 0.0)], Vec::new());
    let mut simulation = Simulation::new(&setup).expect("it starts");
    let before = totals(&simulation);
    (0..20).for_each(|_| drop(advance(&mut simulation, 0.05)));
    let fastest = simulation.state().max_component;
    assert!(fastest < 1e-4, "{D}D: layers move by {fastest:.1e} m/s");
    assert!((totals(&simulation).centroid[1] - before.centroid[1]).abs() < 1e-4, "{D}D: the layer moved");
}

#[test]
fn layers_stay_at_rest_2d() {
    layers_stay_at_rest::<2>(32);
}

#[test]
fn layers_stay_at_rest_3d() {
    layers_stay_at_rest::<3>(16);
}

fn plume<const D: usize>(cells: usize) -> Setup<D> {
    let mut setup = box_of_air::<D>(cells, vec![(ball(0.5, 0.25, 0.12), 0.05, 20.0)], Vec::new());
    setup.params.tolerance = 1e-9;
    setup
}

/// What starts the same on the left and on the right stays so.
fn a_plume_stays_symmetric<const D: usize>(cells: usize, frames: usize) {
    let mut simulation = Simulation::new(&plume::<D>(cells)).expect("it starts");
    let before = totals(&simulation);
    (0..frames).for_each(|_| drop(advance(&mut simulation, 1.0 / 30.0)));
    let (smoke, blocks) = (&simulation.state().smoke, simulation.blocks());
    let mut worst = 0f32;
    for slot in blocks.slots().as_slice().iter().map(|&slot| slot as usize) {
        for local in 0..glug::grid::block_cells(D) {
            let mut cell = blocks.cell_at(slot, local);
            cell[0] = cells as i32 - 1 - cell[0];
            let (other, at) = blocks.locate(cell);
            worst = worst.max((smoke.heat.block(slot)[local] - smoke.heat.block(other as usize)[at]).abs());
        }
    }
    let after = totals(&simulation);
    assert!(after.centroid[1] > before.centroid[1] + 0.15, "{D}D: it rose to {:?}", after.centroid);
    assert!(worst < 0.02, "{D}D: {worst:.1e} of 20 K between left and right");
}

#[test]
fn a_plume_stays_symmetric_2d() {
    a_plume_stays_symmetric::<2>(64, 25);
}

#[test]
fn a_plume_stays_symmetric_3d() {
    a_plume_stays_symmetric::<3>(32, 25);
}
