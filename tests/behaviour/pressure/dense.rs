//! The projection of small random domains against a dense solve of the constrained problem it stands for.

use std::collections::HashMap;

use glug::geometry::Label;
use glug::linear::assemble;
use glug::math::{hash_unit, mix};
use nalgebra::{DMatrix, DVector};

use crate::tank::{Face, Tank};

/// Random open shares, surface and velocity in a small closed box: every kind of cell beside every other.
pub fn random_tank<const D: usize>(seed: u64) -> Tank<D> {
    let side = if D == 2 { 9 } else { 5 };
    let mut tank = Tank::<D>::new([side; D], 0.1, Vec::new());
    let grid = *tank.blocks.grid();
    let unit = |what: u64, cell: [i32; D]| {
        let key = cell.iter().fold(what, |key, &c| key * 137 + (c + 9) as u64);
        hash_unit(mix(seed).wrapping_add(key)) as f64
    };
    let (closed, whole) = (0.4 * hash_unit(mix(seed + 1)) as f64, 0.5 * hash_unit(mix(seed + 2)) as f64);
    // Every fourth domain is without air.
    let wet = if seed.is_multiple_of(4) { 1.0 } else { 0.3 + 0.6 * hash_unit(mix(seed + 3)) as f64 };
    for face in tank.faces() {
        let mut low = face.cell;
        low[face.axis] -= 1;
        let u = unit(face.axis as u64, face.cell);
        let open = match (grid.contains(low) && grid.contains(face.cell), u) {
            (false, _) => 0.0,
            (_, u) if u < closed => 0.0,
            (_, u) if u > 1.0 - whole => 1.0,
            _ => 0.002 + 0.99 * unit(5 + face.axis as u64, face.cell),
        };
        tank.boundary.open[face.axis][face.index] = open as f32;
        tank.velocity[face.axis][face.index] = (unit(10 + face.axis as u64, face.cell) - 0.5) as f32;
    }
    for (cell, index) in tank.cells() {
        // Also surfaces that touch a cell's centre.
        let depth = if unit(20, cell) < 0.1 { 0.0 } else { unit(21, cell) };
        let side = if unit(22, cell) < wet { -1.0 } else { 1.0 };
        tank.surface[index] = (side * depth * grid.dx) as f32;
    }
    tank
}

/// The liquid's share of a face's mass: all of it between liquid cells, theta at the surface.
fn theta<const D: usize>(tank: &Tank<D>, face: &Face<D>) -> Option<f64> {
    let (high, low) = (face.index, tank.below(face));
    let between = |liquid: usize, air: usize| {
        let (liquid, air) = ((-tank.surface[liquid]).max(0.0) as f64, tank.surface[air].max(0.0) as f64);
        if liquid + air > 0.0 { (liquid / (liquid + air)).clamp(0.01, 1.0) } else { 0.01 }
    };
    match (tank.label(low), tank.label(high)) {
        (Label::Liquid, Label::Liquid) => Some(1.0),
        (Label::Liquid, Label::Air) => Some(between(low, high)),
        (Label::Air, Label::Liquid) => Some(between(high, low)),
        _ => None,
    }
}

/// Faces that the liquid moves through, each with its mass per volume of a cell.
fn wet_faces<const D: usize>(tank: &Tank<D>) -> Vec<(Face<D>, f64)> {
    let open = tank.faces().into_iter().filter(|face| tank.open(face) > 0.0);
    open.filter_map(|face| theta(tank, &face).map(|theta| (face, theta * tank.open(&face)))).collect()
}

fn kinetic_energy<const D: usize>(tank: &Tank<D>, faces: &[(Face<D>, f64)]) -> f64 {
    faces.iter().map(|(face, mass)| 0.5 * mass * (tank.velocity[face.axis][face.index] as f64).powi(2)).sum()
}

/// Liquid cells that hang together without touching air, as lists of rows.
fn closed_pockets<const D: usize>(
    tank: &Tank<D>,
    faces: &[(Face<D>, f64)],
    row: &HashMap<usize, usize>,
) -> Vec<Vec<usize>> {
    // Row n stands for the air.
    let mut group: Vec<usize> = (0..=row.len()).collect();
    fn root(group: &[usize], mut at: usize) -> usize {
        while group[at] != at {
            at = group[at];
        }
        at
    }
    for (face, _) in faces {
        let ends = [face.index, tank.below(face)].map(|cell| row.get(&cell).copied().unwrap_or(row.len()));
        let [a, b] = ends.map(|end| root(&group, end));
        group[a] = b;
    }
    let mut pockets: HashMap<usize, Vec<usize>> = HashMap::new();
    (0..row.len()).for_each(|cell| pockets.entry(root(&group, cell)).or_default().push(cell));
    pockets.remove(&root(&group, row.len()));
    pockets.into_values().collect()
}

