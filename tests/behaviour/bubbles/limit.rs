//! Constraint bubbles are what two liquids become when one of them weighs nothing.

use std::collections::HashMap;

use glug::geometry::Label;
use nalgebra::{DMatrix, DVector};

use crate::tank::Tank;

use super::dense::{Closed, WetFace, bubbly_tank, found_velocities, wet_faces};

/// Velocities of the wet faces when air is a second liquid of density `air` (that of the liquid is 1): one pressure
/// per cell of either, solved densely.
fn two_phase_velocities<const D: usize>(tank: &Tank<D>, wet: &[WetFace<D>], air: f64) -> Vec<f64> {
    let cells: Vec<usize> =
        tank.cells().into_iter().map(|(_, index)| index).filter(|&i| tank.label(i) != Label::Solid).collect();
    let row: HashMap<usize, usize> = cells.iter().enumerate().map(|(row, &cell)| (cell, row)).collect();
    // Every open face: its ends, open share, density, velocity before.
    let mut faces = Vec::new();
    for wet in wet {
        // The same share of the way through liquid as the constraint uses, clamp and all.
        let theta = wet.open / wet.link;
        faces.push((wet.face, wet.open, theta + (1.0 - theta) * air, wet.before));
    }
    for face in tank.faces() {
        let ends = [tank.label(tank.below(&face)), tank.label(face.index)];
        if ends == [Label::Air, Label::Air] && tank.open(&face) > 0.0 {
            let before = tank.velocity[face.axis][face.index] as f64 + tank.impulse[face.axis];
            faces.push((face, tank.open(&face), air, before));
        }
    }
    let n = cells.len();
    let (mut matrix, mut right) = (DMatrix::<f64>::zeros(n, n), DVector::<f64>::zeros(n));
    let mut group: Vec<usize> = (0..n).collect();
    for (face, open, density, before) in &faces {
        let (high, low) = (row[&face.index], row[&tank.below(face)]);
        let link = open / density;
        for (a, b) in [(high, low), (low, high)] {
            matrix[(a, a)] += link;
            matrix[(a, b)] -= link;
        }
        right[low] -= open * before;
        right[high] += open * before;
        let (a, b) = (group[high], group[low]);
        group.iter_mut().filter(|name| **name == a).for_each(|name| *name = b);
    }
    // Pressure is known up to a constant per container: any choice will do.
    for a in 0..n {
        for b in 0..n {
            if group[a] == group[b] {
                matrix[(a, b)] += 1.0;
            }
        }
    }
    let q = matrix.cholesky().expect("positive definite").solve(&right);
    let change = |(face, _, density, before): &(crate::tank::Face<D>, f64, f64, f64)| {
        before - (q[row[&face.index]] - q[row[&tank.below(face)]]) / density
    };
    faces[..wet.len()].iter().map(change).collect()
}

/// Whether the seed makes a tank with a bubble; without one there is nothing to compare.
fn the_constraint_is_the_limit_of_light_air<const D: usize>(seed: u64) -> bool {
    let (mut tank, _, _) = bubbly_tank::<D>(seed, Closed::All);
    if tank.weight.is_empty() {
        return false;
    }
    tank.impulse[1] = -0.3;
    let wet = wet_faces(&tank);
    let two_phase: Vec<Vec<f64>> =
        [1e-3, 1e-4, 1e-5, 1e-6].iter().map(|&air| two_phase_velocities(&tank, &wet, air)).collect();
    assert!(tank.project().info.converged);
    let limit = found_velocities(&tank, &wet);
    let distance =
        |found: &Vec<f64>| found.iter().zip(&limit).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let errors: Vec<f64> = two_phase.iter().map(distance).collect();
    // Ten times lighter, ten times closer.
    for pair in errors[1..].windows(2) {
        let ratio = pair[0] / pair[1];
        assert!((8.0..12.5).contains(&ratio), "{D}D seed {seed}: {errors:?} falls by {ratio:.2}");
    }
    assert!(errors[3] < 1e-2 && errors[0] > 1e-7, "{D}D seed {seed}: {errors:?}");
    true
}

/// Compares tanks of these seeds, at least so many of which have bubbles.
fn tanks_with_bubbles_agree<const D: usize>(seeds: std::ops::Range<u64>, least: usize) {
    let all = seeds.clone().count();
    let compared = seeds.filter(|&seed| the_constraint_is_the_limit_of_light_air::<D>(seed)).count();
    assert!(compared >= least, "{D}D: {compared} of {all} seeds have a bubble, {least} should");
}

#[test]
fn the_constraint_is_the_limit_of_light_air_2d() {
    tanks_with_bubbles_agree::<2>(1..9, 6);
}

#[test]
fn the_constraint_is_the_limit_of_light_air_3d() {
    tanks_with_bubbles_agree::<3>(1..5, 3);
}
