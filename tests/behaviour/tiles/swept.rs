//! The V-cycle with tiles after any number of smoothing sweeps.

use glug::grid::Field;
use glug::linear::{Solver, SolverParams, assemble_with_bodies};
use glug::math::{hash_unit, mix};

use super::dense::{rules, wavy_tank};

/// The factor by which a V-cycle alone, without conjugate gradients, multiplies the error's energy norm in the worst case.
fn factor_of_cycle<const D: usize>(side: usize, size: usize, sweeps: usize) -> f64 {
    const CYCLES: usize = 15;
    let mut tank = wavy_tank::<D>(side, &rules(size, 1), 5);
    tank.project();
    let system = tank.projection.system(&tank.blocks);
    let bodies = tank.projection.bodies();
    let tiles = bodies.as_ref().map_or(0, |bodies| bodies.list.len());
    assert!(tiles > 1, "{D}D {side}: {tiles} tiles");
    let assembled = assemble_with_bodies(&system, bodies.as_ref());
    let params = SolverParams { sweeps, ..SolverParams::default() };
    let mut solver = Solver::new();
    let mut r: Field<f64> = tank.projection.rhs().clone();
    r.as_mut_slice().fill(0.0);
    let mut z = r.clone();
    let noise = |&cell: &u32| f64::from(hash_unit(mix(u64::from(cell)))) - 0.5;
    let mut error: Vec<f64> = assembled.cells.iter().map(noise).collect();
    let mut factor = 0.0;
    for _ in 0..CYCLES {
        let mut product = vec![0.0; error.len()];
        assembled.matrix.iter().for_each(|(&value, (row, column))| product[row] += value * error[column]);
        let size = error.iter().zip(&product).map(|(e, r)| e * r).sum::<f64>().sqrt();
        factor = size;
        for (index, &cell) in assembled.cells.iter().enumerate() {
            error[index] /= size;
            r[cell as usize] = product[index] / size;
        }
        solver.precondition(&system, bodies.as_ref(), (&r, &[]), (&mut z, &mut []), &params);
        for (error, &cell) in error.iter_mut().zip(&assembled.cells) {
            *error -= z[cell as usize];
        }
    }
    factor
}

/// The tiles' response stayed as it was for all sweeps, however many: the more of them, the more it was overshot, until the V-cycle
/// was no longer positive and multigrid gave way to the diagonal (factors of 0.45 and 0.59 for three and four sweeps).
fn more_sweeps_converge_faster<const D: usize>(side: usize, size: usize, numbers: &[usize]) {
    let mut last = 0.42;
    for &sweeps in numbers {
        let factor = factor_of_cycle::<D>(side, size, sweeps);
        assert!(
            factor < last,
            "{D}D {side}, tiles of {size}, {sweeps} sweeps: {factor:.3}, {last:.3} before"
        );
        last = factor;
    }
}

#[test]
fn more_sweeps_converge_faster_2d() {
    more_sweeps_converge_faster::<2>(32, 8, &[1, 2, 3, 4, 8]);
    more_sweeps_converge_faster::<2>(48, 16, &[1, 2, 4]);
}

#[test]
fn more_sweeps_converge_faster_3d() {
    more_sweeps_converge_faster::<3>(14, 8, &[1, 2, 4]);
}
