//! Bodies of any weights in a system with tiles.

use std::collections::HashMap;

use glug::grid::Field;
use glug::linear::{Couplings, Solver, SolverParams, System, Unknown, assemble_with_bodies};
use glug::math::{hash_unit, mix};
use nalgebra::{DMatrix, DVector};

use crate::tank::Tank;

use super::dense::{rules, wavy_tank};

/// Two balls whose surfaces push the cells around them, seams beside tiles among these.
fn balls<const D: usize>(tank: &Tank<D>, side: usize, density: f64) -> Couplings {
    let system = tank.projection.system(&tank.blocks);
    let cells: HashMap<u32, ()> =
        glug::linear::assemble(&system).cells.iter().map(|&cell| (cell, ())).collect();
    let mut couplings = Couplings::default();
    for shift in [0.3, 0.6] {
        let centre = shift * side as f64;
        let (mut unknowns, mut forces) = (Vec::new(), Vec::new());
        for (cell, index) in
            tank.cells().into_iter().filter(|(_, index)| cells.contains_key(&(*index as u32)))
        {
            let offset = cell.map(|c| f64::from(c) + 0.5 - centre);
            let distance = offset.iter().map(|x| x * x).sum::<f64>().sqrt();
            if (distance - 0.1 * side as f64).abs() < 1.0 {
                unknowns.push(Unknown::Cell(index as u32));
                forces.extend(offset.map(|x| -x / distance));
            }
        }
        let mass = density * (0.1 * side as f64).powi(D as i32);
        couplings.push(&DMatrix::from_diagonal_element(D, D, 1.0 / mass), &unknowns, &forces);
    }
    couplings
}

/// `a·M b = b·M a` for the V-cycle `M` of a network with tiles and bodies.
fn preconditioner_is_symmetric<const D: usize>(side: usize, size: usize, sweeps: usize, density: f64) {
    let mut tank = wavy_tank::<D>(side, &rules(size, 2), 5);
    tank.project();
    let couplings = balls(&tank, side, density);
    let system = System { couplings: Some(&couplings), ..tank.projection.system(&tank.blocks) };
    let bodies = tank.projection.bodies();
    assert!(bodies.as_ref().is_some_and(|bodies| bodies.list.len() > 1), "{D}D {side}: tiles");
    let unknowns = glug::linear::assemble(&system).cells;
    let params = SolverParams { sweeps, ..SolverParams::default() };
    let mut solver = Solver::new();
    let mut apply = |seed: u64| {
        let mut r = tank.projection.rhs().clone();
        r.as_mut_slice().fill(0.0);
        for &cell in &unknowns {
            r[cell as usize] = f64::from(hash_unit(seed ^ u64::from(cell) << 8)) - 0.5;
        }
        let mut z = r.clone();
        solver.precondition(&system, bodies.as_ref(), (&r, &[]), (&mut z, &mut []), &params);
        (r, z)
    };
    let ((a, ma), (b, mb)) = (apply(1), apply(2));
    let dot = |a: &Field<f64>, b: &Field<f64>| {
        a.as_slice().iter().zip(b.as_slice()).map(|(a, b)| a * b).sum::<f64>()
    };
    assert!(dot(&a, &ma) > 0.0 && dot(&b, &mb) > 0.0, "{D}D {side}: positive");
    let asymmetry = (dot(&a, &mb) - dot(&b, &ma)).abs() / (dot(&a, &ma) * dot(&b, &mb)).sqrt();
    assert!(asymmetry < 1e-5, "{D}D {side} {sweeps} sweeps, density {density}: asymmetry {asymmetry:.1e}");
}

#[test]
fn preconditioner_is_symmetric_2d() {
    for density in [0.01, 1.0] {
        for sweeps in 1..3 {
            preconditioner_is_symmetric::<2>(64, 8, sweeps, density);
            preconditioner_is_symmetric::<2>(160, 32, sweeps, density);
        }
    }
}

#[test]
fn preconditioner_is_symmetric_3d() {
    for density in [0.01, 1.0] {
        preconditioner_is_symmetric::<3>(40, 8, 2, density);
    }
}

/// Tiles and bodies together against dense algebra.
fn solution_agrees_with_dense_algebra<const D: usize>(side: usize, size: usize, density: f64) {
    let mut tank = wavy_tank::<D>(side, &rules(size, 1), 5);
    tank.project();
    let couplings = balls(&tank, side, density);
    let system = System { couplings: Some(&couplings), ..tank.projection.system(&tank.blocks) };
    let bodies = tank.projection.bodies();
    let assembled = assemble_with_bodies(&system, bodies.as_ref());
    let count = assembled.cells.len();
    let mut matrix = DMatrix::zeros(count, count);
    assembled.matrix.iter().for_each(|(&value, (row, column))| matrix[(row, column)] = value);
    let mut rhs = tank.projection.rhs().clone();
    rhs.as_mut_slice().fill(0.0);
    for &cell in &assembled.cells {
        rhs[cell as usize] = f64::from(hash_unit(mix(u64::from(cell)))) - 0.5;
    }
    let b = DVector::from_iterator(count, assembled.cells.iter().map(|&cell| rhs[cell as usize]));
    let expected = matrix.cholesky().expect("a free surface").solve(&b);
    let mut x = rhs.clone();
    let params = SolverParams { tolerance: 1e-10, warm_start: false, ..SolverParams::default() };
    let info =
        Solver::new().solve(&system, bodies.as_ref(), &mut rhs, &mut x, &mut [], &mut [], &params, None);
    assert!(info.converged && !info.fallback, "{D}D {side}: {info:?}");
    assert!(info.iterations <= 22, "{D}D {side}, density {density}: {} iterations", info.iterations);
    let found = DVector::from_iterator(count, assembled.cells.iter().map(|&cell| x[cell as usize]));
    let error = (&found - &expected).norm() / expected.norm();
    assert!(error < 1e-7, "{D}D {side}, density {density}: error {error:.1e}");
}

#[test]
fn solutions_agree_with_dense_algebra_2d() {
    for density in [0.01, 1.0, 10.0] {
        solution_agrees_with_dense_algebra::<2>(48, 8, density);
    }
}

#[test]
fn solutions_agree_with_dense_algebra_3d() {
    for density in [0.01, 10.0] {
        solution_agrees_with_dense_algebra::<3>(14, 8, density);
    }
}