/// Solves min Σ m (u − u*)² / 2 subject to a net outflow of zero from every liquid cell, with multipliers and all.
/// Where a pocket is closed, the outflows need only agree, and the multipliers have mean zero.
fn dense_projection<const D: usize>(tank: &Tank<D>, faces: &[(Face<D>, f64)]) -> (Vec<f64>, usize) {
    let row: HashMap<usize, usize> =
        tank.liquid().iter().enumerate().map(|(row, cell)| (cell.1, row)).collect();
    let pockets = closed_pockets(tank, faces, &row);
    let (n, m, k) = (faces.len(), row.len(), pockets.len());
    let (mut matrix, mut right) = (DMatrix::zeros(n + m + k, n + m + k), DVector::zeros(n + m + k));
    for (f, (face, mass)) in faces.iter().enumerate() {
        matrix[(f, f)] = *mass;
        right[f] = mass * (tank.velocity[face.axis][face.index] as f64 + tank.impulse[face.axis]);
        for (cell, sign) in [(face.index, -1.0), (tank.below(face), 1.0)] {
            if let Some(row) = row.get(&cell) {
                matrix[(n + row, f)] += sign * tank.open(face);
                matrix[(f, n + row)] += sign * tank.open(face);
            }
        }
    }
    for (p, pocket) in pockets.iter().enumerate() {
        for &cell in pocket {
            matrix[(n + cell, n + m + p)] = 1.0;
            matrix[(n + m + p, n + cell)] = 1.0;
        }
    }
    let solution = matrix.lu().solve(&right).expect("the constrained problem has one solution");
    (solution.rows(0, n).iter().copied().collect(), k)
}

fn projection_agrees_with_a_dense_solve<const D: usize>(seed: u64) {
    let mut tank = random_tank::<D>(seed);
    tank.impulse = std::array::from_fn(|axis| if seed.is_multiple_of(2) { 0.0 } else { 0.3 - axis as f64 });
    tank.label_cells();
    let faces = wet_faces(&tank);
    let (expected, pockets) = dense_projection(&tank, &faces);
    let before = kinetic_energy(&tank, &faces);
    let solved = tank.project();
    assert!(solved.info.converged, "{D}D seed {seed}: {:?}", solved.info);
    assert_eq!(solved.info.closed_components, pockets, "{D}D seed {seed}: pockets without air");
    let scale = expected.iter().fold(1.0, |most: f64, u| most.max(u.abs()));
    for ((face, _), expected) in faces.iter().zip(&expected) {
        let found = tank.velocity[face.axis][face.index] as f64;
        let error = (found - expected).abs();
        let place = (face.axis, face.cell);
        assert!(error < 1e-6 * scale, "{D}D seed {seed}: {found} and not {expected} at {place:?}");
    }
    if tank.impulse == [0.0; D] {
        let after = kinetic_energy(&tank, &faces);
        assert!(after <= before * (1.0 + 1e-6), "{D}D seed {seed}: energy rose from {before} to {after}");
    }
    // Closed pockets have no net outflow to begin with, so that all of it can vanish.
    let outflow = tank.worst_outflow();
    assert!(outflow < 1e-5 * scale, "{D}D seed {seed}: net outflow of {outflow:.1e} m/s is left");
    // What is solved for and what is liquid are the same: no cell is without an equation.
    let assembled = assemble(&tank.projection.system(&tank.blocks));
    assert_eq!(assembled.cells.len(), tank.liquid().len(), "{D}D seed {seed}: an equation per liquid cell");
}

#[test]
fn projection_agrees_with_a_dense_solve_2d() {
    (0..16).for_each(projection_agrees_with_a_dense_solve::<2>);
}

#[test]
fn projection_agrees_with_a_dense_solve_3d() {
    (0..8).for_each(projection_agrees_with_a_dense_solve::<3>);
}

fn valid_faces_are_the_open_ones_at_liquid<const D: usize>() {
    for seed in 0..4 {
        let mut tank = random_tank::<D>(seed);
        let before = tank.velocity.clone();
        tank.project();
        for face in tank.faces() {
            let expected = tank.open(&face) > 0.0 && theta(&tank, &face).is_some();
            let place = (face.axis, face.cell);
            assert_eq!(tank.is_valid(&face), expected, "{D}D seed {seed}: face {place:?}");
            if !expected {
                let (now, then) = (tank.velocity[face.axis][face.index], before[face.axis][face.index]);
                assert_eq!(now, then, "{D}D seed {seed}: face {place:?} was none of its business");
            }
        }
    }
}

#[test]
fn valid_faces_are_the_open_ones_at_liquid_2d() {
    valid_faces_are_the_open_ones_at_liquid::<2>();
}

#[test]
fn valid_faces_are_the_open_ones_at_liquid_3d() {
    valid_faces_are_the_open_ones_at_liquid::<3>();
}
