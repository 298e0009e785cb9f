//! Smoke that sinks, and hot air that rises.

use std::f64::consts::PI;

use glug::math::Vector;
use glug::sim::{Setup, Simulation};

use crate::sim::advance;

use super::{ball, box_of_air, totals};

/// The velocity upwards of what is hot or smoky, `Σ θ u / Σ θ²` over faces across y with `θ` the share of the full heat or
/// density there: of what is all one, that is its mean velocity; the smeared edge of a ball does not change it.
fn rise<const D: usize>(simulation: &Simulation<D>, full: f64) -> f64 {
    let (state, blocks) = (simulation.state(), simulation.blocks());
    let (mut sum, mut moment) = (0.0, 0.0);
    for slot in blocks.slots().as_slice().iter().map(|&slot| slot as usize) {
        for local in 0..glug::grid::block_cells(D) {
            let mut below = blocks.cell_at(slot, local);
            below[1] -= 1;
            let (other, low) = blocks.locate(below);
            let carried = [(slot, local), (other as usize, low)].map(|(slot, local)| {
                f64::from(state.smoke.heat.block(slot)[local] + state.smoke.density.block(slot)[local])
            });
            let share = 0.5 * (carried[0] + carried[1]) / full;
            if share > 0.0 {
                sum += share * share;
                moment += share * f64::from(state.gas.velocity[1].block(slot)[local]);
            }
        }
    }
    moment / sum
}

/// A light ball in much air accelerates as if the air around it had half its mass, a disc as if it had all of it: by 2/3 and
/// 1/2 of what it would alone (FSCG §6.2 for the force; Lamb, *Hydrodynamics*, for the added mass, and for a shell around it,
/// which takes away another share: that of its volume in the shell's).
fn what_is_light_rises_with_its_added_mass<const D: usize>(cells: usize) {
    const RADIUS: f64 = 0.12;
    let dt = 1e-3;
    let volume = [PI * RADIUS.powi(2), 4.0 / 3.0 * PI * RADIUS.powi(3)][D - 2];
    let share = [0.5, 2.0 / 3.0][D - 2] * (1.0 - volume);
    // Air that is lighter by a tenth, and smoke that makes it heavier by a tenth.
    for (density, heat, alone) in [(0.0, 0.1 / 0.0034, 0.981), (0.1, 0.0, -0.981)] {
        let setup = box_of_air::<D>(cells, vec![(ball(0.5, 0.5, RADIUS), density, heat)], Vec::new());
        let mut simulation = Simulation::new(&setup).expect("smoke is enough to start");
        advance(&mut simulation, dt);
        let (found, expected) = (rise(&simulation, density + heat) / dt, share * alone);
        let off = found / expected - 1.0;
        assert!(off.abs() < 0.015, "{D}D: {found:.4} m/s², expected {expected:.4}, off by {off:.4}");
    }
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
    let mut setup = box_of_air::<D>(cells, vec![(ball(0.5, 0.25, 0.12), 0.01, 30.0)], Vec::new());
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
    assert!(worst < 0.02, "{D}D: {worst:.1e} of 30 K between left and right");
}

#[test]
fn a_plume_stays_symmetric_2d() {
    a_plume_stays_symmetric::<2>(64, 30);
}

#[test]
fn a_plume_stays_symmetric_3d() {
    a_plume_stays_symmetric::<3>(32, 30);
}
